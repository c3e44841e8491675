//! Who called, by a copy of the top of a user stack.
//!
//! The copy is the process's own, and may say anything: each step costs a bounded time, and each
//! address has to lie in code that is mapped.

use std::time::Instant;

use inspect::elf::{Registers, Step};

use crate::code::Code;
use crate::inbox::Words;
use crate::mappings::{Mapping, Mappings};
use crate::stacks::FRAMES;

/// How a walk through a copy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where the thread begins.
    Outermost,
    /// Where the copy ends.
    Beyond,
    /// In code whose file does not say who called.
    Unknown,
    /// At an address that no known mapping has.
    Unmapped,
    /// There was no more time.
    Late,
}

/// The stack behind a copy.
pub struct Unwound {
    /// Innermost first.
    pub addresses: Vec<u64>,
    /// Where on the stack each of them begins.
    pub places: Vec<u64>,
    /// How it ended.
    pub end: End,
}

impl Unwound {
    /// The frames, by number, that have something at these addresses of the stack, in order.
    pub fn around(&self, on_stack: &[u64]) -> Vec<usize> {
        let is_in_order = self.places.is_sorted();
        let around = |at: &u64| self.places.partition_point(|place| place <= at).checked_sub(1);
        // The last has no end.
        let is_known = |frame: &usize| is_in_order && *frame + 1 < self.places.len();
        on_stack.iter().map_while(around).take_while(is_known).collect()
    }
}

/// Walks through a copy, until then at most.
pub fn unwind(code: &mut Code, mappings: &Mappings, words: &Words, until: Instant) -> Unwound {
    let mut walk = Walk { code, mappings, words };
    let mut registers = Registers { instruction: words.ip, stack: words.stack, frame: words.frame };
    let mut addresses = vec![words.ip];
    let mut places = vec![words.stack];
    let mut exact = true;
    while addresses.len() < FRAMES {
        if Instant::now() >= until {
            return Unwound { addresses, places, end: End::Late };
        }
        let end = match walk.step(registers, exact) {
            Step::Caller { registers: caller, exact: is_exact } => {
                if walk.code_at(caller.instruction).is_none() {
                    return Unwound { addresses, places, end: End::Unmapped };
                }
                (registers, exact) = (caller, is_exact);
                addresses.push(caller.instruction);
                places.push(caller.stack);
                continue;
            }
            Step::Outermost => End::Outermost,
            Step::Beyond => End::Beyond,
            Step::Unknown => End::Unknown,
        };
        return Unwound { addresses, places, end };
    }
    Unwound { addresses, places, end: End::Beyond }
}

struct Walk<'a> {
    code: &'a mut Code,
    mappings: &'a Mappings,
    words: &'a Words,
}

impl<'a> Walk<'a> {
    /// The mapping of code at an address.
    fn code_at(&self, address: u64) -> Option<&'a Mapping> {
        self.mappings.find(self.words.tgid, address).filter(|mapping| mapping.executable)
    }

    /// By the tables of the file, or by its code where it has none for that; what is left, and code that
    /// was made at run time, has frame pointers, or nothing.
    fn step(&mut self, registers: Registers, exact: bool) -> Step {
        let Some(mapping) = self.code_at(registers.instruction) else { return Step::Unknown };
        let words = self.words;
        let memory = |address| words.at(address);
        if mapping.path.is_empty() {
            return by_frame_pointer(registers, &memory);
        }
        match self.code.step(words.tgid, mapping, exact, registers, &memory) {
            Ok(Some(step)) => step,
            Ok(None) => by_frame_pointer(registers, &memory),
            Err(_) => Step::Unknown,
        }
    }
}

fn by_frame_pointer(registers: Registers, memory: &dyn Fn(u64) -> Option<u64>) -> Step {
    let at = registers.frame;
    if at < registers.stack || !at.is_multiple_of(8) {
        return Step::Unknown;
    }
    let Some((frame, instruction)) = memory(at).zip(memory(at.wrapping_add(8))) else {
        return Step::Beyond;
    };
    if instruction == 0 {
        return Step::Outermost;
    }
    let registers = Registers { instruction, stack: at.wrapping_add(16), frame };
    Step::Caller { registers, exact: false }
}
