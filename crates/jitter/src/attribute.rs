//! Why single ticks were late: the way from the intended time to the moment a tick was served, cut
//! at the times that were recorded in the kernel. The parts sum to the lateness, whatever is known.

use std::collections::{HashMap, VecDeque};

use model::{Account, Batch, Blocked, LateTick, Leg, Outlier, OutlierKind, Runner};

use crate::Series;
use crate::words::time;

/// Absences from the CPU that are kept, the newest: about 100 MB.
const KEPT: usize = 100_000;
/// A real-time thread may have to wait this long for an ordinary one to let go.
const A_MOMENT_NS: u64 = 1_000_000;
/// A part of the lateness that is worth a sentence.
const WORTH: f64 = 0.2;

/// The timer was set for a later time than the tick was intended for.
pub const SET_LATE: &str = "timer set for later";
/// The kernel could put the timer off, and did.
pub const SLACK: &str = "timer slack";
/// The timer counts in ticks of the kernel's low-resolution clock.
pub const JIFFIES: &str = "rounded up to a tick of the kernel";
/// An ordinary thread had the CPU of a real-time one; who, comes after that.
pub const THROTTLED_RT: &str = "real-time throttled";
const FROM_IDLE: &str = "idle CPU woken";
const FIRED_LATE: &str = "timer fired late";
const WAKING: &str = "fired, then woken";
const READY: &str = "ready";
const RUNNING: &str = "on the CPU";
const THROTTLED: &str = "CPU limit of the cgroup";
const STOPPED: &str = "stopped";
const ASLEEP: &str = "asleep, not for a timer";

/// What was recorded of the threads whose ticks are judged.
#[derive(Debug, Default)]
pub struct Absences {
    kept: VecDeque<Outlier>,
    priorities: HashMap<u32, u8>,
}

impl Absences {
    /// Adds what came since the last time.
    pub fn add(&mut self, batch: Batch) {
        for thread in batch.threads {
            self.priorities.insert(thread.tid, thread.realtime);
        }
        let absent = batch
            .outliers
            .into_iter()
            .filter(|o| matches!(o.kind, OutlierKind::OffCpu | OutlierKind::RunQueue));
        self.kept.extend(absent);
        let too_many = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..too_many);
    }

    /// Fills in the latest ticks of each series, as far as they have not been.
    pub fn attribute(&self, series: &mut [Series]) {
        for series in series {
            let thread = series.summary.thread.as_ref().map(|thread| thread.tid);
            for tick in series.summary.worst.iter_mut().filter(|tick| tick.legs.is_empty()) {
                self.explain(tick, thread);
            }
        }
    }

    fn explain(&self, tick: &mut LateTick, thread: Option<u32>) {
        let (from, to) = (tick.intended_ns, tick.intended_ns.saturating_add_signed(tick.late_ns));
        let mut within: Vec<&Outlier> = self
            .kept
            .iter()
            .filter(|o| {
                o.start_ns < to && o.end_ns() > from && thread.is_none_or(|tid| o.tid == tid)
            })
            .collect();
        within.sort_by_key(|o| o.end_ns());
        // Of several threads it is the one that came to a CPU last before the tick was served.
        let Some(tid) = within.iter().rev().find(|o| o.end_ns() <= to).map(|o| o.tid) else {
            return;
        };
        within.retain(|o| o.tid == tid);
        let mut way = Way { at: from, to, legs: Vec::new(), because: Vec::new() };
        for absence in within {
            way.pass(absence, self.priorities.get(&tid).copied().unwrap_or(0));
        }
        way.until(to, RUNNING);
        tick.because = way.because;
        tick.legs = way.legs;
    }
}

/// The way from the intended time to the moment of serving, as far as it has been gone.
struct Way {
    at: u64,
    to: u64,
    legs: Vec<Leg>,
    because: Vec<String>,
}

impl Way {
    /// Goes on to `time`; what passed until then was `what`.
    fn until(&mut self, time: u64, what: &str) -> u64 {
        let time = time.clamp(self.at, self.to);
        let ns = time - self.at;
        self.at = time;
        self.add(what, ns);
        ns
    }

    fn add(&mut self, what: &str, ns: u64) {
        if ns == 0 {
            return;
        }
        match self.legs.last_mut() {
            Some(leg) if leg.what == what => leg.ns += ns as i64,
            _ => self.legs.push(Leg { what: what.to_owned(), ns: ns as i64 }),
        }
    }

    /// A sentence for a part that matters.
    fn because(&mut self, ns: u64, late_ns: u64, text: impl FnOnce() -> String) {
        if ns as f64 >= WORTH * late_ns as f64 && ns > 0 {
            self.because.push(text());
        }
    }

    fn pass(&mut self, absence: &Outlier, priority: u8) {
        let late = self.to - self.at.min(self.to);
        self.until(absence.start_ns, RUNNING);
        let asleep: u64 = absence
            .breakdown
            .iter()
            .filter(|(account, _)| matches!(account, Account::Blocked(_)))
            .map(|(_, ns)| ns)
            .sum();
        let woken = absence.start_ns + asleep;
        if asleep > 0 {
            self.sleep(absence, woken, late);
        }
        if absence.breakdown.get(Account::Throttled) > 0 {
            let ns = self.until(absence.end_ns(), THROTTLED);
            self.because(ns, late, || {
                format!("its cgroup had used up its CPU time and was throttled for {}", ms(ns))
            });
        }
        self.wait(absence, priority, late);
    }

    fn sleep(&mut self, absence: &Outlier, woken: u64, late: u64) {
        match (absence.timer, absence.blocked) {
            (Some(timer), _) => {
                match timer.softexpires_ns {
                    Some(asked) => {
                        let ns = self.until(asked.min(timer.fired_ns), SET_LATE);
                        self.because(ns, late, || {
                            format!("the timer was set for {} after the intended time", ms(ns))
                        });
                        let ns = self.until(timer.expires_ns.min(timer.fired_ns), SLACK);
                        let slack = timer.expires_ns - asked;
                        self.because(ns, late, || {
                            format!(
                                "the kernel could put the timer off by a slack of {}",
                                ms(slack)
                            )
                        });
                    }
                    None => {
                        let ns = self.until(timer.expires_ns.min(timer.fired_ns), JIFFIES);
                        self.because(ns, late, || {
                            "the timer counts in ticks of the kernel's low-resolution clock"
                                .to_owned()
                        });
                    }
                }
                let (what, text) = if timer.was_idle {
                    (FROM_IDLE, "its CPU was idle and took that long to wake (C-states not told)")
                } else {
                    (
                        FIRED_LATE,
                        "interrupts were off, other timers came first, or the CPU stood still",
                    )
                };
                let ns = self.until(timer.fired_ns, what);
                self.because(ns, late, || text.to_owned());
                self.until(woken, WAKING);
            }
            (None, Some(Blocked::Stopped)) => {
                let ns = self.until(woken, STOPPED);
                self.because(ns, late, || "the thread was stopped".to_owned());
            }
            (None, blocked) => {
                let ns = self.until(woken, ASLEEP);
                let what =
                    blocked.map_or_else(String::new, |blocked| format!(" ({})", blocked.name()));
                self.because(ns, late, || format!("no timer ended its sleep{what}"));
            }
        }
    }

    /// Ready, but not on the CPU: who was, how long interrupts took, and the rest.
    fn wait(&mut self, absence: &Outlier, priority: u8, late: u64) {
        let whole = absence.end_ns().min(self.to).saturating_sub(self.at);
        let mut left = whole;
        self.at += whole;
        let is_throttled = priority > 0 && is_throttling(absence, whole);
        let state = if is_throttled { THROTTLED_RT } else { READY };
        for runner in &absence.ran_instead {
            let ns = runner.ns.min(left);
            left -= ns;
            self.add(&format!("{state}, {} ran", who(runner)), ns);
            if !is_throttled {
                self.because(ns, late, || had_the_cpu(runner, ns));
            }
        }
        if is_throttled {
            self.because(whole, late, || throttled(&absence.ran_instead, whole, priority));
        }
        if let Some(interrupts) = &absence.interrupts {
            let ns = interrupts.ns.min(left);
            left -= ns;
            self.add(&format!("{READY}, interrupts came first"), ns);
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
        self.add(&format!("{state}, {rest}"), left);
    }
}

/// A real-time thread waits only for those of real-time priority, and for moments until an
/// ordinary one can be stopped; unless the kernel takes the CPU away from it.
fn is_throttling(absence: &Outlier, whole_ns: u64) -> bool {
    let was_preempted = absence.breakdown.get(Account::RunnablePreempted) > 0;
    let runners = &absence.ran_instead;
    (was_preempted || whole_ns >= A_MOMENT_NS)
        && !runners.is_empty()
        && runners.iter().all(|runner| runner.realtime == 0)
}

fn throttled(runners: &[Runner], ns: u64, priority: u8) -> String {
    let all: Vec<String> = runners.iter().map(who).collect();
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
    time(ns as f64)
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

    fn explained(outliers: Vec<Outlier>, priority: u8, intended: u64, actual: u64) -> LateTick {
        let mut absences = Absences { priorities: [(7, priority)].into(), ..Absences::default() };
        absences.add(Batch { outliers, ..Batch::default() });
        let mut series = Series::new("made up", 0, None);
        series.begin(JitterThread { tid: 7, ..JitterThread::default() }, 0);
        series.tick(intended, actual);
        absences.attribute(std::slice::from_mut(&mut series));
        let tick = series.summary().worst[0].clone();
        assert_eq!(tick.legs.iter().map(|leg| leg.ns).sum::<i64>(), tick.late_ns, "{tick:#?}");
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
        let tick = explained(vec![sleep], 0, 1_000, 1_850);
        let expected = [
            (SET_LATE, 80),
            (SLACK, 50),
            (FIRED_LATE, 70),
            (WAKING, 10),
            ("ready, hog (tid 9) ran", 500),
            ("ready, interrupts came first", 60),
            ("ready, CPU idle or others in turns", 30),
            (RUNNING, 50),
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
        let tick = explained(vec![sleep(1_060, 1_100, timer)], 0, 1_000, 1_100);
        assert_eq!(
            legs(&tick),
            [(FROM_IDLE, 50), (WAKING, 10), ("ready, CPU idle or others in turns", 40)]
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
        let tick = explained(vec![preempted.clone()], 10, 1_000, 50_500);
        assert_eq!(legs(&tick), [("real-time throttled, hog (tid 9) ran", 49_000), (RUNNING, 500)]);
        assert!(tick.because[0].contains("once a second"), "{tick:?}");
        let tick = explained(vec![preempted], 0, 1_000, 50_500);
        assert_eq!(legs(&tick)[0].0, "ready, hog (tid 9) ran");
    }

    #[test]
    fn what_was_not_recorded_is_not_told() {
        let timer =
            TimerLegs { softexpires_ns: None, expires_ns: 100, fired_ns: 100, was_idle: false };
        let mut absences = Absences::default();
        absences.add(Batch { outliers: vec![sleep(110, 120, timer)], ..Batch::default() });
        let mut series = Series::new("made up", 0, None);
        series.tick(1_000, 2_000);
        absences.attribute(std::slice::from_mut(&mut series));
        assert!(series.summary().worst[0].legs.is_empty());
    }
}
