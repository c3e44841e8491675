//! The page in bytes: a line of JSON, and behind it the intervals of each run.
//!
//! A run may have a million intervals. As JSON they would be most of the file and most of the time
//! until the page is seen, so they are columns of numbers instead, run by run and in each the begins,
//! lengths, classes and wakers of all intervals, lane by lane. A number is written with seven bits in
//! each byte, the lowest first, and the eighth bit is set in all but its last (LEB128). A begin is the
//! distance to the one before it in its lane; a class has 128 added where the interval is a whole
//! system call; a waker is its lane + 1, and 0 is none. How many there are, the JSON says
//! ([`crate::timeline::Lane::n`]).

use std::io::Write;

use crate::timeline::Timeline;
use crate::{Page, PageError};

/// Set in the class of a whole system call.
const OUTER: u8 = 128;

/// Writes the page.
///
/// # Errors
/// Those of `out`, or of a value that is no JSON.
pub fn write(out: &mut dyn Write, page: &Page) -> Result<(), PageError> {
    // Without spaces JSON has no line feed of its own: those in texts have escapes.
    serde_json::to_writer(&mut *out, page)?;
    out.write_all(b"\n")?;
    for run in &page.runs {
        out.write_all(&columns(&run.timeline))?;
    }
    Ok(())
}

fn columns(timeline: &Timeline) -> Vec<u8> {
    let all = &timeline.intervals;
    let mut bytes = Vec::new();
    let mut from = all.from_ns.iter();
    for lane in &timeline.lanes {
        let mut last = 0;
        for ns in from.by_ref().take(lane.n as usize) {
            number(&mut bytes, ns - last);
            last = *ns;
        }
    }
    all.length_ns.iter().for_each(|ns| number(&mut bytes, *ns));
    let kind = |(class, outer): (&u8, &bool)| class | if *outer { OUTER } else { 0 };
    bytes.extend(all.class.iter().zip(&all.outer).map(kind));
    all.waker
        .iter()
        .for_each(|lane| number(&mut bytes, lane.map_or(0, |lane| u64::from(lane) + 1)));
    bytes
}

fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Intervals, Lane};

    #[test]
    fn columns_follow_each_other_and_begins_are_distances_in_their_lane() {
        let lane = |n| Lane { tid: 1, name: String::new(), n };
        let timeline = Timeline {
            lanes: vec![lane(2), lane(1)],
            intervals: Intervals {
                from_ns: vec![100, 400, 7],
                length_ns: vec![127, 128, 1 << 35],
                class: vec![3, 0, 5],
                outer: vec![false, true, false],
                waker: vec![None, Some(1), Some(0)],
            },
            ..Timeline::default()
        };
        let from = [100, 0b1010_1100, 0b10, 7];
        let length = [127, 0b1000_0000, 1, 0b1000_0000, 128, 128, 128, 128, 1];
        let wanted = [&from[..], &length, &[3, 128, 5], &[0, 2, 1]].concat();
        assert_eq!(columns(&timeline), wanted);
    }
}
