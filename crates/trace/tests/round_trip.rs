//! What is written is what is read.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::collections::BTreeMap;
use std::thread::scope;
use std::time::Duration;

use common::{open, place};
use model::Histogram;
use rustix::fs::{CWD, FileType, Mode};
use trace::reader::{Metric, Record, Standing};
use trace::{Point, Publish, Thread, Trace, Tracer, now};

const JOURNALLED: Point = Point::new(0);
const REPLICATED: Point = Point::new(1);

#[test]
fn a_message_with_everything() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let order = tracer
        .flow("order")
        .infra(["journalled", "replicated"])
        .threshold(Duration::from_millis(20))
        .build()
        .unwrap();
    let quote = tracer.flow("quote").build().unwrap();
    let fill = order.publish("fill").unwrap();
    let report = order.publish("trade-report").unwrap();
    assert_eq!(order.publish("fill").unwrap(), fill);
    let mut logic_thread = tracer.thread().unwrap();
    let mut trace = Trace::new();

    let before = now();
    trace.begin(&order, 8123, before);
    scope(|scope| {
        scope.spawn(|| {
            let _registered = tracer.thread().unwrap();
            trace.mark(JOURNALLED);
        });
        scope.spawn(|| trace.mark(REPLICATED));
    });
    let mut logic = logic_thread.logic_start(&mut trace, Some(3));
    logic.published(report);
    std::thread::sleep(Duration::from_millis(25));
    logic.published(fill);
    logic.published(Publish::UNNAMED);
    logic.end();
    let mut other = Trace::new();
    other.begin(&quote, 1, now());
    logic_thread.logic_start(&mut other, None).end();
    let after = now();

    let mut file = open(&tracer);
    assert_eq!(file.standing().unwrap(), Standing::Live);
    let identity = file.reader.identity();
    assert_eq!(identity.pid, std::process::id());
    assert_eq!(identity.language, trace::reader::Language::Rust);
    let flows = file.reader.flows().unwrap();
    assert_eq!(flows.len(), 2);
    assert_eq!(flows[0].name, "order");
    assert_eq!(flows[0].points, ["journalled", "replicated"]);
    assert_eq!(flows[0].publishes, ["fill", "trade-report"]);
    assert_eq!((flows[0].threshold, flows[0].begun, flows[0].abandoned), (20_000_000, 1, 0));
    assert_eq!(flows[1].threshold, 1_000_000);

    let threads = file.reader.threads().unwrap();
    assert_eq!(threads.len(), 2);
    assert_eq!(threads[0].tid, rustix::thread::gettid().as_raw_pid() as u32);
    assert!(!threads[0].comm.is_empty());
    assert_eq!(threads[0].messages, 2);
    assert_eq!(threads[0].current, None);

    let messages = file.reader.messages().unwrap();
    assert_eq!(messages.recent.len(), 2);
    assert_eq!(messages.slow.len(), 1);
    let Record { t0, logic_start, end, .. } = messages.slow[0];
    let record = messages.slow[0].clone();
    assert_eq!((record.id, record.flow, record.is_slow, record.thread), (8123, 1, true, 0));
    assert_eq!((t0, record.depth, record.publishes), (before, Some(3), 3));
    assert!(before < logic_start && logic_start < end && end <= after);
    assert!((25_000_000..=end - logic_start).contains(&record.longest_gap));
    let points: Vec<_> = record.points.iter().map(|p| (p.point, p.thread)).collect();
    assert_eq!(points, [(0, Some(1)), (1, None)]);
    let published: Vec<_> = record.published.iter().map(|p| p.publish).collect();
    assert_eq!(published, [Some(1), Some(0), None]);
    let times: Vec<_> = record.published.iter().map(|p| p.time).collect();
    assert!(times.is_sorted() && times[1] - times[0] == record.longest_gap);
    let second = &messages.recent[1];
    assert_eq!((second.id, second.flow, second.depth, second.is_slow), (1, 2, None, false));
    assert!(second.points.is_empty() && second.published.is_empty());
    // Nothing twice.
    assert_eq!(file.reader.messages().unwrap(), Default::default());
    assert_eq!(file.reader.losses(), Default::default());
    assert_eq!(file.reader.dropped().unwrap(), Default::default());
}

/// The histograms of a record, by the model.
fn count(record: &Record, into: &mut BTreeMap<Metric, Histogram>) {
    let mut add = |metric, value| {
        into.entry(metric).or_insert_with(|| Histogram::new(5)).record(value);
    };
    add(Metric::Total, record.end - record.t0);
    add(Metric::Infrastructure, record.logic_start - record.t0);
    add(Metric::Logic, record.end - record.logic_start);
    for point in &record.points {
        add(Metric::ToPoint(point.point), point.time - record.t0);
    }
    let mut last = record.logic_start;
    for publish in &record.published {
        add(Metric::Gap, publish.time - last);
        if let Some(place) = publish.publish {
            add(Metric::ToPublish(place), publish.time - last);
        }
        last = publish.time;
    }
}

#[test]
fn histograms_are_those_of_the_model() {
    let place = place();
    let tracer = place.builder().recent(1024).build().unwrap();
    let order = tracer.flow("order").infra(["journalled", "replicated"]).build().unwrap();
    let names = ["a", "b", "c"].map(|name| order.publish(name).unwrap());
    let mut thread = tracer.thread().unwrap();
    let mut trace = Trace::new();
    let mut run = |messages: std::ops::Range<u64>| {
        for id in messages {
            // Totals over all powers of two up to days: receipt may lie anywhere before.
            trace.begin(&order, id, now().saturating_sub(1 << (id % 48)));
            trace.mark(JOURNALLED);
            if id % 3 == 0 {
                trace.mark(REPLICATED);
            }
            let mut logic = thread.logic_start(&mut trace, None);
            for turn in 0..id % 12 {
                (0..id * turn).for_each(|n| _ = std::hint::black_box(n));
                logic.published(names[(turn % 3) as usize]);
            }
            logic.end();
        }
    };
    let mut file = open(&tracer);
    for part in [0..400, 400..1000] {
        run(part);
        let mut expected = BTreeMap::new();
        for record in &file.reader.messages().unwrap().recent {
            count(record, &mut expected);
        }
        let counted = file.reader.histograms().unwrap();
        assert_eq!(counted.len(), expected.len());
        for counted in counted {
            let model = &expected[&counted.metric];
            // What exceeds 2^37 ns is in the last bucket here.
            let mut buckets: BTreeMap<u32, u64> = BTreeMap::new();
            model
                .buckets()
                .for_each(|(index, n)| *buckets.entry(index.min(1055)).or_default() += n);
            assert_eq!(counted.buckets, buckets.into_iter().collect::<Vec<_>>());
            assert_eq!(counted.count(), model.count());
            assert_eq!(counted.sum, model.sum(), "{:?}", counted.metric);
            let maximum = counted.maxima.iter().map(|(_, maximum)| *maximum).max();
            assert!(maximum >= model.max(), "{:?}", counted.metric);
        }
    }
    assert_eq!(file.reader.histograms().unwrap(), []);
}

#[test]
fn the_maximum_of_a_second_is_of_that_second() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").build().unwrap();
    let mut thread = tracer.thread().unwrap();
    let mut trace = Trace::new();
    let second = |time: u64| time / 1_000_000_000;
    // At least two seconds that have messages, the longest in an earlier one.
    let begin = now();
    trace.begin(&flow, 0, begin - 1_000_000);
    thread.logic_start(&mut trace, None).end();
    let mut last = (0, 0);
    while second(last.0) <= second(begin) {
        let t0 = now() - 1000;
        trace.begin(&flow, 1, t0);
        thread.logic_start(&mut trace, None).end();
        last = (now(), now() - t0);
        std::thread::sleep(Duration::from_millis(5));
    }
    let counted = open(&tracer).reader.histograms().unwrap();
    let total = counted.iter().find(|counted| counted.metric == Metric::Total).unwrap();
    let [(earlier, first), (later, second_maximum)] = total.maxima[..] else {
        panic!("{:?}", total.maxima)
    };
    assert_eq!((earlier, later), (second(begin), second(last.0)));
    assert!(first >= 1_000_000 && second_maximum <= last.1, "{:?}", total.maxima);
}

#[test]
fn publishes_beyond_the_cells_count() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").build().unwrap();
    let fill = flow.publish("fill").unwrap();
    let mut thread = tracer.thread().unwrap();
    let mut trace = Trace::new();
    trace.begin(&flow, 1, now());
    let mut logic = thread.logic_start(&mut trace, None);
    (0..40).for_each(|_| logic.published(fill));
    std::thread::sleep(Duration::from_millis(3));
    logic.published(fill);
    logic.end();
    let mut file = open(&tracer);
    let record = file.reader.messages().unwrap().recent.remove(0);
    assert_eq!((record.publishes, record.published.len()), (41, 16));
    assert!(record.longest_gap >= 3_000_000);
    for counted in file.reader.histograms().unwrap() {
        match counted.metric {
            Metric::Gap | Metric::ToPublish(0) => assert_eq!(counted.count(), 41),
            _ => assert_eq!(counted.count(), 1),
        }
    }
}

#[test]
fn what_is_not_ended_is_counted_and_the_stuck_message_is_seen() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").infra(["journalled"]).build().unwrap();
    let fill = flow.publish("fill").unwrap();
    let mut thread = tracer.thread().unwrap();
    let mut trace = Trace::new();
    trace.begin(&flow, 1, now());
    trace.begin(&flow, 2, now());
    let mut logic = thread.logic_start(&mut trace, None);
    let mut file = open(&tracer);
    let stuck =
        |file: &mut trace::reader::TraceFile| file.reader.threads().unwrap()[0].current.clone();
    assert_eq!(stuck(&mut file).unwrap().last_name, None);
    logic.published(fill);
    let message = stuck(&mut file).unwrap();
    assert_eq!((message.id, message.flow), (2, 1));
    assert_eq!(message.last_name.as_deref(), Some("fill"));
    assert!(message.t0 <= message.logic_start && message.logic_start <= message.last);
    drop(logic);
    assert_eq!(stuck(&mut file), None);
    trace.begin(&flow, 3, now());
    trace.mark(Point::new(7));
    thread.logic_start(&mut trace, None).end();
    // The trace is idle now: these belong to nothing, and are no message.
    trace.mark(JOURNALLED);
    thread.logic_start(&mut trace, None).end();
    let flows = file.reader.flows().unwrap();
    assert_eq!((flows[0].begun, flows[0].abandoned, flows[0].undeclared), (3, 2, 1));
    assert_eq!(file.reader.messages().unwrap().recent.len(), 1);
}

#[test]
fn messages_begun_by_any_thread_are_counted() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").build().unwrap();
    scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut trace = Trace::new();
                (0..20_000).for_each(|id| trace.begin(&flow, id, now()));
            });
        }
    });
    let flows = open(&tracer).reader.flows().unwrap();
    assert_eq!((flows[0].begun, flows[0].abandoned), (60_000, 3 * 19_999));
}

#[test]
fn a_receipt_in_the_future_counts_as_no_time() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").infra(["journalled"]).build().unwrap();
    let mut thread = tracer.thread().unwrap();
    let mut trace = Trace::new();
    let future = now() + 1_000_000_000_000;
    trace.begin(&flow, 1, future);
    trace.mark(JOURNALLED);
    thread.logic_start(&mut trace, None).end();
    let mut file = open(&tracer);
    let record = file.reader.messages().unwrap().recent.remove(0);
    assert_eq!((record.t0, record.end), (future, future));
    assert_eq!(file.reader.losses().marks, 1, "a mark before its message");
    for counted in file.reader.histograms().unwrap() {
        assert_eq!((counted.count(), counted.sum), (1, 0));
    }
}

#[test]
fn an_outside_process_may_change_the_threshold() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").threshold(Duration::from_millis(5)).build().unwrap();
    let mut thread = tracer.thread().unwrap();
    let mut trace = Trace::new();
    let mut file = open(&tracer);
    let mut is_slow = |took: u64| {
        trace.begin(&flow, 1, now() - took);
        thread.logic_start(&mut trace, None).end();
    };
    is_slow(1_000_000);
    file.set_threshold(1, 500_000).unwrap();
    is_slow(1_000_000);
    let messages = file.reader.messages().unwrap();
    assert_eq!((messages.recent.len(), messages.slow.len()), (2, 1));
    // Out of bounds is brought into them.
    file.set_threshold(1, 0).unwrap();
    assert_eq!(file.reader.flows().unwrap()[0].threshold, 1000);
    assert!(file.set_threshold(2, 1).is_ok(), "an entry that no flow has yet");
    assert!(file.set_threshold(0, 1).is_err() && file.set_threshold(17, 1).is_err());
    // What has its name by now is not opened: a FIFO would wait for a reader for ever.
    let path = file.path().to_owned();
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    file.set_threshold(1, 700_000).unwrap();
    assert_eq!(file.reader.flows().unwrap()[0].threshold, 700_000);
}

#[test]
fn a_tracer_that_is_off_does_nothing() {
    let tracer = Tracer::off();
    let flow = tracer.flow("order").infra(["a"]).build().unwrap();
    let publish = flow.publish("any \n name").unwrap();
    let mut thread = tracer.thread().unwrap();
    let mut trace = Trace::new();
    trace.begin(&flow, 1, now());
    trace.mark(JOURNALLED);
    let mut logic = thread.logic_start(&mut trace, None);
    logic.published(publish);
    logic.end();
    assert!(!tracer.is_on() && tracer.path().is_none());
    // The same with a thread that found no room.
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").infra(["a"]).build().unwrap();
    trace.begin(&flow, 1, now());
    Thread::off().logic_start(&mut trace, None).end();
    assert_eq!(open(&tracer).reader.messages().unwrap(), Default::default());
}

#[test]
fn a_ring_that_is_overtaken_shows_only_whole_records() {
    let place = place();
    let tracer = place.builder().recent(2).slow(2).build().unwrap();
    let flow = tracer.flow("order").threshold(Duration::from_micros(1)).build().unwrap();
    let path = tracer.path().unwrap().to_owned();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (shown, losses) = scope(|scope| {
        scope.spawn(|| {
            let mut thread = tracer.thread().unwrap();
            let mut trace = Trace::new();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let t0 = now();
                trace.begin(&flow, t0, t0);
                thread.logic_start(&mut trace, Some(t0 as u32)).end();
            }
        });
        let mut file = trace::reader::TraceFile::open(path).unwrap();
        let mut shown = 0;
        let until = now() + 300_000_000;
        while now() < until {
            let messages = file.reader.messages().unwrap();
            for record in messages.recent.iter().chain(&messages.slow) {
                assert_eq!((record.id, record.depth), (record.t0, Some(record.t0 as u32)));
                shown += 1;
            }
            file.reader.threads().unwrap();
            file.reader.histograms().unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        (shown, file.reader.losses())
    });
    println!("{shown} records shown, {losses:?}");
    assert!(shown > 0 && losses.overwritten > 0);
}
