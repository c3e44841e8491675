//! After the set-up nothing is allocated.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::place;
use trace::{Point, Trace, now};

struct Counting;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: as the system's allocator, which does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get() + layout.size());
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

#[test]
fn none_after_the_set_up() {
    let place = place();
    let tracer = place.builder().build().unwrap();
    let flow = tracer.flow("order").infra(["a"]).build().unwrap();
    let fill = flow.publish("fill").unwrap();
    let mut thread = tracer.thread().unwrap();
    assert!(BYTES.get() > 0, "the set-up is counted");
    let before = BYTES.get();
    let mut trace = Trace::new();
    for id in 0..1000 {
        trace.begin(&flow, id, now() - 5000 * id);
        trace.mark(Point::new(0));
        let mut logic = thread.logic_start(&mut trace, None);
        (0..id % 20).for_each(|_| logic.published(fill));
        logic.end();
    }
    assert_eq!(BYTES.get() - before, 0);
}
