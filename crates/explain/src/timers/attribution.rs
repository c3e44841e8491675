//! Why single ticks were late: the way from the intended time to the moment a tick was served, cut
//! at the times that were recorded in the kernel. The parts sum to the lateness, whatever is known.

use std::collections::HashMap;

use model::{Account, Blocked, Jitter, LateTick, Leg, LegKind, Outlier, OutlierKind, Runner};

use model::units::fine_duration;

/// A real-time thread may have to wait this long for an ordinary one to let go.
const A_MOMENT_NS: u64 = 1_000_000;
/// A part of the lateness that is worth a sentence.
const WORTH: f64 = 0.2;

/// Fills in why the latest ticks of each series were late, from the recorded intervals. Runs that
/// were judged when they were recorded have it already, and not the intervals.
pub fn attribute(jitter: &mut Jitter, intervals: &[Outlier]) {
    let of_series = jitter.series.iter().filter_map(|series| series.thread.as_ref());
    let of_program = jitter.program.iter().flat_map(|program| &program.threads);
    let priorities: HashMap<u32, u32> =
        of_series.chain(of_program).map(|thread| (thread.tid, thread.priority)).collect();
    for series in &mut jitter.series {
        let thread = series.thread.as_ref().map(|thread| thread.tid);
        for tick in series.worst.iter_mut().filter(|tick| tick.legs.is_empty()) {
            attribute_tick(tick, thread, intervals, &priorities);
        }
    }
}

fn attribute_tick(
    tick: &mut LateTick,
    thread: Option<u32>,
    intervals: &[Outlier],
    priorities: &HashMap<u32, u32>,
) {
    let (from, to) = (tick.intended_ns, tick.served_ns());
    let mut within: Vec<&Outlier> = intervals
        .iter()
        .filter(|o| matches!(o.kind, OutlierKind::OffCpu | OutlierKind::RunQueue))
        .filter(|o| o.start_ns < to && o.end_ns() > from && thread.is_none_or(|tid| o.tid == tid))
        .collect();
    within.sort_by_key(|o| o.end_ns());
    // Of several threads it is the one that came to a CPU last before the tick was served.
    let Some(tid) = within.iter().rev().find(|o| o.end_ns() <= to).map(|o| o.tid) else { return };
    within.retain(|o| o.tid == tid);
    let mut way = Way { at: from, to, legs: Vec::new(), because: Vec::new() };
    for interval in within {
        way.pass(interval, priorities.get(&tid).copied().unwrap_or(0));
    }
    way.until(to, LegKind::Running);
    tick.because = way.because;
    tick.legs = way.legs;
}

/// The way from the intended time to the moment of serving, as far as it has been gone.
struct Way {
    at: u64,
    to: u64,
    legs: Vec<Leg>,
    because: Vec<String>,
}

impl Way {
    /// Goes on to `time`; what passed until then was of this kind.
    fn until(&mut self, time: u64, kind: LegKind) -> u64 {
        let time = time.clamp(self.at, self.to);
        let ns = time - self.at;
        self.at = time;
        self.add(Leg::new(kind, ns as i64));
        ns
    }

    fn add(&mut self, leg: Leg) {
        match self.legs.last_mut() {
            Some(last) if last.what == leg.what => last.ns += leg.ns,
            _ if leg.ns > 0 => self.legs.push(leg),
            _ => {}
        }
    }

    /// A sentence for a part that matters.
    fn because(&mut self, ns: u64, late_ns: u64, text: impl FnOnce() -> String) {
        if ns as f64 >= WORTH * late_ns as f64 && ns > 0 {
            self.because.push(text());
        }
    }

    fn pass(&mut self, interval: &Outlier, priority: u32) {
        let late = self.to - self.at.min(self.to);
        self.until(interval.start_ns, LegKind::Running);
        let asleep: u64 = interval
            .breakdown
            .iter()
            .filter(|(account, _)| matches!(account, Account::Blocked(_)))
            .map(|(_, ns)| ns)
            .sum();
        let woken = interval.start_ns + asleep;
        if asleep > 0 {
            self.sleep(interval, woken, late);
        }
        if interval.breakdown.get(Account::Throttled) > 0 {
            let ns = self.until(interval.end_ns(), LegKind::CgroupThrottled);
            self.because(ns, late, || {
                format!("its cgroup had used up its CPU time and was throttled for {}", ms(ns))
            });
        }
        self.wait(interval, priority, late);
    }

    fn sleep(&mut self, interval: &Outlier, woken: u64, late: u64) {
        match (interval.timer, interval.blocked) {
            (Some(timer), _) => {
                match timer.softexpires_ns {
                    Some(asked) => {
                        let ns = self.until(asked.min(timer.fired_ns), LegKind::SetLate);
                        self.because(ns, late, || {
                            format!("the timer was set for {} after the intended time", ms(ns))
                        });
                        let ns = self.until(timer.expires_ns.min(timer.fired_ns), LegKind::Slack);
                        let slack = timer.expires_ns - asked;
                        self.because(ns, late, || {
                            format!(
                                "the kernel could put the timer off by a slack of {}",
                                ms(slack)
                            )
                        });
                    }
                    None => {
                        let ns = self.until(timer.expires_ns.min(timer.fired_ns), LegKind::Jiffies);
                        self.because(ns, late, || {
                            "the timer counts in ticks of the kernel's low-resolution clock"
                                .to_owned()
                        });
                    }
                }
                let (what, text) = if timer.was_idle {
                    (
                        LegKind::FromIdle,
                        "its CPU was idle and took that long to wake (C-states are not recorded)",
                    )
                } else {
                    (
                        LegKind::FiredLate,
                        "interrupts were off, other timers came first, or the CPU stood still",
                    )
                };
                let ns = self.until(timer.fired_ns, what);
                self.because(ns, late, || text.to_owned());
                self.until(woken, LegKind::Waking);
            }
            (None, Some(Blocked::Stopped)) => {
                let ns = self.until(woken, LegKind::Stopped);
                self.because(ns, late, || "the thread was stopped".to_owned());
            }
            (None, blocked) => {
                let ns = self.until(woken, LegKind::Asleep);
                let what =
                    blocked.map_or_else(String::new, |blocked| format!(" ({})", blocked.name()));
                self.because(ns, late, || format!("no timer ended its sleep{what}"));
            }
        }
    }

    /// Ready, but not on the CPU: who was, how long interrupts took, and the rest.
    fn wait(&mut self, interval: &Outlier, priority: u32, late: u64) {
        let whole = interval.end_ns().min(self.to).saturating_sub(self.at);
        let mut left = whole;
        self.at += whole;
        let is_throttled = priority > 0 && is_throttling(interval, whole);
        let state = if is_throttled { LegKind::RealTimeThrottled } else { LegKind::Ready };
        for runner in &interval.ran_instead {
            let ns = runner.ns.min(left);
            left -= ns;
            let state = if runner.realtime == 0 { state } else { LegKind::Ready };
            self.add(Leg::with(state, &format!("{} ran", who(runner)), ns as i64));
            if !is_throttled {
                self.because(ns, late, || had_the_cpu(runner, ns));
            }
        }
        if is_throttled {
            self.because(whole, late, || throttled(&interval.ran_instead, whole, priority));
        }
        if let Some(interrupts) = &interval.interrupts {
            let ns = interrupts.ns.min(left);
            left -= ns;
            self.add(Leg::with(LegKind::Ready, "interrupts came first", ns as i64));
            let (all, longest) = (interrupts.ns, &interrupts.longest);
            self.because(all, late, || {
                format!(
                    "interrupts took {} while it was ready, {longest} {} of it",
                    ms(all),
                    ms(interrupts.longest_ns)
                )
            });
        }
        let rest = if is_throttled { "others ran in turns" } else { "CPU idle or others in turns" };
        self.add(Leg::with(state, rest, left as i64));
    }
}

/// A real-time thread waits only for those of real-time priority, and for moments until an
/// ordinary one can be stopped; unless the kernel takes the CPU away from it. Threads of the kernel
/// with real-time priority (migration, watchdog) may run in between, for less than the ordinary.
fn is_throttling(interval: &Outlier, whole_ns: u64) -> bool {
    let was_preempted = interval.breakdown.get(Account::RunnablePreempted) > 0;
    let ran = |is_ordinary: bool| -> u64 {
        let runners = interval.ran_instead.iter();
        runners.filter(|runner| (runner.realtime == 0) == is_ordinary).map(|runner| runner.ns).sum()
    };
    (was_preempted || whole_ns >= A_MOMENT_NS) && ran(true) > ran(false)
}

fn throttled(runners: &[Runner], ns: u64, priority: u32) -> String {
    let all: Vec<String> = runners.iter().filter(|r| r.realtime == 0).map(who).collect();
    format!(
        "real-time throttling: ordinary threads had its CPU for {} although it has real-time \
         priority {priority}, {} first of all; the kernel keeps 5 % of each second for them, so \
         this comes about once a second whatever else has that beat",
        ms(ns),
        all.join(", ")
    )
}

fn had_the_cpu(runner: &Runner, ns: u64) -> String {
    let priority = match runner.realtime {
        0 => String::new(),
        priority => format!(" with real-time priority {priority}"),
    };
    format!("{} had its CPU for {}{priority}", who(runner), ms(ns))
}

fn who(runner: &Runner) -> String {
    format!("{} (tid {})", runner.comm, runner.tid)
}

fn ms(ns: u64) -> String {
    fine_duration(ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Accounts, Interrupts, JitterThread, TimerLegs};

    /// Thread 7 sleeps from 0 to `woken` and runs again at `ran`.
    fn sleep(woken: u64, ran: u64, timer: TimerLegs) -> Outlier {
        let slept = (Account::Blocked(Blocked::TimerSleep), woken);
        Outlier {
            kind: OutlierKind::OffCpu,
            tid: 7,
            tgid: 7,
            comm: "ticker".into(),
            cpu: 0,
            start_ns: 0,
            duration_ns: ran,
            syscall: None,
            blocked: Some(Blocked::TimerSleep),
            breakdown: [slept, (Account::RunnableWakeup, ran - woken)].into_iter().collect(),
            object: 0,
            fault_ip: None,
            kernel_stack: None,
            user_stack: None,
            waker: None,
            ran_instead: Vec::new(),
            holder: None,
            timer: Some(timer),
            interrupts: None,
            first_call: None,
        }
    }

    fn attributed(intervals: &[Outlier], priority: u32, intended: u64, late_ns: i64) -> LateTick {
        let mut series = crate::testing::timer_series("made up", 0, &[]);
        series.thread = Some(JitterThread { tid: 7, priority, ..JitterThread::default() });
        series.worst.push(LateTick { intended_ns: intended, late_ns, ..LateTick::default() });
        let mut jitter = Jitter { series: vec![series], ..Jitter::default() };
        attribute(&mut jitter, intervals);
        let tick = jitter.series[0].worst[0].clone();
        let sum = tick.legs.iter().map(|leg| leg.ns).sum::<i64>();
        assert!(tick.legs.is_empty() || sum == late_ns, "{tick:#?}");
        tick
    }

    fn legs(tick: &LateTick) -> Vec<(&str, i64)> {
        tick.legs.iter().map(|leg| (leg.what.as_str(), leg.ns)).collect()
    }

    #[test]
    fn the_way_is_cut_at_what_was_recorded() {
        let timer = TimerLegs {
            softexpires_ns: Some(1_080),
            expires_ns: 1_130,
            fired_ns: 1_200,
            was_idle: false,
        };
        let mut sleep = sleep(1_210, 1_800, timer);
        let runner = Runner { tid: 9, tgid: 9, comm: "hog".into(), realtime: 0, ns: 500 };
        sleep.ran_instead.push(runner);
        sleep.interrupts =
            Some(Interrupts { ns: 60, longest: "softirq net_rx".into(), longest_ns: 40 });
        let tick = attributed(&[sleep], 0, 1_000, 850);
        let expected = [
            (LegKind::SetLate.name(), 80),
            (LegKind::Slack.name(), 50),
            (LegKind::FiredLate.name(), 70),
            (LegKind::Waking.name(), 10),
            ("ready, hog (tid 9) ran", 500),
            ("ready, interrupts came first", 60),
            ("ready, CPU idle or others in turns", 30),
            (LegKind::Running.name(), 50),
        ];
        assert_eq!(legs(&tick), expected);
        assert_eq!(tick.because, ["hog (tid 9) had its CPU for 500 ns"]);
    }

    #[test]
    fn a_timer_that_was_asked_for_too_soon_adds_nothing() {
        let timer = TimerLegs {
            softexpires_ns: Some(900),
            expires_ns: 900,
            fired_ns: 1_050,
            was_idle: true,
        };
        let tick = attributed(&[sleep(1_060, 1_100, timer)], 0, 1_000, 100);
        assert_eq!(
            legs(&tick),
            [
                (LegKind::FromIdle.name(), 50),
                (LegKind::Waking.name(), 10),
                ("ready, CPU idle or others in turns", 40)
            ]
        );
    }

    #[test]
    fn an_ordinary_thread_before_a_real_time_one_is_throttling() {
        let mut preempted = sleep(
            0,
            50_000,
            TimerLegs { softexpires_ns: None, expires_ns: 0, fired_ns: 0, was_idle: false },
        );
        preempted.kind = OutlierKind::RunQueue;
        preempted.blocked = None;
        preempted.timer = None;
        preempted.breakdown = Accounts::from_iter([(Account::RunnablePreempted, 50_000)]);
        let runner = Runner { tid: 9, tgid: 9, comm: "hog".into(), realtime: 0, ns: 50_000 };
        preempted.ran_instead.push(runner);
        let tick = attributed(std::slice::from_ref(&preempted), 10, 1_000, 49_500);
        assert_eq!(
            legs(&tick),
            [("real-time throttled, hog (tid 9) ran", 49_000), (LegKind::Running.name(), 500)]
        );
        assert!(tick.because[0].contains("once a second"), "{tick:?}");
        let tick = attributed(std::slice::from_ref(&preempted), 0, 1_000, 49_500);
        assert_eq!(legs(&tick)[0].0, "ready, hog (tid 9) ran");

        // A thread of the kernel comes in between.
        preempted.ran_instead[0].ns = 49_000;
        let migration =
            Runner { tid: 20, tgid: 20, comm: "migration/1".into(), realtime: 99, ns: 300 };
        preempted.ran_instead.push(migration);
        let tick = attributed(std::slice::from_ref(&preempted), 10, 0, 50_000);
        assert_eq!(
            legs(&tick),
            [
                ("real-time throttled, hog (tid 9) ran", 49_000),
                ("ready, migration/1 (tid 20) ran", 300),
                ("real-time throttled, others ran in turns", 700)
            ]
        );
        assert!(!tick.because[0].contains("migration"), "{tick:?}");

        // It has the CPU for most of the time: that is no throttling.
        preempted.ran_instead[1].ns = 49_500;
        let tick = attributed(&[preempted], 10, 0, 99_000);
        assert_eq!(legs(&tick)[0].0, "ready, hog (tid 9) ran");
    }

    #[test]
    fn what_was_not_recorded_is_not_made_up() {
        let timer =
            TimerLegs { softexpires_ns: None, expires_ns: 100, fired_ns: 100, was_idle: false };
        let before = sleep(110, 120, timer);
        assert!(attributed(std::slice::from_ref(&before), 0, 1_000, 1_000).legs.is_empty());
        let of_another = Outlier { tid: 8, start_ns: 1_100, ..before };
        assert!(attributed(&[of_another], 0, 1_000, 1_000).legs.is_empty());
    }

    #[test]
    fn what_an_older_run_was_judged_to_be_stays() {
        let legs = vec![Leg::new(LegKind::Slack, 5)];
        let worst = vec![LateTick { legs: legs.clone(), ..LateTick::default() }];
        let series = model::JitterSeries { worst, ..crate::testing::timer_series("x", 0, &[]) };
        let mut jitter = Jitter { series: vec![series], ..Jitter::default() };
        attribute(&mut jitter, &[]);
        assert_eq!(jitter.series[0].worst[0].legs, legs);
    }
}
