//! getppid: the way into the kernel and back.

use super::{Alone, Case};

pub const CASE: Case = Case {
    id: "getppid",
    measures: "a system call that does next to nothing",
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            Ok(Box::new(|| {
                std::hint::black_box(rustix::process::getppid());
                Ok(())
            }) as _)
        })))
    },
};
