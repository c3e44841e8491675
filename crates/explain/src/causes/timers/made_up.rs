//! Made-up ticks of a program, for the tests of the causes of late timers.

use model::{
    Fact, Finding, Jitter, JitterControl, JitterProgram, JitterThread, LateTick, Leg, LegKind,
};
use model::{Run, Standing};

use crate::testing::{RunBuilder, timer_series};

pub const JIFFY_NS: u64 = 4_000_000;
const CAUSES: [&str; 5] =
    ["timer-ms-rounding", "timer-jiffies", "timer-proportional", "timer-slack", "rt-throttling"];

/// What was measured.
pub struct Ticks(Jitter);

impl Ticks {
    /// Sleeps of 1 to 30 ms that end so much late, each a little off.
    pub fn late_by(late: impl Fn(u64) -> u64) -> Ticks {
        let asked = |n: u64| 1_000_000 + n * 7_310_777 % 29_000_000;
        let late = |n: u64| (late(asked(n)) + n % 5 * 100) as i64;
        Ticks::of(&(0..300).map(|n| (asked(n), late(n))).collect::<Vec<_>>())
    }

    /// The same, where lateness depends on the intended time.
    pub fn late_at(late: impl Fn(u64) -> u64) -> Ticks {
        let mut served = 0;
        let mut ticks = Vec::new();
        for n in 0..300u64 {
            let asked = 1_000_000 + n * 7_310_777 % 29_000_000;
            let late = late(served + asked) + n % 5 * 100;
            ticks.push((asked, late as i64));
            served += asked + late;
        }
        Ticks::of(&ticks)
    }

    /// Sleeps of one length.
    pub fn of_one_length(asked: u64, late: i64) -> Ticks {
        Ticks::of(&(0..300).map(|n| (asked, late + n % 5 * 100)).collect::<Vec<_>>())
    }

    /// A tick each millisecond, whether or not the one before was in time.
    pub fn each_millisecond(n: u64, late: impl Fn(u64) -> u64) -> Ticks {
        let mut ticks = Ticks::of(&[]);
        let series = &mut ticks.0.series[0];
        let mut served = 0;
        for intended in (1..=n).map(|n| n * 1_000_000) {
            let late = late(intended);
            series.ticks.push(model::Tick(intended, late as i64, intended.saturating_sub(served)));
            series.late.record(late);
            series.intended += 1;
            served = served.max(intended + late);
        }
        series.interval_ns = 1_000_000;
        ticks
    }

    fn of(ticks: &[(u64, i64)]) -> Ticks {
        let thread = JitterThread {
            tid: 7,
            comm: "ticker".into(),
            slack_ns: Some(1),
            policy: "SCHED_OTHER".into(),
            priority: 0,
        };
        let jitter = Jitter {
            jiffy_ns: JIFFY_NS,
            series: vec![timer_series("program", 10_000_000, ticks)],
            program: Some(JitterProgram { pid: 7, other_lines: 0, threads: vec![thread] }),
            ..Jitter::default()
        };
        Ticks(jitter).with_controls(|_| 20_000)
    }

    pub fn with_slack(mut self, ns: u64) -> Ticks {
        let threads = self.0.program.iter_mut().flat_map(|program| &mut program.threads);
        threads.for_each(|thread| thread.slack_ns = Some(ns));
        self
    }

    pub fn real_time(mut self) -> Ticks {
        for thread in self.0.program.iter_mut().flat_map(|program| &mut program.threads) {
            (thread.policy, thread.priority) = ("SCHED_FIFO".into(), 10);
        }
        self
    }

    /// How late whylag's own sleeps are.
    pub fn with_controls(mut self, late: impl Fn(i64) -> i64) -> Ticks {
        let control = |asked_ns| JitterControl {
            asked_ns,
            late_ns: late(asked_ns as i64),
            away_ns: 2_000,
            n: 25,
        };
        self.0.controls = [1_000_000, 5_000_000, 30_000_000].map(control).to_vec();
        self
    }

    pub fn without_controls(mut self) -> Ticks {
        self.0.controls.clear();
        self
    }

    /// Five of the latest ticks were recorded, are late by so much, and that in this leg.
    pub fn with_leg(mut self, kind: LegKind, ns: i64) -> Ticks {
        let leg = Leg::new(kind, ns);
        let tick = LateTick { late_ns: ns, legs: vec![leg], ..LateTick::default() };
        self.0.series[0].worst.extend(vec![tick; 5]);
        self
    }

    fn run(self) -> Run {
        let mut run = RunBuilder::new().build();
        run.header.target = model::Target::Jitter(vec!["--".into(), "./a ticker".into()]);
        run.jitter = Some(self.0);
        for (name, value) in [("runtime", "950000"), ("period", "1000000")] {
            let name = format!("sysctl.kernel.sched_rt_{name}_us");
            run.facts.push(Fact { name, value: value.into(), source: "made up".into() });
        }
        run
    }
}

pub fn findings(ticks: Ticks) -> Vec<Finding> {
    crate::explain(&ticks.run()).findings
}

pub fn causes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.cause.as_str()).collect()
}

/// What is missing of a cause that is absent.
pub fn why_not(ticks: Ticks, cause: &str) -> String {
    match crate::why_not(&ticks.run(), cause).unwrap().standing {
        Standing::Absent { missing } => missing,
        other => panic!("{cause}: {other:?}"),
    }
}

/// Each of the others is, with a reason.
pub fn assert_others_ruled_out(finding: &Finding) {
    for other in CAUSES.iter().filter(|other| **other != finding.cause) {
        let ruled_out = finding.ruled_out.iter().find(|ruled_out| ruled_out.cause == *other);
        assert!(ruled_out.is_some_and(|r| !r.because.is_empty()), "{other}: {finding:#?}");
    }
    let proof = format!("whylag prove --ticks --cause {} --before ", finding.cause);
    assert!(finding.verify.starts_with(&proof), "{}", finding.verify);
    assert!(finding.verify.contains("./a ticker"), "{}", finding.verify);
}
