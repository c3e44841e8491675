//! A run with the sums that several causes need.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use model::{
    Account, Accounts, BoundThreads, Capability, ChainEnd, Histogram, Metric, OtherThreads,
    Outlier, RecorderPart, Run, RunnerSum, Scope, Space, ThreadAccounts, WaitSum,
};

use crate::case::answers::{Answers, answers};
use crate::case::children::of_children;
use crate::case::functions::Functions;
use crate::case::lock_word::LockWord;
use crate::case::lost::{Class, FILE_LOCK, class, file_locks_for_work, lock_words};
use crate::case::lost_part::{in_answers, lost_part};
use crate::case::purposes::Purposes;
use crate::case::safepoints;
use crate::case::scales::Scales;
use crate::case::slowest::{Slowest, slowest};
use crate::case::stops::{STOPPED, Stops};
use crate::case::wait_chains::WaitChains;
use crate::cause::{Cause, Needs};
use crate::part::run::PartialRun;
use crate::text::{counted, duration};
use crate::timers::source::TimerSource;

/// One run under examination.
pub struct Case<'a> {
    /// All that is known.
    pub run: &'a Run,
    /// Wall time of all watched threads.
    pub wall_ns: u64,
    /// All of it by account; what no account covers is `Account::Unaccounted`.
    pub accounts: Accounts,
    /// The lost part of each account.
    pub lost: Accounts,
    /// Waiting for work.
    pub idle_ns: u64,
    /// Futex words and pipes that are locks, the longest first.
    pub locks: Vec<LockWord>,
    /// Waits for answers of local threads, the longest first.
    pub answers: Vec<Answers>,
    /// Stops, and which of them interrupted waits for work.
    pub(crate) stops: Stops,
    processes: BTreeMap<u32, Accounts>,
    pub(crate) scales: Scales,
    pub(crate) functions: OnceCell<Functions>,
    slowest: OnceCell<Vec<Slowest>>,
    pub(crate) wait_chains: WaitChains<'a>,
    part: Option<&'a PartialRun<'a>>,
    /// The ticks under examination, if it is a run of timers.
    pub(crate) timers: Option<&'a TimerSource<'a>>,
    /// The catalogue, for causes that ask what was behind a stall.
    pub(crate) causes: &'static [&'static Cause],
}

/// Sums over waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// Time asleep in them.
    pub ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// What the CPUs of the host, or some of them, did over the run.
#[derive(Clone, Copy, Debug)]
pub struct Cpus {
    /// How many.
    pub number: u64,
    /// Idle, all together.
    pub idle_ns: u64,
    /// Stolen by the hypervisor, all together.
    pub stolen_ns: u64,
    /// Idle, busy and stolen.
    pub total_ns: u64,
}

impl<'a> Case<'a> {
    /// Sums up `run`.
    pub fn new(run: &'a Run) -> Self {
        Case::within(run, run)
    }

    /// Sums up `run`, which is a part of `whole`, or all of it.
    fn within(run: &'a Run, whole: &Run) -> Self {
        let mut processes = BTreeMap::<u32, Accounts>::new();
        for thread in &run.threads {
            processes.entry(thread.tgid).or_default().merge(&thread.accounts);
        }
        for others in &run.sums.others {
            processes.entry(others.tgid).or_default().merge(&others.accounts);
        }
        let mut accounts = run.accounts();
        accounts.add(Account::Unaccounted, run.wall_ns().saturating_sub(accounts.total()));
        let purposes = Purposes::of(run);
        let locks = lock_words(run, &purposes);
        let stops = Stops::new(run, whole, &locks);
        let mut answers = answers(run, &locks, &purposes);
        answers.extend(of_children(run, &locks));
        answers.sort_by_key(|sum| Reverse(sum.lost_ns()));
        let safepoints = safepoints::by_process(run);
        let for_work = file_locks_for_work(run);
        let mut lost = lost_part(&processes, &locks, &stops, &safepoints, &for_work);
        for (account, ns) in in_answers(&processes, &answers).iter() {
            let rest = accounts.get(account).saturating_sub(lost.get(account));
            lost.add(account, ns.min(rest));
        }
        let idle_ns = accounts
            .sum_of(|account| class(account) == Class::Idle)
            .saturating_sub(lost.sum_of(|account| class(account) == Class::Idle))
            .saturating_add(accounts.get(STOPPED).saturating_sub(lost.get(STOPPED)))
            .saturating_add(accounts.get(FILE_LOCK).saturating_sub(lost.get(FILE_LOCK)));
        let wall_ns = accounts.total();
        let scales = Scales::new(run, &processes);
        let wait_chains = WaitChains::new(run);
        Case {
            run,
            wall_ns,
            accounts,
            lost,
            idle_ns,
            locks,
            answers,
            stops,
            processes,
            scales,
            functions: OnceCell::new(),
            slowest: OnceCell::new(),
            wait_chains,
            part: None,
            timers: None,
            causes: &[],
        }
    }

    /// Sums up a part of a run. WaitChains may lead to threads that are not in it.
    pub fn of_part(partial: &'a PartialRun<'a>) -> Self {
        let wait_chains = WaitChains::new(partial.whole);
        Case { wait_chains, part: Some(partial), ..Case::within(&partial.run, partial.whole) }
    }

    /// The ticks of one source, which were measured in `run`.
    pub fn of_timers(run: &'a Run, source: &'a TimerSource<'a>) -> Self {
        Case { timers: Some(source), ..Case::new(run) }
    }

    /// With the catalogue at hand.
    pub fn asking(self, causes: &'static [&'static Cause]) -> Self {
        Case { causes, ..self }
    }

    /// The run that `run` is a part of; `run` itself if all of it is examined.
    pub fn whole(&self) -> &'a Run {
        self.part.map_or(self.run, |partial| partial.whole)
    }

    /// The part of a run that is examined; `None` if it is all of it.
    pub fn scope(&self) -> Option<&'a Scope> {
        self.part.map(|partial| &partial.scope)
    }

    /// Wall time in which the threads worked or wanted to: all but idle and unaccounted.
    pub fn active_ns(&self) -> u64 {
        self.wall_ns
            .saturating_sub(self.idle_ns)
            .saturating_sub(self.accounts.get(Account::Unaccounted))
    }

    /// The slowest requests of each port, with what their threads did.
    pub(crate) fn slowest(&self) -> &[Slowest] {
        self.slowest.get_or_init(|| slowest(self.run))
    }

    /// Those of the parts of the recorder that are needed and were off.
    pub fn off(&self, needs: Needs) -> Vec<&'a Capability> {
        let needed = |c: &&Capability| !c.on && needs.parts.contains(&c.part);
        self.run.capabilities.iter().filter(needed).collect()
    }

    /// How far a sum of who ran in waits for a CPU may be off; nothing where all of them were looked at,
    /// as in a part of a run, which has those that were kept whole.
    pub fn error_of_runners(&self, ns: u64) -> String {
        if self.part.is_some() || self.off(Needs::parts(&[RecorderPart::SystemCalls])).is_empty() {
            return String::new();
        }
        format!(" (±{}, sampled)", duration(RunnerSum::error_if_sampled_ns(ns)))
    }

    /// Why what rests on `needs` could not be seen in this run, the first reason; `None` if it could.
    pub fn not_looked_at(&self, needs: Needs) -> Option<String> {
        if let Some(off) = self.off(needs).first() {
            return Some(format!("part '{}' was off ({})", off.part, off.because));
        }
        if let Some(why) = self.nameless_kernel().filter(|_| needs.kernel_symbols) {
            return Some(format!("the kernel's functions have no names in this run ({why})"));
        }
        let uncounted = self.run.losses.values();
        (needs.histograms && uncounted > 0)
            .then(|| format!("{} found no histogram", counted(uncounted, "value")))
    }

    /// Why no function of the kernel has a name in this run, if there are any and none has.
    fn nameless_kernel(&self) -> Option<&'a str> {
        let stacks = self.whole().stacks.values().filter(|stack| stack.space == Space::Kernel);
        let mut why = None;
        for frame in stacks.flat_map(|stack| &stack.frames) {
            if frame.symbol.is_some() {
                return None;
            }
            why = why.or(frame.unknown_because.as_deref()).or(Some("they were not to be read"));
        }
        why
    }

    /// Accounts of each watched process.
    pub fn processes(&self) -> impl Iterator<Item = (u32, &Accounts)> {
        self.processes.iter().map(|(tgid, accounts)| (*tgid, accounts))
    }

    /// Accounts of one watched process.
    pub fn process(&self, tgid: u32) -> Option<&Accounts> {
        self.processes.get(&tgid)
    }

    /// What claims may take: all lost time, and work that a cause proves to be avoidable.
    pub fn claimable(&self) -> Accounts {
        let claimable = |(account, ns)| match class(account) {
            Class::Lost | Class::Work => (account, ns),
            Class::Idle | Class::Unknown => (account, self.lost.get(account)),
        };
        self.accounts.iter().map(claimable).collect()
    }

    /// What `claim` takes of what waits behind such threads, as intervals kept whole show it; where
    /// the sums of all waits show more, that.
    pub fn behind_at_least(&self, kept: &Accounts, end: ChainEnd) -> Accounts {
        let mut behind = self.behind(|other| other == end);
        for (account, ns) in kept.iter() {
            behind.add(account, ns.saturating_sub(behind.get(account)));
        }
        behind
    }

    /// Of the time that threads waited for locks and answers, the part in which the one that they
    /// waited for, or the one that that one waited for, could not go on for such a reason.
    pub fn behind(&self, which: impl Fn(ChainEnd) -> bool + Copy) -> Accounts {
        let locks = self.locks.iter().map(|w| (w.account, w.ends.part_of(w.lost_ns(), which)));
        let answers = self
            .answers
            .iter()
            .map(|a| (a.account, a.ends.part_of(a.ns, |end| a.is_lost(end) && which(end))));
        let behind: Accounts = locks.chain(answers).collect();
        behind.iter().map(|(account, ns)| (account, ns.min(self.lost.get(account)))).collect()
    }

    /// Waiting for work, by account: what a cause may take that proves it was none.
    pub fn idle(&self) -> Accounts {
        let idle = self.accounts.iter().filter(|(a, _)| class(*a) == Class::Idle);
        idle.map(|(account, ns)| (account, ns.saturating_sub(self.lost.get(account)))).collect()
    }

    /// The process with the most time in the accounts that `which` accepts, if any has some.
    pub fn main_process(&self, which: impl Fn(Account) -> bool) -> Option<u32> {
        self.processes()
            .map(|(tgid, accounts)| (accounts.sum_of(&which), tgid))
            .filter(|(ns, _)| *ns > 0)
            .max()
            .map(|(_, tgid)| tgid)
    }

    /// The process with the most watched threads, and how many.
    pub fn largest_process(&self) -> (u32, u64) {
        let mut threads = BTreeMap::<u32, u64>::new();
        for thread in &self.run.threads {
            *threads.entry(thread.tgid).or_default() += 1;
        }
        for others in self.run.sums.others.iter().filter(|o| !OtherThreads::is_group(o.tgid)) {
            let number = threads.entry(others.tgid).or_default();
            *number = number.saturating_add(others.threads);
        }
        threads.into_iter().max_by_key(|(_, count)| *count).unwrap_or_default()
    }

    /// `name (pid 123)`, or `name (5 processes)`.
    pub fn process_name(&self, tgid: u32) -> String {
        self.run.process_name(tgid, self.run.comm(tgid))
    }

    /// The process of which `thread` was seen on a CPU: by its own name where that is known, watched
    /// or not.
    pub fn runner_name(&self, tgid: u32, thread: &str) -> String {
        match self.process_comm(tgid) {
            Some(name) => self.whole().process_name(tgid, name),
            None => format!("{thread} (a thread of pid {tgid})"),
        }
    }

    /// The name of a process, recorded or seen beside.
    pub fn process_comm(&self, tgid: u32) -> Option<&'a str> {
        let whole = self.whole();
        let process = whole.processes.iter().find(|process| process.tgid == tgid);
        let present = || whole.presences.iter().find(|one| one.tgid == tgid);
        process.map(|p| p.comm.as_str()).or_else(|| present().map(|one| one.comm.as_str()))
    }

    /// Watched threads with time in the accounts that `which` accepts.
    pub fn threads_in(
        &self,
        which: impl Fn(Account) -> bool,
    ) -> impl Iterator<Item = &'a ThreadAccounts> {
        self.run.threads.iter().filter(move |thread| thread.accounts.sum_of(&which) > 0)
    }

    /// How many threads those are, with those that are summed: of these at least so many.
    pub fn thread_count_in(&self, which: impl Fn(Account) -> bool) -> u64 {
        let others = self.run.sums.others.iter().map(|others| others.threads_in(&which));
        others.fold(self.threads_in(&which).count() as u64, u64::saturating_add)
    }

    /// Ended waits of all processes in an account, one sum per object and waker.
    pub fn waits(&self, account: Account) -> impl Iterator<Item = &'a WaitSum> {
        self.run.sums.waits.iter().filter(move |wait| wait.account == account)
    }

    /// Sum of the waits in an account. `count` is at least the number of threads that waited: a
    /// wait that never ended is in no sum.
    pub fn wait_total(&self, account: Account) -> Waits {
        let mut total = sum_of(self.waits(account));
        total.count = total.count.max(self.thread_count_in(|a| a == account));
        total
    }

    /// All values of a metric over the run, the host's included.
    pub fn histogram(&self, metric: &Metric) -> Option<Histogram> {
        self.merged(|candidate| candidate == metric)
    }

    /// All values of the metrics that `which` accepts. Histograms of another precision than the
    /// first are left out: they cannot be merged.
    pub fn merged(&self, which: impl Fn(&Metric) -> bool) -> Option<Histogram> {
        let mut found = self.run.seconds.iter().filter(|second| which(&second.metric));
        let mut all = found.next()?.histogram.clone();
        let precision = all.precision();
        for second in found.filter(|s| s.histogram.precision() == precision) {
            all.merge(&second.histogram);
        }
        (all.count() > 0).then_some(all)
    }

    /// Outliers of watched threads with time in `account`. How long a lock was held is no wait.
    /// A long sleep within a system call is here twice, as the sleep and as the call: who adds up
    /// takes one kind.
    pub fn outliers_in(&self, account: Account) -> impl Iterator<Item = &'a Outlier> {
        self.run
            .outliers
            .iter()
            .filter(move |o| o.kind.is_own_time() && o.breakdown.get(account) > 0)
    }

    /// The outlier with the most time in `account`.
    pub fn worst(&self, account: Account) -> Option<&'a Outlier> {
        self.outliers_in(account).max_by_key(|outlier| outlier.breakdown.get(account))
    }

    /// Different threads among the outliers that `which` accepts.
    pub fn threads_among(&self, which: impl Fn(&Outlier) -> bool) -> u64 {
        let tids = self.run.outliers.iter().filter(|o| which(o)).map(|o| o.tid);
        tids.collect::<BTreeSet<_>>().len() as u64
    }

    /// CPU times of the host, if they were recorded.
    pub fn cpus(&self) -> Option<Cpus> {
        self.cpus_where(|_| true)
    }

    /// The threads of a process that may run on some CPUs only, if most of what the process waited for
    /// a CPU was theirs.
    pub fn bound(&self, process: u32) -> Option<&'a BoundThreads> {
        let of_it = self.run.sums.bound.iter().filter(|bound| bound.tgid == process);
        let largest = of_it.max_by_key(|bound| bound.waited_ns)?;
        let waited = self.process(process)?.sum_of(Account::is_runnable);
        (largest.waited_ns > waited / 2).then_some(largest)
    }

    /// Times of those CPUs that a process may run on, as far as is known.
    pub fn cpus_for(&self, process: u32) -> Option<Cpus> {
        match self.bound(process) {
            Some(bound) => self.cpus_where(|cpu| bound.cpus.contains(&cpu)),
            None => self.cpus(),
        }
    }

    fn cpus_where(&self, which: impl Fn(u32) -> bool) -> Option<Cpus> {
        let mut cpus = Cpus { number: 0, idle_ns: 0, stolen_ns: 0, total_ns: 0 };
        for cpu in self.run.sums.cpus.iter().filter(|cpu| which(cpu.cpu)) {
            cpus.number += 1;
            cpus.idle_ns = cpus.idle_ns.saturating_add(cpu.idle_ns);
            cpus.stolen_ns = cpus.stolen_ns.saturating_add(cpu.stolen_ns);
            let total = cpu.idle_ns.saturating_add(cpu.busy_ns).saturating_add(cpu.stolen_ns);
            cpus.total_ns = cpus.total_ns.saturating_add(total);
        }
        (cpus.total_ns > 0).then_some(cpus)
    }
}

/// Sum of some waits.
pub fn sum_of<'w>(waits: impl Iterator<Item = &'w WaitSum>) -> Waits {
    waits.fold(Waits::default(), |sum, wait| Waits {
        count: sum.count.saturating_add(wait.count),
        ns: sum.ns.saturating_add(wait.ns),
        max_ns: sum.max_ns.max(wait.max_ns),
    })
}
