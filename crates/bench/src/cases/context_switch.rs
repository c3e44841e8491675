//! context-switch: from one thread or process to another and back, on the same CPU.

use model::WorkerKind;
use rustix::thread::futex::Flags;

use super::{Alone, Benchmark, THREADS, futex_turns, ping_pong};
use crate::spin;

pub const CASE: Benchmark = Benchmark {
    id: "context-switch",
    measures: "two switches on one CPU: futex wake of a partner there, wait, and it does the same",
    ladder: THREADS,
    prepare: |request| {
        let kind = request.kind;
        let flags = match kind {
            WorkerKind::Threads => Flags::PRIVATE,
            WorkerKind::Processes => Flags::empty(),
        };
        Ok(Box::new(Alone(move |id| {
            // The partner inherits it.
            spin::bind_to(id);
            ping_pong::player(kind, futex_turns::ends(flags)?)
        })))
    },
};

#[cfg(test)]
mod tests {
    use crate::cases::Request;
    use crate::tidy::Traces;

    use super::*;

    fn switches() -> i64 {
        let usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: zero is a value of it, and the call fills it in.
        let usage = unsafe {
            let mut usage = usage.assume_init();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        usage.ru_nvcsw + usage.ru_nivcsw
    }

    #[test]
    fn each_operation_gives_the_cpu_away() {
        let traces = Traces::begin().unwrap();
        let kind = WorkerKind::Threads;
        let request = Request { workers: 1, kind, population: 0, traces: &traces };
        let prepared = (CASE.prepare)(&request).unwrap();
        let switched = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let mut work = prepared.worker(0).unwrap();
                work.operate().unwrap();
                let before = switches();
                (0..1000).for_each(|_| work.operate().unwrap());
                switches() - before
            });
            worker.join().unwrap()
        });
        assert!(switched >= 1000, "{switched} switches");
    }
}
