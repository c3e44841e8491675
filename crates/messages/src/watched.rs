//! The traces of all processes of a recording.

use std::collections::{BTreeMap, VecDeque};

use model::{Messages, TraceState};
use trace::reader::{ReadError, TraceFile};

use crate::follower::is_alive;
use crate::{Follower, Look};

/// Processes in which a trace is looked for at a time: each costs some 30 us.
const ASKED: usize = 16;

/// How often that is done, ns; in the beginning at every look, for what a command does first.
const ASK_NS: u64 = 100_000_000;
const BEGINNING_NS: u64 = 3_000_000_000;

/// Histograms are read once a second.
const EVERY_NS: u64 = 1_000_000_000;

/// Follows the traces of processes, also of those that begin to trace later.
#[derive(Default)]
pub struct Watched {
    followers: Vec<Follower>,
    /// Processes without a trace, the one to be looked at next first.
    asked: VecDeque<Asked>,
    /// Why a process's trace is not read: reported once.
    refused: BTreeMap<u32, String>,
    unreported: Vec<(u32, String)>,
    programs: u32,
    last_asked_ns: u64,
    started_ns: u64,
    abandoned: Vec<TraceFile>,
}

/// A process without a trace.
#[derive(Clone, Copy)]
struct Asked {
    tgid: u32,
    /// The user named it by its pid, so disturbing it a little is accepted.
    is_named: bool,
    times: u32,
}

/// Every so many times a process is looked at thoroughly.
const THOROUGH: u32 = 32;

impl Watched {
    /// Messages that end from `started_ns` on are shown.
    pub fn new(started_ns: u64) -> Watched {
        Watched { started_ns, ..Watched::default() }
    }

    /// Also follows this process, `is_named` if the user named it.
    pub fn add(&mut self, tgid: u32, is_named: bool) {
        let is_known = self.asked.iter().any(|known| known.tgid == tgid)
            || self.followers.iter().any(|follower| follower.program().tgid == tgid);
        if !is_known {
            self.asked.push_front(Asked { tgid, is_named, times: 0 });
        }
    }

    /// The lowest threshold of the flows that are followed, ns.
    pub fn lowest_threshold_ns(&self) -> Option<u64> {
        let flows = self.followers.iter().flat_map(|follower| &follower.program().flows);
        flows.map(|flow| flow.threshold_ns).min()
    }

    /// Reasons why traces are not read, of those that are new.
    pub fn take_refusals(&mut self) -> Vec<(u32, String)> {
        std::mem::take(&mut self.unreported)
    }

    /// What is new at this moment, of all.
    pub fn look(&mut self, now_ns: u64) -> Messages {
        let since_start = now_ns.saturating_sub(self.started_ns);
        if since_start < BEGINNING_NS || now_ns.saturating_sub(self.last_asked_ns) >= ASK_NS {
            self.last_asked_ns = now_ns;
            self.ask();
        }
        let mut messages = Messages::default();
        let mut index = 0;
        while index < self.followers.len() {
            let follower = &mut self.followers[index];
            let looked = follower.look(now_ns).map(|look| add(&mut messages, look));
            let has_turned = follower.has_turned();
            match looked {
                Err(why) => self.end(index, Some(&why), now_ns, &mut messages),
                // A program that ends removes its file; one that is killed leaves it.
                Ok(()) if has_turned && !follower.is_writing() => {
                    self.end(index, None, now_ns, &mut messages);
                }
                Ok(()) => {
                    if has_turned {
                        messages.programs.push(follower.program().clone());
                    }
                    index += 1;
                }
            }
        }
        messages
    }

    /// The rest, when the recording ends.
    pub fn finish(&mut self, now_ns: u64) -> Messages {
        let mut messages = Messages::default();
        while !self.followers.is_empty() {
            self.end(0, None, now_ns, &mut messages);
        }
        messages
    }

    /// Traces that crashed programs left and that were read from the beginning to the end: to be
    /// removed once all of that is stored.
    pub fn take_abandoned(&mut self) -> Vec<TraceFile> {
        std::mem::take(&mut self.abandoned)
    }

    fn ask(&mut self) {
        for _ in 0..self.asked.len().min(ASKED) {
            let Some(mut asked) = self.asked.pop_front() else { return };
            let tgid = asked.tgid;
            let thorough = asked.is_named && asked.times.is_multiple_of(THOROUGH);
            asked.times = asked.times.wrapping_add(1);
            match TraceFile::of_process(tgid, thorough) {
                Ok(None) => self.asked.push_back(asked),
                Ok(Some(file)) => self.follow(tgid, file),
                Err(ReadError::System { .. }) if !is_alive(tgid) => {}
                Err(why) => {
                    self.refuse(tgid, &why);
                    self.asked.push_back(asked);
                }
            }
        }
    }

    fn follow(&mut self, tgid: u32, file: TraceFile) {
        match Follower::new(file, tgid, self.programs, self.started_ns, EVERY_NS) {
            Ok(follower) => {
                self.programs += 1;
                self.followers.push(follower);
            }
            Err(why) => self.refuse(tgid, &why),
        }
    }

    fn refuse(&mut self, tgid: u32, why: &ReadError) {
        let why = why.to_string();
        if self.refused.get(&tgid) != Some(&why) {
            self.unreported.push((tgid, why.clone()));
            self.refused.insert(tgid, why);
        }
    }

    /// Follows one no more.
    fn end(&mut self, index: usize, why: Option<&ReadError>, now_ns: u64, into: &mut Messages) {
        let mut follower = self.followers.swap_remove(index);
        let tgid = follower.program().tgid;
        let ended = match why {
            None => follower.last_look().and_then(|look| {
                add(into, look);
                follower.unfinished(now_ns).map(|_| ())
            }),
            Some(_) => Ok(()),
        };
        if let Some(why) = why.or(ended.as_ref().err()) {
            follower.refuse(why);
            self.refuse(tgid, why);
        }
        into.programs.push(follower.program().clone());
        if follower.program().state == TraceState::Crashed
            && follower.program().refused.is_empty()
            && follower.is_whole()
        {
            self.abandoned.push(follower.into_file());
        }
        // After an exec it may trace again.
        if why.is_none() && is_alive(tgid) {
            self.add(tgid, false);
        }
    }
}

fn add(messages: &mut Messages, look: Look) {
    messages.slow.extend(look.slow);
    messages.fast.extend(look.fast);
    messages.seconds.extend(look.seconds);
}
