//! Bytes at an offset, copied. Never a mapping: a file that its owner cuts short gives an error
//! here, and there a SIGBUS.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

use super::error::ReadError;

/// What a trace is read from: a file, or bytes in memory.
pub trait Source {
    /// Fills the buffer from an offset on.
    fn copy(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Length in bytes, at this moment.
    fn length(&self) -> io::Result<u64>;
}

impl Source for File {
    fn copy(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl Source for Vec<u8> {
    fn copy(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.get(offset..)?.get(..buffer.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// A copy of some bytes of the file, which knows where they were.
pub(crate) struct Copied {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl Copied {
    /// Copies. What is copied by a later call is not older than what this one copied.
    pub fn acquire(source: &impl Source, offset: u64, length: usize) -> Result<Copied, ReadError> {
        let mut bytes = vec![0; length];
        source.copy(&mut bytes, offset).map_err(|source| ReadError::Read { offset, source })?;
        fence(Ordering::Acquire);
        Ok(Copied { offset, bytes })
    }

    /// The entries of some size, each with its own offset.
    pub fn entries(&self, size: usize) -> impl Iterator<Item = Entry<'_>> {
        self.bytes
            .chunks_exact(size)
            .enumerate()
            .map(move |(index, bytes)| Entry { offset: self.offset + (index * size) as u64, bytes })
    }

    pub fn entry(&self) -> Entry<'_> {
        Entry { offset: self.offset, bytes: &self.bytes }
    }
}

/// Some bytes of the file, parsed by their place in them.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub offset: u64,
    pub bytes: &'a [u8],
}

impl<'a> Entry<'a> {
    /// `at` is a place in the layout, and `bytes` at least as long as its structure.
    pub fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    pub fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes[at..at + N]);
        array
    }

    pub fn part(&self, at: usize, length: usize) -> Entry<'a> {
        Entry { offset: self.offset + at as u64, bytes: &self.bytes[at..at + length] }
    }
}
