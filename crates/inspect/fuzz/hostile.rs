//! An input of the fuzzer, as an ELF file of which everything is asked. Also used by
//! tests/hostile_elf.rs.
//!
//! The first byte says how: 0, the rest is the file. Else it is the number of a file of the corpus,
//! changed by patches of 12 bytes each: where (4 bytes, modulo the length) and what (8 bytes).

use inspect::elf::{CallSites, Elf, Exports, Registers, Step};

/// Where the stack is.
const STACK: u64 = 0x7fff_0000_0000;

const GOOD: [&[u8]; 8] = [
    include_bytes!("corpus/elf/x86-lazy.so"),
    include_bytes!("corpus/elf/x86-ibt.so"),
    include_bytes!("corpus/elf/x86-no-plt.so"),
    include_bytes!("corpus/elf/x86-no-sections.so"),
    include_bytes!("corpus/elf/arm-lazy.so"),
    include_bytes!("corpus/elf/arm-bti.so"),
    include_bytes!("corpus/elf/static-pie"),
    include_bytes!("corpus/elf/x86-go-table"),
];

/// A good file, by any number.
pub fn good(number: usize) -> &'static [u8] {
    GOOD[number % GOOD.len()]
}

/// Reads what the input makes; true if it is taken for an ELF file.
pub fn read(input: &[u8]) -> bool {
    let Some((how, rest)) = input.split_first() else { return false };
    let Some(number) = usize::from(*how).checked_sub(1) else { return ask(rest) };
    let mut file = good(number).to_vec();
    for [a, b, c, d, value @ ..] in rest.as_chunks::<12>().0 {
        let at = u32::from_le_bytes([*a, *b, *c, *d]) as usize % file.len();
        let length = value.len().min(file.len() - at);
        file[at..at + length].copy_from_slice(&value[..length]);
    }
    ask(&file)
}

/// Asks everything that can be asked of a file.
pub fn ask(file: &[u8]) -> bool {
    let Ok(elf) = Elf::read(&file.to_vec()) else { return false };
    for slot in &elf.slots {
        assert!(elf.symbol(slot).len() <= 3 * 4096, "a name is bounded");
    }
    assert!(elf.slots.len() + elf.bound_at_load() <= file.len(), "each has an entry in the file");
    let Ok(mut sites) = CallSites::new("hostile", Box::new(file.to_vec())) else { return false };
    sites.take_go_functions();
    assert!(sites.memory() <= 4096 + 8 * file.len(), "memory follows the length of the file");
    let code = elf.segments().iter().filter(|segment| segment.is_code);
    for segment in code.take(4) {
        for step in 0..200 {
            let _ = sites.at(segment.address.wrapping_add(step)).to_string();
            let _ = sites.at_offset(segment.offset.wrapping_add(step));
            if let Ok((name, _)) = sites.function_at_offset(segment.offset.wrapping_add(step)) {
                assert!(name.len() <= 3 * 4096, "a name is bounded");
            }
        }
    }
    unwind(&sites, file);
    exports(file);
    true
}

/// Looks for what is there, what is not, and an interpreter.
fn exports(file: &[u8]) {
    let bytes = file.to_vec();
    let Ok(Some(exports)) = Exports::read(&bytes) else { return };
    for name in ["sched_yield", "_init", "_PyRuntime", ""] {
        if let Ok(Some(address)) = exports.address(name) {
            let _ = exports.data(address, &mut [0; 64]);
        }
    }
    let _ = exports.load_bias(STACK, 0, file.len() as u64);
    if let Ok(Some(Ok(found))) = inspect::python::interpreter(&bytes) {
        assert!(found.layout.is_plausible());
    }
}

/// Unwinds from places in the code of the file, with the file as the stack.
fn unwind(sites: &CallSites, file: &[u8]) {
    let Ok(mut unwinder) = sites.unwinder() else { return };
    assert!(unwinder.memory() <= 4096 + 80 * file.len(), "memory follows the length of the file");
    let memory = |address: u64| {
        let at = usize::try_from(address.wrapping_sub(STACK)).ok()?;
        Some(u64::from_le_bytes(*file.get(at..)?.first_chunk()?))
    };
    let code = sites.elf().segments().iter().filter(|segment| segment.is_code);
    for segment in code.take(4) {
        for step in 0..200u64 {
            let address = segment.address.wrapping_add(step.wrapping_mul(segment.in_memory / 200));
            let mut registers =
                Registers { instruction: address, stack: STACK + step, frame: STACK + 2 * step };
            for _ in 0..20 {
                let Step::Caller { registers: caller, .. } =
                    unwinder.step(registers.instruction, registers, &memory)
                else {
                    break;
                };
                registers = caller;
            }
        }
    }
}
