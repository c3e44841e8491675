//! Who called, by the tables for exceptions, compared with what the C library's own unwinder says of
//! the same stack.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use inspect::elf::{CallSites, Registers, Step};

/// Prints a map of itself, its registers, the top of its stack, and what `backtrace()` finds.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <stdlib.h>

static char stack[65536] __attribute__((aligned(64)));
static volatile int kept;
static unsigned long *outermost;

__attribute__((noipa)) static void show(void)
{
	void *frames[100];
	unsigned long *sp, ip, bp;
	int n = backtrace(frames, 100), i;

	__asm__ volatile("lea (%%rip), %0; mov %%rsp, %1; mov %%rbp, %2"
			 : "=r"(ip), "=r"(sp), "=r"(bp));
	printf("registers %lx %lx %lx\n", ip, (unsigned long)sp, bp);
	for (i = 1; i < n; i++)
		printf("frame %lx\n", (unsigned long)frames[i]);
	for (i = -1024; i < 128; i++)
		printf("word %lx %lx\n", (unsigned long)(outermost + i), outermost[i]);
	for (i = 0; i < (int)sizeof(stack) / 8; i++)
		printf("word %lx %lx\n", (unsigned long)(stack + 8 * i), ((unsigned long *)stack)[i]);
	fflush(stdout);
	exit(0);
}

static void handler(int number)
{
	show();
	kept = number;
}

__attribute__((noipa)) static int compare(const void *one, const void *other)
{
	raise(SIGUSR1);
	return *(const int *)one - *(const int *)other;
}

__attribute__((noipa)) static void deep(int depth)
{
	volatile char room[depth * 24 + 8];
	int numbers[2] = { 2, 1 };

	memset((char *)room, 1, sizeof(room));
	if (depth)
		deep(depth - 1);
	else
		qsort(numbers, 2, sizeof(int), compare);
	kept += room[depth];
}

int main(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	outermost = __builtin_frame_address(0);
	while (fgets(line, sizeof(line), maps))
		printf("map %s", line);
	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	deep(5);
	return kept;
}
"#;

/// A mapped file: from, to, offset, tables.
struct Mapped(u64, u64, u64, CallSites);

fn number(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

#[test]
fn the_callers_are_those_that_the_c_library_finds_also_through_a_signal_on_its_own_stack() {
    let folder = tempfile::tempdir().unwrap();
    let made =
        common::built(folder.path(), "deep", PROGRAM, &["-O2", "-fomit-frame-pointer", "-w"]);
    let output = Command::new(&made).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let with = |kind: &str| {
        let lines: Vec<Vec<&str>> = text
            .lines()
            .filter_map(|line| Some(line.strip_prefix(kind)?.split_whitespace().collect()))
            .collect();
        lines
    };
    let files: Vec<Mapped> = with("map ")
        .into_iter()
        .filter(|map| map[1].contains('x') && map.len() > 5 && Path::new(map[5]).is_absolute())
        .map(|map| {
            let (from, to) = map[0].split_once('-').unwrap();
            assert!(fs::metadata(map[5]).is_ok(), "{}", map[5]);
            let sites = CallSites::open(map[5]).unwrap();
            Mapped(number(from), number(to), number(map[2]), sites)
        })
        .collect();
    let words: std::collections::HashMap<u64, u64> =
        with("word ").iter().map(|word| (number(word[0]), number(word[1]))).collect();
    let expected: Vec<u64> = with("frame ").iter().map(|frame| number(frame[0])).collect();
    assert!(expected.len() > 10, "{expected:x?}");

    let [instruction, stack, frame] = with("registers ")[0][..] else { panic!("{text}") };
    let mut registers =
        Registers { instruction: number(instruction), stack: number(stack), frame: number(frame) };
    let memory = |address: u64| words.get(&address).copied();
    let mut tables: Vec<_> = files.iter().map(|file| file.3.unwinder().unwrap()).collect();
    let (mut found, mut exact, mut signals) = (Vec::new(), true, 0);
    let end = loop {
        let at = registers.instruction - u64::from(!exact);
        let n = files.iter().position(|file| (file.0..file.1).contains(&at)).unwrap();
        let Mapped(from, _, offset, sites) = &files[n];
        let address = sites.elf().address_of(at - from + offset).unwrap();
        match tables[n].step(address, registers, &memory) {
            Step::Caller { registers: caller, exact: is_exact } => {
                found.push(caller.instruction);
                signals += u32::from(is_exact);
                (registers, exact) = (caller, is_exact);
            }
            end => break end,
        }
    };
    assert_eq!(found, expected, "{found:x?}\n{expected:x?}");
    assert_eq!((end, signals), (Step::Outermost, 1));
}
