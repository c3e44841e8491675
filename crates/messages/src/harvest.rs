//! Takes all that a program left.

use model::Messages;
use trace::reader::{ReadError, TraceFile};

use crate::Follower;

/// All of a trace whose program has ended: what its rings still hold, and all that its histograms
/// counted. Also gives the file, for the caller to remove once that is stored.
pub fn harvest(file: TraceFile) -> Result<(Messages, TraceFile), ReadError> {
    let tgid = file.reader.identity().pid;
    let mut follower = Follower::new(file, tgid, 0, 0, u64::MAX)?;
    let look = follower.last_look()?;
    let ended = look.slow.iter().chain(&look.fast).map(|message| message.end_ns).max();
    let last = ended.unwrap_or(follower.program().created_ns);
    follower.unfinished(last)?;
    let messages = Messages {
        programs: vec![follower.program().clone()],
        seconds: look.seconds,
        slow: look.slow,
        slow_count: 0,
        fast: look.fast,
        calls: Vec::new(),
    };
    Ok((messages, follower.into_file()))
}
