//! What threads run that are on a CPU for most of the time in which they do not wait for one.
//!
//! Running is no loss, and no cause claims it as such; but a thread that does nothing else bounds
//! what its program can do, so it is said where it is.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Account, OnCpu, PathSum, Run, SampledFunction, Scope, StackId, ThreadAccounts};

/// Threads that are named, the busiest.
const THREADS: usize = 3;
/// Functions of each.
const FUNCTIONS: usize = 6;
/// Fewer samples say nothing of a thread that was not asked about.
const SAMPLES: u64 = 20;

/// The busiest threads of a run; of a part only the thread that was asked about, because samples do
/// not say when they were taken.
pub fn on_cpu(run: &Run, scope: Option<&Scope>) -> Vec<OnCpu> {
    let is_asked = match scope {
        Some(scope) if scope.exact => true,
        Some(_) => return Vec::new(),
        None => false,
    };
    let mut samples = BTreeMap::<(u32, u32), Vec<&PathSum>>::new();
    for path in run.sums.paths.iter().filter(|path| path.sampled && path.tid != 0) {
        samples.entry((path.tgid, path.tid)).or_default().push(path);
    }
    let busy = run.threads.iter().filter_map(|thread| {
        let one = of_thread(run, thread, samples.get(&(thread.tgid, thread.tid))?);
        let waited = thread.accounts.sum_of(Account::is_waiting_for_cpu);
        let had = one.wall_ns.saturating_sub(waited);
        let is_busy = one.samples >= SAMPLES && one.on_cpu_ns > had / 2;
        (is_asked || is_busy).then_some(one)
    });
    let mut busy: Vec<OnCpu> = busy.collect();
    busy.sort_by_key(|one| (Reverse(one.on_cpu_ns), one.tid));
    busy.truncate(THREADS);
    busy
}

fn of_thread(run: &Run, thread: &ThreadAccounts, paths: &[&PathSum]) -> OnCpu {
    OnCpu {
        tid: thread.tid,
        tgid: thread.tgid,
        comm: thread.comm.clone(),
        on_cpu_ns: thread.accounts.sum_of(Account::is_running),
        wall_ns: thread.accounts.total(),
        samples: paths.iter().fold(0, |sum, path| path.count.saturating_add(sum)),
        sampled_ns: paths.iter().fold(0, |sum, path| path.ns.saturating_add(sum)),
        functions: functions(run, paths),
    }
}

/// By the function that samples ended in, by what these stand for, most first; each with the way there that
/// has most of it.
fn functions(run: &Run, paths: &[&PathSum]) -> Vec<SampledFunction> {
    let mut functions = BTreeMap::<String, BTreeMap<Vec<String>, (u64, u64)>>::new();
    for path in paths {
        let frames: Vec<String> = labels(run, path.kernel).chain(labels(run, path.user)).collect();
        let function = frames.first().cloned().unwrap_or_else(|| "no stack".to_owned());
        let ways = functions.entry(function.clone()).or_default();
        let way = if frames.is_empty() { vec![function] } else { frames };
        let (ns, samples) = ways.entry(way).or_default();
        *ns = ns.saturating_add(path.ns);
        *samples = samples.saturating_add(path.count);
    }
    let of_one = |ways: BTreeMap<Vec<String>, (u64, u64)>| SampledFunction {
        samples: ways.values().fold(0, |sum, (_, samples)| samples.saturating_add(sum)),
        ns: ways.values().fold(0, |sum, (ns, _)| ns.saturating_add(sum)),
        path: ways
            .into_iter()
            .max_by_key(|(_, sums)| *sums)
            .map(|(way, _)| way)
            .unwrap_or_default(),
    };
    let mut functions: Vec<SampledFunction> = functions.into_values().map(of_one).collect();
    functions.sort_by_key(|function| Reverse(function.ns));
    functions.truncate(FUNCTIONS);
    functions
}

/// Functions of a stack, the innermost first.
pub(super) fn labels(run: &Run, id: Option<StackId>) -> impl Iterator<Item = String> {
    let stack = id.and_then(|id| run.stacks.get(&id));
    stack.into_iter().flat_map(|stack| stack.frames.iter().map(|frame| frame.label()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::question::Question;
    use crate::part::run::PartialRun;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Blocked;

    const ASLEEP: Account = Account::Blocked(Blocked::TimerSleep);

    /// A busy thread, and one of the same process that ran for a tenth of its time.
    fn run() -> Run {
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND / 10), (ASLEEP, SECOND)])
            .thread(11, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &["seldom"], 100)
            .sampled_path(10, USER, &["hash", "digest"], 600)
            .sampled_path(10, USER, &["hash", "verify"], 100)
            .sampled_path(10, USER, &["copy", "digest"], 300)
            .build();
        for path in &mut run.sums.paths {
            path.tid = if path.count == 100 && path.kernel == Some(StackId(0)) { 10 } else { 11 };
        }
        run
    }

    #[test]
    fn a_busy_thread_has_its_functions_with_their_samples() {
        let answer = crate::explain(&run());
        let [busy] = answer.on_cpu.as_slice() else { panic!("{:?}", answer.on_cpu) };
        assert_eq!((busy.tid, busy.on_cpu_ns, busy.samples), (11, SECOND, 1_000));
        let functions: Vec<_> =
            busy.functions.iter().map(|f| (f.samples, f.path.join(" "))).collect();
        assert_eq!(functions, [(700, "hash digest".to_owned()), (300, "copy digest".to_owned())]);
    }

    #[test]
    fn a_thread_that_is_asked_about_has_its_own_samples_and_no_others() {
        let run = run();
        let answer = crate::explain_part(&PartialRun::new(&run, &Question::Thread(10)).unwrap());
        let [asked] = answer.on_cpu.as_slice() else { panic!("{:?}", answer.on_cpu) };
        assert_eq!((asked.tid, asked.samples), (10, 100));
        assert_eq!(asked.functions[0].path, ["seldom"]);
        let window = PartialRun::new(&run, &Question::Window(0, SECOND)).unwrap();
        assert!(crate::explain_part(&window).on_cpu.is_empty());
    }

    /// 200 samples of a millisecond, then 100 of ten.
    #[test]
    fn what_was_sampled_less_often_counts_as_much() {
        let mut run = RunBuilder::new()
            .thread(10, 10, &[(USER, 12 * SECOND / 10)])
            .sampled_path(10, USER, &["early"], 200)
            .sampled_path(10, USER, &["late"], 100)
            .build();
        for path in &mut run.sums.paths {
            path.tid = 10;
            path.ns *= if path.count == 100 { 10 } else { 1 };
        }
        let answer = crate::explain(&run);
        let functions = &answer.on_cpu[0].functions;
        let shown: Vec<_> = functions.iter().map(|f| (f.path[0].as_str(), f.samples)).collect();
        assert_eq!(shown, [("late", 100), ("early", 200)]);
        assert_eq!(functions[0].ns, answer.on_cpu[0].sampled_ns / 12 * 10);
    }

    #[test]
    fn older_runs_do_not_say_which_thread_was_sampled() {
        let mut run = run();
        run.sums.paths.iter_mut().for_each(|path| path.tid = 0);
        assert!(crate::explain(&run).on_cpu.is_empty());
    }
}
