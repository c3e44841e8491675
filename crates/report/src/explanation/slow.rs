//! Where to look on if no finding says what made the slow requests slow.

use std::io::{self, Write};

use model::units::{counted, duration};
use model::{Explanation, Run};

use super::opening::LEAST_OF_REQUESTS;
use crate::{Style, messages, text};

/// How long the slowest of a run's slow requests took, and the command that explains that one alone, unbroken. RUN
/// as in its help: the run may be one of a file, which is not known here.
pub(super) fn write(
    out: &mut dyn Write,
    explanation: &Explanation,
    run: &Run,
    style: &Style,
) -> io::Result<()> {
    let (Some(slowest), None) = (run.messages.slow.first(), &explanation.scope) else {
        return Ok(());
    };
    let mut costs = explanation.findings.iter().filter_map(|finding| finding.requests.as_ref());
    if run.threads.is_empty() || costs.any(|cost| cost.share() >= LEAST_OF_REQUESTS) {
        return Ok(());
    }
    let (noun, option) = match messages::are_requests(run) {
        true => ("slow request", "--request"),
        false => ("slow message", "--message"),
    };
    let words = format!(
        "the slowest of {} took {}; explained alone by",
        counted(run.messages.slow_count, noun),
        duration(slowest.total_ns())
    );
    write!(out, "{}", text::labelled("slow: ", 6, &words, style.width))?;
    // They are numbered from the slowest on.
    writeln!(out, "      whylag explain RUN {option} 1")
}

#[cfg(test)]
mod tests {
    use model::RequestCost;

    use super::*;
    use crate::sample;

    fn shown(explanation: &Explanation, run: &Run) -> String {
        let text = sample::written(|out| write(out, explanation, run, &Style::default()));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_slowest_is_named_unless_a_finding_says_what_made_it_slow() {
        let (mut run, mut explanation) = (sample::run(), sample::explanation());
        assert_eq!(shown(&explanation, &run), "");
        run.messages.slow.push(sample::message(run.header.started_ns));
        run.messages.slow_count = 12;
        let hint = "slow: the slowest of 12 slow requests took 4.10 ms; explained alone by \
                    whylag explain RUN --request 1";
        assert_eq!(shown(&explanation, &run), hint);
        let cost = |ns| Some(RequestCost { at: None, with: 12, of: 12, ns, total_ns: 1_000 });
        explanation.findings[0].requests = cost(10);
        assert_eq!(shown(&explanation, &run), hint, "a hundredth of them");
        explanation.findings[0].requests = cost(500);
        assert_eq!(shown(&explanation, &run), "");
    }
}
