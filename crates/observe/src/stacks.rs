//! Stacks: kept as addresses while recording, named at the end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Frame, Space, Stack, StackId};

use crate::bpf::mapping_record;
use crate::inbox::Words;
use crate::names::Names;
use crate::python::{Called, Calls, Function, Functions, join};
use crate::unwind::End;

/// More different stacks than this are not kept (64 bytes to 1 kB each).
const STACKS_KEPT: usize = 100_000;

/// Nor more than so many frames: some 200 bytes each when they have their names.
const FRAMES_KEPT: usize = 1_500_000;
/// Nor more than so many bytes of paths in them.
const PATHS_KEPT: usize = 128 << 20;

/// So many frames are handed over in one batch, some 12 MB; the others come at the end, when all of
/// them have their names.
const FRAMES_AT_ONCE: usize = 65_536;

/// Frames that a stack holds at most (bpf/records.h).
pub const FRAMES: usize = 127;

/// How long the copies of a batch may take to be unwound; a process can make that expensive.
const UNWINDING: Duration = Duration::from_millis(100);

/// Copies whose stack is remembered for the intervals that refer to them; twice as many at most.
const COPIES_KEPT: usize = 32_768;
/// Threads, by what frame pointers give of their stacks, whose copies are compared.
const THREADS_KEPT: usize = 32_768;
/// So many copies of a thread have to agree before one stands for a wait that has none.
const AGREEING: u32 = 4;

/// Python sides of stacks that came ahead of these, at most.
const PYTHONS_KEPT: usize = 16_384;

/// Functions that a complete user stack ends in.
const OUTERMOST: [&str; 7] =
    ["_start", "start_thread", "clone", "clone3", "__clone3", "thread_start", "_dl_start_user"];

/// The stacks of a recording.
#[derive(Default)]
pub struct Stacks {
    raw: HashMap<StackId, Raw>,
    frames: usize,
    paths: usize,
    /// Frames handed over in this batch.
    given: usize,
    dropped: u64,
    /// Stacks within the dynamic linker of which no first call is the reason.
    no_first_calls: HashSet<StackId>,
    /// By thread and what frame pointers gave: the stack of its copies, if they agree, and how many.
    by_thread: HashMap<(u32, StackId), (Option<StackId>, u32)>,
    /// What the copies of a stack have in common, by what frame pointers gave of it.
    unwound: HashMap<StackId, Common>,
    /// The stack that was unwound from a copy, by the copy: the newest, and those before.
    copies: [HashMap<u64, StackId>; 2],
    /// Python's side of stacks that are still to come.
    pythons: HashMap<StackId, Arc<Calls>>,
    functions: Functions,
}

/// A stack as it was recorded.
struct Raw {
    tgid: u32,
    addresses: Vec<u64>,
    /// True if it was unwound up to where the thread begins.
    is_whole: bool,
    /// Copies that it was unwound from.
    copies: u64,
    /// What it ran of Python.
    python: Option<Arc<Calls>>,
    /// As in [`Common`].
    loops: Vec<usize>,
}

/// What all copies of a stack have in common.
struct Common {
    addresses: Vec<u64>,
    /// Which of these are loops of a Python interpreter, as far as the stack says.
    loops: Vec<usize>,
    is_whole: bool,
    copies: u64,
}

impl Common {
    fn add(&mut self, addresses: &[u64]) {
        let same = self.addresses.iter().zip(addresses).take_while(|(one, other)| one == other);
        let same = same.count();
        self.is_whole &= same == self.addresses.len() && same == addresses.len();
        self.addresses.truncate(same);
        self.loops.retain(|frame| *frame < same);
        self.copies += 1;
    }
}

/// What became of copies.
#[derive(Default)]
pub struct Unwinding {
    /// New stacks.
    pub stacks: Vec<Stack>,
    /// Stacks of which copies give no more than frame pointers do.
    pub needless: Vec<StackId>,
    /// Copies that there was no time for.
    pub left_out: u64,
}

impl Stacks {
    /// Lets frames be handed over again, in another batch.
    pub fn begin_batch(&mut self) {
        self.given = 0;
    }

    /// Takes new stacks and mappings; gives the stacks with module and offset, without symbols, as
    /// far as the batch has room for them.
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
            let python = self.pythons.remove(&id);
            fresh.extend(self.take_one(names, id, tgid, addresses, python));
        }
        fresh
    }

    /// Takes Python's side of stacks, ahead of these, and the functions in them.
    pub fn take_python(&mut self, all: Vec<(u64, Calls)>, functions: Vec<(u64, Function)>) {
        self.functions.take(functions);
        for (stack, calls) in all {
            // Those whose stack did not come were lost with it.
            if self.pythons.len() >= PYTHONS_KEPT {
                self.pythons.clear();
            }
            self.pythons.insert(StackId(stack), Arc::new(calls));
        }
    }

    fn take_one(
        &mut self,
        names: &mut Names,
        id: StackId,
        tgid: u32,
        addresses: Vec<u64>,
        python: Option<Arc<Calls>>,
    ) -> Option<Stack> {
        if self.raw.contains_key(&id) {
            return None;
        }
        let frames = addresses.len() + python.as_ref().map_or(0, |python| python.calls.len());
        let is_full = self.raw.len() >= STACKS_KEPT
            || self.frames + frames > FRAMES_KEPT
            || self.paths > PATHS_KEPT;
        if is_full {
            self.dropped += 1;
            return None;
        }
        let mut stack = stack(names, id, tgid, &addresses);
        self.frames += frames;
        self.paths += stack.frames.iter().map(|frame| frame.module.len()).sum::<usize>();
        // Where they belong is known when the others have their symbols.
        let calls = python.iter().flat_map(|python| python.calls.iter());
        stack.frames.extend(calls.map(|call| self.functions.frame(call)));
        self.raw.insert(
            id,
            Raw { tgid, addresses, is_whole: false, copies: 0, python, loops: Vec::new() },
        );
        if self.given + stack.frames.len() > FRAMES_AT_ONCE {
            return None;
        }
        self.given += stack.frames.len();
        Some(stack)
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

    /// Unwinds copies of stacks, as long as that does not take too long.
    pub fn unwind(&mut self, names: &mut Names, copies: Vec<Words>) -> Unwinding {
        let mut all = Unwinding::default();
        let until = Instant::now() + UNWINDING;
        for words in copies {
            self.unwind_one(names, &words, until, &mut all);
        }
        all
    }

    fn unwind_one(
        &mut self,
        names: &mut Names,
        words: &Words,
        until: Instant,
        all: &mut Unwinding,
    ) {
        let walked = StackId(words.walked);
        let unwound = names.unwind(words, until);
        // Only intervals lack the stack that is not made.
        let lacking = u64::from(words.id != 0);
        if unwound.end == End::Late {
            all.left_out += lacking;
            return;
        }
        let known = self.raw.get(&walked).map(|raw| raw.addresses.as_slice()).unwrap_or_default();
        let plausible = &known[..names.plausible(words.tgid, known)];
        let is_whole = unwound.end == End::Outermost;
        if plausible == unwound.addresses
            || (!is_whole && plausible.len() >= unwound.addresses.len())
        {
            // What is mapped there may be known later.
            if unwound.end != End::Unmapped {
                all.needless.push(walked);
            }
            return;
        }
        let python = self.raw.get(&walked).and_then(|raw| raw.python.clone());
        let id = identity(words.tgid, &unwound.addresses, python.as_deref());
        if !self.has_room_for(walked, id, unwound.addresses.len()) {
            all.left_out += lacking;
            return;
        }
        let loops = unwound.around(&words.entries);
        self.add_common(walked, &unwound.addresses, &loops, is_whole);
        if words.id == 0 {
            return;
        }
        all.stacks.extend(self.take_one(names, id, words.tgid, unwound.addresses, python));
        if let Some(raw) = self.raw.get_mut(&id) {
            raw.copies += 1;
            raw.is_whole |= is_whole;
            raw.loops = loops;
            self.remember(words.id, id);
        }
    }

    /// The stack of a thread that stands still, from a copy of it, and as far as it is new; `None` if there is
    /// no room for it.
    pub fn standing(
        &mut self,
        names: &mut Names,
        words: &Words,
        until: Instant,
    ) -> Option<(StackId, Option<Stack>)> {
        let unwound = names.unwind(words, until);
        let id = identity(words.tgid, &unwound.addresses, None);
        let fresh = self.take_one(names, id, words.tgid, unwound.addresses, None);
        let raw = self.raw.get_mut(&id)?;
        raw.copies += 1;
        raw.is_whole |= unwound.end == End::Outermost;
        Some((id, fresh))
    }

    /// Half of all room is for stacks that were unwound: the others are what they fall back to.
    fn has_room_for(&self, walked: StackId, id: StackId, frames: usize) -> bool {
        let is_known = self.unwound.contains_key(&walked) && self.raw.contains_key(&id);
        let has_room = self.raw.len() < STACKS_KEPT / 2
            && self.frames + 2 * frames < FRAMES_KEPT / 2
            && self.paths < PATHS_KEPT / 2;
        is_known || has_room
    }

    fn add_common(&mut self, walked: StackId, addresses: &[u64], loops: &[usize], is_whole: bool) {
        let frames = &mut self.frames;
        let common = self.unwound.entry(walked).or_insert_with(|| {
            *frames += addresses.len();
            let (addresses, loops) = (addresses.to_vec(), loops.to_vec());
            Common { addresses, loops, is_whole, copies: 0 }
        });
        common.add(addresses);
    }

    fn remember(&mut self, copy: u64, id: StackId) {
        if self.copies[0].len() >= COPIES_KEPT {
            self.copies.swap(0, 1);
            self.copies[0].clear();
        }
        self.copies[0].insert(copy, id);
    }

    /// The stack of a thread's interval: the one that was unwound from its copy. Without one it is that of
    /// all other copies of this thread of which frame pointers gave the same, if they agree: threads wait
    /// in few places, and there is a copy of one wait in many where a program waits often.
    pub fn of_interval(&mut self, tid: u32, copy: u64, walked: Option<StackId>) -> Option<StackId> {
        let key = (tid, walked?);
        let Some(id) = self.copies.iter().find_map(|known| known.get(&copy)).copied() else {
            let agreed = self.by_thread.get(&key);
            let agreed = agreed.filter(|(id, times)| id.is_some() && *times >= AGREEING);
            return agreed.and_then(|(id, _)| *id).or(walked);
        };
        if self.by_thread.len() < THREADS_KEPT || self.by_thread.contains_key(&key) {
            let (agreed, times) = self.by_thread.entry(key).or_insert((Some(id), 0));
            *agreed = agreed.filter(|other| *other == id);
            *times = times.saturating_add(1);
        }
        Some(id)
    }

    /// The processes whose stacks get their names at the end.
    pub fn processes(&self) -> HashSet<u32> {
        self.raw.values().map(|raw| raw.tgid).collect()
    }

    /// True if it is known that the dynamic linker did something else there: loaded a library, say.
    pub fn is_no_first_call(&self, id: Option<StackId>) -> bool {
        id.is_none_or(|id| self.no_first_calls.contains(&id))
    }

    /// The return address of a first call.
    pub fn caller(&self, id: Option<StackId>) -> Option<u64> {
        self.raw.get(&id?)?.addresses.get(1).copied()
    }

    /// Python functions in stacks whose names never came.
    pub fn unnamed_functions(&self) -> u64 {
        let calls = self.raw.values().flat_map(|raw| raw.python.iter());
        let functions = calls.flat_map(|python| python.calls.iter().map(|call| call.function));
        let unnamed: HashSet<u64> = functions.filter(|id| !self.functions.has(*id)).collect();
        unnamed.len() as u64
    }

    /// Python functions that were not kept since the last call.
    pub fn functions_left_out(&mut self) -> u64 {
        self.functions.left_out()
    }

    /// Stacks that were not kept since the last call.
    pub fn dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// All stacks, with symbols.
    pub fn symbolized(&self, names: &mut Names) -> impl Iterator<Item = Stack> {
        let of_kernel = self.raw.values().filter(|raw| raw.tgid == 0);
        names.learn_kernel(of_kernel.map(|raw| &raw.addresses[..]));
        self.raw.iter().map(|(id, raw)| {
            let common = self.unwound.get(id);
            let common = common.filter(|common| {
                common.addresses.len() > names.plausible(raw.tgid, &raw.addresses)
            });
            let (addresses, loops, is_whole, copies) = match common {
                Some(c) => (&c.addresses, &c.loops, c.is_whole, c.copies),
                None => (&raw.addresses, &raw.loops, raw.is_whole, raw.copies),
            };
            let mut stack = Stack { copies, ..stack(names, *id, raw.tgid, addresses) };
            names.symbolize(raw.tgid, &mut stack.frames);
            stack.truncated |= !is_whole && is_truncated(&stack);
            if stack.space == Space::Kernel {
                leave_out_tracing(&mut stack.frames);
            }
            match &raw.python {
                Some(python) => with_python(names, &self.functions, stack, loops, python),
                None => stack,
            }
        })
    }
}

/// The stack with the Python functions that run in it.
fn with_python(
    names: &mut Names,
    functions: &Functions,
    mut stack: Stack,
    loops: &[usize],
    python: &Calls,
) -> Stack {
    let mut called = |call| {
        let mut frame = functions.frame(call);
        let text = frame.symbol.as_ref().map_or(0, String::len) + frame.module.len();
        if !names.has_room_for(text) {
            (frame.symbol, frame.source, frame.module) = (None, None, String::new());
        }
        Called { frame, is_entry: call.is_entry() }
    };
    let called = python.calls.iter().map(&mut called).collect();
    stack.frames = join(stack.frames, loops, !stack.truncated, called);
    stack.truncated |= !python.is_whole;
    stack
}

fn stack(names: &mut Names, id: StackId, tgid: u32, addresses: &[u64]) -> Stack {
    let mut frames = names.frames(tgid, addresses);
    let plausible = names.plausible(tgid, addresses);
    frames.truncate(plausible);
    frames.shrink_to_fit();
    Stack {
        id,
        space: if tgid == 0 { Space::Kernel } else { Space::User },
        truncated: addresses.len() >= FRAMES || plausible < addresses.len(),
        frames,
        copies: 0,
    }
}

/// A number for a stack that was unwound: as good as that of the kernel side, and another one.
fn identity(tgid: u32, addresses: &[u64], python: Option<&Calls>) -> StackId {
    let mix = |id: u64, word: u64| {
        let id = (id ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        id ^ id >> 32
    };
    let calls = python.into_iter().flat_map(|python| python.calls.iter());
    let of_python = calls.flat_map(|call| [call.function, call.at()]);
    let words = addresses.iter().copied().chain(of_python);
    StackId(words.fold(0x2545_f491_4f6c_dd1d ^ u64::from(tgid), mix))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_without_a_copy_has_the_stack_on_which_its_threads_copies_agree() {
        const WALKED: StackId = StackId(1);
        let mut stacks = Stacks::default();
        for copy in 10..15 {
            stacks.remember(copy, StackId(7));
        }
        stacks.remember(20, StackId(8));
        let none = 0;
        let of = |stacks: &mut Stacks, tid, copy| stacks.of_interval(tid, copy, Some(WALKED));
        for copy in 10..13 {
            assert_eq!(of(&mut stacks, 5, copy), Some(StackId(7)));
        }
        assert_eq!(of(&mut stacks, 5, none), Some(WALKED), "three are too few");
        assert_eq!(of(&mut stacks, 5, 13), Some(StackId(7)));
        assert_eq!(of(&mut stacks, 5, none), Some(StackId(7)));
        assert_eq!(of(&mut stacks, 6, none), Some(WALKED), "another thread");
        assert_eq!(stacks.of_interval(5, none, Some(StackId(2))), Some(StackId(2)));
        assert_eq!(stacks.of_interval(5, 14, None), None, "a wait without any stack");
        assert_eq!(of(&mut stacks, 5, 20), Some(StackId(8)));
        assert_eq!(of(&mut stacks, 5, none), Some(WALKED), "they do not agree any more");
    }
}
