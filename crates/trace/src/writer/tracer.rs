//! The tracer of a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::area::Area;
use super::file::TraceFile;
use super::flow::FlowBuilder;
use super::folder;
use super::names::Names;
use super::thread::{self, Thread};
use crate::Error;
use crate::layout::{MOST_BLOCKS, MOST_BYTES, MOST_FLOWS, MOST_NAMES, MOST_THREADS, Plan};

/// Traces this process into a file, until it is dropped.
///
/// Dropping it ends the tracing: the file is removed, and calls through flows and threads that
/// still exist do nothing that anybody sees.
pub struct Tracer(Option<Arc<Shared>>);

/// What flows and threads share.
pub(crate) struct Shared {
    pub area: Area,
    pub names: Names,
    /// Names of the flows so far; held while one is made.
    pub flows: Mutex<Vec<String>>,
    /// Distinguishes this tracer from an earlier one of the process.
    pub generation: u32,
    file: TraceFile,
    keep: bool,
    pid: u32,
}

/// The process that has a tracer, 0 for none: not true any more in the child of a fork.
static OWNER: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);

impl Tracer {
    /// A tracer for this process, in `/dev/shm/whylag-UID` unless said otherwise.
    pub fn builder() -> Builder {
        Builder {
            folder: None,
            keep: None,
            plan: Plan { names: 256, flows: 16, threads: 64, recent: 64, slow: 64, blocks: 16 },
        }
    }

    /// A tracer that does nothing: each call returns at once.
    pub fn off() -> Tracer {
        Tracer(None)
    }

    /// Whether anything is written.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The file, unless the tracer is off.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_ref().map(|shared| shared.file.path.as_path())
    }

    /// Declares a kind of message.
    pub fn flow<'a>(&'a self, name: &'a str) -> FlowBuilder<'a> {
        FlowBuilder::new(self.0.as_ref(), name)
    }

    /// Registers the calling thread. The handle is what starts the logic of a message; a thread
    /// that only marks points keeps it so that its marks carry its name.
    pub fn thread(&self) -> Result<Thread, Error> {
        self.0.as_ref().map_or_else(|| Ok(Thread::off()), thread::register)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let Some(shared) = &self.0 else { return };
        // The child of a fork has no file to close.
        if shared.pid == std::process::id() {
            shared.file.close(shared.keep);
            OWNER.store(0, Ordering::Release);
        }
    }
}

/// How much a tracer has room for. What is asked for is taken from memory at once.
#[derive(Clone, Debug)]
pub struct Builder {
    folder: Option<PathBuf>,
    keep: Option<bool>,
    plan: Plan,
}

impl Builder {
    /// Another folder; it has to be the user's own, on a tmpfs.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Keeps the file when the tracer is dropped. If not said, WHYLAG_TRACE_KEEP decides.
    pub fn keep(mut self, keep: bool) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Different names, of flows, points and publishes: 256 if not said.
    pub fn names(mut self, most: usize) -> Self {
        self.plan.names = most;
        self
    }

    /// Threads that may ever register: 64 if not said. Each takes its rings.
    pub fn threads(mut self, most: usize) -> Self {
        self.plan.threads = most;
        self
    }

    /// Recent messages that are kept for each thread, a power of two: 64 if not said, 512 bytes
    /// each.
    pub fn recent(mut self, records: usize) -> Self {
        self.plan.recent = records;
        self
    }

    /// Slow messages that are kept for each thread, a power of two: 64 if not said.
    pub fn slow(mut self, records: usize) -> Self {
        self.plan.slow = records;
        self
    }

    /// Pairs of a thread and a flow that it ends messages of: 16 if not said, 233 KiB each.
    pub fn histograms(mut self, most: usize) -> Self {
        self.plan.blocks = most;
        self
    }

    /// Makes the file. With WHYLAG_TRACE=off there is none, and the tracer is off.
    pub fn build(self) -> Result<Tracer, Error> {
        if std::env::var_os("WHYLAG_TRACE").is_some_and(|value| value == "off" || value == "0") {
            return Ok(Tracer::off());
        }
        self.check()?;
        let pid = std::process::id();
        let before = OWNER.load(Ordering::Acquire);
        if before == pid
            || OWNER.compare_exchange(before, pid, Ordering::AcqRel, Ordering::Relaxed).is_err()
        {
            return Err(Error::Second);
        }
        let folder = self.folder.unwrap_or_else(folder::usual);
        let file = TraceFile::make(&folder, &self.plan)
            .inspect_err(|_| OWNER.store(0, Ordering::Release))?;
        let keep = self.keep.unwrap_or_else(|| std::env::var_os("WHYLAG_TRACE_KEEP").is_some());
        // Of 16 bits: see `thread::Lane`.
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed) & 0x7fff;
        Ok(Tracer(Some(Arc::new(Shared {
            area: file.area,
            names: Names::default(),
            flows: Mutex::default(),
            generation,
            file,
            keep,
            pid,
        }))))
    }

    fn check(&self) -> Result<(), Error> {
        let Plan { names, threads, recent, slow, blocks, .. } = self.plan;
        let limit = |what, asked: usize, most, power: bool| {
            let rule = if power { ", a power of two" } else { "" };
            if (1..=most).contains(&asked) && (!power || asked.is_power_of_two()) {
                return Ok(());
            }
            Err(Error::Limit { what, asked, least: 1, most, rule })
        };
        limit("names", names, MOST_NAMES, false)?;
        limit("threads", threads, MOST_THREADS, false)?;
        limit("recent records", recent, 1 << 16, true)?;
        limit("slow records", slow, 1 << 16, true)?;
        limit("histogram blocks", blocks, MOST_BLOCKS, false)?;
        debug_assert_eq!(self.plan.flows, MOST_FLOWS);
        limit("bytes of the whole file", self.plan.length(), MOST_BYTES as usize, false)
    }
}
