//! A run that grows by what a test adds to it.

use model::{
    Account, Accounts, Blocked, BoundThreads, CallError, Capability, ConcurrentCall, Counter,
    CpuTime, Drops, Event, Frame, Histogram, HoldSum, Metric, MetricSecond, Outlier, OutlierKind,
    PathSum, Presence, Process, QueueSecond, RecorderPart, Run, RunEnd, RunHeader, RunId,
    RunStatus, RunnerSum, Space, Stack, StackId, Syscall, Target, ThreadAccounts, WaitSum,
};

use super::evidence::{SECOND, USER, interval};

/// A run with nothing in it, and what a test adds.
pub struct RunBuilder(Run);

impl RunBuilder {
    pub fn new() -> Self {
        let header = RunHeader {
            started_unix_ns: 0,
            started_ns: 0,
            target: Target::Command(vec!["./server".into(), "--name".into(), "a b".into()]),
            follow: false,
            threshold_ns: 10_000,
            sampled: false,
            recorder_pid: 1,
            version: "test".into(),
            ..RunHeader::default()
        };
        let end = RunEnd { ended_ns: 4 * SECOND, exit_status: Some(0), reason: "exited".into() };
        RunBuilder(Run {
            id: RunId(1),
            header,
            status: RunStatus::Complete,
            end: Some(end),
            heartbeat_ns: 4 * SECOND,
            ..Run::default()
        })
    }

    pub fn build(self) -> Run {
        self.0
    }

    pub fn length(mut self, ns: u64) -> Self {
        self.0.end.as_mut().unwrap().ended_ns = ns;
        self
    }

    pub fn thread(mut self, tid: u32, tgid: u32, accounts: &[(Account, u64)]) -> Self {
        let accounts: Accounts = accounts.iter().copied().collect();
        if self.0.comm(tgid) == "?" {
            self.0.processes.push(Process {
                tgid,
                comm: format!("main-{tgid}"),
                exe: String::new(),
                build_id: String::new(),
                watched: true,
            });
        }
        self.0.threads.push(ThreadAccounts {
            tid,
            tgid,
            comm: format!("thread-{tid}"),
            first_ns: 0,
            last_ns: accounts.total(),
            alive: true,
            open: USER,
            accounts,
            realtime: 0,
            minor_faults: 0,
            major_faults: 0,
            sleeps: 0,
            preemptions: 0,
            migrations: 0,
        });
        self
    }

    /// Real-time priority of the last thread.
    pub fn realtime(mut self, priority: u8) -> Self {
        self.0.threads.last_mut().unwrap().realtime = priority;
        self
    }

    /// What the last thread was doing at the end.
    pub fn open(mut self, account: Account) -> Self {
        self.0.threads.last_mut().unwrap().open = account;
        self
    }

    /// How often the last thread slept.
    pub fn sleeps(mut self, number: u64) -> Self {
        self.0.threads.last_mut().unwrap().sleeps = number;
        self
    }

    /// The last thread has ended.
    pub fn dead(mut self) -> Self {
        self.0.threads.last_mut().unwrap().alive = false;
        self
    }

    pub fn wait(mut self, wait: WaitSum) -> Self {
        self.0.sums.waits.push(wait);
        self
    }

    pub fn hold(mut self, hold: HoldSum) -> Self {
        self.0.sums.holds.push(hold);
        self
    }

    pub fn runner(mut self, runner: RunnerSum) -> Self {
        self.0.sums.runners.push(runner);
        self
    }

    pub fn cpus(mut self, number: u32, idle_ns: u64, busy_ns: u64) -> Self {
        let cpu = |cpu| CpuTime { cpu, idle_ns, busy_ns, stolen_ns: 0 };
        self.0.sums.cpus.extend((0..number).map(cpu));
        self
    }

    /// Threads of a process that may run on these CPUs only.
    pub fn bound(mut self, tgid: u32, cpus: &[u32], waited_ns: u64, ran_ns: u64) -> Self {
        let cpus = cpus.to_vec();
        self.0.sums.bound.push(BoundThreads { tgid, cpus, threads: 2, waited_ns, ran_ns });
        self
    }

    pub fn lost(mut self, kind: &str, count: u64, received: u64) -> Self {
        self.0.losses.seen.push((kind.into(), 0, count));
        self.0.cost.events = received;
        self
    }

    pub fn sampled(mut self) -> Self {
        self.0.header.sampled = true;
        self
    }

    pub fn off(mut self, part: RecorderPart) -> Self {
        let because = "not permitted".to_owned();
        self.0.capabilities.push(Capability { part, on: false, because });
        self
    }

    pub fn values(mut self, metric: Metric, precision: u8, values: &[u64]) -> Self {
        let mut histogram = Histogram::new(precision);
        values.iter().for_each(|v| histogram.record(*v));
        self.0.seconds.push(MetricSecond { tgid: 10, metric, start_ns: 0, histogram });
        self
    }

    /// Samples of a process in an account, 1 ms each, with these kernel frames, innermost first.
    pub fn sampled_path(self, tgid: u32, account: Account, frames: &[&str], samples: u64) -> Self {
        let call = if let Account::Syscall(call) = account { Some(call) } else { None };
        let sum = path(tgid, account, samples, samples * 1_000_000);
        self.path(PathSum { sampled: true, call, max_ns: 1_000_000, ..sum }, frames)
    }

    /// The same with frames of the program.
    pub fn sampled_in_user(
        self,
        tgid: u32,
        account: Account,
        frames: &[&str],
        samples: u64,
    ) -> Self {
        let id = StackId(self.0.stacks.len() as u64);
        let frames = frames.iter().map(|symbol| frame("/bin/program", Some(symbol))).collect();
        let mut run = self.stack(id, Space::User, frames).sampled_path(tgid, account, &[], samples);
        if let Some(path) = run.0.sums.paths.last_mut() {
            path.user = Some(id);
        }
        run
    }

    /// Sleeps of a process in a call, with these kernel frames, innermost first.
    pub fn slept_path(
        self,
        tgid: u32,
        account: Account,
        call: &str,
        frames: &[&str],
        count: u64,
        ns: u64,
    ) -> Self {
        let call = Syscall::named(call);
        self.path(PathSum { call, ..path(tgid, account, count, ns) }, frames)
    }

    fn path(mut self, mut path: PathSum, frames: &[&str]) -> Self {
        if !frames.is_empty() {
            let id = StackId(self.0.stacks.len() as u64);
            let frames = frames.iter().map(|symbol| frame("[kernel]", Some(symbol))).collect();
            self = self.stack(id, Space::Kernel, frames);
            path.kernel = Some(id);
        }
        self.0.sums.paths.push(path);
        self
    }

    pub fn counter(mut self, name: &str, first: u64, last: u64) -> Self {
        let source = "/proc/test".to_owned();
        self.0.sums.counters.push(Counter { name: name.into(), source, first, last });
        self
    }

    pub fn call_error(mut self, tgid: u32, call: &str, errno: i32, count: u64) -> Self {
        let call = Syscall::named(call).unwrap();
        self.0.sums.call_errors.push(CallError { tgid, call, errno, count });
        self
    }

    pub fn queue(mut self, second: QueueSecond) -> Self {
        self.0.sockets.queues.push(second);
        self
    }

    pub fn dropped(mut self, drops: Drops) -> Self {
        self.0.sockets.drops.push(drops);
        self
    }

    /// The waiter had these kernel frames, innermost first.
    pub fn concurrent_call(mut self, sum: ConcurrentCall, frames: &[&str]) -> Self {
        let id = StackId(self.0.stacks.len() as u64);
        self.0.sums.concurrent_calls.push(ConcurrentCall { kernel: Some(id), ..sum });
        let frames = frames.iter().map(|symbol| frame("[kernel]", Some(symbol))).collect();
        self.stack(id, Space::Kernel, frames)
    }

    pub fn present(mut self, presence: Presence) -> Self {
        self.0.presences.push(presence);
        self
    }

    pub fn event(mut self, event: Event) -> Self {
        self.0.events.push(event);
        self
    }

    /// Any outlier.
    pub fn kept(mut self, outlier: Outlier) -> Self {
        self.0.outliers.push(outlier);
        self.0.outlier_count += 1;
        self
    }

    /// The same in a place of the program: addresses, innermost first, that so many copies gave.
    pub fn placed(mut self, outlier: Outlier, addresses: &[u64], copies: u64) -> Self {
        let id = StackId(self.0.stacks.len() as u64);
        let at = |address: &u64| Frame { address: *address, ..frame("/bin/program", None) };
        self = self.stack(id, Space::User, addresses.iter().map(at).collect());
        self.0.stacks.entry(id).and_modify(|stack| stack.copies = copies);
        self.kept(Outlier { user_stack: Some(id), ..outlier })
    }

    /// An interval of a thread off the CPU, ended by thread `waker` of the same process. A futex
    /// is at address 0x10.
    pub fn interval(
        self,
        tid: u32,
        account: Account,
        start_ns: u64,
        duration_ns: u64,
        waker: Option<u32>,
    ) -> Self {
        self.kept(interval(tid, account, start_ns, duration_ns, waker))
    }

    /// 20 ms of thread 10 for the disk.
    pub fn outlier_at(self, start_ns: u64) -> Self {
        self.interval(10, Account::Blocked(Blocked::Disk), start_ns, 20_000_000, None)
    }

    /// A sleep of thread 10 with these kernel frames.
    pub fn outlier(self, account: Account, ns: u64, kernel_frames: &[&str]) -> Self {
        let id = StackId(self.0.stacks.len() as u64);
        let frames = kernel_frames.iter().map(|symbol| frame("[kernel]", Some(symbol))).collect();
        self.stack(id, Space::Kernel, frames).sleep(account, ns, Some(id), None)
    }

    /// A sleep of thread 10 whose innermost user frame is in `module`.
    pub fn user_outlier(self, account: Account, ns: u64, module: &str) -> Self {
        let id = StackId(self.0.stacks.len() as u64);
        self.stack(id, Space::User, vec![frame(module, None)]).sleep(account, ns, None, Some(id))
    }

    /// A first call by `module`:rate_timer+0x9e3; `after` is what is called there.
    pub fn first_call(self, outlier: Outlier, module: &str, after: Option<&str>) -> Self {
        let id = StackId(self.0.stacks.len() as u64);
        let caller = Frame {
            symbol_offset: 0x9e3,
            after: after.map(|call| call.parse().unwrap()),
            ..frame(module, Some("rate_timer"))
        };
        let frames = vec![frame("/lib/ld-linux-x86-64.so.2", None), caller];
        let outlier = Outlier { user_stack: Some(id), ..outlier };
        self.stack(id, Space::User, frames).kept(outlier)
    }

    fn stack(mut self, id: StackId, space: Space, frames: Vec<Frame>) -> Self {
        self.0.stacks.insert(id, Stack { id, space, frames, truncated: false, copies: 0 });
        self
    }

    fn sleep(
        mut self,
        account: Account,
        ns: u64,
        kernel_stack: Option<StackId>,
        user_stack: Option<StackId>,
    ) -> Self {
        self.0.outliers.push(Outlier {
            kind: OutlierKind::OffCpu,
            tid: 10,
            tgid: 10,
            comm: "thread-10".into(),
            cpu: 0,
            start_ns: SECOND,
            duration_ns: ns,
            syscall: None,
            blocked: if let Account::Blocked(kind) = account { Some(kind) } else { None },
            breakdown: [(account, ns)].into_iter().collect(),
            object: 0,
            fault_ip: None,
            kernel_stack,
            user_stack,
            waker: None,
            ran_instead: Vec::new(),
            holder: None,
            timer: None,
            interrupts: None,
            first_call: None,
        });
        self.0.outlier_count += 1;
        self
    }
}

/// Sleeps of a process in one place.
fn path(tgid: u32, account: Account, count: u64, ns: u64) -> PathSum {
    let max_ns = ns.checked_div(count).unwrap_or(0);
    PathSum {
        tgid,
        account,
        call: None,
        kernel: None,
        user: None,
        sampled: false,
        tid: 0,
        count,
        ns,
        max_ns,
    }
}

/// A stack of one function.
pub fn user_stack(function: &str) -> Stack {
    Stack {
        id: StackId(77),
        space: Space::User,
        frames: vec![frame("/usr/bin/worker", Some(function))],
        truncated: false,
        copies: 0,
    }
}

fn frame(module: &str, symbol: Option<&str>) -> Frame {
    Frame {
        address: 0x1000,
        module: module.into(),
        offset: 0x10,
        symbol: symbol.map(str::to_owned),
        symbol_offset: 0,
        unknown_because: None,
        after: None,
        source: None,
    }
}
