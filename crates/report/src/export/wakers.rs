//! Who waited for whom, in the folded form that flame graph tools read.

use std::collections::BTreeMap;
use std::io::{self, Write};

use model::{Run, WaitSum};

/// Writes `waiter;account;object;waker;what it did meanwhile microseconds` lines, sorted, of all
/// waits that ended while recording; sums below half a microsecond are left out.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    let mut sums = BTreeMap::<String, u64>::new();
    for wait in &run.sums.waits {
        let stack = stack(run, wait);
        for (end, ns) in &wait.ends {
            let sum = sums.entry(format!("{stack};{end}")).or_default();
            *sum = sum.saturating_add(*ns);
        }
    }
    for (stack, ns) in sums {
        let us = ns.saturating_add(500) / 1_000;
        if us > 0 {
            writeln!(out, "{stack} {us}")?;
        }
    }
    Ok(())
}

fn stack(run: &Run, wait: &WaitSum) -> String {
    let object = match (&wait.name, wait.object) {
        (Some(name), _) => format!(";{}", frame(name.as_str())),
        (None, 0) => String::new(),
        (None, object) => format!(";{object:#x}"),
    };
    let waker = match wait.waker_tgid {
        0 => "[an interrupt]".to_owned(),
        tgid => format!("{} (pid {tgid})", frame(&wait.waker_comm)),
    };
    let asked = if wait.asked { " (an answer)" } else { "" };
    format!(
        "{} (pid {});{}{asked}{object};{waker}",
        frame(run.comm(wait.tgid)),
        wait.tgid,
        wait.account
    )
}

/// What separates frames and counts is no part of a name.
fn frame(name: &str) -> String {
    name.replace([';', '\n'], ":")
}

#[cfg(test)]
mod tests {
    use model::{Account, Blocked, ChainEnd};

    use super::*;

    #[test]
    fn each_end_is_a_line_with_its_microseconds() {
        let mut run = crate::sample::run();
        run.sums.waits = vec![WaitSum {
            tgid: 7,
            account: Account::Blocked(Blocked::SocketReceive),
            object: 0,
            name: None,
            waker_tgid: 9,
            waker_comm: "bro;ker".into(),
            count: 3,
            asked: true,
            ns: 3_000_400,
            max_ns: 0,
            by_waiter: 0,
            lock_like: 0,
            longest_end: None,
            usual_end: None,
            open_at: None,
            many: 0,
            again: 0,
            by_parked: 0,
            waiter_tid: 0,
            waker_tid: 0,
            open: 0,
            turns: 0,
            turn_ns: 0,
            idle_turn_ns: 0,
            began: None,
            ends: [
                (ChainEnd::Cpu, 1_000_000),
                (ChainEnd::Timer, 2_000_000),
                (ChainEnd::Unknown, 400),
            ]
            .into(),
        }];
        let mut out = Vec::new();
        write(&mut out, &run).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            lines[0].ends_with(
                "(pid 7);blocked:socket:receive (an answer);bro:ker (pid 9);ran on a CPU 1000"
            ),
            "{text}"
        );
        assert!(lines[1].ends_with("slept by a timer of its own 2000"), "{text}");
    }
}
