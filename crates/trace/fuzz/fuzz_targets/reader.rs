//! Whatever a file holds, and however it changes while it is read: the reader gives an error.
//!
//!     cargo +nightly fuzz run reader -- -runs=1000000

#![no_main]

#[path = "../hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    hostile::read(input);
});
