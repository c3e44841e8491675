//! Why tracing could not be set up. Nothing after the set-up fails: it counts what it drops.

use std::io;
use std::path::PathBuf;

/// Why a tracer, a flow, a publish or a thread could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    #[error("{path}: {doing}: {source}")]
    System {
        /// File or folder.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The memory for the file is not there.
    #[error(
        "{path}: no room for a trace of {bytes} bytes ({source}); make the file system larger \
         (docker: --shm-size), or ask for fewer threads, records or histograms"
    )]
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The folder is on a disk.
    #[error(
        "{0} is not on a tmpfs: a store to a page of a disk file can wait for the disk; name \
         another folder with WHYLAG_TRACE_DIR"
    )]
    NotMemory(PathBuf),
    /// Somebody else could change the files.
    #[error("{path}: {why}, so that others could change the traces in it")]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// One process, one tracer.
    #[error("this process has a tracer already; share it")]
    Second,
    /// A name that the format cannot hold.
    #[error("the name {0:?} is not of 1 to 56 bytes without control characters")]
    Name(String),
    /// No room for one more.
    #[error("no room for more than {most} {what}; ask for more when the tracer is built")]
    Full {
        /// Of what.
        what: &'static str,
        /// How many there are.
        most: usize,
    },
    /// More asked for than the format holds.
    #[error("{asked} {what}: the least is {least}, the most {most}{rule}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How many were asked for.
        asked: usize,
        /// Least.
        least: usize,
        /// Most.
        most: usize,
        /// What else holds.
        rule: &'static str,
    },
    /// Two flows of one name.
    #[error("there is a flow {0:?} already; clone it")]
    FlowExists(String),
    /// Two handles for one thread would be two writers of one ring.
    #[error("this thread has a handle already; use that one")]
    ThreadExists,
}
