//! What else is worth saying of measured timers: what could not be judged, and clocks that drift.

use model::Jitter;

use model::units::number;

/// NTP corrects this much without anything being wrong.
const DRIFT_PPM: f64 = 100.0;

/// All that applies.
pub fn of(jitter: &Jitter) -> Vec<String> {
    let mut notes = Vec::new();
    for series in jitter.series.iter().filter(|series| series.is_cut()) {
        notes.push(format!(
            "law, beats and pairs of {} are those of its first {} ticks, the distribution is of \
             all {}",
            series.source,
            series.ticks.len(),
            series.intended
        ));
    }
    notes.extend(of_program(jitter));
    notes.extend(of_clock(jitter));
    notes
}

fn of_program(jitter: &Jitter) -> Vec<String> {
    let Some(program) = &jitter.program else { return Vec::new() };
    let mut notes = Vec::new();
    if program.threads.iter().any(|thread| thread.slack_ns.is_none()) {
        notes.push(
            "timer slack of another process can be read only with CAP_SYS_NICE: run as root to \
             have it named"
                .to_owned(),
        );
    }
    if jitter.series.iter().all(|series| series.intended == 0) {
        notes.push(format!(
            "no line was a tick ({} others): print 'intended_ns actual_ns' in ns of \
             CLOCK_MONOTONIC, a line each",
            program.other_lines
        ));
    }
    notes
}

fn of_clock(jitter: &Jitter) -> Option<String> {
    let drift = jitter.drift_ppm.filter(|drift| drift.value.abs() > DRIFT_PPM)?;
    Some(format!(
        "CLOCK_MONOTONIC runs {} ppm {} than CLOCK_MONOTONIC_RAW: lateness measured with it has \
         this error, and whoever compares with another clock sees it as proportional",
        number(drift.value.abs()),
        if drift.value > 0.0 { "faster" } else { "slower" }
    ))
}

#[cfg(test)]
mod tests {
    use model::{Estimate, JitterProgram, JitterThread};

    use super::*;
    use crate::testing::timer_series;

    #[test]
    fn there_is_a_note_for_what_could_not_be_judged_and_none_without_reason() {
        let plain = Jitter {
            series: vec![timer_series("program", 0, &[(1_000_000, 10)])],
            program: Some(JitterProgram::default()),
            drift_ppm: Some(Estimate { value: 20.0, low: 19.0, high: 21.0 }),
            ..Jitter::default()
        };
        assert_eq!(of(&plain), Vec::<String>::new());
        let mut odd = plain.clone();
        odd.series[0].intended = 1_000;
        odd.drift_ppm = Some(Estimate { value: -500.0, low: -501.0, high: -499.0 });
        odd.program = Some(JitterProgram {
            threads: vec![JitterThread::default()],
            ..JitterProgram::default()
        });
        let notes = of(&odd);
        assert!(notes[0].contains("its first 1 ticks") && notes[0].contains("all 1000"));
        assert!(notes[1].contains("CAP_SYS_NICE"));
        assert!(notes[2].contains("500 ppm slower"), "{notes:?}");
        odd.series[0] = timer_series("program", 0, &[]);
        assert!(of(&odd)[1].contains("no line was a tick"));
    }
}
