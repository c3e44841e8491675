//! A part of the programs, loaded by a thread of its own while the others are: most of the time until a recording
//! begins is the kernel's verifier.
//!
//! They are of a second object of the same bytes, which has the maps of the first one.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, OpenObject, libbpf_sys};
use model::RecorderPart;

use crate::bpf::{WhylagSkel, WhylagSkelBuilder};
use crate::parts::PROBES;

/// Parts whose programs take two fifths of the verifier's time, and are found by their names alone.
const PARTS: [RecorderPart; 4] = [
    RecorderPart::SystemCalls,
    RecorderPart::MmapLock,
    RecorderPart::Faults,
    RecorderPart::Requests,
];

/// Those of these programs that are loaded beside the others; none where there is one CPU.
pub fn programs(wanted: &[&'static str]) -> Vec<&'static str> {
    let is_alone = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2);
    let beside = PROBES.iter().filter(|probe| !is_alone && PARTS.contains(&probe.part));
    beside.map(|probe| probe.program).filter(|program| wanted.contains(program)).collect()
}

/// The maps of an object that is open: made now, in the order of the object. The descriptors are others than its
/// own, which it closes if it cannot be loaded.
pub fn make_maps(open: &OpenObject) -> Result<Vec<OwnedFd>, libbpf_rs::Error> {
    // SAFETY: the object is open, and nobody else uses it meanwhile.
    let failed = unsafe { libbpf_sys::bpf_object__prepare(open.as_libbpf_object().as_ptr()) };
    if failed != 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-failed));
    }
    let duplicate = |map: libbpf_rs::OpenMap<'_>| {
        // SAFETY: the map is one of an object that is open; the call only reads a field of it.
        let fd = unsafe { libbpf_sys::bpf_map__fd(map.as_libbpf_object().as_ptr()) };
        if fd < 0 {
            return Err(libbpf_rs::Error::from_raw_os_error(libc::EBADF));
        }
        // SAFETY: the object has it open.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        Ok(fd.try_clone_to_owned()?)
    };
    open.maps().map(duplicate).collect()
}

/// Loads these programs with the maps of another object.
pub fn load(programs: &[&str], maps: &[OwnedFd]) -> Result<Beside, libbpf_rs::Error> {
    let storage: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = WhylagSkelBuilder::default().open(storage)?;
    for (mut map, fd) in open.open_object_mut().maps_mut().zip(maps) {
        map.reuse_fd(fd.as_fd())?;
    }
    for mut program in open.open_object_mut().progs_mut() {
        let is_wanted = programs.iter().any(|wanted| program.name() == *wanted);
        program.set_autoload(is_wanted);
    }
    Ok(Beside(open.load()?))
}

/// Programs that were loaded so.
pub struct Beside(pub WhylagSkel<'static>);

// SAFETY: libbpf's objects may go from thread to thread, as libbpf-rs says of its own `Object`, and all else in
// a skeleton points into its object.
unsafe impl Send for Beside {}
