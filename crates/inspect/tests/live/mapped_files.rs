//! Files that are no good libraries, mapped as code.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

use inspect::live::{Process, bindings};

use crate::{hostile, look, of};

/// A file as code in this very process, until dropped.
struct Mapped(*mut libc::c_void);

impl Mapped {
    const LENGTH: usize = 8192;

    fn new(path: &Path) -> Mapped {
        let file = fs::File::open(path).unwrap();
        // SAFETY: a new mapping of a file that nobody changes; nothing runs from it.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Mapped::LENGTH,
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(mapped, libc::MAP_FAILED);
        Mapped(mapped)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping from above, which nobody uses.
        unsafe { libc::munmap(self.0, Mapped::LENGTH) };
    }
}

/// A process can map what it likes as code, and its maps then name that file.
#[test]
fn files_that_lie_can_be_mapped_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.so");
    let mut random = 88_172_645_463_325_252u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut looked = 0;
    for round in 0..400 {
        let mut file = hostile::good(round).to_vec();
        // Addresses of segments are in the first part, those of slots in the last.
        for _ in 0..1 + next() % 6 {
            let at = (next() as usize % if next() % 2 == 0 { 600 } else { file.len() - 8 }) & !7;
            let value = match next() % 4 {
                0 => u64::MAX - next() % 4096,
                1 => next() % 8192,
                2 => 1 << (next() % 64),
                _ => next(),
            };
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        fs::write(&path, file).unwrap();
        let _mapped = Mapped::new(&path);
        let process = Process::open(std::process::id()).unwrap();
        let libraries = bindings(&process).unwrap();
        looked += libraries.iter().filter(|library| library.name() == "hostile.so").count();
        fs::remove_file(&path).unwrap();
    }
    assert!(looked > 100, "{looked}");
}

/// 32-bit code is mapped by this very process.
#[test]
fn a_32_bit_library_is_unknown_here() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/elf/i386.so");
    let _mapped = Mapped::new(&corpus);
    let libraries = look(std::process::id());
    let why = of(&libraries, "i386.so").slots.as_ref().err().unwrap();
    assert!(why.contains("unknown here: a 32-bit ELF file"), "{why}");
}
