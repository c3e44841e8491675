//! Follows one trace.

use std::collections::HashMap;

use inspect::patience;
use model::{Message, MessageFlow, MessageSecond, TraceState, TracedProgram, UnfinishedMessage};
use trace::reader::{Flow, MOST_AT_ONCE, ReadError, Record, Standing, Thread, TraceFile};

use crate::ahead::Ended;
use crate::convert;
use crate::room::Room;
use crate::sample::Sample;

/// A trace that is being followed.
pub struct Follower {
    file: TraceFile,
    program: TracedProgram,
    /// Counts of each flow when it was first seen: those before the recording are not its own.
    before: HashMap<u32, [u64; 3]>,
    /// Length of an interval of the histograms, ns; they turn with CLOCK_MONOTONIC.
    every_ns: u64,
    interval: u64,
    turned: bool,
    tids: HashMap<u32, u32>,
    ended: Ended,
    samples: HashMap<u32, Sample>,
    /// By flow.
    rooms: HashMap<u32, Room>,
    /// By thread: how many slow messages it had written when it was last read.
    slow_written: HashMap<u32, u64>,
    /// The trace was there before it was followed.
    is_older: bool,
    /// Messages that the last look read.
    read: usize,
}

/// So many looks read the rings of the largest file.
const LAST_LOOKS: usize = 10;

/// What is new.
#[derive(Debug, Default)]
pub struct Look {
    /// Slow messages, in time order.
    pub slow: Vec<Message>,
    /// Those of the others that are now in the sample.
    pub fast: Vec<Message>,
    /// What was counted, if an interval has ended.
    pub seconds: Vec<MessageSecond>,
}

impl Follower {
    /// Follows from `from_ns` on a trace that the process `tgid` writes; its program is to have
    /// this number. Of a trace that begins later all is shown.
    pub fn new(
        file: TraceFile,
        tgid: u32,
        program: u32,
        from_ns: u64,
        every_ns: u64,
    ) -> Result<Follower, ReadError> {
        let identity = file.reader.identity();
        let is_older = identity.created < from_ns;
        let program = TracedProgram {
            program,
            tgid,
            path: file.path().to_string_lossy().into_owned(),
            language: convert::language(identity.language),
            created_ns: identity.created,
            from_ns: from_ns.max(identity.created),
            ..TracedProgram::default()
        };
        let every_ns = every_ns.max(1);
        let mut follower = Follower {
            interval: from_ns.max(identity.created) / every_ns,
            turned: false,
            file,
            program,
            before: HashMap::new(),
            every_ns,
            tids: HashMap::new(),
            ended: Ended::default(),
            samples: HashMap::new(),
            rooms: HashMap::new(),
            slow_written: HashMap::new(),
            is_older,
            read: 0,
        };
        if is_older {
            follower.file.reader.histograms()?;
            for flow in follower.file.reader.flows()? {
                follower.before.insert(flow.id, [flow.begun, flow.abandoned, flow.undeclared]);
            }
        }
        follower.count()?;
        Ok(follower)
    }

    /// Whether the last look ended an interval of the histograms.
    pub fn has_turned(&self) -> bool {
        self.turned
    }

    /// What is known of the program: names, counts since it is followed.
    pub fn program(&self) -> &TracedProgram {
        &self.program
    }

    /// The file.
    pub fn file(&self) -> &TraceFile {
        &self.file
    }

    /// For the caller who has stored all of it: to remove what a crashed program left.
    pub fn into_file(self) -> TraceFile {
        self.file
    }

    /// Whether all that its program traced was read from the beginning on.
    pub fn is_whole(&self) -> bool {
        self.program.from_ns == self.program.created_ns
    }

    /// Whether its program may still write it: it is there and has not closed the trace. (That it
    /// made an exec and does not trace any more is not seen: nothing is written then.)
    pub fn is_writing(&self) -> bool {
        is_alive(self.program.tgid)
            && self.file.is_in_place()
            && !self.file.reader.is_closed().unwrap_or(true)
    }

    /// Bytes of memory that are taken by what its histograms counted.
    pub fn memory(&self) -> usize {
        self.file.reader.memory()
    }

    /// Lets that be no more than so many; beyond it the trace is refused.
    pub fn keep_within(&mut self, bytes: usize) {
        self.file.reader.keep_within(bytes);
    }

    /// What is new at this moment.
    pub fn look(&mut self, now_ns: u64) -> Result<Look, ReadError> {
        let mut look = self.messages(now_ns)?;
        self.turned = now_ns / self.every_ns > self.interval;
        if self.turned {
            look.seconds = self.interval()?;
            self.interval = now_ns / self.every_ns;
        }
        Ok(look)
    }

    /// What is left, after the program has ended or when it is followed no more.
    pub fn last_look(&mut self) -> Result<Look, ReadError> {
        let mut look = Look::default();
        // A program that still runs may write faster than this reads.
        for _ in 0..LAST_LOOKS {
            let more = self.messages(u64::MAX)?;
            let is_last = self.read < MOST_AT_ONCE;
            look.slow.extend(more.slow);
            look.fast.extend(more.fast);
            if is_last {
                break;
            }
        }
        look.seconds = self.interval()?;
        let standing = patience::ask(self.program.tgid, self.file.ask_standing()?);
        self.program.state = match standing {
            // Who does not answer is there.
            Err(_) | Ok(Standing::Live | Standing::Foreign) => TraceState::Running,
            Ok(Standing::Closed) => TraceState::Closed,
            Ok(Standing::Crashed) => TraceState::Crashed,
        };
        Ok(look)
    }

    /// Notes why it is followed no more.
    pub fn refuse(&mut self, why: &ReadError) {
        self.program.refused = why.to_string();
    }

    /// The messages whose logic runs at this moment.
    pub fn unfinished(&mut self, now_ns: u64) -> Result<&[UnfinishedMessage], ReadError> {
        let threads = self.file.reader.threads()?;
        self.know(&threads);
        let tids = &self.tids;
        let running = threads.iter().filter_map(|thread| {
            let message = thread.current.as_ref()?;
            Some(UnfinishedMessage {
                flow: message.flow,
                id: message.id,
                tid: tids.get(&thread.index).copied().unwrap_or(0),
                t0_ns: message.t0,
                logic_start_ns: message.logic_start,
                last_ns: message.last,
                last_name: message.last_name.clone(),
                read_ns: now_ns,
            })
        });
        self.program.unfinished = running.collect();
        Ok(&self.program.unfinished)
    }

    fn messages(&mut self, now_ns: u64) -> Result<Look, ReadError> {
        let mut look = Look::default();
        let read = self.file.reader.messages()?;
        self.read = read.recent.len() + read.slow.len();
        if read.recent.is_empty() && read.slow.is_empty() {
            return Ok(look);
        }
        let unknown = |index: &u32| !self.tids.contains_key(index);
        let all = || read.recent.iter().chain(&read.slow);
        let handled = |r: &Record| {
            let points: Vec<u32> = r.points.iter().filter_map(|mark| mark.thread).collect();
            std::iter::once(r.thread).chain(points)
        };
        if all().flat_map(handled).any(|index| unknown(&index)) {
            let threads = self.file.reader.threads()?;
            self.know(&threads);
        }
        self.count_missed(&read.slow);
        self.ended.add(&read.recent);
        self.ended.add(&read.slow);
        let from_ns = self.program.from_ns;
        let program = self.program.program;
        let mut slow: Vec<&Record> = read.slow.iter().filter(|r| r.end >= from_ns).collect();
        if slow.iter().any(|r| self.program.flows.iter().all(|flow| flow.flow != r.flow)) {
            self.count()?;
        }
        for record in &slow {
            if let Some(flow) = self.program.flows.iter_mut().find(|f| f.flow == record.flow) {
                flow.slow += 1;
            }
        }
        // Where there are too many the slowest of each look are kept.
        slow.sort_by_key(|r| std::cmp::Reverse(r.end - r.t0));
        slow.retain(|record| self.rooms.entry(record.flow).or_default().take(now_ns));
        slow.sort_by_key(|r| r.end);
        for record in slow {
            let ahead = self.ended.ahead_of(record);
            look.slow.push(convert::message(record, program, &self.tids, None, ahead));
        }
        for record in read.recent.iter().filter(|r| !r.is_slow && r.end >= from_ns) {
            if let Some(place) = self.samples.entry(record.flow).or_default().place() {
                let ahead = self.ended.ahead_of(record);
                look.fast.push(convert::message(record, program, &self.tids, Some(place), ahead));
            }
        }
        Ok(look)
    }

    /// Slow messages whose place a later one took before they were read, or that were half written
    /// when the program died.
    fn count_missed(&mut self, slow: &[Record]) {
        for record in slow {
            let first = if self.is_older { record.number } else { 0 };
            let written = self.slow_written.entry(record.thread).or_insert(first);
            let missed = record.number.saturating_sub(*written);
            self.program.missed = self.program.missed.saturating_add(missed);
            *written = record.number.saturating_add(1);
        }
    }

    /// Ends an interval of the histograms.
    fn interval(&mut self) -> Result<Vec<MessageSecond>, ReadError> {
        let counted = self.file.reader.histograms()?;
        self.count()?;
        let start_ns = (self.interval * self.every_ns).max(self.program.from_ns);
        let seconds = convert::seconds(&counted, self.program.program, start_ns);
        for second in &seconds {
            let flows = &mut self.program.flows;
            let flow = flows.iter_mut().find(|flow| flow.flow == second.flow);
            if let Some(flow) = flow.filter(|_| second.metric == model::MessageMetric::Total) {
                flow.ended = flow.ended.saturating_add(second.histogram.count());
            }
        }
        Ok(seconds)
    }

    /// Reads names and counts again.
    fn count(&mut self) -> Result<(), ReadError> {
        for read in self.file.reader.flows()? {
            let before = self.before.get(&read.id).copied().unwrap_or_default();
            let flow = counts(&read, before);
            match self.program.flows.iter_mut().find(|known| known.flow == read.id) {
                Some(known) => {
                    *known = MessageFlow { ended: known.ended, slow: known.slow, ..flow };
                }
                None => self.program.flows.push(flow),
            }
        }
        let dropped = self.file.reader.dropped()?;
        self.program.dropped = dropped.threads.saturating_add(dropped.others);
        self.program.misplaced = self.file.reader.losses().marks;
        Ok(())
    }

    /// Notes the numbers of the threads, as this /proc counts.
    fn know(&mut self, threads: &[Thread]) {
        let here: Option<HashMap<u32, u32>> =
            self.file.threads_here().map(|threads| threads.into_iter().collect());
        for thread in threads {
            let tid = match &here {
                None => Some(thread.tid),
                Some(here) => here.get(&thread.tid).copied(),
            };
            // A thread that has ended keeps the number that it had.
            if let Some(tid) = tid {
                self.tids.insert(thread.index, tid);
            } else {
                self.tids.entry(thread.index).or_insert(0);
            }
        }
    }
}

/// Whether a process runs: of one that only waits for its parent this link leads nowhere.
pub(crate) fn is_alive(tgid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{tgid}/exe")).read_link().is_ok()
}

fn counts(read: &Flow, before: [u64; 3]) -> MessageFlow {
    let [begun, abandoned, undeclared] = before;
    MessageFlow {
        begun: read.begun.saturating_sub(begun),
        abandoned: read.abandoned.saturating_sub(abandoned),
        undeclared: read.undeclared.saturating_sub(undeclared),
        ..convert::flow(read)
    }
}
