//! The kernel side before it is attached: opened, told what it has to know, and loaded.

use std::mem::MaybeUninit;
use std::thread;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapType, OpenObject};
use model::{RecorderPart, Syscall};

use super::beside;
use crate::Error;
use crate::bpf::{OpenWhylagSkel, WhylagSkel, WhylagSkelBuilder};
use crate::bpf_log;
use crate::capability::Recording;
use crate::parts::walks;
use crate::sample_timers::Sampling;
use crate::sizes::Sizes;
use crate::watch::Found;
use crate::wire::{self, TargetKind};

/// What the kernel side has to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// What is watched.
    pub target: Found,
    /// whylag runs in a PID namespace below the first one.
    pub in_pid_namespace: bool,
    /// Watch children too.
    pub follow: bool,
    /// Outlier threshold.
    pub threshold_ns: u64,
    /// Requests at sockets that take as long are sent whole, to begin with.
    pub slow_request_ns: u64,
    /// First calls are kept whole, however short.
    pub every_first_call: bool,
    /// The threshold counts from the time that a timer was asked for.
    pub late_only: bool,
    /// No stacks, to measure with as little delay as can be.
    pub no_stacks: bool,
    /// How often CPUs are sampled.
    pub sampling: Sampling,
}

/// Threads watched at the same time, at most; those beyond are counted as lost.
const THREADS: u32 = 24_576;

/// Waits for a spinlock at whose end the other CPUs are looked at take so long at least: the lock is held
/// meanwhile, and the more CPUs there are, the longer.
const SPUN_MIN_NS: u64 = 10_000;
const SPUN_MIN_NS_PER_CPU: u64 = 1_000;

/// Of the requests of a port one in so many and one is sent whole, before its rate is known.
const FIRST_SAMPLE_MASK: u32 = 15;

/// Loads the programs of a recording.
pub fn load(config: &Config, recording: &Recording) -> Result<Loaded, Error> {
    // The generated skeleton borrows the object for its whole life; one small object per
    // recorder lives as long as the process.
    bpf_log::begin()?;
    let storage: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = WhylagSkelBuilder::default().open(storage).map_err(Error::bpf("opening"))?;
    let cpus = libbpf_rs::num_possible_cpus().map_err(Error::bpf("counting CPUs"))?;
    let sizes = Sizes::of_this_host(cpus);
    let slots = sizes.histograms;
    open.maps.hists.set_max_entries(2 * slots).map_err(Error::bpf("sizing histograms"))?;
    open.maps.outliers.set_max_entries(sizes.ring).map_err(Error::bpf("sizing a ring"))?;
    open.maps.rare.set_max_entries(sizes.ring).map_err(Error::bpf("sizing a ring"))?;
    // The first is never there.
    let blocks = 1 + THREADS / wire::BLOCK_THREADS as u32;
    open.maps.threads.set_max_entries(blocks).map_err(Error::bpf("sizing threads"))?;
    open.maps.free_slots.set_max_entries(THREADS).map_err(Error::bpf("sizing threads"))?;
    if let Some(rodata) = open.maps.rodata_data.as_mut() {
        rodata.hist_slots = 2 * slots;
        rodata.thread_blocks = blocks;
        rodata.target_kind = config.target.kind as u32;
        rodata.target_pid = config.target.pid;
        rodata.target_tgid = config.target.tgid;
        if let Some(cgroup) = &config.target.cgroup {
            rodata.target_cgroup = cgroup.id;
            rodata.target_hierarchy = cgroup.hierarchy;
        }
        rodata.in_pid_namespace = config.in_pid_namespace;
        rodata.follow = config.follow;
        // Who is asked for by number may be ourselves.
        rodata.recorder_tgid = match config.target.kind {
            TargetKind::Host | TargetKind::Cgroup => std::process::id(),
            _ => 0,
        };
        rodata.every_first_call = config.every_first_call;
        rodata.late_only = config.late_only;
        rodata.no_stacks = config.no_stacks;
        rodata.jiffy_ns = u32::try_from(clock::jiffy_ns()).unwrap_or(0);
        rodata.spun_min_ns = SPUN_MIN_NS + cpus as u64 * SPUN_MIN_NS_PER_CPU;
        rodata.preempt_count_from_rq = recording.preempt_count_from_rq.unwrap_or(0);
        rodata.page_bytes = rustix::param::page_size() as u32;
        rodata.call_kinds = wire::call_kinds();
        let number = |call| Syscall::named(call).map_or(0, |Syscall(number)| number);
        rodata.connect_call = number("connect");
        rodata.writev_call = number("writev");
        rodata.sendto_call = number("sendto");
        rodata.sendmsg_call = number("sendmsg");
    }
    if let Some(bss) = open.maps.bss_data.as_mut() {
        bss.threshold_ns = config.threshold_ns;
        bss.sample_period_ns = config.sampling.period_ns();
        bss.slow_request_ns = config.slow_request_ns;
        bss.slow_call_ns = config.threshold_ns;
        bss.first_mask = FIRST_SAMPLE_MASK;
        bss.link_seed = random();
        // Nothing is charged before all parts are there: all accounts begin together.
        bss.stopped = 1;
    }
    if recording.preallocated {
        preallocate(&mut open)?;
    }
    let wanted = programs(recording);
    let others = beside::programs(&wanted);
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let name = name.as_str();
        program.set_autoload(wanted.contains(&name) && !others.contains(&name));
    }
    let refused = |error| Error::Refused(bpf_log::refusal(&error));
    if others.is_empty() {
        let skel = open.load().map_err(refused)?;
        return Ok(Loaded { skel, beside: None, sizes });
    }
    let maps = beside::make_maps(open.open_object()).map_err(refused)?;
    let (skel, beside) = thread::scope(|scope| {
        let beside = thread::Builder::new().spawn_scoped(scope, || beside::load(&others, &maps));
        let skel = open.load();
        // Where no thread can be made they are loaded afterwards.
        let beside = beside.map_or_else(
            |_| beside::load(&others, &maps),
            |thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        );
        (skel, beside)
    });
    let (skel, beside) = (skel.map_err(refused)?, beside.map_err(refused)?);
    Ok(Loaded { skel, beside: Some(beside.0), sizes })
}

/// The programs of a recording.
pub struct Loaded {
    pub skel: WhylagSkel<'static>,
    /// Some of them, with the same maps.
    pub beside: Option<WhylagSkel<'static>>,
    pub sizes: Sizes,
}

/// The names of the programs that it takes.
pub fn programs(recording: &Recording) -> Vec<&'static str> {
    let mut programs: Vec<&str> = recording.probes.iter().map(|probe| probe.program).collect();
    let parts = RecorderPart::ALL.into_iter().filter(|part| recording.has(*part));
    programs.extend(parts.flat_map(|part| walks(part, recording.socket_walk)));
    programs
}

/// A number that nobody can guess.
fn random() -> u64 {
    let mut bytes = [0; 8];
    // It fails only for a moment after the host has started; a number of no use to others is left.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_ne_bytes(bytes) ^ clock::monotonic_ns()
}

fn preallocate(open: &mut OpenWhylagSkel<'_>) -> Result<(), Error> {
    let maps = open.open_object_mut().maps_mut();
    for mut map in maps.filter(|map| map.map_type() == MapType::Hash) {
        map.set_map_flags(0).map_err(Error::bpf("sizing maps"))?;
    }
    Ok(())
}
