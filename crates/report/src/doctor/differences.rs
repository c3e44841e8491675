//! What differs between two checkups, for people.

use std::io::{self, Write};

use model::CheckupDiff;

use crate::{Style, text};

/// Writes a line for each difference: `clocksource: tsc -> kvm-clock`.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, diff: &CheckupDiff, style: &Style) -> io::Result<()> {
    let [first, second] = &diff.names;
    writeln!(out, "{}", text::clean(&format!("{first} -> {second}")))?;
    let (matters, others): (Vec<_>, Vec<_>) = diff.differences.iter().partition(|d| d.matters);
    for (title, differences) in [("Known to matter for latency", matters), ("Others", others)] {
        if differences.is_empty() {
            continue;
        }
        writeln!(out, "\n{}", style.bold(title))?;
        for one in differences {
            let line = format!("{}: {} -> {}", one.name, shown(&one.first), shown(&one.second));
            write!(out, "{}", text::labelled("", 2, &line, style.width))?;
        }
    }
    let (differ, compared) = (diff.differences.len(), diff.compared);
    writeln!(out, "\n{differ} of {compared} checks or facts differ")?;
    for left_out in &diff.left_out {
        write!(
            out,
            "{}",
            text::labelled("", 0, &format!("not compared: {left_out}"), style.width)
        )?;
    }
    Ok(())
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "(empty)" } else { value }
}
