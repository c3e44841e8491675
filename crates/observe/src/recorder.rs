//! A recording, from start to finish.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::process::Child;
use std::time::Instant;

use model::units::share;
use model::{
    Account, Batch, Capability, Cost, CpuTime, Fact, Outlier, OutlierKind, Process, RecorderPart,
    RunHeader, StackSum,
};

use crate::bpf::{outlier_record, thread_record};
use crate::capability::{self, HostFacts, Plan, Recording, Refusal};
use crate::code::slots_left;
use crate::cost::{self, CostSampler};
use crate::counters::Counters;
use crate::crowd::Crowd;
use crate::drain::{Drain, Inbox, Words};
use crate::histograms::Histograms;
use crate::kallsyms::TextRanges;
use crate::launch::{self, Held};
use crate::names::Names;
use crate::probes::{Config, Probes, Stopped};
use crate::queues::Queues;
use crate::requests::Requests;
use crate::sample_timers::{CHEAP_PERIOD_NS, PERIOD_NS};
use crate::sampled::Sampler;
use crate::stacks::Stacks;
use crate::sums::{self, Sums};
use crate::watch::{Found, Timers, Watch};
use crate::wire::{Loss, TargetKind};
use crate::{Error, convert, events, host, namespace, presence, privilege, requests};

/// Outliers handed over in one batch: converted they take about 20 MB.
const OUTLIERS_PER_BATCH: usize = 16_384;
/// Stacks handed over in one batch: 127 frames of 200 bytes at most, 50 MB.
const STACKS_PER_BATCH: usize = 2_000;
/// Sums by process and stack, some 100 bytes each.
const STACK_SUMS: usize = 65_536;
/// First calls of a batch after which the memory of their process is looked at.
const LOOKS_PER_BATCH: usize = 16;

enum Backend {
    Bpf(Box<Bpf>),
    Sampled(Sampler),
}

impl Backend {
    /// When the first accounts began.
    fn since_ns(&self) -> u64 {
        match self {
            Backend::Bpf(bpf) => bpf.probes.watching_since_ns(),
            Backend::Sampled(sampler) => sampler.since_ns(),
        }
    }
}

struct Bpf {
    probes: Probes,
    drain: Drain,
    sampler: CostSampler,
    queues: Option<Queues>,
    histograms: Histograms,
    requests: Requests,
    sums: Sums,
    names: Names,
    stacks: Stacks,
    stack_sums: HashMap<StackKey, (u64, u64)>,
    crowd: Crowd,
    losses: BTreeMap<Loss, u64>,
    /// As asked for at the start: shorter intervals, if they come, are in no sum.
    threshold_ns: u64,
    lowered: bool,
    budget_percent: Option<f64>,
    budget_seen: (u64, u64),
    torn: Vec<thread_record>,
    /// Copies of stacks that there was no time for.
    not_unwound: u64,
    stopped: Option<Stopped>,
    ring_bytes: u64,
    events: u64,
}

type StackKey = (u32, Account, Option<model::StackId>, Option<model::StackId>);

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
    attach_ns: u64,
}

/// Why a part is off that the user left out.
const LEFT_OUT: &str = "left out by --cheap";

impl Recorder {
    /// Attaches to the target (or starts it), and records from then on. `started` is when whylag
    /// itself was started, for the cost.
    pub fn start(watch: &Watch, started: Instant) -> Result<Recorder, Error> {
        let is_inner = namespace::is_inner()?;
        let mut plan = capability::decide(&HostFacts::of_this_host());
        if let Plan::Record(recording) = &mut plan {
            recording.probes.retain(|probe| !watch.unasked().contains(&probe.part));
            for part in Watch::LEFT_OUT_WHEN_CHEAP.into_iter().filter(|_| watch.cheap) {
                *recording = mem::take(recording).without(part, LEFT_OUT.to_owned());
            }
        }
        let facts = watch.target.facts();
        let (found, held) = Found::of(watch)?;
        let (backend, plan) = begin(watch, &found, is_inner, plan)?;
        let mut recorder = Recorder {
            header: watch.header(matches!(plan, Plan::Sample(_)), backend.since_ns()),
            backend,
            child: None,
            facts,
            capabilities: capability::describe(&plan, watch.unasked()),
            cpus: host::cpu_times(),
            processes: HashMap::new(),
            counters: Counters::start(found.pid),
            found,
            is_inner,
            last_batch_ns: clock::monotonic_ns(),
            ended: None,
            has_ended: false,
            attach_ns: started.elapsed().as_nanos() as u64,
        };
        recorder.child = held.map(Held::release).transpose()?;
        recorder.facts.extend(watch.target.process_facts());
        if let Backend::Bpf(bpf) = &recorder.backend {
            recorder.facts.push(bpf.probes.sizes().fact());
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
        let Backend::Bpf(bpf) = &mut self.backend else { return false };
        bpf.lowered = true;
        bpf.probes.set_threshold(ns.min(bpf.threshold_ns));
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

    /// Outliers ahead of the next batch, if so many are waiting that they should be stored now.
    pub fn early_outliers(&mut self) -> Option<Batch> {
        match &mut self.backend {
            Backend::Bpf(bpf) if bpf.drain.is_pressed() => Some(bpf.outliers(self.last_batch_ns)),
            _ => None,
        }
    }

    /// What happened since the last batch.
    pub fn batch(&mut self) -> Result<Batch, Error> {
        let mut batch = match &mut self.backend {
            Backend::Bpf(bpf) => {
                // The kernel side sees forks and execs in a cgroup, not what is moved into it.
                if self.found.cgroup.is_some() {
                    bpf.probes.take_new()?;
                }
                let inbox = bpf.drain.take(OUTLIERS_PER_BATCH);
                let mut batch = bpf.batch(inbox, self.last_batch_ns)?;
                batch.capabilities = bpf.keep_budget(batch.cost.as_ref(), &mut self.capabilities);
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
            Backend::Bpf(bpf) => {
                let at_ns = bpf.stop()?;
                let inbox = bpf.drain.take(OUTLIERS_PER_BATCH);
                (at_ns, bpf.batch(inbox, self.last_batch_ns)?)
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
        if let Backend::Bpf(bpf) = &mut self.backend {
            loop {
                let batch = bpf.outliers(heartbeat_ns);
                if batch.outliers.is_empty() {
                    break;
                }
                take(batch);
            }
            let mut stacks = bpf.stacks.symbolized(&mut bpf.names);
            loop {
                let some: Vec<_> = stacks.by_ref().take(STACKS_PER_BATCH).collect();
                if some.is_empty() {
                    break;
                }
                take(Batch { heartbeat_ns, stacks: some, ..Batch::default() });
            }
            drop(stacks);
            unnamed = bpf.names.unnamed();
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
        batch.facts = std::mem::take(&mut self.facts);
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

/// Begins as planned; where the kernel refuses, with less. Gives the plan that worked.
fn begin(
    watch: &Watch,
    found: &Found,
    is_inner: bool,
    mut plan: Plan,
) -> Result<(Backend, Plan), Error> {
    while let Plan::Record(recording) = plan {
        match record(watch, found, is_inner, &recording) {
            Ok(bpf) => {
                let lacking = bpf.probes.not_attached().iter().cloned();
                let attached =
                    lacking.fold(recording, |less, (part, because)| less.without(part, because));
                return Ok((Backend::Bpf(Box::new(bpf)), Plan::Record(attached)));
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

fn record(
    watch: &Watch,
    found: &Found,
    is_inner: bool,
    recording: &Recording,
) -> Result<Bpf, Error> {
    let config = Config {
        target: found.clone(),
        in_pid_namespace: is_inner,
        follow: watch.follow,
        threshold_ns: watch.threshold_ns,
        slow_request_ns: requests::least_ns(watch.requests, watch.threshold_ns),
        every_first_call: false,
        late_only: watch.timers == Timers::LateOnly,
        no_stacks: watch.timers != Timers::Off,
        sample_period_ns: if watch.cheap { CHEAP_PERIOD_NS } else { PERIOD_NS },
    };
    let mut probes = Probes::start(&config, recording, &TextRanges::of_this_kernel())?;
    let sampler = CostSampler::start(&probes, watch.budget_percent.is_some())?;
    privilege::drop_unneeded(found.kind == TargetKind::Command);
    let drain = Drain::start(&probes)?;
    let is_alone = found.tgid != 0 && !watch.follow;
    let walks = probes.socket_walks(is_alone.then_some(found.tgid))?;
    let queues = walks.map(Queues::start).transpose()?;
    probes.roles_are_known();
    Ok(Bpf {
        probes,
        drain,
        sampler,
        queues,
        histograms: Histograms::default(),
        requests: Requests::new(watch.requests, watch.threshold_ns),
        sums: Sums::default(),
        names: Names::default(),
        stacks: Stacks::default(),
        stack_sums: HashMap::new(),
        crowd: Crowd::default(),
        losses: BTreeMap::new(),
        threshold_ns: watch.threshold_ns,
        lowered: false,
        budget_percent: watch.budget_percent,
        budget_seen: (0, 0),
        torn: Vec::new(),
        not_unwound: 0,
        stopped: None,
        ring_bytes: 0,
        events: 0,
    })
}

impl Bpf {
    fn stop(&mut self) -> Result<u64, Error> {
        let stopped = self.probes.stop()?;
        self.sampler.stop();
        self.queues.iter_mut().for_each(Queues::finish);
        self.drain.finish();
        Ok(self.stopped.insert(stopped).at_ns)
    }

    /// What happened since the last time; it is the last one if recording has stopped.
    fn batch(&mut self, inbox: Inbox, since_ns: u64) -> Result<Batch, Error> {
        let last = self.stopped.is_some();
        let (until_ns, threads) = match self.stopped.take() {
            Some(stopped) => (stopped.at_ns, stopped.threads),
            None => (u64::MAX, Vec::new()),
        };
        let heartbeat_ns = clock::monotonic_ns().min(until_ns);
        let mut batch = Batch { heartbeat_ns, ..Batch::default() };
        self.ring_bytes += inbox.bytes;
        self.events += inbox.records;
        self.count_losses(&inbox, &mut batch)?;
        if !last && self.probes.follow_cpus().is_err() {
            push_loss(&mut batch, "looks at CPUs that came online (no timer)", 1);
        }
        // Dead threads are converted with the sums read after they died, so those are complete.
        // What does not add up all the same is tried again with the next sums.
        let evicted = sums::evicted_calls(&self.probes)?;
        let mut torn = Vec::new();
        for record in self.torn.drain(..).chain(inbox.dead_threads) {
            let Some(thread) = convert::thread(&record, &evicted, until_ns) else {
                torn.push(record);
                continue;
            };
            batch.threads.push(thread);
            if let Some(calls) = evicted.get(&(record.tid, record.first_ns)) {
                sums::forget_calls(&self.probes, record.tid, record.first_ns, calls);
            }
        }
        let threads = if last { threads } else { self.probes.dump_threads(false)? };
        for record in threads {
            match convert::thread(&record, &evicted, until_ns) {
                Some(thread) => batch.threads.push(thread),
                None if last => torn.push(record),
                None => {} // it moved while it was read: the next dump has it
            }
        }
        if last {
            push_loss(&mut batch, "threads (accounts torn)", torn.len() as u64);
        } else {
            self.torn = torn;
        }
        batch.events = inbox.events.iter().filter_map(events::event).collect();
        self.names.mappings.begin_batch();
        self.names.mappings.follow(&inbox.events);
        for (tgid, seen) in inbox.early_mappings {
            self.names.mappings.replace(tgid, seen);
        }
        batch.stacks = self.stacks.take(&mut self.names, inbox.stacks, &inbox.mappings);
        let (copies, first_calls) = inbox.words.into_iter().partition(|words| words.walked != 0);
        batch.stacks.extend(self.stacks.take_words(&mut self.names, first_calls));
        self.unwind(copies, &mut batch);
        if !last {
            self.probes.end_answers(requests::IDLE_NS)?;
        }
        let (seconds, of_requests) =
            self.histograms.read(&mut self.probes, &mut self.names, since_ns)?;
        batch.seconds = seconds;
        push_loss(
            &mut batch,
            "values (of processes that have just ended)",
            self.histograms.unknown(),
        );
        self.crowd.take(&mut batch);
        self.sums.read(&self.probes, &mut self.names, &mut self.crowd, &mut batch)?;
        batch.sums.services = self.requests.read(
            &mut self.probes,
            &inbox.requests,
            of_requests,
            &mut batch.messages,
        )?;
        batch.sockets =
            self.queues.as_ref().map(|queues| queues.take(since_ns)).unwrap_or_default();
        let left_out = self.queues.as_ref().map_or(0, Queues::left_out);
        push_loss(&mut batch, "sockets (too many in a second)", left_out);
        let (presences, left_out) = presence::take(&self.probes, batch.heartbeat_ns, last)?;
        batch.presences = presences;
        push_loss(&mut batch, "presence of programs (too many in a second)", left_out);
        self.convert_outliers(&inbox.outliers, &mut batch);
        let mut cost = self.sampler.cost(&self.probes)?;
        cost.events = self.events;
        cost.ring_bytes = self.ring_bytes;
        (cost.stack_copies, cost.stacks_not_copied) = self.probes.stack_copies();
        cost.stacks_not_copied += self.not_unwound;
        batch.cost = Some(cost);
        Ok(batch)
    }

    /// Finds who called by copies of stacks, and has no more made where that gives nothing.
    fn unwind(&mut self, copies: Vec<Words>, batch: &mut Batch) {
        let unwinding = self.stacks.unwind(&mut self.names, copies);
        batch.stacks.extend(unwinding.stacks);
        self.probes.needs_no_copies(&unwinding.needless);
        self.not_unwound += unwinding.left_out;
    }

    /// A batch of nothing but outliers; what else is known is complete up to `heartbeat_ns`.
    fn outliers(&mut self, heartbeat_ns: u64) -> Batch {
        let mut batch = Batch { heartbeat_ns, ..Batch::default() };
        let records = self.drain.take_outliers(OUTLIERS_PER_BATCH);
        self.convert_outliers(&records, &mut batch);
        batch
    }

    fn convert_outliers(&mut self, records: &[outlier_record], batch: &mut Batch) {
        let mut grown = HashSet::new();
        let mut looks = 0;
        for record in records {
            let Some(mut outlier) = convert::outlier(record) else { continue };
            outlier.user_stack = self.stacks.of_copy(record.copy).or(outlier.user_stack);
            let is_first_call = outlier.kind == OutlierKind::FirstCall;
            if is_first_call && self.stacks.is_no_first_call(outlier.user_stack) {
                continue;
            }
            if let Some(first_call) = &mut outlier.first_call
                && let Some(caller) = self.stacks.caller(outlier.user_stack)
                && looks < LOOKS_PER_BATCH
            {
                looks += 1;
                first_call.left = slots_left(outlier.tgid, caller);
            }
            let is_asked = !self.lowered || outlier.duration_ns >= self.threshold_ns;
            if is_asked && matches!(outlier.kind, OutlierKind::OffCpu | OutlierKind::RunQueue) {
                for (account, ns) in outlier.breakdown.iter() {
                    let key = self.stack_key(&outlier, account);
                    let sum = self.stack_sums.entry(key).or_default();
                    *sum = (sum.0 + 1, sum.1 + ns);
                    grown.insert(key);
                }
            }
            batch.outliers.push(outlier);
        }
        let sums = grown.into_iter().map(|key| stack_sum(key, self.stack_sums[&key]));
        batch.sums.stack_sums.extend(sums);
    }

    /// Of very many processes those with a new stack go to the group of their name.
    fn stack_key(&mut self, outlier: &Outlier, account: Account) -> StackKey {
        let key = (outlier.tgid, account, outlier.kernel_stack, outlier.user_stack);
        if self.stack_sums.len() < STACK_SUMS || self.stack_sums.contains_key(&key) {
            return key;
        }
        (self.crowd.group(&outlier.comm), account, outlier.kernel_stack, None)
    }

    fn count_losses(&mut self, inbox: &Inbox, batch: &mut Batch) -> Result<(), Error> {
        let in_kernel = cost::losses(&self.probes)?;
        for (loss, total) in Loss::ALL.into_iter().zip(in_kernel) {
            let seen = self.losses.insert(loss, total).unwrap_or(0);
            push_loss(batch, loss.text(), total.saturating_sub(seen));
        }
        push_loss(batch, "outliers (recorder's queue full)", inbox.outliers_dropped);
        push_loss(batch, "rare records (recorder's queue full)", inbox.rare_dropped);
        push_loss(batch, "records not understood", inbox.malformed);
        let stacks = self.stacks.dropped();
        push_loss(batch, "stacks (too many different ones)", stacks);
        let mappings = self.names.mappings.left_out();
        push_loss(batch, "lists of mappings (too many mappings)", mappings);
        Ok(())
    }

    /// Sheds the most expensive part if recording costs more than its budget, and reports that.
    fn keep_budget(
        &mut self,
        cost: Option<&Cost>,
        capabilities: &mut Vec<Capability>,
    ) -> Vec<Capability> {
        let (Some(budget), Some(cost)) = (self.budget_percent, cost) else { return Vec::new() };
        let now = clock::monotonic_ns();
        let spent = cost.cpu_ns + cost.bpf_ns;
        let (since, before) = std::mem::replace(&mut self.budget_seen, (now, spent));
        if since == 0 || now <= since {
            return Vec::new();
        }
        let available = (now - since) as f64 * host::cpu_count() as f64;
        let percent = 100.0 * spent.saturating_sub(before) as f64 / available;
        if percent <= budget {
            return Vec::new();
        }
        let attached: Vec<RecorderPart> = self.probes.attached().collect();
        let Some(part) = cost::most_expensive(cost, &attached) else { return Vec::new() };
        self.probes.shed(part);
        let shed = Capability {
            part,
            on: false,
            because: format!(
                "shed: recording took {} of the CPUs, the budget is {budget} %",
                share(percent / 100.0)
            ),
        };
        capabilities.retain(|capability| capability.part != shed.part);
        capabilities.push(shed);
        capabilities.clone()
    }
}

fn push_loss(batch: &mut Batch, kind: &str, count: u64) {
    if count > 0 {
        batch.losses.push((kind.to_owned(), batch.heartbeat_ns, count));
    }
}

fn stack_sum(key: StackKey, (count, ns): (u64, u64)) -> StackSum {
    StackSum { tgid: key.0, account: key.1, kernel: key.2, user: key.3, count, ns }
}
