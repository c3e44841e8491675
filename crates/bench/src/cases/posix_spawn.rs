//! posix-spawn: the life of a tiny program.

use std::ffi::CStr;
use std::path::Path;

use rustix::io::Errno;

use super::{Alone, Benchmark, PROCESSES, last_error};
use crate::{Error, Work};

const PROGRAM: &CStr = c"/bin/true";

pub const CASE: Benchmark = Benchmark {
    id: "posix-spawn",
    measures: "posix_spawn() of /bin/true and waitpid(): vfork, exec, its dynamic linking, exit",
    ladder: PROCESSES,
    prepare: |_| {
        if !Path::new("/bin/true").exists() {
            return Err(Error::Refused("there is no /bin/true to be run".to_owned()));
        }
        Ok(Box::new(Alone(|_| Ok(Box::new(spawn) as Box<dyn Work>))))
    },
};

fn spawn() -> Result<(), Errno> {
    let arguments = [PROGRAM.as_ptr().cast_mut(), std::ptr::null_mut()];
    let environment = [std::ptr::null_mut()];
    let mut child = 0;
    // SAFETY: the lists end with null, and neither file actions nor attributes are given.
    let failed = unsafe {
        libc::posix_spawn(
            &raw mut child,
            PROGRAM.as_ptr(),
            std::ptr::null(),
            std::ptr::null(),
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    if failed != 0 {
        return Err(Errno::from_raw_os_error(failed));
    }
    // SAFETY: a child of ours; its status is not wanted.
    match unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } {
        -1 => Err(last_error()),
        _ => Ok(()),
    }
}
