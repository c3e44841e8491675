//! A recorded command behaves as it would alone: its input, output and exit status are its own.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::Write;
use std::process::Stdio;

use common::clocks::{for_cpu, on_cpu};
use common::{Lab, whylag};

#[test]
fn standard_input_and_output_pass_unchanged() {
    let Some(lab) = Lab::beside_others() else { return };
    let data: Vec<u8> =
        (0..300_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut recording = lab.recording(&[], ["cat"]);
    recording.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = recording.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let sent = data.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == data, "{} of {} bytes came back", output.stdout.len(), data.len());
}

#[test]
fn the_report_is_on_standard_error_only() {
    let Some(lab) = Lab::beside_others() else { return };
    let recorded = lab.record(&[], ["sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(recorded.stdout(), "out\n");
    let errors = String::from_utf8_lossy(&recorded.output.stderr).into_owned();
    assert!(errors.contains("err\n") && errors.contains("of wall time went"), "{errors}");
    assert!(!errors.contains('\x1b'), "colour where there is no terminal: {errors}");
}

#[test]
fn the_exit_status_is_the_commands_own() {
    let Some(lab) = Lab::beside_others() else { return };
    for (script, status) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143)] {
        let output = lab.recording(&[], ["sh", "-c", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{script}");
        assert_eq!(lab.run().end.unwrap().exit_status, Some(status), "{script}");
    }
}

#[test]
fn a_command_that_goes_on_after_the_recording_is_waited_for_and_that_is_said() {
    let Some(lab) = Lab::beside_others() else { return };
    let said = |seconds| {
        let recorded = lab.recording(&["--time", "100ms"], ["sleep", seconds]).output().unwrap();
        assert!(recorded.status.success());
        let errors = String::from_utf8(recorded.stderr).unwrap();
        assert!(errors.contains("of wall time went"), "{errors}");
        errors.contains("the report comes when the command")
    };
    assert!(said("3"), "silent until the command ends");
    assert!(!said("0.2"), "a line for a moment");
}

#[test]
fn the_environment_is_passed_and_kept_without_its_secrets() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut recording = lab.recording(&[], ["sh", "-c", "echo $PLAIN $API_TOKEN"]);
    recording.env("PLAIN", "visible").env("API_TOKEN", "hunter2");
    let output = recording.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "visible hunter2\n");
    let run = lab.run();
    assert_eq!(run.fact("env.PLAIN"), Some("visible"));
    assert!(run.facts.iter().all(|fact| !fact.value.contains("hunter2")));
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let lab = Lab::anywhere_beside_others();
    let output = lab.recording(&[], ["/no/such/program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("/no/such/program") && errors.contains("No such file"), "{errors}");
    assert!(lab.store().exists() && lab.runs().is_empty(), "a run of nothing was stored");
}

#[test]
fn nothing_before_the_first_instruction_is_missed() {
    let Some(lab) = Lab::beside_others() else { return };
    let script = "read ran queued rest < /proc/$$/schedstat; echo $ran $queued; \
                  i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; \
                  read ran queued rest < /proc/$$/schedstat; echo $ran $queued";
    let recorded = lab.record(&[], ["sh", "-c", script]);
    let by_kernel: Vec<u64> =
        recorded.stdout().split_ascii_whitespace().map(|word| word.parse().unwrap()).collect();
    // The kernel's clocks go on at exec: they have what the process did before, too.
    let (at_first, at_last) = by_kernel.split_at(2);
    let thread = &recorded.run.threads[0];
    let ours = [on_cpu(&thread.accounts), for_cpu(&thread.accounts)];
    for (ours, (first, last)) in ours.into_iter().zip(at_first.iter().zip(at_last)) {
        let tolerance = last / 20 + 5_000_000;
        let limits = (last - first).saturating_sub(tolerance)..=last + tolerance;
        assert!(limits.contains(&ours), "{ours} ns, by the kernel {first} to {last}");
    }
    let names: Vec<_> = thread.accounts.iter().map(|(account, _)| account.to_string()).collect();
    // The rest of exec itself, and the first call of the dynamic linker.
    assert!(names.contains(&"running:execve".to_owned()), "{names:?}");
    assert!(names.contains(&"running:brk".to_owned()), "{names:?}");
}

#[test]
fn help_shows_an_example() {
    for verb in ["record", "explain", "runs", "show", "export", "prove", "compare", "series"] {
        let output = whylag().args([verb, "--help"]).output().unwrap();
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && help.contains("Example:"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}
