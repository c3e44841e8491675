//! Whatever a perf map holds: it takes no more memory than there is room for.

#![no_main]

#[path = "../hostile_map.rs"]
mod hostile_map;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    hostile_map::read(input);
});
