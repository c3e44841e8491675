//! Settings and state: what can be known of a host, a process or a program file without recording
//! anything.
//!
//! Two runs can only be compared by someone who knows in what they differ. So every run carries a
//! fingerprint of its environment: a list of [`model::Fact`], the one important type here, each
//! with a stable name, the value as read, and where it was read.
//!
//! - [`fingerprint`]: the facts of the host, of a command about to be started, of a live process.
//! - [`doctor`]: facts that are known to cost latency, judged, and what to do.
//! - [`live`]: a live process: which calls are not bound yet.
//! - [`clock`]: what reading the clock costs, and the length of a jiffy.
//! - [`counters`]: numbers that the kernel keeps, to be read before and after.
//! - [`debug_files`]: the symbols of stripped files, where they are installed.
//! - [`secrets`]: what is left out of a fingerprint, by which rule.
//! - [`elf`]: facts of a program file: how it is bound, its PLT, what a return address is.
//! - [`patience`]: asks for what a process can make its reader wait for.
//! - [`perf_map`]: names of just-in-time compiled code.
//! - [`python`]: CPython interpreters: which file has one, and how it is laid out.
//! - [`mappings`]: what a process has mapped.
//! - [`read`]: reads small files of /proc and /sys, whose text others can shape.
//! - [`files`]: opens files that others chose, such as those that a process has mapped.
//!
//! Caveats. A fact that cannot be read is still a fact, with the value `unknown: <reason>`;
//! nothing here fails. Everything is read once, with bounded reads, and changes nothing; only the
//! cost of reading the clock is measured, in 0.5 ms (25 ms with the slowest clocks). Facts of
//! a process are racy by nature: it can exit or change between two of them.

pub mod clock;
pub mod command_line;
pub mod counters;
pub mod debug_files;
pub mod doctor;
pub mod elf;
pub mod files;
pub mod fingerprint;
pub mod live;
pub mod mappings;
mod mount;
pub mod patience;
mod patient_file;
pub mod perf_map;
pub mod python;
pub mod read;
pub mod secrets;
pub mod user_namespace;
mod words;
