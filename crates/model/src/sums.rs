//! Sums since the start of a run, which its source hands over again when they have grown.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::de::{DeserializeOwned, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    BoundThreads, CallError, ConcurrentCall, Counter, CpuTime, HoldSum, OtherThreads, PageRead,
    PathSum, Retry, RunnerSum, Service, StackId, StackSum, WaitSum, outside,
};

/// A sum since the start of a run, a row of one of the tables of [`Sums`].
///
/// Stores and run files keep it in its serde form: a field that is added later needs a default.
pub trait Sum: Serialize {
    /// What it is the sum of. A sum replaces an earlier one of its table with the same key.
    fn key(&self) -> impl Serialize;

    /// The same as a text, that of stores; `None` if it has none.
    fn key_text(&self) -> Option<String> {
        serde_json::to_string(&self.key()).ok()
    }

    /// The largest come first. 0 where they stay in the order in which they came.
    fn amount(&self) -> u64;

    /// How often: 0 if it is no count. Of several counts the greatest.
    fn count(&self) -> u64;

    /// How long: 0 if it is no time. Of several times the greatest.
    fn ns(&self) -> u64;

    /// Process that it is about; `None`: the host.
    fn tgid(&self) -> Option<u32>;

    /// Stacks that it refers to.
    fn stacks(&self) -> [Option<StackId>; 2] {
        [None; 2]
    }

    /// The process that it is about, and the other one that it tells of.
    fn processes(&mut self) -> [Option<&mut u32>; 2];

    /// Leaves out of its key what is different in each process of one program: addresses, inodes,
    /// and stacks of user code.
    fn generalize(&mut self) {}

    /// Adds another one that has the same key.
    fn add(&mut self, other: &Self);
}

/// Adds these fields of another sum; like all sums here each stops at `u64::MAX`.
macro_rules! add_each {
    ($sum:ident, $other:ident, [$($field:ident),*]) => {
        $($sum.$field = $sum.$field.saturating_add($other.$field);)*
    };
}

/// What most implementations of [`Sum`] say of a process's count and time, and of its longest where
/// there is one: `adds_up!(count, ns, max_ns)`.
macro_rules! adds_up {
    ($count:ident, $ns:ident $(, $max_ns:ident)?) => {
        fn amount(&self) -> u64 {
            self.$ns
        }

        fn count(&self) -> u64 {
            self.$count
        }

        fn ns(&self) -> u64 {
            self.$ns$(.max(self.$max_ns))?
        }

        fn tgid(&self) -> Option<u32> {
            Some(self.tgid)
        }

        fn add(&mut self, other: &Self) {
            $crate::sums::add_each!(self, other, [$count, $ns]);
            $(self.$max_ns = self.$max_ns.max(other.$max_ns);)?
        }
    };
}

pub(crate) use {add_each, adds_up};

/// Does something with sums of any table.
pub trait SumVisitor {
    /// Why it may fail.
    type Error;

    /// A sum, and the name of its table.
    ///
    /// # Errors
    /// Those of the visitor.
    fn visit(&mut self, table: &'static str, sum: &impl Sum) -> Result<(), Self::Error>;
}

/// The name of a table in stores and run files.
macro_rules! stored_name {
    ($table:ident) => {
        stringify!($table)
    };
    ($table:ident $stored:literal) => {
        $stored
    };
}

/// Writes the struct of the tables, and what has to be done with each of them. A table that is
/// stored under another name than it has here has that one behind `as`.
macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident $(as $stored:literal)?: $sum:ty,)*) => {
        /// The tables of sums: in a batch those that changed, in a run all, the largest first.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Sums {
            $($(#[$doc])* $(#[serde(rename = $stored)])? pub $table: Vec<$sum>,)*
        }

        impl Sums {
            /// Shows all sums to `visitor`.
            ///
            /// # Errors
            /// The first of the visitor.
            pub fn visit<V: SumVisitor>(&self, visitor: &mut V) -> Result<(), V::Error> {
                $(for sum in &self.$table {
                    visitor.visit(stored_name!($table $($stored)?), sum)?;
                })*
                Ok(())
            }

            /// Adds a sum in its serde form to the table of this name; one of a table that only a
            /// later version has is left out.
            ///
            /// # Errors
            /// If it is no sum of this table.
            pub fn add<'de, D: Deserializer<'de>>(
                &mut self,
                table: &str,
                sum: D,
            ) -> Result<(), D::Error> {
                match table {
                    $(stored_name!($table $($stored)?) => {
                        self.$table.push(Deserialize::deserialize(sum)?);
                    })*
                    _ => {}
                }
                Ok(())
            }

            /// Takes the value of a map as the table of this name; false, and the value is still to be
            /// taken, if there is no such table.
            pub(crate) fn take<'de, M: MapAccess<'de>>(
                &mut self,
                table: &str,
                map: &mut M,
            ) -> Result<bool, M::Error> {
                match table {
                    $(stored_name!($table $($stored)?) => self.$table = map.next_value()?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// Puts the largest first in each table.
            pub fn sort(&mut self) {
                $(self.$table.sort_by_key(|sum| Reverse(sum.amount()));)*
            }

            /// Those of one process and of the host.
            pub fn of_process(&self, tgid: u32) -> Sums {
                Sums { $($table: of_process(&self.$table, tgid),)* }
            }

            /// Says of those processes which `group` gives a group that they are that group, and adds
            /// up what then has the same key.
            pub fn gather(&mut self, group: &dyn Fn(u32) -> Option<u32>) {
                $(gather(&mut self.$table, group);)*
            }

            /// Each with its texts fit to be shown ([`crate::outside::shown`]).
            ///
            /// # Errors
            /// If one cannot be taken through JSON.
            pub fn shown(self) -> serde_json::Result<Sums> {
                Ok(Sums { $($table: shown(self.$table)?,)* })
            }

            /// How many there are.
            pub fn len(&self) -> usize {
                0 $(+ self.$table.len())*
            }

            /// True if there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The processes that they tell of.
            pub fn processes(&mut self) -> impl Iterator<Item = u32> {
                let all = std::iter::empty()
                    $(.chain(self.$table.iter_mut().flat_map(|sum| sum.processes())))*;
                all.flatten().map(|tgid| *tgid)
            }

            /// The stacks that they refer to.
            pub fn stacks(&self) -> impl Iterator<Item = StackId> {
                std::iter::empty()$(.chain(self.$table.iter().flat_map(Sum::stacks)))*.flatten()
            }
        }
    };
}

tables! {
    /// Off-CPU time by stack.
    stack_sums: StackSum,
    /// Waits by object.
    waits: WaitSum,
    /// Holds of mmap_lock that made others wait.
    holds: HoldSum,
    /// Time by kernel code path.
    paths: PathSum,
    /// Waits for spinlocks, by who was in a call on another CPU.
    concurrent_calls as "beside": ConcurrentCall,
    /// Waits by trying again.
    retries: Retry,
    /// Failed system calls.
    call_errors: CallError,
    /// Pages read into the page cache.
    page_reads: PageRead,
    /// Numbers that the kernel keeps, by name and source.
    counters: Counter,
    /// Who ran while watched threads waited for a CPU.
    runners: RunnerSum,
    /// CPUs.
    cpus: CpuTime,
    /// Threads that may not run on all CPUs.
    bound: BoundThreads,
    /// Threads that are not in the run one by one.
    others: OtherThreads,
    /// Where requests were answered, and who was called.
    services: Service,
}

/// Says of a sum's processes to which groups they belong; false if to none.
pub fn put_into_groups(sum: &mut impl Sum, group: &dyn Fn(u32) -> Option<u32>) -> bool {
    let mut is_of_group = false;
    for tgid in sum.processes().into_iter().flatten() {
        if let Some(number) = group(*tgid) {
            *tgid = number;
        }
        is_of_group |= OtherThreads::is_group(*tgid);
    }
    if is_of_group {
        sum.generalize();
    }
    is_of_group
}

fn shown<T: Serialize + DeserializeOwned>(sums: Vec<T>) -> serde_json::Result<Vec<T>> {
    sums.into_iter().map(outside::shown).collect()
}

/// Of one table.
fn gather<T: Sum>(sums: &mut Vec<T>, group: &dyn Fn(u32) -> Option<u32>) {
    let mut places = HashMap::<String, usize>::new();
    let mut kept = Vec::with_capacity(sums.len());
    for mut sum in sums.drain(..) {
        // Those of groups alone can have the same key.
        let is_of_group = put_into_groups(&mut sum, group);
        let key = is_of_group.then(|| sum.key_text()).flatten();
        match key.map(|key| *places.entry(key).or_insert(kept.len())) {
            Some(place) if place < kept.len() => T::add(&mut kept[place], &sum),
            _ => kept.push(sum),
        }
    }
    *sums = kept;
}

fn of_process<T: Sum + Clone>(sums: &[T], tgid: u32) -> Vec<T> {
    sums.iter().filter(|sum| sum.tgid().is_none_or(|of| of == tgid)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Account, Batch, Crowd, Run};

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

    #[test]
    fn sums_of_processes_in_a_group_are_added_up_and_those_of_others_stay() {
        let mut sums = sums();
        let of = |tgid, user| StackSum { tgid, user, ns: 5, ..sums.stack_sums[1].clone() };
        let (first, second) = (of(20, Some(StackId(7))), of(21, None));
        sums.stack_sums.extend([first, second]);
        let group = Crowd::default().group("sh");
        for _ in 0..2 {
            sums.gather(&|tgid| (tgid >= 20).then_some(group));
            let [_, alone, together] = sums.stack_sums.as_slice() else { panic!("{sums:?}") };
            assert_eq!((alone.tgid, alone.ns), (11, u64::MAX));
            assert_eq!((together.tgid, together.user), (group, None));
            assert_eq!((together.count, together.ns), (2, 10));
        }
    }
}
