//! Which processes run a Python interpreter, and where it is in them.

use std::collections::{HashSet, VecDeque};
use std::mem;
use std::time::{Duration, Instant};

use inspect::elf::Exports;
use inspect::python::{self, Interpreter};
use inspect::{files, patience};

use crate::bpf;
use crate::mappings::{self, Mapping};
use crate::wire::PYTHON_DIRECT;

/// When a process is looked at, from the time on that it began to run its program: the dynamic
/// linker maps libpython after that, and a program may load it itself.
const LOOKS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(60), Duration::from_millis(600)];
/// Looks in one round, some 100 us each; processes of which it is seen in one that they have ended, some
/// 10 us each; and processes that wait for a look.
const PER_ROUND: usize = 16;
const ENDED_PER_ROUND: usize = 256;
const WAITING: usize = 4_096;

/// Files that are remembered.
const FILES_KEPT: usize = 16_384;
/// Processes that are not looked at once more.
const SEEN_KEPT: usize = 65_536;
/// Versions that are not known and are said.
const VERSIONS_SAID: usize = 16;
/// Files of one process that are asked whether they have one.
const FILES_ASKED: usize = 4;

/// Which file, wherever it is mapped.
type Identity = ((u32, u32), u64);

/// An interpreter that a file has, and where its code is; or why it is not known.
#[derive(Clone, Debug)]
struct InFile {
    found: Result<Interpreter, String>,
    bias: u64,
}

/// A process that is to be looked at.
#[derive(Clone, Copy)]
struct Waiting {
    tgid: u32,
    at: Instant,
}

/// What a look shows.
enum Look {
    Runs(bpf::python),
    RunsNone,
    HasEnded,
}

/// Looks for interpreters.
#[derive(Default)]
pub struct Interpreters {
    /// By the look that they wait for; whose time comes first is in front.
    waiting: [VecDeque<Waiting>; LOOKS.len()],
    seen: HashSet<u32>,
    /// Files without one that is known.
    without: HashSet<Identity>,
    /// Versions of which it is not known how they are laid out, and those of them still to be said.
    unknown: HashSet<String>,
    to_say: Vec<String>,
    /// Looks that there were not, because too many processes waited.
    lost: u64,
}

impl Interpreters {
    /// Has a process looked at that began to run a program.
    pub fn begun(&mut self, tgid: u32) {
        self.wait(tgid, 0);
    }

    /// Has a process looked at that was there before, once.
    pub fn met(&mut self, tgid: u32) {
        if !self.seen.contains(&tgid) {
            self.wait(tgid, LOOKS.len() - 1);
        }
    }

    fn wait(&mut self, tgid: u32, looks: usize) {
        if self.seen.len() >= SEEN_KEPT {
            self.seen.clear();
        }
        self.seen.insert(tgid);
        match self.waiting.iter().map(VecDeque::len).sum::<usize>() < WAITING {
            true => self.waiting[looks].push_back(Waiting { tgid, at: Instant::now() }),
            false => self.lost += 1,
        }
    }

    /// Looks at some of those whose time it is; gives those that run an interpreter.
    pub fn look(&mut self) -> Vec<(u32, bpf::python)> {
        let now = Instant::now();
        let mut found = Vec::new();
        let (mut looks, mut ended) = (0, 0);
        while looks < PER_ROUND && ended < ENDED_PER_ROUND {
            let Some((number, next)) = self.take_due(now) else { break };
            match self.of_process(next.tgid) {
                Look::HasEnded => ended += 1,
                Look::Runs(python) => {
                    looks += 1;
                    found.push((next.tgid, python));
                }
                Look::RunsNone => {
                    looks += 1;
                    if let Some(after) = LOOKS.get(number + 1) {
                        let at = next.at + *after - LOOKS[number];
                        self.waiting[number + 1].push_back(Waiting { at, ..next });
                    }
                }
            }
        }
        found
    }

    /// When the next look is due.
    pub fn next(&self) -> Option<Instant> {
        self.waiting.iter().filter_map(|queue| queue.front()).map(|first| first.at).min()
    }

    /// One whose time it is, with the number of its look. A first look comes before the others.
    fn take_due(&mut self, now: Instant) -> Option<(usize, Waiting)> {
        let mut queues = self.waiting.iter_mut().enumerate();
        queues.find_map(|(number, queue)| {
            let is_due = queue.front().is_some_and(|first| first.at <= now);
            is_due.then(|| queue.pop_front()).flatten().map(|first| (number, first))
        })
    }

    /// Versions that are not known, since the last call; each is given once.
    pub fn unknown(&mut self) -> Vec<String> {
        mem::take(&mut self.to_say)
    }

    /// Looks that there were not, because too many processes waited, since the last call.
    pub fn lost(&mut self) -> u64 {
        mem::take(&mut self.lost)
    }

    fn of_process(&mut self, tgid: u32) -> Look {
        let seen = mappings::of_process(tgid);
        if seen.user.is_none() {
            return Look::HasEnded;
        }
        let code = seen.mappings.iter().filter(|m| m.executable && m.path.starts_with('/'));
        // The program itself is mapped first; it may have the interpreter in it, under any name.
        let candidates = code.enumerate().filter(|(place, m)| *place == 0 || is_named_so(&m.path));
        let candidates = candidates.map(|(_, mapping)| mapping).take(FILES_ASKED);
        let mut found = candidates.into_iter().filter_map(|mapping| self.of_mapping(tgid, mapping));
        found.next().map_or(Look::RunsNone, Look::Runs)
    }

    fn of_mapping(&mut self, tgid: u32, mapping: &Mapping) -> Option<bpf::python> {
        let identity = (mapping.device, mapping.inode);
        if self.without.contains(&identity) {
            return None;
        }
        let asked = mapping.clone();
        let read = patience::ask(tgid, move || read(tgid, &asked)).ok()?;
        // What cannot be opened may be the next time.
        let InFile { found, bias } = match read.ok()? {
            Some(in_file) => in_file,
            None => {
                self.is_without(identity);
                return None;
            }
        };
        match found {
            Ok(interpreter) => Some(for_kernel(&interpreter, bias)),
            Err(why) => {
                self.is_without(identity);
                self.is_unknown(why);
                None
            }
        }
    }

    fn is_without(&mut self, file: Identity) {
        if self.without.len() >= FILES_KEPT {
            self.without.clear();
        }
        self.without.insert(file);
    }

    /// Whoever makes files with interpreters can make up as many versions.
    fn is_unknown(&mut self, version: String) {
        if self.unknown.len() < VERSIONS_SAID && self.unknown.insert(version.clone()) {
            self.to_say.push(version);
        }
    }
}

fn is_named_so(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("libpython") || name.starts_with("python")
}

/// Reads whether the file behind a mapping has an interpreter; an error if it cannot be opened.
fn read(tgid: u32, mapping: &Mapping) -> Result<Option<InFile>, ()> {
    let file = files::mapped(tgid, &mapping.file()).map_err(drop)?;
    let bytes = file.bytes().map_err(drop)?;
    let Ok(Some(found)) = python::interpreter(&*bytes) else { return Ok(None) };
    let exports = Exports::read(&*bytes).ok().flatten();
    let length = mapping.end - mapping.start;
    let bias = exports.and_then(|exports| exports.load_bias(mapping.start, mapping.offset, length));
    Ok(bias.map(|bias| InFile { found, bias }))
}

fn for_kernel(interpreter: &Interpreter, bias: u64) -> bpf::python {
    let layout = &interpreter.layout;
    bpf::python {
        runtime: bias.wrapping_add(interpreter.runtime),
        code_type: bias.wrapping_add(interpreter.code_type),
        text_type: bias.wrapping_add(interpreter.text_type),
        interpreters: layout.interpreters,
        next_interpreter: layout.next_interpreter,
        threads: layout.threads,
        next_thread: layout.next_thread,
        previous_thread: layout.previous_thread,
        interpreter: layout.interpreter,
        thread_self: layout.thread_self,
        frames: layout.frames,
        innermost: layout.innermost.unwrap_or(PYTHON_DIRECT as u32),
        frame_bytes: layout.frame_bytes(),
        previous: layout.previous,
        code: layout.code,
        instruction: layout.instruction,
        owner: layout.owner,
        entry: layout.entry.unwrap_or(0),
        code_bytes: layout.code_bytes(),
        file: layout.file,
        name: layout.name,
        line: layout.line,
        lines: layout.lines,
        text_ascii: layout.text_ascii,
        text_other: layout.text_other,
        instructions: layout.instructions,
        pad: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_find_no_room_are_counted() {
        let mut interpreters = Interpreters::default();
        for tgid in 0..WAITING as u32 + 7 {
            interpreters.met(tgid);
            interpreters.met(tgid);
        }
        assert_eq!(interpreters.lost(), 7);
        assert_eq!(interpreters.lost(), 0);
    }

    /// Far more than find room begin and end: none of them needs a look.
    #[test]
    fn processes_that_have_ended_make_room() {
        let mut interpreters = Interpreters::default();
        // No pid is as large (PID_MAX_LIMIT).
        for round in 0..2 * (WAITING / ENDED_PER_ROUND) as u32 {
            for tgid in 0..ENDED_PER_ROUND as u32 {
                interpreters.begun((1 << 23) + round * ENDED_PER_ROUND as u32 + tgid);
            }
            assert!(interpreters.look().is_empty());
        }
        assert_eq!(interpreters.lost(), 0);
        assert!(interpreters.waiting.iter().all(VecDeque::is_empty));
    }

    #[test]
    fn who_runs_none_is_looked_at_again_when_it_is_time() {
        let mut interpreters = Interpreters::default();
        interpreters.begun(std::process::id());
        assert!(interpreters.look().is_empty());
        let waiting = interpreters.waiting.each_ref().map(VecDeque::len);
        assert_eq!(waiting, [0, 1, 0]);
        let later = Instant::now() + LOOKS[1];
        assert_eq!(interpreters.take_due(later).map(|(number, _)| number), Some(1));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_last_is() {
        let mut interpreters = Interpreters::default();
        for file in 0..3 * FILES_KEPT as u64 {
            interpreters.is_without(((8, 1), file));
            interpreters.is_unknown(format!("CPython {}.{file}", file / 7));
            assert!(interpreters.without.contains(&((8, 1), file)));
            assert!(interpreters.without.len() <= FILES_KEPT);
        }
        // They were forgotten twice, not each time.
        assert_eq!(interpreters.without.len(), FILES_KEPT);
        interpreters.is_unknown("CPython 0.0".to_owned());
        assert_eq!(interpreters.unknown().len(), VERSIONS_SAID);
        assert!(interpreters.unknown().is_empty(), "each is said once");
    }
}
