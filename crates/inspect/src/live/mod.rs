//! A live process: what is mapped where, and which calls are not bound yet.
//!
//! - [`Process`]: the one important type: a process that is looked at from outside.
//! - [`bindings()`]: each library with the slots of its PLT that still point back into it, and so
//!   will go through the dynamic linker at their first call.
//! - [`Watch`]: those slots again and again: what became bound meanwhile.
//! - [`Places`]: return addresses of the process as text.
//!
//! Nothing here stops the process, attaches to it or sends it a signal: its memory is read through
//! /proc/PID/mem while it runs on. The kernel takes the process's mmap_lock for reading meanwhile,
//! for some microseconds, and brings a slot's page in if it is not in memory. The files are those that the process has mapped, wherever it is:
//! /proc/PID/map_files leads to them also in another mount namespace and when they are deleted;
//! without the privilege for that, /proc/PID/root does for what is not deleted.
//!
//! Caveats. A process can exit, execute another program, or unload a library at any moment: then
//! there is an error or a library whose state is unknown, and never a mixture of two programs, for
//! memory once opened stays that of the old one. What is read is some microseconds old.

mod bindings;
mod error;
mod places;
mod process;
mod watch;

pub use bindings::{Library, Slots, bindings, bindings_at};
pub use error::LiveError;
pub use places::Places;
pub use process::Process;
pub use watch::{Bound, Watch};
