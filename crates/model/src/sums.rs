//! Sums since the start of a run, which its source hands over again when they have grown.

use serde::{Deserialize, Serialize};

use crate::{
    BesideSum, CallError, Counter, CpuTime, HoldSum, PathSum, RunnerSum, StackId, StackSum, WaitSum,
};

/// The tables of sums. In a batch those that changed: each replaces what was stored under the same
/// key, which is all of a row but its numbers and the names that processes and objects had last.
/// In a run all of them, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sums {
    /// Off-CPU time by stack.
    pub stack_sums: Vec<StackSum>,
    /// Waits by object.
    pub waits: Vec<WaitSum>,
    /// Holds of mmap_lock that made others wait.
    pub holds: Vec<HoldSum>,
    /// Time by kernel code path.
    pub paths: Vec<PathSum>,
    /// Waits for spinlocks, by who was in a call on another CPU.
    pub beside: Vec<BesideSum>,
    /// Failed system calls.
    pub call_errors: Vec<CallError>,
    /// Numbers that the kernel keeps, by name and source.
    pub counters: Vec<Counter>,
    /// Who ran while watched threads waited for a CPU.
    pub runners: Vec<RunnerSum>,
    /// CPUs.
    pub cpus: Vec<CpuTime>,
}

impl Sums {
    /// Those of one process; numbers of the host stay.
    pub fn of_process(&self, tgid: u32) -> Sums {
        Sums {
            stack_sums: only(&self.stack_sums, |sum| sum.tgid == tgid),
            waits: only(&self.waits, |sum| sum.tgid == tgid),
            holds: only(&self.holds, |sum| sum.tgid == tgid),
            paths: only(&self.paths, |sum| sum.tgid == tgid),
            beside: only(&self.beside, |sum| sum.tgid == tgid),
            call_errors: only(&self.call_errors, |sum| sum.tgid == tgid),
            counters: self.counters.clone(),
            runners: only(&self.runners, |sum| sum.tgid == tgid),
            cpus: self.cpus.clone(),
        }
    }

    /// The stacks that they refer to.
    pub fn stacks(&self) -> impl Iterator<Item = StackId> {
        let of_sums = self.stack_sums.iter().flat_map(|sum| [sum.kernel, sum.user]);
        let of_paths = self.paths.iter().flat_map(|path| [path.kernel, path.user]);
        let of_waiters = self.beside.iter().map(|sum| sum.kernel);
        of_sums.chain(of_paths).chain(of_waiters).flatten()
    }
}

fn only<T: Clone>(all: &[T], wanted: impl Fn(&&T) -> bool) -> Vec<T> {
    all.iter().filter(wanted).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Account, Batch, Run};

    fn sums() -> Sums {
        let stack = |tgid, kernel| StackSum {
            tgid,
            account: Account::User,
            kernel: Some(StackId(kernel)),
            user: None,
            count: 1,
            ns: u64::MAX,
        };
        Sums {
            stack_sums: vec![stack(10, u64::MAX), stack(11, 3)],
            cpus: vec![CpuTime { cpu: 0, idle_ns: 1, busy_ns: 2, stolen_ns: 3 }],
            ..Sums::default()
        }
    }

    #[test]
    fn the_tables_are_keys_of_the_run_and_of_the_batch() {
        let run = Run { sums: sums(), ..Run::default() };
        let json = serde_json::to_string(&run).unwrap();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["stack_sums"][0]["ns"], u64::MAX);
        assert!(value.get("sums").is_none(), "{json}");
        assert_eq!(serde_json::from_str::<Run>(&json).unwrap().sums, run.sums);
        let older = json.replace(r#""beside":[],"#, "");
        assert!(older.len() < json.len());
        assert_eq!(serde_json::from_str::<Run>(&older).unwrap().sums, run.sums);

        let batch = Batch { sums: sums(), ..Batch::default() };
        let json = serde_json::to_string(&batch).unwrap();
        assert_eq!(serde_json::from_str::<Batch>(&json).unwrap().sums, batch.sums);
    }

    #[test]
    fn those_of_a_process_are_without_others_and_with_the_host() {
        let sums = sums().of_process(11);
        assert_eq!(sums.stacks().collect::<Vec<_>>(), [StackId(3)]);
        assert_eq!(sums.cpus.len(), 1);
    }
}
