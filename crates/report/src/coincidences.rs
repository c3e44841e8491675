//! Which other programs ran when repeated events came.

use std::io::{self, Write};

use model::Coincidence;
use model::units::{count, counted};

use crate::{Style, text};

/// Lines at most.
const LINES: usize = 8;

/// Writes a line for each; nothing if there are none.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, found: &[Coincidence], style: &Style) -> io::Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{}",
        style.bold("Other programs that ran at these times (a coincidence, not yet a cause)")
    )?;
    for one in found.iter().take(LINES) {
        write!(out, "{}", text::labelled("", 2, &in_words(one), style.width))?;
    }
    Ok(())
}

/// `netstat (14 executions): 13 of 13 long socket of worker, 1.1 expected by chance, p < 0.001`.
fn in_words(one: &Coincidence) -> String {
    let who = match one.pids[..] {
        [pid] => format!("pid {pid}"),
        _ => counted(one.pids.len() as u64, "execution"),
    };
    let p = if one.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.3}", one.p) };
    format!(
        "{} ({who}): {} of {} {}, {:.1} expected by chance, {p}",
        text::clean(&one.comm),
        count(one.seen),
        count(one.n),
        text::clean(&one.events),
        one.expected
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_all_figures() {
        let one = Coincidence {
            comm: "net\u{1b}stat".into(),
            pids: vec![5, 6],
            events: "long socket of worker".into(),
            n: 14,
            seen: 13,
            expected: 1.12,
            p: 0.0004,
        };
        let mut out = Vec::new();
        write(&mut out, std::slice::from_ref(&one), &Style { width: 120, ..Style::default() })
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains(
                "net\\x1bstat (2 executions): 13 of 14 long socket of worker, 1.1 expected by chance, \
                 p < 0.001"
            ),
            "{text}"
        );
        assert!(in_words(&Coincidence { pids: vec![5], p: 0.004, ..one }).contains("(pid 5)"));
        let mut out = Vec::new();
        write(&mut out, &[], &Style::default()).unwrap();
        assert!(out.is_empty());
    }
}
