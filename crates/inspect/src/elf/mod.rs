//! Facts of an ELF file: how it is bound, which calls leave it, and what a return address is.
//!
//! A dynamically linked program calls the functions of other libraries through its procedure
//! linkage table (PLT). Each entry of it jumps to where a slot of the global offset table (GOT)
//! points. With lazy binding all slots first point back into the PLT; the first call of each goes
//! through the dynamic linker, which looks the symbol up in every library that is loaded, and that
//! can take milliseconds when the pages needed are not in memory.
//!
//! - [`Elf`]: the one important type: what is known of a file, with all its slots.
//! - [`CallSites`]: a return address as `rate_timer+0x9e3 (after call sched_yield@plt)`.
//! - [`Unwinder`]: who called, in code without frame pointers, by the tables for exceptions.
//! - [`WaysOut`]: the same in code that has no tables either, by reading on until it returns.
//! - [`Exports`]: where a file has the data that it exports.
//! - [`build_id()`]: the identity of a file.
//! - [`debug_link`], [`debug_data`]: where the symbols of a stripped file are.
//! - [`Bytes`]: where the bytes come from; files and slices.
//!
//! x86-64 and aarch64 are read, little-endian; anything else is [`ElfError::Unknown`], with the
//! reason.
//!
//! Caveats. A file may be damaged, or made to harm its reader: each offset is checked against the
//! length, what is read at once is bounded, and a lie gives [`ElfError::Damaged`]. Section headers
//! are used for symbols that nothing else leads to only; everything else is found as the dynamic linker
//! finds it, so stripped files lose nothing.

mod build_id;
mod bytes;
mod call_sites;
mod debug_data;
mod dynamic;
mod error;
mod exports;
mod file;
mod functions;
mod go_functions;
mod header;
mod instructions;
mod relocations;
mod sections;
mod strings;
mod unwind;
mod ways_out;

pub use build_id::{build_id, build_id_of};
pub use bytes::Bytes;
pub use call_sites::{Call, CallSites, Place};
pub use debug_data::{DebugLink, debug_data, debug_link};
pub use error::ElfError;
pub use exports::Exports;
pub use file::{Binding, Elf, Kind, PltForm, Relro, Slot};
pub use header::{Machine, Segment};
pub use unwind::{Registers, Step, Unwinder};
pub use ways_out::WaysOut;
