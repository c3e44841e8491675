//! The generated skeleton of the kernel side, and safe reading of its records.

#[allow(
    missing_docs,
    dead_code,
    clippy::all,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    unsafe_op_in_unsafe_fn
)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/whylag.skel.rs"));
}

pub use skel::{OpenWhylagSkel, WhylagSkel, WhylagSkelBuilder};

/// A record of integers only, so that any bytes are a valid value of it.
///
/// # Safety
/// Implementors have no pointer, reference, bool or enum inside.
pub unsafe trait Record: Copy {}

macro_rules! records {
    ($($name:ident)*) => {
        $(
            pub use skel::types::$name;
            // SAFETY: build/header.rs has read that this struct has integer fields only.
            unsafe impl Record for $name {}
        )*
    };
}

// All structs of wire.h.
include!(concat!(env!("OUT_DIR"), "/records.rs"));

pub use skel::types::{cpu, thread};
// SAFETY: state.h gives it integer fields only, and structs of wire.h.
unsafe impl Record for cpu {}

// SAFETY: an integer.
unsafe impl Record for u32 {}
// SAFETY: an integer.
unsafe impl Record for u64 {}

/// The record at the start of `bytes`, `None` if they are too few.
pub fn read<T: Record>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked, unaligned reads are allowed here, and every bit pattern is a
    // valid T (see Record).
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A record as the kernel side has it.
pub fn bytes<T: Record>(record: &T) -> &[u8] {
    // SAFETY: the bytes are those of the record, and live as long; wire.h has its padding as fields,
    // so all of them are initialized.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(record).cast(), size_of::<T>()) }
}

/// Text of a fixed-size C string field.
pub fn text(field: &[i8]) -> String {
    let bytes: Vec<u8> = field.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// A program for locks that runs within the wait for a ring's lock, or an LRU map's, must not
    /// take it again: kernels before 6.15 would wait for themselves.
    #[test]
    fn rings_are_only_used_where_programs_for_locks_see_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
        let mut used = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for (number, line) in lines.iter().enumerate() {
                if line.contains("bpf_ringbuf_reserve(") || line.contains("bpf_ringbuf_output(") {
                    let before = lines[number.saturating_sub(1)];
                    assert!(before.contains("hold_own(cpu)"), "{}: {line}", path.display());
                    used.push(path.clone());
                }
            }
        }
        assert_eq!(used.len(), 2, "{used:?}");
    }
}
