//! Return addresses in recorded stacks, of stripped programs and libraries: what was called there.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::Lab;
use inspect::elf::{Call, CallSites};
use model::{Account, Blocked, Stack};

/// Sleeps by itself, with a frame of its own: the C library's functions have none.
const NAP: &str = "
#include <time.h>
void take_a_nap(void) {
    struct timespec time = { 0, 20 * 1000 * 1000 };
    long result;
    __asm__ volatile(\"syscall\" : \"=a\"(result) : \"a\"(35), \"D\"(&time), \"S\"(0)
                     : \"rcx\", \"r11\", \"memory\");
}
";
const CALLER: &str = "
void take_a_nap(void);
__attribute__((noinline)) static int rate_timer(int n) {
    take_a_nap();
    return n + 1;
}
int main(void) {
    int n = 0;
    while (n < 10)
        n = rate_timer(n);
    return n - 10;
}
";

fn stripped(folder: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let (text, made) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&text, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-fno-omit-frame-pointer", "-s", "-o"]).arg(&made).arg(&text);
    let output = cc.args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    made
}

#[test]
fn a_recorded_frame_is_named_by_the_call_in_front_of_it() {
    let Some(lab) = Lab::new() else { return };
    let folder = lab.folder.path();
    stripped(folder, "libnap.so", NAP, &["-shared", "-fPIC"]);
    let place = format!("-L{}", folder.display());
    let run_path = format!("-Wl,-rpath,{}", folder.display());
    for (name, option, expected) in [
        ("lazy", "-Wl,-z,lazy", Call::Plt("take_a_nap".to_owned())),
        ("no-plt", "-fno-plt", Call::AtLoad("take_a_nap".to_owned())),
    ] {
        let caller = stripped(folder, name, CALLER, &[option, &place, "-lnap", &run_path]);
        let run = lab.record(&[], [&caller]).run;
        let nap = Account::Blocked(Blocked::TimerSleep);
        let sleeps = run.outliers.iter().filter(|o| o.breakdown.get(nap) >= 20_000_000);
        let stacks: Vec<&Stack> =
            sleeps.filter_map(|outlier| run.stacks.get(&outlier.user_stack?)).collect();
        assert!(!stacks.is_empty(), "{:?}", run.outliers);
        let sites = CallSites::open(&caller).unwrap();
        for stack in stacks {
            // The innermost frame is in the library, the next one returns to the caller.
            assert!(stack.frames[0].module.ends_with("/libnap.so"), "{stack:?}");
            assert_eq!(Path::new(&stack.frames[1].module), caller);
            assert_eq!(stack.frames[1].symbol, None, "it is stripped");
            let place = sites.at_offset(stack.frames[1].offset).unwrap();
            assert_eq!(place.after.as_ref(), Some(&expected), "{place}");
            // One further out: main, after a call within the program.
            let outer = sites.at_offset(stack.frames[2].offset).unwrap();
            assert_eq!(outer.after, Some(Call::Own(None)), "{outer}");
        }
    }
}
