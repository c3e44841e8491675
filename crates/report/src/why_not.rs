//! The answer of `whylag explain --why-not` for people.

use std::io::{self, Write};

use model::units::{duration, share};
use model::{Standing, WhyNot};

use crate::{Style, text};

/// Column in which the text after a label begins.
const INDENT: usize = 14;

/// Writes whether the cause is a finding, and if not, what was missing or how little it explains.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, answer: &WhyNot, style: &Style) -> io::Result<()> {
    let run = answer.run;
    let place = answer.scope.as_ref().map_or_else(String::new, |scope| format!("{}, ", scope.what));
    let heading = match &answer.standing {
        Standing::Finding { rank, findings, .. } => {
            format!("{} is finding {rank} of {findings} in {place}run {run}.", answer.cause)
        }
        Standing::BelowFloor { .. } => format!(
            "{} has its evidence in {place}run {run}, but explains too little to be a finding.",
            answer.cause
        ),
        Standing::Absent { .. } => format!("{} is not claimed in {place}run {run}.", answer.cause),
        Standing::NotLookedFor { .. } => {
            format!("{} was not looked for in {place}run {run}.", answer.cause)
        }
    };
    for line in text::wrap(&heading, style.width) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    let mut labelled = |label: &str, text: &str| {
        write!(out, "{}", text::labelled(&format!("   {label}"), INDENT, text, style.width))
    };
    labelled("cause", &answer.title)?;
    match &answer.standing {
        Standing::Finding { share: part, lost_ns, confidence, .. } => {
            let lost = duration(*lost_ns);
            labelled("explains", &format!("{} of the lost time ({lost})", share(*part)))?;
            labelled("confidence", &format!("{confidence:.2}"))?;
        }
        Standing::BelowFloor { claimed_ns, because, .. } => {
            labelled("claims", &duration(*claimed_ns))?;
            labelled("floor", because)?;
        }
        Standing::Absent { missing } => labelled("missing", missing)?,
        Standing::NotLookedFor { because } => labelled("because", because)?,
    }
    for off in &answer.off {
        labelled("off", &format!("{}: {}; its evidence needs this part", off.part, off.because))?;
    }
    if let Some(scope) = &answer.scope {
        labelled("basis", &scope.basis)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{Capability, RecorderPart, RunId};

    fn text(standing: Standing, off: Vec<Capability>) -> String {
        let answer = WhyNot {
            run: RunId(12),
            scope: None,
            cause: "mmap-lock".into(),
            title: "threads of one process wait for each other to change their address space"
                .into(),
            standing,
            off,
        };
        let text = sample::written(|out| write(out, &answer, &Style::default()));
        sample::assert_fits(&text, 80);
        text
    }

    #[test]
    fn each_standing_says_what_it_rests_on() {
        let missing = "no thread waited for an mmap_lock".to_owned();
        let off = Capability { part: RecorderPart::Locks, on: false, because: "shed".into() };
        let absent = text(Standing::Absent { missing }, vec![off]);
        assert!(absent.starts_with("mmap-lock is not claimed in run 12.\n"), "{absent}");
        assert!(absent.contains("missing    no thread waited"), "{absent}");
        assert!(absent.contains("off        kernel locks: shed"), "{absent}");
        let finding = Standing::Finding {
            rank: 2,
            findings: 3,
            share: 0.25,
            lost_ns: 1_500_000_000,
            confidence: 0.8,
        };
        let finding = text(finding, vec![]);
        assert!(finding.contains("finding 2 of 3"), "{finding}");
        assert!(finding.contains("25.0 % of the lost time (1.50 s)"), "{finding}");
        let because = "2.00 ms is less than 10.0 ms".to_owned();
        let small =
            text(Standing::BelowFloor { claimed_ns: 2_000_000, left_ns: 0, because }, vec![]);
        assert!(small.contains("explains too little"), "{small}");
        assert!(small.contains("floor      2.00 ms is less"), "{small}");
        let because = "no timers were measured in this run".to_owned();
        let unlooked = text(Standing::NotLookedFor { because }, vec![]);
        assert!(unlooked.starts_with("mmap-lock was not looked for in run 12.\n"), "{unlooked}");
        assert!(unlooked.contains("because    no timers were measured"), "{unlooked}");
    }
}
