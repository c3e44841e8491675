//! Who called, by reading on until a function returns, compared with what the tables of the same files
//! say.

#![allow(clippy::unwrap_used, reason = "a test")]
#![cfg(target_arch = "x86_64")]

use std::fs;

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use inspect::elf::{CallSites, Registers, Step, WaysOut};
use object::{Object, ObjectSection};

/// Places from which control comes back: where a thread that waits is, and who called it.
fn returned_to(path: &str) -> Vec<u64> {
    let bytes = fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let code = text.data().unwrap();
    let decoder = Decoder::with_ip(64, code, text.address(), DecoderOptions::NONE);
    let calls = decoder.into_iter().filter(|instruction| {
        matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
    });
    calls.map(|instruction| instruction.next_ip()).collect()
}

#[test]
fn reading_on_agrees_with_the_tables_of_real_libraries() {
    let files = ["/lib/x86_64-linux-gnu/libc.so.6", "/bin/bash"];
    let files = files.into_iter().filter(|path| fs::exists(path).unwrap());
    let mut compared = 0;
    for path in files {
        compared += 1;
        let sites = CallSites::open(path).unwrap();
        let (mut tables, mut ways) = (sites.unwinder().unwrap(), WaysOut::default());
        let registers =
            Registers { instruction: 0, stack: 0x7fff_0000_0000, frame: 0x7fff_0001_0000 };
        // What is read from the stack says where it was read.
        let memory = |address: u64| Some(address);
        let (mut agree, mut differ, mut unknown) = (0, Vec::new(), 0);
        for address in returned_to(path).into_iter().step_by(4) {
            let Step::Caller { registers: truth, .. } =
                tables.step(address - 1, registers, &memory)
            else {
                continue;
            };
            match ways.step(&sites, (address, false), registers, &memory) {
                Step::Caller { registers: found, .. }
                    if (found.stack, found.instruction) == (truth.stack, truth.instruction)
                        && (found.frame == truth.frame || found.frame == 0) =>
                {
                    agree += 1;
                }
                Step::Caller { registers: found, .. } => differ.push((address, found, truth)),
                _ => unknown += 1,
            }
        }
        println!("{path}: {agree} agree, {} differ, {unknown} are not known", differ.len());
        // Where a function has a frame pointer, its tables may count from it or from the stack, which
        // here are made up and do not agree.
        assert!(agree > 400 * differ.len(), "{path}: {differ:#x?}");
        assert!(agree > unknown, "{path}: {agree} of {unknown} more are known");
        assert!(agree > 1000, "{path}: {agree}");
    }
    assert!(compared > 0, "neither a C library nor a shell is where Debian has it");
}
