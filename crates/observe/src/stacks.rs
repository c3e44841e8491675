//! Stacks: kept as addresses while recording, named at the end.

use std::collections::{HashMap, HashSet};

use model::{Frame, Space, Stack, StackId};

use crate::bpf::mapping_record;
use crate::drain::Words;
use crate::names::Names;

/// More different stacks than this are not kept (64 bytes to 1 kB each).
const STACKS_KEPT: usize = 100_000;

/// Nor more than so many frames: some 200 bytes each when they have their names.
const FRAMES_KEPT: usize = 1_500_000;
/// Nor more than so many bytes of paths in them.
const PATHS_KEPT: usize = 128 << 20;

/// Frames that a stack holds at most (bpf/wire.h).
const FRAMES: usize = 127;

/// Functions that a complete user stack ends in.
const OUTERMOST: [&str; 7] =
    ["_start", "start_thread", "clone", "clone3", "__clone3", "thread_start", "_dl_start_user"];

/// The stacks of a recording.
#[derive(Default)]
pub struct Stacks {
    raw: HashMap<StackId, (u32, Vec<u64>)>,
    frames: usize,
    paths: usize,
    dropped: u64,
    /// Stacks within the dynamic linker of which no first call is the reason.
    no_first_calls: HashSet<StackId>,
}

impl Stacks {
    /// Takes new stacks and mappings; gives the stacks with module and offset, without symbols.
    pub fn take(
        &mut self,
        names: &mut Names,
        stacks: Vec<(u32, u64, Vec<u64>)>,
        mappings: &[mapping_record],
    ) -> Vec<Stack> {
        for mapping in mappings {
            names.mappings.add(mapping);
        }
        let mut fresh = Vec::new();
        for (tgid, id, addresses) in stacks {
            let id = StackId(id);
            if self.raw.contains_key(&id) {
                continue;
            }
            let is_full = self.raw.len() >= STACKS_KEPT
                || self.frames + addresses.len() > FRAMES_KEPT
                || self.paths > PATHS_KEPT;
            if is_full {
                self.dropped += 1;
                continue;
            }
            let stack = stack(names, id, tgid, &addresses);
            self.frames += addresses.len();
            self.paths += stack.frames.iter().map(|frame| frame.module.len()).sum::<usize>();
            fresh.push(stack);
            self.raw.insert(id, (tgid, addresses));
        }
        fresh
    }

    /// Makes stacks of what was on top of them when the dynamic linker ran: its instruction, and
    /// the call that led there.
    pub fn take_words(&mut self, names: &mut Names, all: Vec<Words>) -> Vec<Stack> {
        let of = |words: Words, names: &mut Names, no_first_calls: &mut HashSet<StackId>| {
            let caller = names.first_call(words.tgid, &words.words);
            if caller.is_none() {
                no_first_calls.insert(StackId(words.id));
            }
            (words.tgid, words.id, [words.ip].into_iter().chain(caller).collect())
        };
        let stacks = all.into_iter().map(|words| of(words, names, &mut self.no_first_calls));
        let stacks = stacks.collect();
        self.take(names, stacks, &[])
    }

    /// True if it is known that the dynamic linker did something else there: loaded a library, say.
    pub fn is_no_first_call(&self, id: Option<StackId>) -> bool {
        id.is_none_or(|id| self.no_first_calls.contains(&id))
    }

    /// The return address of a first call.
    pub fn caller(&self, id: Option<StackId>) -> Option<u64> {
        self.raw.get(&id?)?.1.get(1).copied()
    }

    /// Stacks that were not kept since the last call.
    pub fn dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// All stacks, with symbols.
    pub fn symbolized(&self, names: &mut Names) -> impl Iterator<Item = Stack> {
        self.raw.iter().map(|(id, (tgid, addresses))| {
            let mut stack = stack(names, *id, *tgid, addresses);
            names.symbolize(*tgid, &mut stack.frames);
            stack.truncated |= is_truncated(&stack);
            if stack.space == Space::Kernel {
                leave_out_tracing(&mut stack.frames);
            }
            stack
        })
    }
}

fn stack(names: &mut Names, id: StackId, tgid: u32, addresses: &[u64]) -> Stack {
    let mut frames = names.frames(tgid, addresses);
    let plausible = names.plausible(tgid, addresses);
    frames.truncate(plausible);
    Stack {
        id,
        space: if tgid == 0 { Space::Kernel } else { Space::User },
        truncated: addresses.len() >= FRAMES || plausible < addresses.len(),
        frames,
    }
}

/// A stack taken by a program begins with the program and what called it: our own doing.
fn leave_out_tracing(frames: &mut Vec<Frame>) {
    let is_tracing = |frame: &Frame| {
        let symbol = frame.symbol.as_deref().unwrap_or_default();
        ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_", "__bpf_prog_"]
            .iter()
            .any(|prefix| symbol.starts_with(prefix))
            || symbol.contains("_do_trace_")
    };
    let own = frames.iter().take_while(|frame| is_tracing(frame)).count();
    frames.drain(..own);
}

/// Code built without frame pointers breaks the walk: then the outermost frame is not a start.
fn is_truncated(stack: &Stack) -> bool {
    let outermost = stack.frames.last().and_then(|frame| frame.symbol.as_deref());
    stack.space == Space::User && !outermost.is_some_and(|symbol| OUTERMOST.contains(&symbol))
}
