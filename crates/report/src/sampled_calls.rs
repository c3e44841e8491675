//! System calls of a run that looked at them in short windows, as an estimate of all.

use std::io::{self, Write};

use model::units::{count, counted, duration, share_of};
use model::{CallDuration, Estimate, SampledCall, SampledCalls};

use crate::show::more;
use crate::style::Paint;
use crate::table::{Align, Cell, Table};
use crate::{Style, text};

/// Calls in the table.
const CALLS: usize = 12;

/// Writes how many of each call end in a second and how long they take, each with its interval of 95 %.
pub(crate) fn write(
    out: &mut dyn Write,
    sampled: Option<&SampledCalls>,
    length_ns: u64,
    style: &Style,
) -> io::Result<()> {
    let Some(sampled) = sampled else { return Ok(()) };
    writeln!(out, "\n{}", style.bold("System calls, estimated (with intervals of 95 %)"))?;
    let said = match sampled.windows {
        0 => "no window fell into the recording: there is one a second, the first within 0.5 s"
            .to_owned(),
        n => format!(
            "from {} of {} in all, {} of the time; n calls ended in them. Each call costs more in a \
             window, so a program that saturates its CPUs makes fewer there",
            counted(n, "window"),
            duration(sampled.windows_ns),
            share_of(sampled.windows_ns, length_ns)
        ),
    };
    write!(out, "{}", text::labelled("  ", 2, &said, style.width))?;
    if sampled.calls.is_empty() {
        return Ok(());
    }
    let columns = ["per second", "p50", "p99"].map(|head| (head, Align::Right));
    let mut table = Table::new(2, &[&[("call", Align::Left)], &columns[..]].concat());
    for call in sampled.calls.iter().take(CALLS) {
        let [estimates, intervals] = rows(call);
        table.row(estimates);
        table.row(intervals);
    }
    table.write(out, style)?;
    more(out, style, sampled.calls.len() as u64, CALLS.min(sampled.calls.len()), "call")
}

/// The estimates, and below them what they are from and their intervals.
fn rows(call: &SampledCall) -> [[Cell; 4]; 2] {
    let whole = |value: f64| count(value.round() as u64);
    let rate = call.per_second.map_or_else(too_few, |rate| {
        [whole(rate.value).into(), dim(format!("{} to {}", whole(rate.low), whole(rate.high)))]
    });
    let [p50, p99] = [call.p50, call.p99].map(|quantile| match quantile {
        CallDuration::TooFew => too_few(),
        CallDuration::MoreThan(ns) => [format!("> {}", duration(ns)).into(), "".into()],
        CallDuration::Known(Estimate { value, low, high }) => {
            let high = if high.is_finite() { duration(high as u64) } else { "?".to_owned() };
            [duration(value as u64).into(), dim(format!("{} to {high}", duration(low as u64)))]
        }
    });
    let names = [call.call.to_string().into(), dim(format!("  n = {}", count(call.n)))];
    let [first, second] =
        [0, 1].map(|row| [&names, &rate, &p50, &p99].map(|cells| cells[row].clone()));
    [first, second]
}

fn dim(text: String) -> Cell {
    Cell::painted(text, Paint::Dim)
}

fn too_few() -> [Cell; 2] {
    [dim("n too small".to_owned()), "".into()]
}

#[cfg(test)]
mod tests {
    use model::Syscall;

    use super::*;
    use crate::sample;

    #[test]
    fn estimates_have_their_intervals_and_fit() {
        let known = |value, low, high| CallDuration::Known(Estimate { value, low, high });
        let call = |name, n, per_second, p50, p99| SampledCall {
            call: Syscall::named(name).unwrap(),
            n,
            censored: 0,
            per_second,
            p50,
            p99,
        };
        let rate = |value, low, high| Some(Estimate { value, low, high });
        let sampled = SampledCalls {
            windows: 10,
            windows_ns: 201_000_000,
            calls: vec![
                call(
                    "clock_nanosleep",
                    24_100,
                    rate(119_900.4, 101_200.0, 131_000.0),
                    known(2_050.0, 1_990.0, 2_100.0),
                    known(40_500.0, 31_000.0, f64::INFINITY),
                ),
                call(
                    "poll",
                    40,
                    rate(199.0, 150.0, 250.0),
                    CallDuration::MoreThan(19_800_000),
                    CallDuration::TooFew,
                ),
            ],
        };
        let text =
            sample::written(|out| write(out, Some(&sampled), 10_000_000_000, &Style::default()));
        sample::assert_fits(&text, 80);
        for part in [
            "from 10 windows of 201 ms in all, 2.0 % of the time",
            "Each call costs more in a window",
            "119,900",
            "101,200 to 131,000",
            "2.05 us",
            "1.99 us to 2.10 us",
            "31.0 us to ?",
            "> 19.8 ms",
            "n = 24,100",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let none = SampledCalls { windows: 0, windows_ns: 0, calls: Vec::new() };
        let text = sample::written(|out| write(out, Some(&none), 1, &Style::default()));
        assert!(text.contains("no window"), "{text}");
        assert!(sample::written(|out| write(out, None, 1, &Style::default())).is_empty());
    }
}
