//! What a recording does about Python, besides its stacks.

use std::mem;
use std::time::{Duration, Instant};

use model::{Batch, Fact};

use super::Interpreters;
use crate::probes::Probes;
use crate::tracer::push_loss;

/// The interpreters of a recording.
#[derive(Default)]
pub struct Python {
    interpreters: Interpreters,
    /// Walks in a circle, as the kernel side had counted when it was last asked.
    circles: u64,
    /// Processes whose interpreter found no room there.
    left_out: u64,
}

impl Python {
    /// Has a process looked at that was there before, once.
    pub fn met(&mut self, tgid: u32) {
        self.interpreters.met(tgid);
    }

    /// Looks at processes, those that began to run a program among them, and tells the kernel side
    /// of those that have an interpreter.
    pub fn look(&mut self, begun: Vec<u32>, probes: &mut Probes) {
        for tgid in begun {
            self.interpreters.begun(tgid);
        }
        for (tgid, at) in self.interpreters.look() {
            self.left_out += u64::from(!probes.reads_python(tgid, &at));
        }
    }

    /// How long the next look may be put off.
    pub fn rest(&self) -> Option<Duration> {
        Some(self.interpreters.next()?.saturating_duration_since(Instant::now()))
    }

    /// What was not read since the last time.
    pub fn say(&mut self, probes: &Probes, batch: &mut Batch) {
        let circles = probes.python_circles();
        let seen = mem::replace(&mut self.circles, circles);
        push_loss(batch, "Python stacks (frames in a circle)", circles - seen);
        let processes = mem::take(&mut self.left_out);
        push_loss(batch, "functions of Python processes (too many processes)", processes);
        let not_looked_at = self.interpreters.lost();
        push_loss(batch, "looks for Python (too many processes)", not_looked_at);
        batch.facts.extend(self.interpreters.unknown().into_iter().map(|version| Fact {
            name: "python.not_read".to_owned(),
            value: format!("{version}: how it is laid out is not known; no functions in stacks"),
            source: "files with an interpreter".to_owned(),
        }));
    }
}
