//! Names for addresses: frames of stacks, code that takes a lock, files behind faults.

use std::collections::HashMap;
use std::time::Instant;

use inspect::perf_map::{PerfMaps, Whose};
use model::{Frame, ImportedCall, ObjectName};

use crate::code::{Code, LATE};
use crate::inbox::Words;
use crate::kernel_symbols::{KernelSymbols, Symbol};
use crate::mappings::Mappings;
use crate::namespace;
use crate::naming_time::NamingTime;
use crate::unwind::{self, Unwound};
use crate::wire::LockClass;

/// All names in the stacks of a run, bytes. Each is kept as often as it occurs, and a program can
/// have names of any length.
const MOST_TEXT: usize = 128 << 20;

/// What is asked for names, and needs to be known of processes.
#[derive(Default)]
pub struct Names {
    /// `None`: nobody asks for names of the kernel's.
    kernel: Option<KernelSymbols>,
    locks: HashMap<u64, String>,
    perf_maps: PerfMaps,
    code: Code,
    pub mappings: Mappings,
    /// Bytes of names that were given.
    text: usize,
    unnamed: u64,
    /// While all stacks are named at the end.
    time: NamingTime,
    late: u64,
}

impl Names {
    pub fn new(kernel: KernelSymbols) -> Names {
        Names { kernel: Some(kernel), ..Names::default() }
    }

    /// Name of a lock class: `mmap_lock (write)`, `lock in ext4_file_write_iter`.
    pub fn lock_class(&mut self, id: u64) -> String {
        if let Some(class) = LockClass::of(id) {
            return class.text().to_owned();
        }
        if let Some(name) = self.locks.get(&id) {
            return name.clone();
        }
        let name = match self.kernel_symbols(&[id - 1]).pop() {
            Some(Ok((symbol, _))) => format!("lock in {symbol}"),
            _ => format!("lock in kernel code at {id:#x}"),
        };
        self.locks.insert(id, name.clone());
        name
    }

    /// What is mapped at an address of a process.
    pub fn mapping(&mut self, tgid: u32, address: u64) -> Option<ObjectName> {
        if self.mappings.find(tgid, address).is_none() {
            self.mappings.refresh(tgid);
        }
        // A region of 2 MiB is named after what lies in it first.
        let found = (0..512).find_map(|page| self.mappings.find(tgid, address + page * 4096));
        found.map(|mapping| ObjectName::of_mapping(mapping.path.to_string()))
    }

    /// How many of the addresses, from the innermost on, can be code. Code built without frame
    /// pointers leads the walk into data: what follows is no call chain. All, if nothing is known
    /// of the process.
    pub fn plausible(&mut self, tgid: u32, addresses: &[u64]) -> usize {
        if tgid == 0 || self.mappings.lacks(tgid) {
            return addresses.len();
        }
        let is_code = |address: &&u64| {
            self.mappings.find(tgid, **address).is_some_and(|mapping| mapping.executable)
        };
        let callers = addresses.iter().skip(1).take_while(is_code).count();
        (1 + callers).min(addresses.len())
    }

    /// The return address of a first call, among the words at the top of a stack on which the
    /// dynamic linker now runs: a PLT entry of the caller pushed the number of its slot after it.
    pub fn first_call(&mut self, tgid: u32, words: &[u64]) -> Option<u64> {
        self.mappings.refresh(tgid);
        words.windows(2).find_map(|pair| {
            let (slot, address) = (pair[0], pair[1]);
            let mapping = self.mappings.find(tgid, address)?;
            let is_file = mapping.executable && mapping.path.starts_with('/');
            let offset = mapping.offset_of(address);
            (is_file && self.code.is_first_call(tgid, mapping, offset, slot)).then_some(address)
        })
    }

    /// File of a return address, and the imported function that is called in front of it.
    pub fn call_at(&mut self, tgid: u32, address: u64) -> Option<(String, String)> {
        let mapping = self.mappings.find(tgid, address)?;
        match self.code.before(tgid, mapping, mapping.offset_of(address))? {
            ImportedCall::Plt(symbol) => Some((mapping.path.to_string(), symbol)),
            ImportedCall::Got(_) => None,
        }
    }

    /// The stack behind a copy of its top. Of a process that has mapped more since its list was
    /// read, that is read again.
    pub fn unwind(&mut self, words: &Words, until: Instant) -> Unwound {
        if self.mappings.find(words.tgid, words.ip).is_none() {
            self.mappings.refresh(words.tgid);
        }
        unwind::unwind(&mut self.code, &self.mappings, words, until)
    }

    /// Frames with module and offset; symbols come later, all at once. A return address is looked
    /// up one byte before it, where the call is.
    pub fn frames(&mut self, tgid: u32, addresses: &[u64]) -> Vec<Frame> {
        let unknown = |mappings: &Mappings| {
            addresses.iter().any(|address| mappings.find(tgid, *address).is_none())
        };
        if tgid != 0 && (self.mappings.lacks(tgid) || unknown(&self.mappings)) {
            self.mappings.refresh(tgid);
        }
        addresses
            .iter()
            .map(|address| {
                let (module, offset) = match (tgid, self.mappings.find(tgid, *address)) {
                    (0, _) => ("[kernel]".to_owned(), 0),
                    (_, Some(m)) if m.path.is_empty() => ("[jit]".to_owned(), address - m.start),
                    (_, Some(m)) => (m.path.to_string(), m.offset_of(*address)),
                    (_, None) => (String::new(), 0),
                };
                Frame {
                    address: *address,
                    module,
                    offset,
                    symbol: None,
                    symbol_offset: 0,
                    unknown_because: None,
                    after: None,
                    source: None,
                }
            })
            .collect()
    }

    /// Asks for the functions of many stacks of the kernel at once.
    pub fn learn_kernel<'a>(&mut self, stacks: impl Iterator<Item = &'a [u64]>) {
        let Some(kernel) = &mut self.kernel else { return };
        // Return addresses are looked up one byte before, as in `call_distances`.
        let calls = stacks.flat_map(|stack| {
            let behind_first = stack.iter().skip(1).map(|address| address.saturating_sub(1));
            stack.first().copied().into_iter().chain(behind_first)
        });
        kernel.learn(&calls.collect::<Vec<_>>());
    }

    /// Fills in the symbols of one stack's frames, as far as there is time for the files that lack.
    pub fn symbolize(&mut self, tgid: u32, frames: &mut [Frame]) {
        let left = self.time.left(tgid, || self.mappings.user(tgid));
        self.code.time_left = Some(left);
        self.symbolize_in_time(tgid, frames);
        let left_now = self.code.time_left.take().unwrap_or(left);
        self.time.spend(tgid, left.saturating_sub(left_now));
    }

    fn symbolize_in_time(&mut self, tgid: u32, frames: &mut [Frame]) {
        let before = self.call_distances(tgid, frames);
        let symbols: Vec<Symbol> = if tgid == 0 {
            let calls =
                frames.iter().zip(&before).map(|(frame, d)| frame.address.saturating_sub(*d));
            self.kernel_symbols(&calls.collect::<Vec<_>>())
        } else {
            let pairs = frames.iter().zip(&before);
            pairs
                .map(|(frame, d)| self.user_symbol(tgid, frame, frame.offset.saturating_sub(*d)))
                .collect()
        };
        for ((frame, symbol), before) in frames.iter_mut().zip(symbols).zip(before) {
            let text = symbol.as_ref().map_or_else(String::len, |(name, _)| name.len());
            if !self.has_room_for(text) {
                continue;
            }
            match symbol {
                Ok((name, offset)) => {
                    frame.symbol = Some(name);
                    frame.symbol_offset = offset + before;
                }
                Err(reason) => {
                    self.late += u64::from(reason == LATE);
                    frame.unknown_because = Some(reason);
                }
            }
            if tgid != 0
                && before > 0
                && frame.module.starts_with('/')
                && let Some(mapping) = self.mappings.find(tgid, frame.address)
            {
                frame.after = self.code.before(tgid, mapping, frame.offset);
            }
        }
    }

    /// Takes room for names of so many bytes, or counts a frame that has none.
    pub fn has_room_for(&mut self, text: usize) -> bool {
        let has_room = self.text.saturating_add(text) <= MOST_TEXT;
        match has_room {
            true => self.text += text,
            false => self.unnamed += 1,
        }
        has_room
    }

    /// How many bytes before the address of each frame the instruction is that it stands for: 1 for
    /// a return address. The innermost address is the instruction itself; so is the one that a signal
    /// interrupted, and that which its handler returns to, which nothing has called.
    fn call_distances(&mut self, tgid: u32, frames: &[Frame]) -> Vec<u64> {
        let mut after_signal = true;
        let mut distance = |frame: &Frame| {
            let is_exact = std::mem::take(&mut after_signal);
            if !is_exact && tgid != 0 && frame.module.starts_with('/') {
                let mapping = self.mappings.find(tgid, frame.address);
                after_signal = mapping.is_some_and(|mapping| {
                    self.code.returns_from_signal(tgid, mapping, frame.offset)
                });
            }
            u64::from(!is_exact && !after_signal)
        };
        frames.iter().map(&mut distance).collect()
    }

    /// Frames that got no name because there were too many and too long ones, since the last call.
    pub fn unnamed(&mut self) -> u64 {
        std::mem::take(&mut self.unnamed)
    }

    /// Frames that got no name because there was no time to open their files, since the last call.
    pub fn late(&mut self) -> u64 {
        std::mem::take(&mut self.late)
    }

    fn kernel_symbols(&mut self, addresses: &[u64]) -> Vec<Symbol> {
        match &mut self.kernel {
            Some(kernel) => kernel.of(addresses),
            None => addresses.iter().map(|_| Err("nobody asked the kernel".to_owned())).collect(),
        }
    }

    fn user_symbol(&mut self, tgid: u32, frame: &Frame, offset: u64) -> Symbol {
        match frame.module.as_str() {
            "" => Err("the address is in no mapping that was seen".to_owned()),
            "[jit]" => {
                let address = frame.address - (frame.offset - offset);
                let own_pid = || namespace::innermost(tgid);
                let whose = || Whose { own_pid: own_pid(), user: self.mappings.user(tgid) };
                self.perf_maps.find(tgid, address, whose)
            }
            module if module.starts_with('[') => Err(format!("{module} is no file")),
            _ => {
                let mapping = self.mappings.find(tgid, frame.address);
                let mapping = mapping.ok_or("the address is in no mapping any more")?;
                self.code.function(tgid, mapping, offset)
            }
        }
    }
}
