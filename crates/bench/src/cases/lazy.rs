//! A library that is loaded and unloaded, with a call that the dynamic linker binds. Not a case
//! itself.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use super::Request;
use crate::Error;

/// Built by build.rs from lazy.c.
const IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lazy.so"));

/// A file with the library for each worker: the linker shares what comes from one file.
pub fn files(request: &Request<'_>) -> Result<Vec<CString>, Error> {
    let file = |id| {
        let path = request.traces.folder().join(format!("lazy.{id}.so"));
        let doing = format!("writing {}", path.display());
        fs::write(&path, IMAGE).map_err(|source| Error::Os { doing, source })?;
        CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::Refused("the folder's name has a zero byte".to_owned()))
    };
    (0..request.workers).map(file).collect()
}

/// The library, loaded by the program; unloaded when dropped.
pub struct Library {
    handle: *mut c_void,
    call: extern "C" fn() -> c_int,
}

// SAFETY: a handle of the dynamic linker is good in any thread.
unsafe impl Send for Library {}

impl Library {
    /// Loads it, to be bound at first calls (RTLD_LAZY) or at once (RTLD_NOW).
    pub fn load(file: &CStr, binding: c_int) -> Result<Library, Errno> {
        // SAFETY: a library of ours without constructors; the name ends with a zero byte.
        let handle = unsafe { libc::dlopen(file.as_ptr(), binding | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(Errno::LIBACC);
        }
        // SAFETY: the handle is valid, the name ends with a zero byte.
        let symbol = unsafe { libc::dlsym(handle, c"whylag_call".as_ptr()) };
        if symbol.is_null() {
            return Err(Errno::LIBBAD);
        }
        // SAFETY: lazy.c defines the function so.
        let call = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(symbol) };
        Ok(Library { handle, call })
    }

    /// Calls the function that calls through the slot.
    #[inline]
    pub fn call(&self) {
        std::hint::black_box((self.call)());
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle of load(); nobody calls the function any more.
        unsafe { libc::dlclose(self.handle) };
    }
}

/// Fails if the library stays loaded, since then its slot stays bound as well.
pub fn check_unloads(file: &CStr) -> Result<(), Error> {
    let why = |what: &str| Error::Refused(format!("the dynamic linker {what}"));
    drop(Library::load(file, libc::RTLD_LAZY).map_err(|_| why("cannot load a library"))?);
    match is_loaded(file) {
        true => Err(why("keeps a library that is no longer used")),
        false => Ok(()),
    }
}

/// True if a library of this file is loaded.
pub fn is_loaded(file: &CStr) -> bool {
    // SAFETY: only asks; a handle that is returned is given back.
    unsafe {
        let handle = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        !handle.is_null() && libc::dlclose(handle) == 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// The first quartile of the first call of libraries just loaded, ns.
    fn first_call(file: &CStr, binding: c_int) -> u128 {
        let mut times: Vec<u128> = (0..101)
            .map(|_| {
                let library = Library::load(file, binding).unwrap();
                let began = Instant::now();
                library.call();
                began.elapsed().as_nanos()
            })
            .collect();
        times.sort_unstable();
        times[25]
    }

    #[test]
    fn a_lazy_slot_is_bound_by_the_first_call_each_time_the_library_is_loaded() {
        let traces = crate::tidy::Traces::begin().unwrap();
        let kind = model::WorkerKind::Threads;
        let request = Request { workers: 1, kind, population: 0, traces: &traces };
        let file = &files(&request).unwrap()[0];
        check_unloads(file).unwrap();
        assert!(!is_loaded(file));
        let kept = Library::load(file, libc::RTLD_LAZY).unwrap();
        assert!(is_loaded(file));
        assert!(check_unloads(file).is_err(), "it is in use");
        drop(kept);
        let (lazy, now) = (first_call(file, libc::RTLD_LAZY), first_call(file, libc::RTLD_NOW));
        assert!(lazy > now + 50, "{lazy} ns when bound by the call, {now} ns when bound before");
    }
}
