//! getdents: what is in a folder.

use std::os::fd::AsRawFd;

use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use rustix::io::Errno;

use super::folder::{self, BLOCK};
use super::staged::staged;
use super::{Benchmark, THREADS};

/// Files in the folder.
const FILES: usize = 100;
/// Bytes that an entry takes at least (linux_dirent64 with a name of one byte).
const ENTRY: usize = 24;

pub const CASE: Benchmark = Benchmark {
    id: "getdents",
    measures: "getdents64() of a folder of 100 files of the worker's own, in one call",
    ladder: THREADS,
    prepare: |request| {
        folder::each(request, |own| {
            (0..FILES).try_for_each(|name| own.file(name, 0).map(drop))?;
            let mut buffer = vec![0u64; 2 * BLOCK / size_of::<u64>()];
            Ok(staged(
                open(own.path(".")?, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?,
                |list| seek(list, SeekFrom::Start(0)).map(drop),
                move |list| {
                    let (to, bytes) = (buffer.as_mut_ptr(), size_of_val(&buffer[..]));
                    // SAFETY: `to` is valid for writing so many bytes.
                    let got =
                        unsafe { libc::syscall(libc::SYS_getdents64, list.as_raw_fd(), to, bytes) };
                    if got >= (FILES * ENTRY) as i64 { Ok(()) } else { Err(Errno::IO) }
                },
            ))
        })
    },
};
