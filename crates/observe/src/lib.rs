//! The recorder: watches threads of the running kernel and turns what happens into model types.
//!
//! The one important type is [`Recorder`]: started on a [`Watch`], asked about once a second for
//! a [`model::Batch`], and finished for the last one. With privilege and BTF it records with
//! eBPF ([`capability`] decides, bpf/ is the kernel side); without, it samples /proc.
//!
//! Caveats. Accounts are exact to the clock's resolution for what the tracepoints show; on-CPU
//! time of a page fault is in the account of the code that faulted, because a fault's end has no
//! tracepoint. With [`Detail::Cheap`], or where a CPU makes too many of them ([`Detail::Affordable`]), system
//! calls are known from short windows alone. It runs on
//! x86-64; for aarch64 it compiles (`bpf/arch.h`). A histogram belongs to a
//! process until three quarters of the slots are taken; then new ones are shared by all (tgid 0).
//! Kernel memory is bounded: 107 MB for 24,576 threads, 8 to 32 MiB of rings, 64 to 512 MiB of
//! histograms (see `sizes`), maps of sums of about 20 MB when full, and 200 bytes for each of at
//! most 262,144 connections of the target (700 for a socket of UDP); the recorder itself keeps at
//! most 65,536 outliers (45 MB) and 48 MiB of other records waiting, and 48 MiB of Python functions. With 20,000 threads and 200,000 events a second its
//! resident memory peaked at 250 MB.

mod bound;
mod bpf;
mod bpf_log;
mod call_windows;
pub mod capability;
mod cgroups;
mod code;
mod convert;
mod cost;
mod counters;
mod crowd;
mod demangle;
mod drain;
mod error;
mod events;
mod files_of;
mod first_calls;
mod frequent;
mod histograms;
mod host;
mod inbox;
mod kallsyms;
mod kernel_btf;
mod kernel_symbols;
mod launch;
mod location;
mod lock_owners;
mod map_entries;
mod mappings;
mod names;
mod namespace;
mod naming_time;
mod parts;
mod presence;
mod privilege;
mod probes;
mod prototype;
mod python;
mod queue_state;
mod queues;
mod recorder;
mod requests;
mod sample_timers;
mod sampled;
mod sends;
mod sizes;
mod socket_walk;
mod sockets;
mod squeezed;
mod stacks;
mod standing;
mod sums;
mod thread_room;
mod tracer;
mod unwind;
mod urgency;
mod wakeup;
mod watch;
mod wire;

pub use cgroups::CgroupName;
pub use error::Error;
pub use first_calls::{FirstCalls, SeenCall};
pub use privilege::{Work, keep_for};
pub use recorder::Recorder;
pub use sampled::children_of;
pub use watch::{Detail, SlowRequests, Timers, Watch, WatchTarget};
