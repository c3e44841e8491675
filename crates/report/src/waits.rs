//! Who waited for whom, and what the other one did meanwhile.

use std::io::{self, Write};

use model::units::{count, counted, duration};
use model::{ChainEnd, Run, WaitSum, chain_end};

use crate::{Style, text};

/// Sums in full.
const SHOWN: usize = 8;

/// Writes the waits with the most time that a recorded thread was at the end of, longest first:
/// who waited for whom, where, and what the other one, or whoever that one waited for, did
/// meanwhile. Nothing where there are none, or where only older versions recorded.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run, style: &Style) -> io::Result<()> {
    let sums = ended_by_recorded(run);
    if sums.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("Who waited for whom"))?;
    for sum in sums.iter().take(SHOWN) {
        let line = format!("{}: {}", heading(run, sum), chain_end::in_words(&sum.ends));
        write!(out, "{}", text::labelled("  ", 4, &line, style.width))?;
    }
    if sums.len() > SHOWN {
        let more = format!(
            "  and {} more; 'whylag export --format wakers' has all",
            count((sums.len() - SHOWN) as u64)
        );
        writeln!(out, "{}", style.dim(&more))?;
    }
    Ok(())
}

/// Sums with some time at the end of which was a recorded thread, the longest such time first.
fn ended_by_recorded(run: &Run) -> Vec<&WaitSum> {
    let mut sums: Vec<_> = run
        .sums
        .waits
        .iter()
        .filter(|sum| sum.waker_tgid != 0)
        .map(|sum| (sum.ends_in(ChainEnd::is_recorded), sum))
        .filter(|(ns, _)| *ns > 0)
        .collect();
    sums.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    sums.into_iter().map(|(_, sum)| sum).collect()
}

/// `client (pid 7) for an answer of broker (pid 9), blocked:socket:receive, 621 waits, 2.58 s; it`.
fn heading(run: &Run, sum: &WaitSum) -> String {
    let other = format!("{} (pid {})", sum.waker_comm, sum.waker_tgid);
    let what = match (sum.asked, sum.waker_tgid == sum.tgid) {
        (true, _) => format!("for an answer of {other}"),
        (false, true) => "for a thread of its own".to_owned(),
        (false, false) => format!("for {other}"),
    };
    let object = match (&sum.name, sum.object) {
        (Some(name), _) => format!(" of {}", name.as_str()),
        (None, 0) => String::new(),
        (None, object) => format!(" of {object:#x}"),
    };
    format!(
        "{} (pid {}) {what}, {}{object}, {}, {}; it",
        run.comm(sum.tgid),
        sum.tgid,
        sum.account,
        counted(sum.count, "wait"),
        duration(sum.ns)
    )
}
