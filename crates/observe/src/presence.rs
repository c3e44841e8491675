//! When programs ran, watched or not, second by second.

use std::cmp::Reverse;

use libbpf_rs::MapCore;
use model::Presence;

use crate::Error;
use crate::bpf::{self, presence, presence_key};
use crate::probes::Probes;
use crate::sums::entries;

/// Processes kept of a second: those that ran in most pieces of it.
const KEPT: usize = 256;
const SECOND_NS: u64 = 1_000_000_000;

/// The seconds that are over, all of them if it is the `last` time; and how many processes were
/// left out.
pub fn take(probes: &Probes, now_ns: u64, last: bool) -> Result<(Vec<Presence>, u64), Error> {
    let map = &probes.skel().maps.presences;
    let mut found = Vec::new();
    for (raw, key, seen) in entries::<presence_key, presence>(map)? {
        if key.second >= now_ns / SECOND_NS && !last {
            continue;
        }
        // What a CPU still adds makes another entry, which comes with the next ones.
        let _ = map.delete(&raw);
        found.push(Presence {
            start_ns: key.second * SECOND_NS,
            tgid: key.tgid,
            comm: bpf::text(&seen.comm),
            pieces: pieces(u128::from(seen.low) | u128::from(seen.high) << 64),
        });
    }
    Ok(busiest(found))
}

/// The set bits as ranges: from, up to and without.
fn pieces(bits: u128) -> Vec<(u8, u8)> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < Presence::PIECES {
        let skipped = (bits >> at).trailing_zeros() as u8;
        let from = at.saturating_add(skipped);
        if from >= Presence::PIECES {
            break;
        }
        at = from + (bits >> from).trailing_ones() as u8;
        ranges.push((from, at));
    }
    ranges
}

fn busiest(mut found: Vec<Presence>) -> (Vec<Presence>, u64) {
    found.sort_by_key(|one| (one.start_ns, Reverse(one.ns()), one.tgid));
    let all = found.len();
    let mut place = (0, 0);
    found.retain(|one| {
        place = if place.0 == one.start_ns { (place.0, place.1 + 1) } else { (one.start_ns, 1) };
        place.1 <= KEPT
    });
    let left_out = (all - found.len()) as u64;
    (found, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_become_ranges() {
        assert_eq!(pieces(0), []);
        assert_eq!(pieces(0b1011), [(0, 2), (3, 4)]);
        assert_eq!(pieces(0b11 << 63), [(63, 65)], "across the two words");
        assert_eq!(pieces((1 << 100) - 1), [(0, 100)]);
    }

    #[test]
    fn of_a_crowded_second_the_busiest_are_kept() {
        let one = |start_ns, tgid: u32, until| Presence {
            start_ns,
            tgid,
            comm: String::new(),
            pieces: vec![(0, until)],
        };
        let mut all: Vec<_> = (0..300).map(|tgid| one(0, tgid, 1)).collect();
        all.push(one(0, 900, 50));
        all.push(one(SECOND_NS, 5, 1));
        let (kept, left_out) = busiest(all);
        assert_eq!((kept.len(), left_out), (KEPT + 1, 45));
        assert_eq!((kept[0].tgid, kept[KEPT].start_ns), (900, SECOND_NS));
    }
}
