//! Time on the CPUs by stack, from samples, in the folded form that flame graph tools read.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use model::units::{counted, duration, share_of};
use model::{Account, PathSum, Run};

use super::folded::{BOUNDARY, KERNEL, frame, stack};

/// How many samples there are, and how much time they stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Samples.
    pub count: u64,
    /// Their number times their period, ns.
    pub ns: u64,
    /// The exact time on a CPU of the threads that they are of, ns.
    pub on_cpu_ns: u64,
}

impl Sampled {
    /// Of a run, or of one thread of it.
    pub fn of(run: &Run, tid: Option<u32>) -> Sampled {
        let (count, ns) = samples(run, tid).fold((0u64, 0u64), |(count, ns), path| {
            (path.count.saturating_add(count), path.ns.saturating_add(ns))
        });
        let on_cpu_ns = match tid {
            None => run.accounts().sum_of(Account::is_running),
            Some(tid) => {
                let threads = run.threads.iter().filter(|thread| thread.tid == tid);
                let running = threads.map(|thread| thread.accounts.sum_of(Account::is_running));
                running.fold(0, u64::saturating_add)
            }
        };
        Sampled { count, ns, on_cpu_ns }
    }
}

/// `1,980 samples stand for 1.98 s of 2.00 s on a CPU (99.0 %)`.
impl fmt::Display for Sampled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} stand for {} of {} on a CPU ({})",
            counted(self.count, "sample"),
            duration(self.ns),
            duration(self.on_cpu_ns),
            share_of(self.ns, self.on_cpu_ns),
        )
    }
}

/// The samples of running threads, or of one.
fn samples(run: &Run, tid: Option<u32>) -> impl Iterator<Item = &PathSum> {
    let is_running = |path: &&PathSum| path.sampled && path.account.is_running();
    let paths = run.sums.paths.iter().filter(is_running);
    paths.filter(move |path| tid.is_none_or(|tid| path.tid == tid))
}

/// Writes `comm;thread (tid 81);user frames;-;kernel frames_[k] microseconds` lines, outermost frame
/// first, of one thread or all, and returns how many samples they are of.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run, tid: Option<u32>) -> io::Result<Sampled> {
    for line in lines(run, tid) {
        writeln!(out, "{line}")?;
    }
    Ok(Sampled::of(run, tid))
}

/// The lines, sorted; equal stacks are summed.
pub(crate) fn lines(run: &Run, tid: Option<u32>) -> Vec<String> {
    let names: BTreeMap<u32, &str> =
        run.threads.iter().map(|thread| (thread.tid, thread.comm.as_str())).collect();
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for path in samples(run, tid) {
        let mut frames = vec![frame(run.comm(path.tgid))];
        if path.tid != 0 {
            let name = names.get(&path.tid).copied().unwrap_or_default();
            frames.push(frame(format!("{name} (tid {})", path.tid).trim()));
        }
        frames.extend(stack(run, path.user, "[no user stack]"));
        if path.kernel.is_some() {
            frames.push(BOUNDARY.to_owned());
            let kernel = stack(run, path.kernel, "[no kernel stack]");
            frames.extend(kernel.into_iter().map(|name| name + KERNEL));
        }
        let sum = sums.entry(frames.join(";")).or_default();
        *sum = sum.saturating_add(path.ns);
    }
    let in_us = |(stack, ns): (String, u64)| format!("{stack} {}", ns.saturating_add(500) / 1_000);
    sums.into_iter().map(in_us).collect()
}

#[cfg(test)]
mod tests {
    use model::StackId;

    use super::*;
    use crate::sample;

    #[test]
    fn each_thread_has_its_own_samples() {
        let mut run = sample::run();
        let of = |tid, kernel: Option<u64>, count| PathSum {
            tgid: 77,
            account: Account::User,
            call: None,
            kernel: kernel.map(StackId),
            user: Some(StackId(2)),
            sampled: true,
            tid,
            count,
            ns: count * 1_000_000,
            max_ns: 1_000_000,
        };
        run.sums.paths = vec![of(77, None, 3), of(82, Some(1), 5), of(0, None, 7)];
        run.sums.paths.push(PathSum { sampled: false, ..of(82, Some(1), 9) });
        let all = lines(&run, None);
        assert_eq!(all.len(), 3, "{all:?}");
        let one = lines(&run, Some(82));
        let [line] = one.as_slice() else { panic!("{one:?}") };
        assert!(line.contains("(tid 82);[cut short];scanner+0x1234;"), "{line}");
        assert!(line.ends_with("rwsem_down_write_slowpath_[k] 5000"), "{line}");
        let sampled = Sampled::of(&run, Some(82));
        assert_eq!((sampled.count, sampled.ns), (5, 5_000_000));
        assert_eq!(Sampled::of(&run, None).count, 15);
    }
}
