//! Python functions in stacks.
//!
//! [`look`] finds the interpreters of processes, bpf/python.h then walks their frames with each
//! user stack, and [`Functions`] gives these names and lines; [`join()`] puts them where the
//! interpreter's own loop is in the stack.
//!
//! All of it comes from the memory of a process that may say what it likes: names are text from
//! outside like any other, and no more than so many of them are kept.

mod function;
mod join;
mod lines;
mod look;
mod recording;

pub use self::function::{Function, Functions, read_function};
pub use self::join::{Called, join};
use self::look::Interpreters;
pub use self::recording::Python;
use crate::bpf::{self, python_frame, python_record};
use crate::wire::PythonEnd;

/// The Python side of a stack, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub calls: Box<[Call]>,
    /// True if it ends where the thread's Python begins.
    pub is_whole: bool,
}

/// A Python function that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which function.
    pub function: u64,
    /// As in the record: where it runs, and how it was called.
    place: u64,
}

impl Call {
    /// The instruction that runs.
    pub fn at(&self) -> u64 {
        self.place & !1
    }

    /// True if C called it: its caller is behind a loop of the interpreter of its own.
    pub fn is_entry(&self) -> bool {
        self.place & 1 == 1
    }
}

/// A record of the kernel side: which stack it belongs to, and what it is.
pub fn read_calls(bytes: &[u8]) -> Option<(u64, Calls)> {
    let number = |at| bpf::read::<u32>(bytes.get(at..)?);
    let stack = bpf::read::<u64>(bytes.get(std::mem::offset_of!(python_record, stack)..)?)?;
    let count = number(std::mem::offset_of!(python_record, count))? as usize;
    let end = number(std::mem::offset_of!(python_record, end))?;
    let all = bytes.get(std::mem::offset_of!(python_record, frames)..)?;
    let frames = all.chunks_exact(size_of::<python_frame>()).take(count);
    let calls = frames.filter_map(bpf::read::<python_frame>);
    let calls = calls.map(|frame| Call { function: frame.code, place: frame.at });
    let is_whole = PythonEnd::of(end) == Some(PythonEnd::Whole);
    Some((stack, Calls { calls: calls.collect(), is_whole }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_as_long_as_it_says_and_no_longer_than_it_is() {
        let frame = |n: u64| python_frame { code: n, at: 0x100 + n };
        let mut record = python_record { stack: 9, count: 2, ..Default::default() };
        (record.frames[0], record.frames[1]) = (frame(6), frame(7));
        let (stack, calls) = read_calls(bpf::bytes(&record)).unwrap();
        assert!(stack == 9 && calls.is_whole);
        let places = calls.calls.iter().map(|call| (call.function, call.at(), call.is_entry()));
        assert!(places.eq([(6, 0x106, false), (7, 0x106, true)]));
        (record.count, record.end) = (u32::MAX, PythonEnd::Deeper as u32);
        let cut = &bpf::bytes(&record)[..std::mem::offset_of!(python_record, frames) + 40];
        let (_, calls) = read_calls(cut).unwrap();
        assert!(calls.calls.len() == 2 && !calls.is_whole);
        assert_eq!(read_calls(&cut[..20]), None);
    }
}
