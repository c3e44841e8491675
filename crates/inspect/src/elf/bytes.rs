//! Where the bytes of a file come from, and checked pieces of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use object::pod::{Pod, slice_from_all_bytes};

use super::ElfError;

/// Bytes at offsets.
pub trait Bytes {
    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    /// If there are not so many bytes, or they cannot be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// How many there are.
    ///
    /// # Errors
    /// If that cannot be found out.
    fn length(&self) -> io::Result<u64>;

    /// Bytes of memory that they take as long as they are there.
    fn memory(&self) -> usize {
        0
    }
}

impl Bytes for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl Bytes for [u8] {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(into.len()));
        match start.zip(end).and_then(|(start, end)| self.get(start..end)) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl Bytes for Vec<u8> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_at(offset, into)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn memory(&self) -> usize {
        self.capacity()
    }
}

/// A piece of a file, which has to lie within it and to have at most `most` bytes.
pub(super) fn piece(
    source: &dyn Bytes,
    what: &str,
    (offset, length): (u64, u64),
    most: u64,
) -> Result<Vec<u8>, ElfError> {
    if length > most {
        let text = format!("{what} of {length} bytes; at most {most} are read");
        return Err(ElfError::damaged(text));
    }
    let end = offset.checked_add(length);
    if end.is_none_or(|end| source.length().is_ok_and(|all| end > all)) {
        let text = format!("{what} at offset {offset:#x}, {length} bytes, beyond the end");
        return Err(ElfError::damaged(text));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    source.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

/// Entries of a table in such a piece; a part of an entry at its end is damage.
pub(super) fn entries<'b, T: Pod>(what: &str, bytes: &'b [u8]) -> Result<&'b [T], ElfError> {
    slice_from_all_bytes(bytes).map_err(|()| {
        let (length, size) = (bytes.len(), size_of::<T>());
        ElfError::damaged(format!("{what} of {length} bytes, with entries of {size}"))
    })
}
