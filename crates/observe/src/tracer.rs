//! A recording with eBPF: what its programs sum and send, made into batches.

mod saving;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use inspect::patience;
use model::{Account, Batch, Fact, Outlier, OutlierKind, RecorderPart, StackSum};

use crate::bound::Bound;
use crate::bpf::thread_record;
use crate::call_windows::CallWindows;
use crate::capability::Recording;
use crate::code::slots_left;
use crate::cost::{self, CostSampler};
use crate::crowd::Crowd;
use crate::drain::Drain;
use crate::frequent::Frequencies;
use crate::histograms::Histograms;
use crate::inbox::{Inbox, Words};
use crate::names::Names;
use crate::probes::{Config, Probes, Stopped};
use crate::python::Python;
use crate::queues::{Pace, Queues};
use crate::requests::Requests;
use crate::sample_timers::Sampling;
use crate::squeezed::Squeezed;
use crate::stacks::Stacks;
use crate::standing::Standing;
use crate::sums::{self, Sums};
use crate::urgency::Urgency;
use crate::wakeup::End;
use crate::watch::{Detail, Found, Timers, Watch};
use crate::wire::{Loss, TargetKind};
use crate::{Error, convert, events, inbox, lock_owners, presence, privilege, requests};

/// Outliers handed over in one batch: converted they take about 5 MB.
const OUTLIERS_PER_BATCH: usize = 4_096;
/// Stacks handed over in one batch: 255 frames of 200 bytes at most, 50 MB.
const STACKS_PER_BATCH: usize = 1_000;
/// Sums by process and stack, some 100 bytes each.
const STACK_SUMS: usize = 65_536;
/// First calls of a batch after which the memory of their process is looked at.
const LOOKS_PER_BATCH: usize = 16;
/// A loss.
const UNANSWERED: &str = "questions to processes (that keep their readers waiting)";

/// A recording with eBPF: its programs, and what has been read of them.
pub struct Tracer {
    probes: Probes,
    drain: Drain,
    sampler: CostSampler,
    queues: Option<Queues>,
    call_windows: Option<CallWindows>,
    /// Of what may be given up where it is too frequent.
    frequencies: Option<Frequencies>,
    histograms: Histograms,
    requests: Requests,
    sums: Sums,
    names: Names,
    python: Python,
    stacks: Stacks,
    stack_sums: HashMap<StackKey, (u64, u64)>,
    crowd: Crowd,
    bound: Bound,
    losses: BTreeMap<Loss, u64>,
    /// What a CPU had too much of: when it was recorded no more, ns, and why.
    given_up: Vec<(RecorderPart, u64, String)>,
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

impl Tracer {
    /// Attaches what `recording` names to the target, which records from then on.
    pub fn start(
        watch: &Watch,
        found: &Found,
        is_inner: bool,
        recording: &Recording,
    ) -> Result<Tracer, Error> {
        let is_cheap = watch.detail == Detail::Cheap;
        let config = Config {
            target: found.clone(),
            in_pid_namespace: is_inner,
            follow: watch.follow,
            threshold_ns: watch.threshold_ns,
            slow_request_ns: requests::least_ns(watch.requests, watch.threshold_ns),
            every_first_call: false,
            late_only: watch.timers == Timers::LateOnly,
            no_stacks: watch.timers != Timers::Off,
            sampling: if is_cheap { Sampling::Cheap } else { Sampling::Usual },
        };
        let mut probes = Probes::start(&config, recording)?;
        let sampler = CostSampler::start(&probes, watch.budget_percent.is_some())?;
        let urgency = Urgency::begin();
        privilege::drop_unneeded(found.kind == TargetKind::Command);
        let drain = Drain::start(&mut probes)?;
        drop(urgency);
        let walks = probes.socket_walks()?;
        let pace = if is_cheap { Pace::CHEAP } else { Pace::USUAL };
        let queues = walks.map(|walks| Queues::start(walks, pace)).transpose()?;
        probes.roles_are_known();
        let names = Names::new(probes.kernel_symbols()?);
        let mut python = Python::default();
        // A command is looked at when it has begun to run its program.
        if found.tgid != 0 && found.kind != TargetKind::Command {
            python.met(found.tgid);
        }
        let are_sampled = probes.samples_calls() && !recording.has(RecorderPart::SystemCalls);
        let call_windows = are_sampled.then(CallWindows::new);
        let may_give_up = watch.detail == Detail::Affordable;
        let frequencies = may_give_up.then(|| Frequencies::new(probes.watching_since_ns()));
        Ok(Tracer {
            probes,
            call_windows,
            frequencies,
            given_up: Vec::new(),
            drain,
            sampler,
            queues,
            histograms: Histograms::default(),
            requests: Requests::new(watch.requests, watch.threshold_ns),
            sums: Sums::default(),
            names,
            python,
            stacks: Stacks::default(),
            stack_sums: HashMap::new(),
            crowd: Crowd::default(),
            bound: Bound::default(),
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

    /// When the accounts began.
    pub fn since_ns(&self) -> u64 {
        self.probes.watching_since_ns()
    }

    /// How much room the kernel side has, and how it reaches sockets.
    pub fn facts(&self) -> [Fact; 2] {
        [self.probes.sizes().fact(), self.probes.socket_walk().fact()]
    }

    /// Parts of the plan that the kernel does not have, and why.
    pub fn not_attached(&self) -> &[(RecorderPart, String)] {
        self.probes.not_attached()
    }

    /// Watches what is there and not watched yet: threads that found no room when they began, and what
    /// has been moved into the target, if that can be.
    pub fn take_new(&mut self, can_be_moved: bool) -> Result<(), Error> {
        if self.probes.has_missed_threads() || can_be_moved {
            self.probes.take_new()?;
        }
        Ok(())
    }

    /// See [`crate::Recorder::also_keep`].
    pub fn also_keep(&mut self, ns: u64) {
        self.lowered = true;
        self.probes.set_threshold(ns.min(self.threshold_ns));
    }

    /// True if so many outliers wait that they should be taken now.
    pub fn is_pressed(&self) -> bool {
        self.drain.is_pressed()
    }

    /// True if so much of the rest waits that a batch should be made now.
    pub fn is_crowded(&self) -> bool {
        self.drain.is_crowded()
    }

    /// Looks whether processes run an interpreter whose functions stacks can have.
    pub fn look_for_interpreters(&mut self) {
        self.python.look(self.drain.take_begun(), &mut self.probes);
    }

    /// Waits for what should be taken soon, for the next look at interpreters, for the begin or end of a
    /// window in which calls are sampled, or for `end`.
    pub fn wait(&mut self, end: &mut End, at_most: Duration) {
        let rests = [self.python.rest(), self.call_windows.as_ref().map(CallWindows::rest)];
        let at_most = rests.into_iter().flatten().fold(at_most, Duration::min);
        end.wait(Some(self.drain.bell()), at_most);
        if let Some(windows) = &mut self.call_windows {
            windows.step(&mut self.probes);
        }
    }

    /// No window lasts longer because a batch is made, or lies in two batches.
    fn end_call_window(&mut self) {
        if let Some(windows) = &mut self.call_windows {
            windows.end(&mut self.probes);
        }
    }

    /// Stops recording at the moment that it gives. What happened until then is in the next batch.
    pub fn stop(&mut self) -> Result<u64, Error> {
        self.end_call_window();
        let stopped = self.probes.stop()?;
        self.sampler.stop();
        self.queues.iter_mut().for_each(Queues::finish);
        self.drain.finish();
        Ok(self.stopped.insert(stopped).at_ns)
    }

    /// What happened since the last time; it is the last one if recording has stopped.
    pub fn batch(&mut self, since_ns: u64) -> Result<Batch, Error> {
        self.end_call_window();
        let mut inbox = self.drain.take(OUTLIERS_PER_BATCH);
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
        self.bound.look();
        for record in self.torn.drain(..).chain(inbox.dead_threads()) {
            let Some(thread) = convert::thread(&record, &evicted, until_ns) else {
                torn.push(record);
                continue;
            };
            self.bound.see(&record.cpus, &thread);
            batch.threads.push(thread);
            if let Some(calls) = evicted.get(&(record.tid, record.first_ns)) {
                sums::forget_calls(&self.probes, record.tid, record.first_ns, calls);
            }
        }
        let threads = if last { threads } else { self.probes.dump_threads(false)? };
        let recorded_ns = heartbeat_ns.saturating_sub(self.probes.watching_since_ns());
        let mut standing = Standing::default();
        for record in threads {
            if record.alive != 0 {
                self.crowd.met_alive(record.tgid);
            }
            match convert::thread(&record, &evicted, until_ns) {
                Some(thread) => {
                    self.bound.see(&record.cpus, &thread);
                    standing.meet(&record, &thread, recorded_ns);
                    batch.threads.push(thread);
                }
                None if last => torn.push(record),
                None => {} // it moved while it was read: the next dump has it
            }
        }
        if last {
            push_loss(&mut batch, "threads (accounts torn)", torn.len() as u64);
        } else {
            self.torn = torn;
        }
        if !last {
            batch.threads.iter().for_each(|thread| self.python.met(thread.tgid));
            self.look_for_interpreters();
        }
        batch.events = inbox.events.iter().filter_map(events::event).collect();
        self.names.mappings.begin_batch();
        self.stacks.begin_batch();
        self.names.mappings.follow(&inbox.events);
        for (tgid, seen) in inbox.early_mappings {
            self.names.mappings.replace(tgid, seen);
        }
        self.stacks.take_python(inbox.pythons, inbox.functions);
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
        if let Some(windows) = &mut self.call_windows {
            batch.seconds.extend(windows.take(since_ns));
            push_loss(
                &mut batch,
                "windows of system calls (the kernel refused)",
                windows.refused(),
            );
        }
        push_loss(
            &mut batch,
            "values (of processes that have just ended)",
            self.histograms.unknown(),
        );
        batch.sums.bound = self.bound.take();
        self.crowd.take(&mut batch);
        self.sums.read(&self.probes, &mut self.names, &mut self.crowd, &mut batch, last)?;
        if last {
            lock_owners::name(&mut batch.sums.waits, &batch.threads);
            let stacks = standing.find(&mut self.stacks, &mut self.names, &mut batch.sums);
            batch.stacks.extend(stacks);
        }
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
        self.names.mappings.make_room(|| self.stacks.processes());
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
    pub fn outliers(&mut self, heartbeat_ns: u64) -> Batch {
        let mut batch = Batch { heartbeat_ns, ..Batch::default() };
        let records = self.drain.take_outliers(OUTLIERS_PER_BATCH);
        self.convert_outliers(&records, &mut batch);
        batch
    }

    fn convert_outliers(&mut self, waited: &[Squeezed], batch: &mut Batch) {
        let mut grown = HashSet::new();
        let mut looks = 0;
        for record in waited.iter().filter_map(inbox::outlier) {
            let Some(mut outlier) = convert::outlier(&record) else { continue };
            outlier.user_stack =
                self.stacks.of_interval(outlier.tid, record.copy, outlier.user_stack);
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
        let begun = "early looks at mappings (too many programs begun)";
        push_loss(batch, begun, inbox.early_looks_dropped);
        let waiting = "early lists of mappings (recorder's queue full)";
        push_loss(batch, waiting, inbox.early_mappings_dropped);
        push_loss(batch, "looks for Python (too many programs begun)", inbox.begun_dropped);
        let stacks = self.stacks.dropped();
        push_loss(batch, "stacks (too many different ones)", stacks);
        let mappings = self.names.mappings.left_out();
        push_loss(batch, "lists of mappings (too many mappings)", mappings);
        push_loss(batch, UNANSWERED, patience::unanswered());
        let functions = self.stacks.functions_left_out();
        push_loss(batch, "Python functions (too many different ones)", functions);
        self.python.say(&self.probes, batch);
        Ok(())
    }

    /// Once recording has stopped: gives the outliers that did not fit into batches, then all stacks
    /// with their symbols. Returns how many names were left out.
    pub fn finish(&mut self, heartbeat_ns: u64, take: &mut impl FnMut(Batch)) -> u64 {
        loop {
            let batch = self.outliers(heartbeat_ns);
            if batch.outliers.is_empty() {
                break;
            }
            take(batch);
        }
        let mut stacks = self.stacks.symbolized(&mut self.names);
        loop {
            let some: Vec<_> = stacks.by_ref().take(STACKS_PER_BATCH).collect();
            if some.is_empty() {
                break;
            }
            take(Batch { heartbeat_ns, stacks: some, ..Batch::default() });
        }
        drop(stacks);
        let mut batch = Batch { heartbeat_ns, ..Batch::default() };
        let unnamed = self.stacks.unnamed_functions();
        push_loss(&mut batch, "names of Python functions (too many new ones)", unnamed);
        push_loss(&mut batch, UNANSWERED, patience::unanswered());
        push_loss(&mut batch, "names in stacks (reading took too long)", self.names.late());
        take(batch);
        self.names.unnamed()
    }
}

/// Notes that `count` of a kind were lost, if any were.
pub fn push_loss(batch: &mut Batch, kind: &str, count: u64) {
    if count > 0 {
        batch.losses.push((kind.to_owned(), batch.heartbeat_ns, count));
    }
}

fn stack_sum(key: StackKey, (count, ns): (u64, u64)) -> StackSum {
    StackSum { tgid: key.0, account: key.1, kernel: key.2, user: key.3, count, ns }
}
