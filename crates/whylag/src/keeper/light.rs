//! What waits when no more may: accounts and sums, each as it was last.
//!
//! A store may fail for hours, and every second a batch has the accounts of thousands of threads. What
//! is replaced in the store by what comes later need not wait twice.

use std::collections::{BTreeMap, HashMap};

use model::{Batch, Process, Sum, SumVisitor, Sums, ThreadAccounts};
use serde_json::Value;

/// The batches that came when too much waited already, as one.
#[derive(Default)]
pub struct Light {
    batch: Batch,
    threads: HashMap<(u32, u64), ThreadAccounts>,
    processes: HashMap<u32, Process>,
    sums: HashMap<(&'static str, String), Value>,
    losses: BTreeMap<String, (u64, u64)>,
}

impl Light {
    /// Adds what may wait of a batch, and counts the rest as lost.
    pub fn add(&mut self, batch: Batch) {
        let mut left_out = |kind: &str, count: usize| {
            if count > 0 {
                self.lose(
                    format!("{kind} (the store took nothing)"),
                    batch.heartbeat_ns,
                    count as u64,
                );
            }
        };
        left_out("outliers", batch.outliers.len());
        left_out("rare events", batch.events.len());
        left_out("histograms of a second", batch.seconds.len());
        left_out("messages", batch.messages.slow.len() + batch.messages.fast.len());
        left_out("queues of sockets", batch.sockets.queues.len() + batch.sockets.drops.len());
        left_out("presence of programs", batch.presences.len());
        for (kind, since_ns, count) in batch.losses {
            self.lose(kind, since_ns, count);
        }
        let threads = batch.threads.into_iter();
        self.threads.extend(threads.map(|thread| ((thread.tid, thread.first_ns), thread)));
        self.processes.extend(batch.processes.into_iter().map(|process| (process.tgid, process)));
        // Nothing fails there.
        let _ = batch.sums.visit(self);
        self.batch.heartbeat_ns = self.batch.heartbeat_ns.max(batch.heartbeat_ns);
        self.batch.facts.extend(batch.facts);
        if !batch.capabilities.is_empty() {
            self.batch.capabilities = batch.capabilities;
        }
        self.batch.cost = batch.cost.or(self.batch.cost.take());
    }

    fn lose(&mut self, kind: String, since_ns: u64, count: u64) {
        let lost = self.losses.entry(kind).or_insert((since_ns, 0));
        lost.1 = lost.1.saturating_add(count);
    }

    /// All of it, for the store.
    pub fn into_batch(self) -> Batch {
        let mut sums = Sums::default();
        for ((table, _), sum) in self.sums {
            // It was one before.
            let _ = sums.add(table, sum);
        }
        let losses = self.losses.into_iter().map(|(kind, (since, count))| (kind, since, count));
        Batch {
            threads: self.threads.into_values().collect(),
            processes: self.processes.into_values().collect(),
            sums,
            losses: losses.collect(),
            ..self.batch
        }
    }
}

impl SumVisitor for Light {
    type Error = std::convert::Infallible;

    fn visit(&mut self, table: &'static str, sum: &impl Sum) -> Result<(), Self::Error> {
        if let (Some(key), Ok(value)) = (sum.key_text(), serde_json::to_value(sum)) {
            self.sums.insert((table, key), value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Account, CpuTime, Event, EventDetail, EventKind};

    fn thread(tid: u32, ns: u64) -> ThreadAccounts {
        ThreadAccounts {
            tid,
            tgid: 1,
            comm: "x".to_owned(),
            first_ns: 5,
            last_ns: 5 + ns,
            alive: true,
            open: Account::User,
            accounts: [(Account::User, ns)].into_iter().collect(),
            realtime: 0,
            minor_faults: 0,
            major_faults: 0,
            sleeps: 0,
            preemptions: 0,
            migrations: 0,
        }
    }

    #[test]
    fn what_is_left_out_when_too_much_waits_is_counted() {
        let detail = EventDetail::default();
        let event = Event { time_ns: 1, kind: EventKind::Exec, tid: 1, tgid: 1, value: 0, detail };
        let mut light = Light::default();
        for heartbeat_ns in [7, 8] {
            light.add(Batch { heartbeat_ns, events: vec![event.clone()], ..Batch::default() });
        }
        let batch = light.into_batch();
        assert!(batch.events.is_empty() && batch.heartbeat_ns == 8);
        assert_eq!(batch.losses, [("rare events (the store took nothing)".to_owned(), 7, 2)]);
    }

    /// Minutes of batches that each have all threads take no more than the last of them.
    #[test]
    fn what_replaces_what_came_before_waits_once() {
        let mut light = Light::default();
        for second in 1..=600 {
            let cpu = CpuTime { cpu: 0, idle_ns: second, busy_ns: 2 * second, stolen_ns: 0 };
            light.add(Batch {
                heartbeat_ns: second,
                threads: (0..100).map(|tid| thread(tid, second)).collect(),
                sums: Sums { cpus: vec![cpu], ..Sums::default() },
                losses: vec![("a kind".to_owned(), second, 1)],
                ..Batch::default()
            });
        }
        let batch = light.into_batch();
        assert_eq!(batch.threads.len(), 100);
        assert!(batch.threads.iter().all(|thread| thread.wall_ns() == 600));
        assert_eq!((batch.sums.len(), batch.sums.cpus[0].busy_ns), (1, 1200));
        assert_eq!(batch.losses, [("a kind".to_owned(), 1, 600)]);
    }
}
