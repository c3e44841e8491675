//! plt-now: what the first call of a function of another library costs if it is bound. (story 1)

use super::{Benchmark, THREADS, plt_first};

pub const CASE: Benchmark = Benchmark {
    id: "plt-now",
    measures: "the first call through a PLT slot of a library just loaded with RTLD_NOW",
    ladder: THREADS,
    prepare: |request| plt_first::prepare(request, libc::RTLD_NOW),
};
