//! memory-latency: what a processor waits for memory that no cache holds.

use std::hint::black_box;
use std::sync::Arc;

use super::{Alone, Benchmark, THREADS};

/// Cells of a cache line each: 32 MB, which all workers read.
const CELLS: usize = 1 << 19;
/// Loads of an operation.
const LOADS: u32 = 16;

#[repr(align(64))]
struct Cell {
    next: u32,
}

pub const CASE: Benchmark = Benchmark {
    id: "memory-latency",
    measures: "16 loads from 32 MB of memory, each from where the one before says",
    ladder: THREADS,
    prepare: |_| {
        let cells: Arc<[Cell]> = one_cycle().into();
        Ok(Box::new(Alone(move |id| {
            let cells = Arc::clone(&cells);
            let mut at = (id * CELLS / 7 % CELLS) as u32;
            Ok(Box::new(move || {
                for _ in 0..LOADS {
                    at = cells[at as usize].next;
                }
                black_box(at);
                Ok(())
            }) as _)
        })))
    },
};

/// A random order in which every cell is met before the first one comes again (Sattolo's shuffle).
fn one_cycle() -> Vec<Cell> {
    let mut cells: Vec<Cell> = (0..CELLS as u32).map(|next| Cell { next }).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for last in (1..CELLS).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        cells.swap(last, (random % last as u64) as usize);
    }
    cells
}
