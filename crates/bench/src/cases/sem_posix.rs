//! sem-posix: do processes that make and remove POSIX semaphores hinder each other? (story 4)

use model::units::percentage;
use model::{BenchStep, StoryShape};
use rustix::io::Errno;

use super::{Benchmark, Ladder, PROCESSES, operation, shape};

pub const CASE: Benchmark = Benchmark {
    id: "sem-posix",
    measures: "sem_init() and sem_destroy() of a semaphore in the worker's own memory",
    ladder: Ladder { workers: &[1, 2, 3, 4], shape: Some(judge), ..PROCESSES },
    prepare: operation!(init_and_destroy),
};

fn init_and_destroy() -> Result<(), Errno> {
    let mut semaphore = std::mem::MaybeUninit::<libc::sem_t>::uninit();
    // SAFETY: the place is valid for a semaphore, which is destroyed before it ends.
    let failed = unsafe {
        libc::sem_init(semaphore.as_mut_ptr(), 1, 1) != 0
            || libc::sem_destroy(semaphore.as_mut_ptr()) != 0
    };
    std::hint::black_box(&semaphore);
    if failed { Err(Errno::INVAL) } else { Ok(()) }
}

/// A semaphore that is only memory cannot make its users wait for each other in the kernel.
fn judge(steps: &[BenchStep]) -> StoryShape {
    let story = "in the reported case 8.3 s alone, 14.3, 16.5, 22.4 s for 2, 3, 4 processes";
    let seen = shape::slows_each_other(steps, 1.5, story);
    let sum = |of: fn(&BenchStep) -> u64| steps.iter().map(of).sum::<u64>() as f64;
    let kernel = sum(|step| step.system_ns) / sum(|step| step.user_ns + step.system_ns).max(1.0);
    if kernel >= 0.5 {
        return seen;
    }
    let text = format!(
        "sem_init() makes no system call on Linux (of its CPU time, {} is the kernel's): {}",
        percentage(kernel),
        seen.text
    );
    StoryShape { present: false, text }
}
