//! Whatever a file holds: facts, or an error that says why not.
//!
//!     make fuzz RUNS=1000000 SECONDS_EACH=600               # any compiler
//!     cargo +nightly fuzz run elf -- -runs=1000000          # with AddressSanitizer

#![no_main]

#[path = "../hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // A file of the corpus as it is, or one that the fuzzer makes of it.
    hostile::ask(input);
    hostile::read(input);
});
