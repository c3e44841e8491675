//! An input of the fuzzer, as a perf map. Also used by tests/hostile_map.rs.
//!
//! The first two bytes are how much room there is, in KiB; the rest is the file.

use inspect::perf_map::PerfMap;

/// Reads what the input makes, and asks for names. Gives how many were found.
pub fn read(input: &[u8]) -> usize {
    let Some(([low, high], text)) = input.split_first_chunk() else { return 0 };
    let whole = usize::from(u16::from_le_bytes([*low, *high])) << 10;
    let mut room = whole;
    let map = PerfMap::read(text, &mut room);
    assert!(map.memory() <= whole - room, "{} of {whole}, {room} are left", map.memory());
    let starts = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let word = str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?;
        u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
    });
    let near =
        starts.take(64).flat_map(|start| [start, start.wrapping_add(1), start.wrapping_sub(1)]);
    let found = near.chain([0, u64::MAX]).filter_map(|address| map.find(address));
    found.inspect(|(name, _)| assert!(name.len() <= 512, "a name is bounded")).count()
}
