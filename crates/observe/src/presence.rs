//! When programs ran, watched or not, second by second.

use std::cmp::Reverse;

use libbpf_rs::MapCore;
use model::Presence;

use crate::Error;
use crate::bpf::{self, presence, presence_key};
use crate::map_entries::entries;
use crate::probes::Probes;

/// Entries of a second.
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

/// Of a crowded second the busiest processes; the times of the others go to one of the same name, so
/// that thousands of short ones of one command need no room. Gives how many had none.
fn busiest(mut found: Vec<Presence>) -> (Vec<Presence>, u64) {
    found.sort_by_key(|one| (one.start_ns, Reverse(one.ns()), one.tgid));
    let (mut kept, mut left_out) = (Vec::<Presence>::new(), 0);
    for one in found {
        let of_second = kept.partition_point(|other| other.start_ns < one.start_ns);
        let same = |other: &&mut Presence| other.comm == one.comm;
        if kept.len() - of_second < KEPT {
            kept.push(one);
        } else if let Some(other) = kept[of_second..].iter_mut().find(same) {
            other.pieces = pieces(bits(&other.pieces) | bits(&one.pieces));
        } else {
            left_out += 1;
        }
    }
    (kept, left_out)
}

fn bits(ranges: &[(u8, u8)]) -> u128 {
    ranges.iter().flat_map(|(from, to)| *from..*to).fold(0, |bits, piece| bits | 1 << piece)
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
    fn of_a_crowded_second_the_busiest_are_kept_and_others_of_their_name_added() {
        let one = |start_ns, tgid: u32, comm: &str, from, to| Presence {
            start_ns,
            tgid,
            comm: comm.to_owned(),
            pieces: vec![(from, to)],
        };
        let mut all: Vec<_> = (0..300).map(|tgid| one(0, tgid, "sh", 1, 2)).collect();
        all.push(one(0, 900, "cc", 0, 50));
        all.push(one(0, 901, "sh", 7, 10));
        all.push(one(0, 902, "true", 3, 4));
        all.push(one(SECOND_NS, 5, "sh", 0, 1));
        let (kept, left_out) = busiest(all);
        assert_eq!((kept.len(), left_out), (KEPT + 1, 1), "only 'true' has no room");
        assert_eq!((kept[0].tgid, kept[KEPT].start_ns), (900, SECOND_NS));
        assert_eq!((kept[1].tgid, &kept[1].pieces[..]), (901, &[(1, 2), (7, 10)][..]));
    }
}
