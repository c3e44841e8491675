//! Many tasks that sleep, and reading /proc as ps does. Not a case itself.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use rustix::io::Errno;

use super::Population;
use crate::Error;
use crate::ceiling::Resource;
use crate::helpers::Helpers;

/// Threads of a process on the story's hosts: 250,000 in 5,000 processes.
const EACH: u64 = 50;
/// A thread that only sleeps needs next to no stack.
const STACK: usize = 64 << 10;

/// The story had 125,000 and 250,000; half of the pids of a host with the usual 32,768 allow these.
pub const LADDER: Population =
    Population { of: "sleeping threads", sizes: &[0, 1_000, 5_000, 15_000], uses: Resource::Tasks };

/// Threads that sleep in helper processes, 50 to each.
pub fn hold(n: u64) -> Result<Helpers, Error> {
    Helpers::hold(n, EACH, |share| {
        // The process is one of them.
        for _ in share.skip(1) {
            std::thread::Builder::new()
                .stack_size(STACK)
                .spawn(|| {
                    loop {
                        std::thread::park();
                    }
                })
                .map_err(|source| Error::Os { doing: "starting a thread".to_owned(), source })?;
        }
        Ok(())
    })
}

/// Reads what ps reads: of each process its owner, /proc/PID/stat and /proc/PID/status.
pub fn scan(buffer: &mut [u8]) -> Result<(), Errno> {
    let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    for entry in fs::read_dir("/proc").map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let pid = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        // A process may end while it is read: then the rest of it is not there.
        if let Some(pid) = pid {
            let _ = read_process(&Path::new("/proc").join(pid), buffer);
        }
    }
    Ok(())
}

fn read_process(folder: &Path, buffer: &mut [u8]) -> std::io::Result<()> {
    fs::metadata(folder)?;
    for name in ["stat", "status"] {
        let mut file = File::open(folder.join(name))?;
        while file.read(buffer)? > 0 {}
    }
    Ok(())
}
