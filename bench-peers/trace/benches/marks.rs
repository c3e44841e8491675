//! ns per mark, bytes allocated per message, p99.99 of one mark.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bench_peers_trace::fastrace_message::{self, Fastrace, FastraceSpans};
use bench_peers_trace::floor::Floor;
use bench_peers_trace::opentelemetry_message::{OpenTelemetry, OpenTelemetrySpans};
use bench_peers_trace::tracing_message::{self, Tracing, TracingSpans};
use bench_peers_trace::whylag_message::{self, Clock, Whylag, WhylagC, WhylagOff};
use bench_peers_trace::{BATCH, MARKS, Tracer};
use criterion::Criterion;
use trace::{Point, Trace, now};

/// Counts what is allocated while it is switched on.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: as the system's allocator, which does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.load(Ordering::Relaxed) {
            BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The logic thread: gets a batch, gives it back with the time that its stage took.
struct Logic<T: Tracer> {
    to: mpsc::Sender<T::Batch>,
    from: mpsc::Receiver<(T::Batch, Duration)>,
}

impl<T: Tracer + 'static> Logic<T> {
    fn start() -> Self {
        let (to, batches) = mpsc::channel::<T::Batch>();
        let (done, from) = mpsc::channel();
        std::thread::spawn(move || {
            for mut batch in batches {
                let begin = Instant::now();
                T::logic(&mut batch);
                let took = begin.elapsed();
                if done.send((batch, took)).is_err() {
                    break;
                }
            }
        });
        Logic { to, from }
    }

    /// Both stages of some messages; the time of the stages.
    fn run(&self, messages: u64) -> Duration {
        let mut batch = T::batch();
        let mut sum = Duration::ZERO;
        let batches = messages.div_ceil(BATCH as u64);
        for _ in 0..batches {
            let begin = Instant::now();
            T::receive(&mut batch);
            sum += begin.elapsed();
            self.to.send(batch).expect("the logic thread");
            let (back, took) = self.from.recv().expect("the logic thread");
            batch = back;
            sum += took;
        }
        // For the number asked for, not the number of whole batches.
        sum.mul_f64(messages as f64 / (batches * BATCH as u64) as f64)
    }
}

/// Result of one tracer: ns per mark, the fastest of several runs in turn with the others.
struct Line {
    name: &'static str,
    run: Box<dyn Fn(u64) -> Duration>,
    ns: Vec<f64>,
}

fn line<T: Tracer + 'static>(name: &'static str) -> Line {
    let logic = Logic::<T>::start();
    let run = move |messages| logic.run(messages);
    Line { name, run: Box::new(run), ns: Vec::new() }
}

fn main() {
    let folder = std::env::var("WHYLAG_TRACE_DIR")
        .unwrap_or_else(|_| format!("/dev/shm/whylag-bench-{}", std::process::id()));
    let folder = Path::new(&folder);
    whylag_message::start(folder);
    // In another folder: in one, the second writer of a process is refused.
    let c_folder = folder.join("c");
    WhylagC::start(&c_folder);
    fastrace_message::start();
    tracing_message::start();

    let mut lines = [
        line::<Clock>("the clock alone"),
        line::<Floor<false>>("floor: clock and stores"),
        line::<Floor<true>>("floor: and 8 buckets"),
        line::<Whylag>("whylag, Rust"),
        line::<WhylagC>("whylag, C"),
        line::<WhylagOff>("whylag, off"),
        line::<Fastrace>("fastrace, events"),
        line::<Tracing>("tracing + registry, events"),
        line::<OpenTelemetry>("opentelemetry_sdk, events"),
        line::<FastraceSpans>("fastrace, spans"),
        line::<TracingSpans>("tracing + registry, spans"),
        line::<OpenTelemetrySpans>("opentelemetry_sdk, spans"),
    ];
    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    for line in &lines {
        criterion.bench_function(&format!("message of 8 marks/{}", line.name), |bencher| {
            bencher.iter_custom(|messages| (line.run)(messages));
        });
    }

    // In turn, so that what else the machine does meets all of them.
    for _ in 0..15 {
        for line in &mut lines {
            let took = (line.run)(20_000);
            line.ns.push(took.as_nanos() as f64 / 20_000.0 / f64::from(MARKS));
        }
    }
    for line in &mut lines {
        line.ns.sort_by(f64::total_cmp);
    }
    let median = |line: &Line| line.ns[line.ns.len() / 2];
    let clock = median(&lines[0]);
    let (floors, whylag) = (&lines[1..3], &lines[3..5]);
    println!(
        "\nns per mark, 8 marks over 2 threads, median of 15 runs of 20,000 messages (lowest)"
    );
    for line in &lines {
        let allocated = allocated(line);
        println!(
            "{:26} {:7.1} ({:6.1})   over the clock {:7.1}   allocated {allocated:6.1} B/message",
            line.name,
            median(line),
            line.ns[0],
            median(line) - clock,
        );
    }
    for (how, peers) in [("events", &lines[6..9]), ("spans", &lines[9..])] {
        let best = peers.iter().map(median).fold(f64::INFINITY, f64::min);
        let [rust, c] = [0, 1].map(|of: usize| best / median(&whylag[of]));
        println!("best peer with {how} / whylag: {rust:.1} (Rust), {c:.1} (C)");
    }
    for floor in floors {
        let [rust, c] = [0, 1].map(|of: usize| median(&whylag[of]) - median(floor));
        println!("above the {}: {rust:.1} ns (Rust), {c:.1} ns (C) a mark", floor.name);
    }
    single_marks();
    let file = std::fs::metadata(whylag_message::path()).map_or(0, |file| file.len());
    println!("retained: {} KiB in the file, {} bytes per trace", file >> 10, size_of::<Trace>());
    WhylagC::stop();
    let _ = std::fs::remove_dir_all(folder);
}

/// Bytes per message, with those of the hand-off, which the clock alone shows too.
fn allocated(line: &Line) -> f64 {
    let messages = 128_000;
    BYTES.store(0, Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
    (line.run)(messages);
    COUNTS.store(false, Ordering::Relaxed);
    BYTES.load(Ordering::Relaxed) as f64 / messages as f64
}

/// One mark at a time, against one clock read at a time.
fn single_marks() {
    let flow = whylag_message::flow();
    let mut trace = Trace::new();
    let mut bare = Vec::with_capacity(1_000_000);
    let mut marked = Vec::with_capacity(1_000_000);
    for id in 0..1_000_000 {
        trace.begin(flow, id, 0);
        let begin = now();
        black_box(now());
        bare.push(now() - begin);
        let begin = now();
        trace.mark(black_box(Point::new(0)));
        marked.push(now() - begin);
    }
    for (name, mut times) in [("one clock read", bare), ("one mark", marked)] {
        times.sort_unstable();
        let at = |q: f64| times[(q * (times.len() - 1) as f64) as usize];
        println!(
            "{name}, with the clock read around it: p50 {} p99 {} p99.99 {} ns (n = {})",
            at(0.5),
            at(0.99),
            at(0.9999),
            times.len()
        );
    }
}
