//! Whatever a file holds, and however it changes while it is read: the reader gives an error.
//!
//!     make fuzz RUNS=1000000 SECONDS_EACH=600               # any compiler
//!     cargo +nightly fuzz run reader -- -runs=1000000       # with AddressSanitizer

#![no_main]

#[path = "../hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    hostile::read(input);
});
