//! From what the reader gives to what the model has.

use std::collections::HashMap;

use model::{
    Histogram, Message, MessageAhead, MessageFlow, MessageMetric, MessagePoint, MessagePublish,
    MessageSecond, histogram::PRECISION_KERNEL,
};
use trace::reader::{Counted, Flow, Language, Metric, Record};

/// What a tracer is written in.
pub fn language(language: Language) -> String {
    match language {
        Language::Rust => "Rust".to_owned(),
        Language::C => "C".to_owned(),
        Language::Java => "Java".to_owned(),
        Language::Other(number) => format!("number {number}"),
    }
}

/// A flow; what it has counted so far is left to the caller.
pub(crate) fn flow(flow: &Flow) -> MessageFlow {
    MessageFlow {
        flow: flow.id,
        name: label(&flow.name),
        points: flow.points.iter().map(|name| label(name)).collect(),
        publishes: flow.publishes.iter().map(|name| label(name)).collect(),
        threshold_ns: flow.threshold,
        ..MessageFlow::default()
    }
}

/// What a program calls something: it may have taken a request for a name.
fn label(label: &str) -> String {
    inspect::secrets::masked(label).into_owned()
}

/// A message; `tids` are the numbers of the threads by their index.
pub(crate) fn message(
    record: &Record,
    program: u32,
    tids: &HashMap<u32, u32>,
    sample: Option<u32>,
    ahead: Vec<MessageAhead>,
) -> Message {
    let tid = |index: u32| tids.get(&index).copied();
    Message {
        program,
        flow: record.flow,
        id: record.id,
        sample,
        t0_ns: record.t0,
        logic_start_ns: record.logic_start,
        end_ns: record.end,
        tid: tid(record.thread).unwrap_or(0),
        points: record
            .points
            .iter()
            .map(|mark| MessagePoint {
                point: mark.point,
                time_ns: mark.time,
                tid: mark.thread.and_then(tid),
            })
            .collect(),
        published: record
            .published
            .iter()
            .map(|mark| MessagePublish { publish: mark.publish, time_ns: mark.time })
            .collect(),
        publishes: u64::from(record.publishes),
        longest_gap_ns: record.longest_gap,
        depth: record.depth,
        ahead,
        kept_ns: 0,
        at_socket: None,
    }
}

fn metric(metric: Metric) -> MessageMetric {
    match metric {
        Metric::Total => MessageMetric::Total,
        Metric::Infrastructure => MessageMetric::Infrastructure,
        Metric::Logic => MessageMetric::Logic,
        Metric::Gap => MessageMetric::PublishGap,
        Metric::ToPoint(place) => MessageMetric::ToPoint(place),
        Metric::ToPublish(place) => MessageMetric::ToPublish(place),
    }
}

/// What the threads counted since the last look, one histogram per flow and metric.
pub(crate) fn seconds(counted: &[Counted], program: u32, start_ns: u64) -> Vec<MessageSecond> {
    let mut sums: HashMap<(u32, MessageMetric), Histogram> = HashMap::new();
    for one in counted {
        let buckets = one.buckets.iter().copied();
        let histogram =
            Histogram::from_parts(PRECISION_KERNEL, buckets, one.sum, one.low(), highest(one));
        sums.entry((one.flow, metric(one.metric)))
            .and_modify(|sum| sum.merge(&histogram))
            .or_insert(histogram);
    }
    let mut seconds: Vec<MessageSecond> = sums
        .into_iter()
        .map(|((flow, metric), histogram)| MessageSecond {
            program,
            flow,
            metric,
            start_ns,
            histogram,
        })
        .collect();
    seconds.sort_by_key(|second| (second.flow, second.metric));
    seconds
}

/// The exact highest value, where one of the known maxima lies in the highest bucket: there is no
/// higher value, and a greater maximum would be in a higher bucket.
fn highest(counted: &Counted) -> u64 {
    let last = counted.buckets.last().map_or(0, |(bucket, _)| *bucket);
    let in_last = |value: &u64| Histogram::index_of(*value, PRECISION_KERNEL) >= last;
    let maxima = counted.maxima.iter().map(|(_, value)| *value).filter(in_last);
    let bound = Histogram::bounds_of(last, PRECISION_KERNEL).1;
    maxima.max().filter(|value| *value <= bound).unwrap_or_else(|| counted.high())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(thread: u32, buckets: &[(u32, u64)], sum: u64, maxima: &[(u64, u64)]) -> Counted {
        Counted {
            thread,
            flow: 1,
            metric: Metric::Total,
            buckets: buckets.to_vec(),
            sum,
            maxima: maxima.to_vec(),
        }
    }

    #[test]
    fn the_threads_of_a_flow_are_one_histogram() {
        let both = [counted(0, &[(3, 2)], 6, &[(9, 3)]), counted(1, &[(5, 1)], 5, &[])];
        let seconds = seconds(&both, 7, 100);
        assert_eq!(seconds.len(), 1);
        let histogram = &seconds[0].histogram;
        assert_eq!((histogram.count(), histogram.sum(), histogram.max()), (3, 11, Some(5)));
        assert_eq!((seconds[0].program, seconds[0].start_ns), (7, 100));
    }

    #[test]
    fn the_maximum_is_exact_where_it_is_known_and_a_bound_elsewhere() {
        let bucket = Histogram::index_of(1_000_000, PRECISION_KERNEL);
        let (low, high) = Histogram::bounds_of(bucket, PRECISION_KERNEL);
        let of = |maxima: &[(u64, u64)]| highest(&counted(0, &[(bucket, 1)], low, maxima));
        assert_eq!(of(&[(8, 40), (9, 1_000_000)]), 1_000_000);
        assert_eq!(of(&[(9, 40)]), high, "of another second");
        assert_eq!(of(&[(9, u64::MAX)]), high, "no value of the histogram");
    }
}
