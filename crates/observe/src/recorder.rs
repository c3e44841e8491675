//! A recording, from start to finish.

use std::collections::HashMap;
use std::mem;
use std::process::Child;
use std::time::{Duration, Instant};

use model::{Batch, Capability, CpuTime, Fact, Process, RunHeader};

use crate::capability::{self, HostFacts, Plan, Refusal};
use crate::counters::Counters;
use crate::launch::{self, Held};
use crate::sampled::Sampler;
use crate::tracer::{Tracer, push_loss};
use crate::wakeup::End;
use crate::watch::{Detail, Found, Watch};
use crate::wire::TargetKind;
use crate::{Error, call_windows, cost, host, namespace, privilege};

enum Backend {
    Traced(Box<Tracer>),
    Sampled(Sampler),
}

impl Backend {
    /// When the first accounts began.
    fn since_ns(&self) -> u64 {
        match self {
            Backend::Traced(tracer) => tracer.since_ns(),
            Backend::Sampled(sampler) => sampler.since_ns(),
        }
    }
}

/// The end of a recording.
struct Ended {
    at_ns: u64,
    /// What happened since the batch before.
    last: Batch,
}

/// A running recording.
pub struct Recorder {
    backend: Backend,
    child: Option<Child>,
    found: Found,
    is_inner: bool,
    header: RunHeader,
    facts: Vec<Fact>,
    capabilities: Vec<Capability>,
    cpus: Vec<CpuTime>,
    processes: HashMap<u32, Process>,
    counters: Counters,
    last_batch_ns: u64,
    /// Once recording has stopped.
    ended: Option<Ended>,
    /// The target has ended, as [`Recorder::ended`] said.
    has_ended: bool,
    end: End,
    attach_ns: u64,
}

impl Recorder {
    /// Attaches to the target (or starts it), and records from then on. `started` is when whylag
    /// itself was started, for the cost.
    pub fn start(watch: &Watch, started: Instant) -> Result<Recorder, Error> {
        let is_inner = namespace::is_inner()?;
        let mut plan = capability::decide(&HostFacts::of_this_host());
        if let Plan::Record(recording) = &mut plan {
            let unasked = watch.unasked();
            recording.probes.retain(|probe| !unasked.contains(&probe.part));
            if watch.detail == Detail::Cheap {
                *recording = mem::take(recording).cheap(call_windows::unfit_host());
            }
        }
        let facts = watch.target.facts();
        let (found, held) = Found::of(watch)?;
        // A thread's end, and that of a cgroup, is looked for.
        let end = End::of(match found.kind {
            TargetKind::Command | TargetKind::Process => Some(found.pid),
            _ => None,
        });
        let (backend, plan) = begin(watch, &found, is_inner, plan)?;
        let mut recorder = Recorder {
            header: watch.header(matches!(plan, Plan::Sample(_)), backend.since_ns()),
            backend,
            child: None,
            facts,
            capabilities: capability::describe(&plan, &watch.unasked()),
            cpus: host::cpu_times(),
            processes: HashMap::new(),
            counters: Counters::start(found.pid),
            found,
            is_inner,
            last_batch_ns: clock::monotonic_ns(),
            ended: None,
            has_ended: false,
            end,
            attach_ns: started.elapsed().as_nanos() as u64,
        };
        recorder.child = held.map(Held::release).transpose()?;
        recorder.facts.extend(watch.target.process_facts());
        if let Backend::Traced(tracer) = &recorder.backend {
            recorder.facts.extend(tracer.facts());
        }
        Ok(recorder)
    }

    /// What is known at the start.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// True in a PID namespace below the first: then nothing outside of it is watched.
    pub fn is_in_pid_namespace(&self) -> bool {
        self.is_inner
    }

    /// The parts that work and those that do not.
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// From now on also hands over intervals that are shorter than the threshold, if they are at
    /// least this long; the sums of the run stay those of longer ones. False if no intervals are
    /// recorded.
    pub fn also_keep(&mut self, ns: u64) -> bool {
        let Backend::Traced(tracer) = &mut self.backend else { return false };
        tracer.also_keep(ns);
        true
    }

    /// Process id of the command that was started.
    pub fn child_pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The command that was started, from now on in the care of the caller: [`Recorder::ended`] no
    /// longer reports its end.
    pub fn take_child(&mut self) -> Option<Child> {
        self.child.take()
    }

    /// `Some` once the target has ended: why, and the exit status of a command.
    pub fn ended(&mut self) -> Result<Option<(String, Option<i32>)>, Error> {
        let ended = if self.found.kind == TargetKind::Command {
            let Some(child) = self.child.as_mut() else { return Ok(None) };
            let status = child.try_wait().map_err(Error::io("waiting for the command"))?;
            let ended = |s| ("the command ended".to_owned(), Some(launch::shell_status(s)));
            status.map(ended)
        } else {
            self.found.ended().map(|reason| (reason, None))
        };
        self.has_ended = ended.is_some();
        Ok(ended)
    }

    /// Waits so long at most: until the target has ended, a signal has come, or something should be
    /// taken soon.
    pub fn wait(&mut self, at_most: Duration) {
        match &mut self.backend {
            Backend::Traced(tracer) => tracer.wait(&mut self.end, at_most),
            Backend::Sampled(_) => self.end.wait(None, at_most),
        }
    }

    /// Outliers ahead of the next batch, if so many are waiting that they should be stored now.
    pub fn early_outliers(&mut self) -> Option<Batch> {
        match &mut self.backend {
            Backend::Traced(tracer) if tracer.is_pressed() => {
                Some(tracer.outliers(self.last_batch_ns))
            }
            _ => None,
        }
    }

    /// Looks whether processes run an interpreter, so that stacks have its functions soon: to be
    /// called some ten times a second.
    pub fn look_for_interpreters(&mut self) {
        if let Backend::Traced(tracer) = &mut self.backend {
            tracer.look_for_interpreters();
        }
    }

    /// True if so much is waiting, in a storm of processes, that a batch should be made now.
    pub fn is_crowded(&self) -> bool {
        matches!(&self.backend, Backend::Traced(tracer) if tracer.is_crowded())
    }

    /// What happened since the last batch.
    pub fn batch(&mut self) -> Result<Batch, Error> {
        let mut batch = match &mut self.backend {
            Backend::Traced(tracer) => {
                // The kernel side sees forks and execs in a cgroup, not what is moved into it.
                tracer.take_new(self.found.cgroup.is_some())?;
                let batch = tracer.batch(self.last_batch_ns)?;
                let changed = match &batch.cost {
                    Some(cost) => tracer.save_cost(cost)?,
                    None => Vec::new(),
                };
                change(&mut self.capabilities, changed);
                batch
            }
            Backend::Sampled(sampler) => sampler.batch(clock::monotonic_ns()),
        };
        self.complete(&mut batch);
        Ok(batch)
    }

    /// Stops recording at this moment, which it gives, and reads all that has to be read while the
    /// target is there: it may be killed afterwards.
    pub fn stop(&mut self) -> Result<u64, Error> {
        if let Some(ended) = &self.ended {
            return Ok(ended.at_ns);
        }
        let (at_ns, mut last) = match &mut self.backend {
            Backend::Traced(tracer) => {
                let at_ns = tracer.stop()?;
                change(&mut self.capabilities, tracer.hardly_missed(at_ns));
                (at_ns, tracer.batch(self.last_batch_ns)?)
            }
            Backend::Sampled(sampler) => {
                let at_ns = sampler.stop();
                (at_ns, sampler.batch(at_ns))
            }
        };
        // A thread is a zombie before it leaves its CPU for the last time, which ends its account.
        for thread in last.threads.iter_mut().filter(|thread| self.has_ended && thread.alive) {
            thread.alive = !host::thread_has_ended(thread.tgid, thread.tid);
        }
        self.complete(&mut last);
        self.ended = Some(Ended { at_ns, last });
        Ok(at_ns)
    }

    /// Stops recording unless it has stopped, and gives the last batches to `take`, each as soon as it
    /// is there: one with what happened, then the outliers that did not fit, then all stacks with
    /// their symbols, which may take long.
    pub fn finish(mut self, mut take: impl FnMut(Batch)) -> Result<(), Error> {
        self.stop()?;
        let Some(Ended { last, .. }) = self.ended else { return Ok(()) };
        let heartbeat_ns = last.heartbeat_ns;
        let mut cost = last.cost.clone();
        take(last);
        let mut unnamed = 0;
        if let Backend::Traced(tracer) = &mut self.backend {
            unnamed = tracer.finish(heartbeat_ns, &mut take);
        }
        // The work of finishing counts, too.
        if let Some(cost) = &mut cost {
            cost.cpu_ns = clock::process_cpu_ns();
            cost.peak_rss_bytes = cost::peak_rss_bytes();
        }
        let mut batch = Batch { heartbeat_ns, cost, ..Batch::default() };
        push_loss(&mut batch, "names in stacks (too many and too long)", unnamed);
        take(batch);
        Ok(())
    }

    /// Adds what does not depend on the way of recording.
    fn complete(&mut self, batch: &mut Batch) {
        batch.facts.append(&mut self.facts);
        if batch.capabilities.is_empty() {
            batch.capabilities = self.capabilities.clone();
        }
        batch.sums.cpus = host::cpu_times_since(&mut self.cpus);
        let mut processes = host::processes(batch, &mut self.processes);
        batch.processes.append(&mut processes);
        let watched = self.processes.values().filter(|p| p.watched).map(|p| p.tgid);
        batch.sums.counters = self.counters.read(watched, &batch.threads);
        if let Some(cost) = batch.cost.as_mut() {
            cost.attach_ns = self.attach_ns;
        }
        self.last_batch_ns = batch.heartbeat_ns;
    }
}

/// Replaces what is known of parts that have changed.
fn change(capabilities: &mut Vec<Capability>, changed: Vec<Capability>) {
    capabilities.retain(|known| changed.iter().all(|new| new.part != known.part));
    capabilities.extend(changed);
}

/// Begins as planned; where the kernel refuses, with less. Gives the plan that worked.
fn begin(
    watch: &Watch,
    found: &Found,
    is_inner: bool,
    mut plan: Plan,
) -> Result<(Backend, Plan), Error> {
    while let Plan::Record(recording) = plan {
        match Tracer::start(watch, found, is_inner, &recording) {
            Ok(tracer) => {
                let lacking = tracer.not_attached().iter().cloned();
                let attached =
                    lacking.fold(recording, |less, (part, because)| less.without(part, because));
                return Ok((Backend::Traced(Box::new(tracer)), Plan::Record(attached)));
            }
            Err(Error::Refused(refusal)) => plan = capability::retreat(recording, &refusal),
            Err(error @ Error::Bpf { .. }) => {
                let refusal = Refusal { program: None, because: error.to_string() };
                plan = capability::retreat(recording, &refusal);
            }
            Err(error) => return Err(error),
        }
    }
    privilege::drop_unneeded(found.kind == TargetKind::Command);
    Ok((Backend::Sampled(Sampler::start(found, watch.follow)?), plan))
}
