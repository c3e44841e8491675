//! membarrier: interrupts every other CPU on which a thread of the process runs.

use rustix::thread::{MembarrierCommand, membarrier};

use super::{Alone, Benchmark, THREADS};
use crate::Error;

pub const CASE: Benchmark = Benchmark {
    id: "membarrier",
    measures: "membarrier(PRIVATE_EXPEDITED): interrupts the CPUs that run the other threads",
    ladder: THREADS,
    prepare: |_| {
        Ok(Box::new(Alone(|_| {
            membarrier(MembarrierCommand::RegisterPrivateExpedited).map_err(|why| {
                Error::Refused(format!("this kernel has no such membarrier(): {why}"))
            })?;
            Ok(Box::new(|| membarrier(MembarrierCommand::PrivateExpedited)) as _)
        })))
    },
};
