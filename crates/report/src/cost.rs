//! What whylag itself cost, what it lost, and which of its parts were off.

use std::io::{self, Write};

use model::units::{bytes, count, counted, duration, share, share_of};
use model::{Capability, OwnDelay, Run};

use crate::{Style, text};

/// How many of the most expensive probes are named.
const PROBES: usize = 3;

/// Writes the paragraph about the recorder.
pub fn write(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let cost = &run.cost;
    let lost = run.losses.total();
    let mut sentence = format!(
        "{}, BPF {} in {} runs, {} ({}), {} lost",
        cpu_time(cost.cpu_ns, run.length_ns()),
        duration(cost.bpf_ns),
        count(cost.bpf_runs),
        counted(cost.events, "event"),
        bytes(cost.ring_bytes),
        counted(lost, "event"),
    );
    if cost.peak_rss_bytes > 0 {
        sentence += &format!(", {} of memory at most", bytes(cost.peak_rss_bytes));
    }
    paragraph(out, style, "whylag itself: ", &sentence)?;

    let most_expensive: Vec<String> = cost
        .probes
        .iter()
        .take(PROBES)
        .map(|probe| {
            format!("{} {} in {} runs", probe.program, duration(probe.ns), count(probe.runs))
        })
        .collect();
    if !most_expensive.is_empty() {
        paragraph(out, style, "most expensive probes: ", &most_expensive.join(", "))?;
    }

    if cost.stack_copies > 0 || cost.stacks_not_copied > 0 {
        let (made, not) = (count(cost.stack_copies), count(cost.stacks_not_copied));
        let text = format!("{made} copied to be unwound, {not} not looked at (256 a second are)");
        paragraph(out, style, "user stacks: ", &text)?;
    }

    let losses: Vec<String> =
        run.losses.by_kind().iter().map(|(kind, n)| format!("{} {kind}", count(*n))).collect();
    if lost > 0 {
        paragraph(out, style, "lost: ", &losses.join(", "))?;
    }
    for Capability { part, on, because } in &run.capabilities {
        let label = match (on, because.is_empty()) {
            (true, true) => continue,
            (true, false) => "not all the time: ",
            (false, _) => "off: ",
        };
        paragraph(out, style, label, &format!("{part} ({because})"))?;
    }
    Ok(())
}

/// Writes for how long whylag was in the way of the threads that it watched.
pub fn write_delay(out: &mut dyn Write, own: OwnDelay, style: &Style) -> io::Result<()> {
    let sentence = format!(
        "{} on the CPU while watched threads were ready to run, {} with mmap_lock while they waited \
         for it: {} of the wall time, in no finding",
        duration(own.queued_ns),
        duration(own.locked_ns),
        share(own.wall_share)
    );
    paragraph(out, style, "whylag in the way: ", &sentence)
}

/// To attach and to finish takes some tenths of a second, of which a brief recording has no share.
fn cpu_time(cpu_ns: u64, length_ns: u64) -> String {
    let (cpu, length) = (duration(cpu_ns), duration(length_ns));
    match cpu_ns > length_ns {
        true => format!("{cpu} CPU, with what it takes to attach and to finish, for {length}"),
        false => format!("{cpu} CPU ({} of one CPU over {length})", share_of(cpu_ns, length_ns)),
    }
}

fn paragraph(out: &mut dyn Write, style: &Style, label: &str, sentence: &str) -> io::Result<()> {
    for line in text::labelled(label, label.len(), sentence, style.width).lines() {
        writeln!(out, "{}", style.dim(line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::RecorderPart;

    use super::*;
    use crate::sample;

    #[test]
    fn cost_losses_and_parts_that_were_off_are_all_told() {
        let mut out = Vec::new();
        write(&mut out, &sample::run(), &Style::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        sample::assert_fits(&text, 80);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("120 ms CPU (6.0 % of one CPU over 2.00 s)"), "{flat}");
        assert!(flat.contains("BPF 800 us in 12,345 runs"), "{flat}");
        assert!(flat.contains("7 events lost"), "{flat}");
        let copies = "user stacks: 40 copied to be unwound, 1,200 not looked at (256 a second are)";
        assert!(flat.contains(copies), "{flat}");
        assert!(flat.contains("lost: 7 ring buffer full"), "{flat}");
        assert!(
            flat.contains("most expensive probes: sched_switch 500 us in 8,000 runs"),
            "{flat}"
        );
        assert!(flat.contains("off: kernel locks (no tracepoint lock:contention_begin"), "{flat}");
        assert!(!flat.contains("threads ("), "{flat}");
    }

    #[test]
    fn a_brief_recording_has_no_share_of_what_attaching_takes() {
        let told = cpu_time(367_000_000, 7_560_000);
        assert_eq!(told, "367 ms CPU, with what it takes to attach and to finish, for 7.56 ms");
    }

    #[test]
    fn what_was_recorded_for_most_of_the_time_is_told() {
        let mut run = sample::run();
        run.capabilities.push(Capability {
            part: RecorderPart::SystemCalls,
            on: true,
            because: "recorded for the first 2.02 s".to_owned(),
        });
        let mut out = Vec::new();
        write(&mut out, &run, &Style::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let said = "not all the time: system calls (recorded for the first 2.02 s)";
        assert!(text.contains(said), "{text}");
    }
}
