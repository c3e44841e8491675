//! Who called, in code without frame pointers: by the tables that exceptions need (`.eh_frame`),
//! which nearly every file of x86-64 has.

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, Encoding, EndianSlice, Error, EvaluationResult,
    Format, FrameDescriptionEntry, LittleEndian, Location, Register, RegisterRule, UnwindContext,
    UnwindExpression, UnwindSection, Value, X86_64,
};
use object::elf::{PT_GNU_EH_FRAME, PT_LOAD};

use super::bytes::{Bytes, piece};
use super::error::ElfError;
use super::file::Elf;
use super::header::Machine;

/// Of the tables of a file; those of a browser are 20 MiB.
const LONGEST_TABLE: u64 = 32 << 20;
/// Of what is said of one function; the longest of real ones are some kB.
const LONGEST_ENTRY: u32 = 16 << 10;
/// Places in the code that are remembered, of a file.
const MOST_ROWS: usize = 16_384;
/// Steps of an expression; real ones have a dozen.
const MOST_STEPS: u32 = 128;

/// How a search table is written that can be searched: pairs of signed 32-bit numbers, relative to
/// where it begins. No linker writes another one.
const SEARCHABLE: [u8; 2] = [0x03, 0x3b];

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Expression = UnwindExpression<usize>;

/// What leads from a function to who called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The instruction that runs, or that is returned to.
    pub instruction: u64,
    /// The top of the stack.
    pub stack: u64,
    /// What code with frame pointers has its own in (`rbp`).
    pub frame: u64,
}

/// A step outwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Who called. `exact` after a signal: the instruction is the next that would have run, and no
    /// return address.
    Caller {
        /// As they will be when the function returns.
        registers: Registers,
        /// True if the instruction itself is to be looked up, not the byte before it.
        exact: bool,
    },
    /// Nobody: a thread begins here.
    Outermost,
    /// The stack goes on beyond what there is of it.
    Beyond,
    /// The file does not say.
    Unknown,
}

/// The same, for a place in the code.
#[derive(Clone, Copy, Debug)]
struct Row {
    cfa: Cfa,
    frame: Saved,
    instruction: Saved,
    is_signal: bool,
}

/// Where the stack of the caller ends ("canonical frame address").
#[derive(Clone, Copy, Debug)]
enum Cfa {
    FromStack(i64),
    FromFrame(i64),
    Computed(Expression),
}

/// Where a register of the caller is.
#[derive(Clone, Copy, Debug)]
enum Saved {
    Nowhere,
    Unchanged,
    /// In memory, from the canonical frame address on.
    At(i64),
    AtComputed(Expression),
}

/// The tables of a file.
pub struct Unwinder {
    /// Where the search table is loaded, and its pairs: where a function begins and where its entry
    /// is, relative to that.
    search_at: u64,
    search: Vec<[i32; 2]>,
    entries_at: u64,
    entries: Vec<u8>,
    rows: HashMap<u64, Option<Row>>,
    context: Box<UnwindContext<usize>>,
}

impl Unwinder {
    /// Those of a file. Costs its tables' length in memory: 2 to 4 % of the code's.
    ///
    /// # Errors
    /// [`ElfError::Unknown`] if there are none, or the machine is not x86-64.
    pub fn read(source: &dyn Bytes, elf: &Elf) -> Result<Unwinder, ElfError> {
        if elf.machine != Machine::X86_64 {
            return Err(ElfError::Unknown(format!("unwinding is not known for {}", elf.machine)));
        }
        let header = elf.header.segment(PT_GNU_EH_FRAME.0);
        let header = header.ok_or_else(|| ElfError::Unknown("no tables to unwind by".into()))?;
        let place = (header.offset, header.in_file);
        let table = piece(source, "the search table of .eh_frame", place, LONGEST_TABLE)?;
        let search_at = header.address;
        let (entries_at, search) = search_table(&table, search_at)?;
        let loaded = elf.header.segments.iter().filter(|s| s.kind == PT_LOAD.0);
        let mut holding = loaded.filter_map(|segment| {
            let from = entries_at.checked_sub(segment.address)?;
            let length = segment.in_file.checked_sub(from)?;
            Some((segment.offset.checked_add(from)?, length))
        });
        let (offset, length) =
            holding.next().ok_or_else(|| ElfError::damaged(".eh_frame in no segment"))?;
        // What follows it in the segment is read with it, and never looked at.
        let length = length.min(LONGEST_TABLE);
        let entries = piece(source, ".eh_frame", (offset, length), LONGEST_TABLE)?;
        let (rows, context) = (HashMap::new(), Box::new(UnwindContext::new()));
        Ok(Unwinder { search_at, search, entries_at, entries, rows, context })
    }

    /// Bytes of memory that it takes, and comes to take.
    pub fn memory(&self) -> usize {
        let rows = MOST_ROWS * 2 * size_of::<(u64, Option<Row>)>();
        self.search.capacity() * 8 + self.entries.capacity() + rows.min(self.search.len() * 256)
    }

    /// Goes from the code at `address`, relative to where the file is loaded, to who called it.
    /// `memory` has the stack, word by word. Costs some 100 ns, the first time at an address some us.
    pub fn step(
        &mut self,
        address: u64,
        registers: Registers,
        memory: &dyn Fn(u64) -> Option<u64>,
    ) -> Step {
        let Some(row) = self.row(address) else { return Step::Unknown };
        let reached = |base: u64, offset: i64| Some(base.wrapping_add_signed(offset));
        let cfa = match row.cfa {
            Cfa::FromStack(offset) => reached(registers.stack, offset),
            Cfa::FromFrame(offset) => reached(registers.frame, offset),
            Cfa::Computed(how) => self.compute(how, registers, None, memory),
        };
        // The stack grows downwards: who called has used more of it, but for a signal's own stack.
        let is_possible = |cfa: &u64| *cfa > registers.stack || row.is_signal;
        let Some(cfa) = cfa.filter(is_possible) else { return Step::Unknown };
        let saved = |saved: Saved, now: u64| match saved {
            Saved::Nowhere => Some(0),
            Saved::Unchanged => Some(now),
            Saved::At(offset) => memory(cfa.wrapping_add_signed(offset)),
            Saved::AtComputed(how) => memory(self.compute(how, registers, Some(cfa), memory)?),
        };
        let Some(instruction) = saved(row.instruction, 0) else { return Step::Beyond };
        if instruction == 0 {
            return Step::Outermost;
        }
        let Some(frame) = saved(row.frame, registers.frame) else { return Step::Beyond };
        let registers = Registers { instruction, stack: cfa, frame };
        Step::Caller { registers, exact: row.is_signal }
    }

    /// The row of an address, remembered: waits come back to the same few places.
    fn row(&mut self, address: u64) -> Option<Row> {
        if let Some(row) = self.rows.get(&address) {
            return *row;
        }
        let row = self.read_row(address).ok();
        if self.rows.len() < MOST_ROWS {
            self.rows.insert(address, row);
        }
        row
    }

    fn read_row(&mut self, address: u64) -> Result<Row, Error> {
        let section = EhFrame::new(&self.entries, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(self.entries_at);
        let entry = self.entry(&section, &bases, address)?;
        let is_signal = entry.is_signal_trampoline();
        let of = &mut self.context;
        let row = entry.unwind_info_for_address(&section, &bases, of, address)?;
        let cfa = match *row.cfa() {
            CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => Cfa::FromStack(offset),
            CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } => Cfa::FromFrame(offset),
            CfaRule::Expression(how) => Cfa::Computed(how),
            CfaRule::RegisterAndOffset { .. } => return Err(Error::NoUnwindInfoForAddress),
        };
        let saved = |register: Register, otherwise: Saved| match row.register(register) {
            None => Ok(otherwise),
            Some(RegisterRule::SameValue) => Ok(Saved::Unchanged),
            Some(RegisterRule::Undefined) => Ok(Saved::Nowhere),
            Some(RegisterRule::Offset(offset)) => Ok(Saved::At(offset)),
            Some(RegisterRule::Expression(how)) => Ok(Saved::AtComputed(how)),
            Some(_) => Err(Error::NoUnwindInfoForAddress),
        };
        let frame = saved(X86_64::RBP, Saved::Unchanged)?;
        let instruction = saved(X86_64::RA, Saved::Nowhere)?;
        Ok(Row { cfa, frame, instruction, is_signal })
    }

    /// The entry of the function around an address.
    fn entry<'a>(
        &self,
        section: &EhFrame<Slice<'a>>,
        bases: &BaseAddresses,
        address: u64,
    ) -> Result<FrameDescriptionEntry<Slice<'a>>, Error> {
        const NONE: Error = Error::NoUnwindInfoForAddress;
        let relative = i32::try_from(address.wrapping_sub(self.search_at) as i64);
        let relative = relative.map_err(|_| NONE)?;
        let next = self.search.partition_point(|[start, _]| *start <= relative);
        let [_, at] = next.checked_sub(1).and_then(|n| self.search.get(n)).ok_or(NONE)?;
        let at = self.search_at.wrapping_add_signed(i64::from(*at));
        let offset = at.checked_sub(self.entries_at).and_then(|at| usize::try_from(at).ok());
        let offset = EhFrameOffset(offset.filter(|at| self.is_short(*at)).ok_or(NONE)?);
        let entry = section.fde_from_offset(bases, offset, |section, bases, offset| {
            if !self.is_short(offset.0) {
                return Err(NONE);
            }
            section.cie_from_offset(bases, offset)
        })?;
        if entry.contains(address) { Ok(entry) } else { Err(NONE) }
    }

    /// True if there is an entry that is read in some us.
    fn is_short(&self, offset: usize) -> bool {
        let length = self.entries.get(offset..).and_then(|entry| entry.first_chunk());
        length.is_some_and(|length| u32::from_le_bytes(*length) <= LONGEST_ENTRY)
    }

    /// The value of an expression: in PLT entries and in signal handlers' return.
    fn compute(
        &self,
        how: Expression,
        registers: Registers,
        cfa: Option<u64>,
        memory: &dyn Fn(u64) -> Option<u64>,
    ) -> Option<u64> {
        let section = EhFrame::new(&self.entries, LittleEndian);
        let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 4 };
        let mut evaluation = how.get(&section).ok()?.evaluation(encoding);
        evaluation.set_max_iterations(MOST_STEPS);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            let resumed = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(registers.get(register)?))
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    evaluation.resume_with_memory(Value::Generic(memory(address)?))
                }
                _ => return None,
            };
            result = resumed.ok()?;
        }
        match evaluation.as_result().first()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

impl Registers {
    fn get(self, register: Register) -> Option<u64> {
        match register {
            X86_64::RSP => Some(self.stack),
            X86_64::RBP => Some(self.frame),
            X86_64::RA => Some(self.instruction),
            _ => None,
        }
    }
}

/// Where the entries begin, and the pairs.
fn search_table(table: &[u8], at: u64) -> Result<(u64, Vec<[i32; 2]>), ElfError> {
    let unknown = || ElfError::Unknown("an .eh_frame_hdr that cannot be searched".into());
    let (head, pairs) = table.split_first_chunk::<12>().ok_or_else(unknown)?;
    // Version, and how the address of .eh_frame, the number of pairs and the pairs are written.
    let [1, 0x1b, count_form, pairs_form, a, b, c, d, count @ ..] = *head else {
        return Err(unknown());
    };
    if [count_form, pairs_form] != SEARCHABLE {
        return Err(unknown());
    }
    let entries_at = at.wrapping_add_signed(4 + i64::from(i32::from_le_bytes([a, b, c, d])));
    let count = u32::from_le_bytes(count) as usize;
    let number = |bytes: &[u8; 4]| i32::from_le_bytes(*bytes);
    let (numbers, _) = pairs.as_chunks::<4>();
    let (pairs, _) = numbers.as_chunks::<2>();
    let pairs = pairs.iter().take(count).map(|[start, entry]| [number(start), number(entry)]);
    Ok((entries_at, pairs.collect()))
}
