//! Who called, in code that has neither frame pointers nor tables: by reading on until it returns.
//!
//! musl, the C library of Alpine, is built without tables, and so is much code that was written by hand.
//! But a function leaves the stack as it found it: whichever way the code goes from here to its return,
//! what it pops and frees until then is what it has pushed and taken. So the instructions from one
//! address on are followed, along every branch, and only the stack pointer and the frame pointer are
//! kept account of. Where two ways disagree, or none is found, nothing is said.
//!
//! What comes after a call that never returns is another function, which ends with the stack as it was at
//! that call. Such ends are known: the ABI has the stack aligned to 16 bytes at every call, so whoever was
//! called finds its return address 8 bytes off.
//!
//! The analysis is the one of which "epilogue scanning" of unwinders is a part (Windows x64 ABI:
//! unwind procedure, step 3), for whole functions.

use std::collections::{HashMap, HashSet, VecDeque};

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, Register,
};

use super::call_sites::CallSites;
use super::header::Machine;
use super::unwind::{Registers, Step};

/// Instructions that are followed from one address. Functions that wait are short.
const MOST_INSTRUCTIONS: usize = 512;
/// Bytes of code that are read at a time, or fewer at the end of a file.
const PIECES: [usize; 5] = [256, 64, 16, 4, 1];
/// Places in the code that are remembered, of a file.
const MOST_PLACES: usize = 512;

/// A place on the stack: so many bytes from where the stack pointer, or the frame pointer, was at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    FromStack(i64),
    FromFrame(i64),
}

/// What the caller's frame pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// The one of now.
    Unchanged,
    /// Saved there.
    At(Place),
    /// The function uses the register for something else.
    Lost,
}

/// Before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    stack: Place,
    frame: Frame,
    /// Where the frame pointer was pushed on the way, by a function that is jumped to in the end, and
    /// which one it was.
    pushed: Option<(Place, Frame)>,
}

/// When the function returns: where its return address is, and the caller's frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    stack: Place,
    frame: Frame,
}

/// The ways out of functions of one file, remembered.
#[derive(Default)]
pub struct WaysOut(HashMap<(u64, bool), Option<End>>);

impl WaysOut {
    /// Bytes of memory that it comes to take.
    pub fn memory() -> usize {
        MOST_PLACES * 2 * size_of::<((u64, bool), Option<End>)>()
    }

    /// Goes from the instruction at `address`, relative to where the file is loaded, to who called its
    /// function. `exact` if that instruction runs next; else it is behind the call that the thread is in.
    /// `memory` has the stack, word by word. Costs some 30 us the first time at an address.
    pub fn step(
        &mut self,
        code: &CallSites,
        (address, exact): (u64, bool),
        registers: Registers,
        memory: &dyn Fn(u64) -> Option<u64>,
    ) -> Step {
        let found = match self.0.get(&(address, exact)) {
            Some(found) => *found,
            None => {
                let found = way_out(code, address, exact);
                if self.0.len() < MOST_PLACES {
                    self.0.insert((address, exact), found);
                }
                found
            }
        };
        let Some(End { stack, frame }) = found else { return Step::Unknown };
        let at = |place: Place| match place {
            Place::FromStack(offset) => registers.stack.wrapping_add_signed(offset),
            Place::FromFrame(offset) => registers.frame.wrapping_add_signed(offset),
        };
        let returns_at = at(stack);
        if returns_at < registers.stack {
            return Step::Unknown;
        }
        let Some(instruction) = memory(returns_at) else { return Step::Beyond };
        if instruction == 0 {
            return Step::Outermost;
        }
        let frame = match frame {
            Frame::Unchanged => Some(registers.frame),
            Frame::At(place) => memory(at(place)),
            // What is further out may need it, and finds out that it is wrong.
            Frame::Lost => Some(0),
        };
        let Some(frame) = frame else { return Step::Beyond };
        let registers = Registers { instruction, stack: returns_at.wrapping_add(8), frame };
        Step::Caller { registers, exact: false }
    }
}

fn way_out(code: &CallSites, address: u64, exact: bool) -> Option<End> {
    if code.elf().machine != Machine::X86_64 {
        return None;
    }
    let begin = State { stack: Place::FromStack(0), frame: Frame::Unchanged, pushed: None };
    let mut walk = Walk { code, ways: VecDeque::from([(address, begin)]), seen: HashSet::new() };
    let mut found = None;
    // What is behind the call that a thread is in may be another function, too.
    let mut after_call = !exact;
    while let Some((address, state)) = walk.ways.pop_front() {
        let end = walk.follow(address, state, after_call);
        after_call = false;
        let end = end.filter(|end| exact || end.stack.is_of_callee());
        if found.is_some() && end.is_some() && found != end {
            return None;
        }
        found = found.or(end);
    }
    found
}

impl Place {
    fn moved(self, by: i64) -> Place {
        match self {
            Place::FromStack(offset) => Place::FromStack(offset + by),
            Place::FromFrame(offset) => Place::FromFrame(offset + by),
        }
    }

    /// A return address can be there, where the stack is aligned now.
    fn is_of_callee(self) -> bool {
        let (Place::FromStack(offset) | Place::FromFrame(offset)) = self;
        offset.rem_euclid(16) == 8
    }
}

struct Walk<'a> {
    code: &'a CallSites,
    /// Where to go on.
    ways: VecDeque<(u64, State)>,
    /// Every instruction that was met.
    seen: HashSet<u64>,
}

impl Walk<'_> {
    /// From one address on until the function ends there, or goes on elsewhere.
    fn follow(&mut self, address: u64, mut state: State, mut after_call: bool) -> Option<End> {
        let mut factory = InstructionInfoFactory::new();
        let mut next = address;
        loop {
            let bytes = PIECES.iter().find_map(|length| self.code.code(next, *length))?;
            let mut decoder = Decoder::with_ip(64, &bytes, next, DecoderOptions::NONE);
            let from = next;
            while decoder.can_decode() {
                let instruction = decoder.decode();
                // Cut off by the end of what was read.
                if instruction.is_invalid() {
                    break;
                }
                // What comes after a call that does not return is another function, behind padding.
                let is_new = self.seen.insert(instruction.ip());
                if after_call && is_padding(&instruction)
                    || !is_new
                    || self.seen.len() > MOST_INSTRUCTIONS
                {
                    return None;
                }
                after_call = instruction.is_call_near() || instruction.is_call_near_indirect();
                match instruction.flow_control() {
                    FlowControl::Return => {
                        return Some(End { stack: state.stack, frame: state.frame });
                    }
                    FlowControl::UnconditionalBranch => {
                        self.ways.push_back((instruction.near_branch_target(), state));
                        return None;
                    }
                    FlowControl::ConditionalBranch => {
                        self.ways.push_back((instruction.near_branch_target(), state));
                    }
                    FlowControl::IndirectBranch
                    | FlowControl::Exception
                    | FlowControl::Interrupt
                    | FlowControl::XbeginXabortXend => return None,
                    FlowControl::Next => state = state.after(&instruction, &mut factory)?,
                    // Calls come back, and system calls leave the stack alone.
                    FlowControl::Call | FlowControl::IndirectCall => {}
                }
                next = instruction.next_ip();
            }
            if next == from {
                return None;
            }
        }
    }
}

impl State {
    /// `None` if the stack pointer comes from elsewhere.
    fn after(
        self,
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
    ) -> Option<State> {
        let has_own_frame = self.frame == Frame::Unchanged;
        let is_of_stack = instruction.op0_register() == Register::RSP;
        let is_of_frame = instruction.op0_register() == Register::RBP;
        let immediate = || instruction.immediate(1).cast_signed();
        let distance = instruction.memory_displacement64().cast_signed();
        let is_beside = |base| {
            let is_plain = instruction.memory_index() == Register::None;
            is_plain && instruction.memory_base() == base
        };
        let with_stack = |stack| Some(State { stack, ..self });
        match instruction.code() {
            Code::Leaveq if has_own_frame => {
                let frame = Frame::At(Place::FromFrame(0));
                Some(State { stack: Place::FromFrame(8), frame, ..self })
            }
            Code::Push_r64 if is_of_frame => {
                let place = self.stack.moved(-8);
                Some(State { stack: place, pushed: Some((place, self.frame)), ..self })
            }
            Code::Pop_r64 if is_of_frame => {
                let frame = match self.pushed {
                    Some((place, frame)) if place == self.stack => frame,
                    _ => Frame::At(self.stack),
                };
                Some(State { stack: self.stack.moved(8), frame, pushed: None })
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if is_of_stack => {
                with_stack(self.stack.moved(immediate()))
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if is_of_stack => {
                with_stack(self.stack.moved(-immediate()))
            }
            Code::Lea_r64_m if is_of_stack && is_beside(Register::RSP) => {
                with_stack(self.stack.moved(distance))
            }
            Code::Lea_r64_m if is_of_stack && is_beside(Register::RBP) && has_own_frame => {
                with_stack(Place::FromFrame(distance))
            }
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64
                if is_of_stack && instruction.op1_register() == Register::RBP && has_own_frame =>
            {
                with_stack(Place::FromFrame(0))
            }
            Code::Mov_r64_rm64 if is_of_frame && is_beside(Register::RSP) => {
                Some(State { frame: Frame::At(self.stack.moved(distance)), ..self })
            }
            _ => {
                let (writes_stack, writes_frame) = written(instruction, factory);
                let pushed = i64::from(instruction.stack_pointer_increment());
                // Besides push and pop nothing that is not above moves it by a known distance.
                if writes_stack && pushed == 0 {
                    return None;
                }
                let frame = if writes_frame { Frame::Lost } else { self.frame };
                Some(State { stack: self.stack.moved(pushed), frame, ..self })
            }
        }
    }
}

/// Whether an instruction writes to the stack pointer and to the frame pointer.
fn written(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> (bool, bool) {
    let used = factory.info(instruction).used_registers();
    let writes = |register: Register| {
        used.iter().any(|use_of| {
            let is_write = matches!(
                use_of.access(),
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            );
            is_write && use_of.register().full_register() == register
        })
    };
    (writes(Register::RSP), writes(Register::RBP))
}

fn is_padding(instruction: &Instruction) -> bool {
    instruction.code() == Code::Int3
        || instruction.code() == Code::Endbr64
        || instruction.mnemonic() == Mnemonic::Nop
        || instruction.code() == Code::Xchg_r16_AX
}
