//! Sends that found no room: what the kernel side counted, from one look to the next.

use std::collections::{BTreeMap, HashMap};

use libbpf_rs::MapHandle;
use model::BlockedSends;

use crate::Error;
use crate::bpf::{send_key, send_sum};
use crate::map_entries::entries;

/// A descriptor of a process, and the inode of its socket.
pub type SendKey = (u64, u32, u32);

/// Bursts kept of one socket between two batches: one a look.
const BURSTS: usize = 50;

/// Sends since the last batch.
#[derive(Default)]
pub struct Sends {
    before: HashMap<SendKey, send_sum>,
    since: BTreeMap<SendKey, BlockedSends>,
}

impl Sends {
    /// Takes in what the kernel has counted so far.
    pub fn look(&mut self, map: &MapHandle) -> Result<(), Error> {
        for (_, key, sum) in entries::<send_key, send_sum>(map)? {
            self.note((key.inode, key.tgid, key.fd), sum);
        }
        Ok(())
    }

    fn note(&mut self, key: SendKey, sum: send_sum) {
        let before = self.before.insert(key, sum).unwrap_or_default();
        let refused = sum.refused.saturating_sub(before.refused);
        let waited = sum.waited.saturating_sub(before.waited);
        if refused + waited == 0 {
            return;
        }
        let since = self.since.entry(key).or_default();
        since.refused += refused;
        since.waited += waited;
        since.waited_ns += sum.waited_ns.saturating_sub(before.waited_ns);
        if sum.first_ns != before.first_ns && since.bursts_ns.len() < BURSTS {
            since.bursts_ns.push(sum.first_ns);
        }
    }

    /// Hands over what was counted since the last time.
    pub fn take(&mut self) -> BTreeMap<SendKey, BlockedSends> {
        std::mem::take(&mut self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sum(refused: u64, waited: u64, first_ns: u64) -> send_sum {
        let waited_ns = waited * MS;
        send_sum { refused, waited, waited_ns, first_ns, last_ns: first_ns + MS }
    }

    #[test]
    fn only_what_is_new_counts_and_each_burst_once() {
        let (mut sends, key) = (Sends::default(), (5, 10, 3));
        sends.note(key, sum(7, 0, 100 * MS));
        sends.note(key, sum(9, 1, 100 * MS));
        sends.note(key, sum(9, 2, 300 * MS));
        let taken = sends.take();
        let bursts_ns = vec![100 * MS, 300 * MS];
        let all = BlockedSends { refused: 9, waited: 2, waited_ns: 2 * MS, bursts_ns };
        assert_eq!(taken, BTreeMap::from([(key, all)]));

        sends.note(key, sum(9, 2, 300 * MS));
        assert!(sends.take().is_empty(), "nothing new");
        sends.note(key, sum(10, 2, 300 * MS));
        assert_eq!(sends.take()[&key], BlockedSends { refused: 1, ..BlockedSends::default() });
    }
}
