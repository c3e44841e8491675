//! whylag: its Rust writer, the same when off, its C writer; and the clock alone.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::hint::black_box;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use trace::{Flow, Point, Publish, Thread, Trace, now};

use crate::{BATCH, Tracer};

static TRACER: OnceLock<(trace::Tracer, Flow, Publish)> = OnceLock::new();

/// Starts the tracer of the process.
pub fn start(folder: &Path) {
    let tracer = trace::Tracer::builder().folder(folder).build().expect("a tracer");
    let flow = tracer.flow("order").infra(["journalled", "replicated"]);
    let flow = flow.threshold(Duration::from_secs(1)).build().expect("a flow");
    let fill = flow.publish("fill").expect("a publish");
    assert!(TRACER.set((tracer, flow, fill)).is_ok(), "started twice");
}

/// The file of the Rust writer.
pub fn path() -> std::path::PathBuf {
    TRACER.get().expect("started").0.path().expect("on").to_owned()
}

/// The flow of the Rust writer.
pub fn flow() -> &'static Flow {
    &started().1
}

/// A publish of it.
pub fn fill() -> Publish {
    started().2
}

/// A thread of the Rust writer.
pub fn thread() -> Thread {
    started().0.thread().expect("a free entry")
}

fn started() -> &'static (trace::Tracer, Flow, Publish) {
    TRACER.get().expect("started")
}

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::new(thread());
    static OFF: RefCell<Thread> = RefCell::new(Thread::off());
}

fn receive(batch: &mut [Trace], flow: &Flow) {
    for (id, trace) in batch.iter_mut().enumerate() {
        trace.begin(flow, id as u64, now());
        trace.mark(Point::new(0));
        trace.mark(Point::new(1));
    }
}

fn logic(batch: &mut [Trace], thread: &mut Thread, fill: Publish) {
    for trace in batch {
        let mut logic = thread.logic_start(trace, Some(1));
        logic.published(fill);
        logic.published(fill);
        logic.published(fill);
        logic.end();
    }
}

pub struct Whylag;

impl Tracer for Whylag {
    type Batch = Vec<Trace>;

    fn batch() -> Vec<Trace> {
        (0..BATCH).map(|_| Trace::new()).collect()
    }

    fn receive(batch: &mut Vec<Trace>) {
        receive(batch, &started().1);
    }

    fn logic(batch: &mut Vec<Trace>) {
        THREAD.with_borrow_mut(|thread| logic(batch, thread, started().2));
    }
}

/// A flow of a tracer that is off; the receipt time is not read either.
pub struct WhylagOff;

impl Tracer for WhylagOff {
    type Batch = Vec<Trace>;

    fn batch() -> Vec<Trace> {
        (0..BATCH).map(|_| Trace::new()).collect()
    }

    fn receive(batch: &mut Vec<Trace>) {
        let flow = black_box(Flow::off());
        for (id, trace) in batch.iter_mut().enumerate() {
            trace.begin(&flow, id as u64, 0);
            trace.mark(Point::new(0));
            trace.mark(Point::new(1));
        }
    }

    fn logic(batch: &mut Vec<Trace>) {
        OFF.with_borrow_mut(|thread| logic(batch, thread, Publish::UNNAMED));
    }
}

/// The 8 clock reads of a message, and nothing else.
pub struct Clock;

impl Tracer for Clock {
    type Batch = ();

    fn batch() {}

    fn receive((): &mut ()) {
        (0..BATCH * 3).for_each(|_| _ = black_box(now()));
    }

    fn logic((): &mut ()) {
        (0..BATCH * 5).for_each(|_| _ = black_box(now()));
    }
}

unsafe extern "C" {
    fn message_c_start(folder: *const c_char, batch: usize) -> c_int;
    fn message_c_stop();
    fn message_c_receive(batch: usize);
    fn message_c_logic(batch: usize);
}

/// The C writer. A second tracer of the process: stop the Rust one first.
pub struct WhylagC;

impl WhylagC {
    pub fn start(folder: &Path) {
        let folder = CString::new(folder.as_os_str().as_encoded_bytes()).expect("a plain path");
        // SAFETY: a string, and no other call into this module yet.
        assert_eq!(unsafe { message_c_start(folder.as_ptr(), BATCH) }, 0);
    }

    pub fn stop() {
        // SAFETY: nothing is traced any more.
        unsafe { message_c_stop() };
    }
}

impl Tracer for WhylagC {
    type Batch = ();

    fn batch() {}

    fn receive((): &mut ()) {
        // SAFETY: the batch is with one stage at a time.
        unsafe { message_c_receive(BATCH) };
    }

    fn logic((): &mut ()) {
        // SAFETY: as above.
        unsafe { message_c_logic(BATCH) };
    }
}
