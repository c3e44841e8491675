//! Which processes run a Python interpreter, and where it is in them.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
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
/// Looks in one round, some 100 us each, and processes that wait for one.
const PER_ROUND: usize = 16;
const WAITING: usize = 4_096;

/// Files that are remembered, with and without an interpreter.
const FILES_KEPT: usize = 16_384;
/// Processes that are not looked at once more.
const SEEN_KEPT: usize = 65_536;
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
struct Waiting {
    tgid: u32,
    looks: usize,
    at: Instant,
}

/// Looks for interpreters.
#[derive(Default)]
pub struct Interpreters {
    waiting: VecDeque<Waiting>,
    seen: HashSet<u32>,
    /// Files without one.
    without: HashSet<Identity>,
    /// Those of which it is not known how they are laid out, and why.
    unknown: HashMap<Identity, String>,
    /// What has been said of these.
    told: BTreeSet<String>,
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
        if self.waiting.len() < WAITING {
            self.waiting.push_back(Waiting { tgid, looks, at: Instant::now() });
        }
    }

    /// Looks at some of those whose time it is; gives those that run an interpreter.
    pub fn look(&mut self) -> Vec<(u32, bpf::python)> {
        let now = Instant::now();
        let mut found = Vec::new();
        for _ in 0..self.waiting.len().min(PER_ROUND) {
            let Some(next) = self.waiting.pop_front() else { break };
            if next.at > now {
                self.waiting.push_back(next);
                continue;
            }
            if let Some(python) = self.of_process(next.tgid) {
                found.push((next.tgid, python));
                continue;
            }
            let looks = next.looks + 1;
            if let Some(after) = LOOKS.get(looks) {
                let at = next.at + *after - LOOKS[next.looks];
                self.waiting.push_back(Waiting { looks, at, ..next });
            }
        }
        found
    }

    /// Versions that are not known, since the last call; each is given once.
    pub fn unknown(&mut self) -> Vec<String> {
        let new: Vec<String> =
            self.unknown.values().filter(|why| !self.told.contains(*why)).cloned().collect();
        self.told.extend(new.iter().cloned());
        let unique: BTreeSet<String> = new.into_iter().collect();
        unique.into_iter().collect()
    }

    fn of_process(&mut self, tgid: u32) -> Option<bpf::python> {
        let mappings = mappings::of_process(tgid).mappings;
        let code = mappings.iter().filter(|m| m.executable && m.path.starts_with('/'));
        // The program itself is mapped first; it may have the interpreter in it, under any name.
        let candidates = code.enumerate().filter(|(place, m)| *place == 0 || is_named_so(&m.path));
        let candidates = candidates.map(|(_, mapping)| mapping).take(FILES_ASKED);
        candidates.into_iter().find_map(|mapping| self.of_mapping(tgid, mapping))
    }

    fn of_mapping(&mut self, tgid: u32, mapping: &Mapping) -> Option<bpf::python> {
        let identity = (mapping.device, mapping.inode);
        if self.without.contains(&identity) || self.unknown.contains_key(&identity) {
            return None;
        }
        let asked = mapping.clone();
        let read = patience::ask(tgid, move || read(tgid, &asked)).ok()?;
        if self.without.len() + self.unknown.len() >= FILES_KEPT {
            self.without.clear();
        }
        match read {
            // It may be opened the next time.
            Err(()) => {}
            Ok(None) => _ = self.without.insert(identity),
            Ok(Some(InFile { found: Err(why), .. })) => _ = self.unknown.insert(identity, why),
            Ok(Some(InFile { found: Ok(interpreter), bias })) => {
                return Some(for_kernel(&interpreter, bias));
            }
        }
        None
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
