//! mmap-file: a cached file is mapped at once, by threads of one address space (story 2).

use model::{BenchStep, StoryShape};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{Case, Ladder, THREADS, folder};

/// Size of the story's file, bytes.
pub const BYTES: usize = 1_265_444;

/// The story's ladder.
pub const THREADS_TO_16: &[u32] = &[1, 2, 4, 8, 16];

pub const CASE: Case = Case {
    id: "mmap-file",
    measures: "mmap(1265444 bytes, MAP_POPULATE) and munmap() of a cached file of the worker's own",
    ladder: Ladder { workers: THREADS_TO_16, shape: Some(shape), ..THREADS },
    prepare: |request| {
        folder::each(request, |own| {
            let file = own.file("file", BYTES)?;
            let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
            Ok(move || {
                // SAFETY: a new mapping, to which nothing refers, is unmapped.
                unsafe {
                    let start =
                        mmap(std::ptr::null_mut(), BYTES, ProtFlags::READ, flags, &file, 0)?;
                    munmap(start, BYTES)
                }
            })
        })
    },
};

/// A call that takes so many times as long as sharing the CPUs explains waits for something else.
const BEYOND_SHARING: f64 = 1.5;
/// Part of the CPUs that workers use at most if they wait: all of them would run if they could.
const USED: f64 = 0.8;

/// The story's shape: with many threads a call takes longer than their sharing of the CPUs
/// explains (16 threads on 2 CPUs: 8 times as long as one alone), and yet they leave CPUs idle. Means,
/// not medians: most calls find the lock free, a few wait for all the others.
fn shape(steps: &[BenchStep]) -> StoryShape {
    let few = steps.iter().min_by_key(|step| step.workers);
    let many = steps.iter().max_by_key(|step| step.workers);
    let (Some((few, few_ns)), Some((many, many_ns))) = (with_mean(few), with_mean(many)) else {
        return StoryShape { present: false, text: "nothing was measured".to_owned() };
    };
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
    let sharing = |step: &BenchStep| (f64::from(step.workers) / cpus).max(1.0);
    let beyond = many_ns / few_ns / (sharing(many) / sharing(few));
    let usable_ns = many.wall_ns as f64 * f64::from(many.workers).min(cpus);
    let used = (many.user_ns + many.system_ns) as f64 / usable_ns;
    let text = format!(
        "mean of a call {:.0} us with {}, {:.0} us with {}: {beyond:.1} times what sharing {cpus} \
         CPUs explains, while they use {:.0} % of the CPUs; in the story 9 to 20 ms with 16 \
         threads on half-idle cores",
        few_ns / 1e3,
        few.kind.count_in_words(few.workers),
        many_ns / 1e3,
        many.kind.count_in_words(many.workers),
        used * 100.0,
    );
    StoryShape { present: beyond >= BEYOND_SHARING && used <= USED, text }
}

fn with_mean(step: Option<&BenchStep>) -> Option<(&BenchStep, f64)> {
    step.and_then(|step| Some((step, step.single.mean()?)))
}
