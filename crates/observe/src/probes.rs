//! The kernel side, loaded and attached.

mod beside;
mod load;
mod sockets;

use std::collections::BTreeMap;
use std::io::Read;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use libbpf_rs::skel::Skel;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle, ProgramMut};
use model::{RecorderPart, StackId};

pub use self::load::Config;
use crate::Error;
use crate::bpf::{self, WhylagSkel, thread_record};
use crate::capability::Recording;
use crate::cost::program_fd;
use crate::kallsyms::TextRanges;
use crate::kernel_symbols::KernelSymbols;
use crate::sample_timers::SampleTimers;
use crate::sizes::Sizes;
use crate::socket_walk::SocketWalk;
use crate::thread_room::ThreadRoom;
use crate::wire;

/// The end of a recording.
pub struct Stopped {
    /// No account has more than was up to here; what a program was about to add may be some
    /// microseconds later.
    pub at_ns: u64,
    /// The accounts of all threads that there were.
    pub threads: Vec<thread_record>,
}

/// How often, and from one to the next, it is looked at the end whether threads still report
/// themselves.
const LOOKS_FOR_THE_DYING: u32 = 50;
const LOOK_FOR_THE_DYING: Duration = Duration::from_millis(2);

/// Walks over all tasks at the start, at most: each finds the children of those found before.
const GENERATIONS: usize = 64;

/// Loaded and attached programs. Dropping it detaches them.
pub struct Probes {
    skel: WhylagSkel<'static>,
    /// Some of the programs, with the maps of the others.
    beside: Option<WhylagSkel<'static>>,
    links: BTreeMap<RecorderPart, Vec<Link>>,
    timers: SampleTimers,
    /// As long as a window lasts.
    call_window: Vec<Link>,
    sizes: Sizes,
    /// Parts that were loaded and could not be attached, and why.
    not_attached: Vec<(RecorderPart, String)>,
    shows_mappings_at_exit: bool,
    /// Whether one is served is known without programs in softirqs.
    tells_softirqs: bool,
    watching_since_ns: u64,
    socket_walk: SocketWalk,
    /// The process that is watched without others.
    alone: Option<u32>,
    /// Until somebody takes it to add to it while threads come.
    room: Option<ThreadRoom>,
    /// Threads without room that are known of.
    without_room: u32,
}

impl Probes {
    /// Copies of user stacks that were made, and those that were too many.
    pub fn stack_copies(&self) -> (u64, u64) {
        let state = self.skel.maps.bss_data.as_ref();
        state.map_or((0, 0), |state| (state.copies_made, state.copies_left_out))
    }

    /// Has no more copies made of these stacks.
    pub fn needs_no_copies(&self, stacks: &[StackId]) {
        for id in stacks {
            let whole = (wire::STACK_WHOLE as u32).to_ne_bytes();
            // One that was pushed out of the map is copied once more.
            let _ = self.skel.maps.stacks_sent.update(&id.0.to_ne_bytes(), &whole, MapFlags::EXIST);
        }
    }

    /// Has the stacks of a process carry its Python functions; false if there are too many such
    /// processes.
    pub fn reads_python(&mut self, tgid: u32, at: &bpf::python) -> bool {
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            bss.pythons = 1;
        }
        let processes = &self.skel.maps.python_processes;
        processes.update(&tgid.to_ne_bytes(), bpf::bytes(at), MapFlags::ANY).is_ok()
    }

    /// Walks of Python's frames that went in a circle.
    pub fn python_circles(&self) -> u64 {
        self.skel.maps.bss_data.as_ref().map_or(0, |state| state.python_circles)
    }

    /// Loads the programs of a recording, attaches them and begins to watch what the target
    /// already has.
    pub fn start(config: &Config, recording: &Recording) -> Result<Probes, Error> {
        let (loaded, text) = thread::scope(|scope| {
            let text = thread::Builder::new().spawn_scoped(scope, TextRanges::of_this_kernel);
            let loaded = load::load(config, recording);
            // Where no thread can be made they are read afterwards.
            let text = text.map(|thread| thread.join().unwrap_or_default());
            (loaded, text.unwrap_or_else(|_| TextRanges::of_this_kernel()))
        });
        let load::Loaded { mut skel, beside, sizes } = loaded?;
        if let Some(bss) = skel.maps.bss_data.as_mut() {
            bss.sched_text = text.sched;
            bss.lock_text = text.lock;
            bss.handle_mm_fault_text = text.handle_mm_fault;
        }
        let target = &config.target;
        let mut loaded = Probes {
            skel,
            beside,
            links: BTreeMap::new(),
            timers: SampleTimers::new(config.sampling),
            call_window: Vec::new(),
            sizes,
            not_attached: Vec::new(),
            tells_softirqs: recording.preempt_count_from_rq.is_some(),
            shows_mappings_at_exit: load::programs(recording).contains(&"on_exit"),
            watching_since_ns: 0,
            socket_walk: recording.socket_walk,
            alone: (target.tgid != 0 && !config.follow).then_some(target.tgid),
            room: None,
            without_room: 0,
        };
        let blocks = MapHandle::try_from(&loaded.skel.maps.threads);
        let room = ThreadRoom::begin(blocks.map_err(Error::bpf("sharing a map"))?)?;
        for part in RecorderPart::ALL.into_iter().filter(|part| !recording.has(*part)) {
            loaded.is_off(part);
        }
        if config.in_pid_namespace {
            loaded.iterate("learn_namespace")?;
        }
        for part in RecorderPart::ALL.into_iter().filter(|part| recording.has(*part)) {
            match loaded.attach(part, recording) {
                Ok(links) => {
                    loaded.links.insert(part, links);
                }
                Err(error) if part == RecorderPart::Threads => return Err(error),
                Err(error) => loaded.lacks(part, error.to_string()),
            }
        }
        loaded.watching_since_ns = clock::monotonic_ns();
        if let Some(bss) = loaded.skel.maps.bss_data.as_mut() {
            bss.stopped = 0;
        }
        let mut room = room.join()?;
        // Children that come from now on are watched with their parents, but one that was there
        // before can have a lower number than its parent, and be met first.
        for _ in 0..GENERATIONS {
            let taken = loaded.take_new()?;
            if loaded.has_missed_threads() {
                room.provide(loaded.thread_slot())?;
            } else if taken == 0 {
                break;
            }
        }
        loaded.room = Some(room);
        Ok(loaded)
    }

    /// The first slot for a thread that has not been used yet.
    fn thread_slot(&self) -> u32 {
        self.skel.maps.data_data.as_ref().map_or(0, |data| data.slot_next)
    }

    /// What is to add room while threads come.
    pub fn take_room(&mut self) -> Option<ThreadRoom> {
        self.room.take()
    }

    /// True if threads found no room since the last time: then there are some to take.
    pub fn has_missed_threads(&mut self) -> bool {
        let missed = self.skel.maps.bss_data.as_ref().map_or(0, |bss| bss.without_room);
        mem::replace(&mut self.without_room, missed) != missed
    }

    /// Begins to watch what is there and not watched yet; how many threads that were.
    pub fn take_new(&mut self) -> Result<u32, Error> {
        let taken = |probes: &Probes| probes.skel.maps.bss_data.as_ref().map_or(0, |bss| bss.taken);
        let before = taken(self);
        self.iterate("start_watching")?;
        Ok(taken(self).wrapping_sub(before))
    }

    fn attach(&mut self, part: RecorderPart, recording: &Recording) -> Result<Vec<Link>, Error> {
        let mut links = Vec::new();
        if part == RecorderPart::Samples {
            let program = &self.skel.progs.on_sample;
            return self.timers.follow_cpus(program).map(|()| links);
        }
        if part == RecorderPart::SampledCalls {
            return Ok(links);
        }
        for probe in recording.probes.iter().filter(|probe| probe.part == part) {
            for program in self.programs().filter(|p| p.name() == probe.program) {
                links.push(program.attach().map_err(Error::bpf("attaching"))?);
            }
        }
        Ok(links)
    }

    /// Samples CPUs that came online since the last time, and all of them less often once it is time.
    pub fn follow_cpus(&mut self) -> Result<(), Error> {
        // One sample of each CPU at most stands for the time before meanwhile.
        if let Some(period_ns) = self.timers.slow_down()?
            && let Some(bss) = self.skel.maps.bss_data.as_mut()
        {
            bss.sample_period_ns = period_ns;
        }
        match self.links.contains_key(&RecorderPart::Samples) {
            true => self.timers.follow_cpus(&self.skel.progs.on_sample),
            false => Ok(()),
        }
    }

    /// True if system calls are sampled, so that there are to be windows.
    pub fn samples_calls(&self) -> bool {
        self.links.contains_key(&RecorderPart::SampledCalls)
    }

    /// System calls are recorded from the moment on that it gives.
    pub fn begin_call_window(&mut self) -> Result<u64, Error> {
        let programs = [&self.skel.progs.on_sampled_exit, &self.skel.progs.on_sampled_enter];
        let links = programs.map(|program| program.attach().map_err(Error::bpf("attaching")));
        self.call_window = links.into_iter().collect::<Result<_, _>>()?;
        Ok(self.set_call_window(clock::monotonic_ns()))
    }

    /// And from this one on no more.
    pub fn end_call_window(&mut self) -> u64 {
        self.set_call_window(0);
        let at_ns = clock::monotonic_ns();
        self.call_window.clear();
        at_ns
    }

    fn set_call_window(&mut self, since_ns: u64) -> u64 {
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            bss.call_window_since = since_ns;
        }
        since_ns
    }

    /// How large the maps are.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn lacks(&mut self, part: RecorderPart, because: String) {
        self.is_off(part);
        self.not_attached.push((part, because));
    }

    /// True if the kernel reports the end of a process while its memory is still there, so that what
    /// was mapped is sent then.
    pub fn shows_mappings_at_exit(&self) -> bool {
        self.shows_mappings_at_exit
    }

    /// The parts that were loaded and yet could not be attached, and why.
    pub fn not_attached(&self) -> &[(RecorderPart, String)] {
        &self.not_attached
    }

    /// Detaches a part; false if it was not attached.
    pub fn shed(&mut self, part: RecorderPart) -> bool {
        self.is_off(part);
        let Some(mut links) = self.links.remove(&part) else { return false };
        if part == RecorderPart::Samples {
            self.timers.stop();
        }
        // In the reverse of the order of attaching.
        while links.pop().is_some() {}
        true
    }

    /// The parts that cost something and that the others can do without: whom a softirq wakes would be put
    /// down to the thread that it interrupts. To sample calls costs a fiftieth of recording them.
    pub fn dispensable(&self) -> impl Iterator<Item = RecorderPart> + '_ {
        let parts = self.links.keys().copied();
        parts.filter(|part| match part {
            RecorderPart::Softirqs => self.tells_softirqs,
            part => *part != RecorderPart::SampledCalls,
        })
    }

    /// Tells the other parts, which then do without it as well as they can.
    fn is_off(&mut self, part: RecorderPart) {
        let Some(bss) = self.skel.maps.bss_data.as_mut() else { return };
        match part {
            RecorderPart::SystemCalls => bss.calls_off = 1,
            RecorderPart::Locks => bss.locks_off = 1,
            RecorderPart::Softirqs => bss.softirqs_off = 1,
            _ => {}
        }
    }

    /// From now on intervals at least this long are kept whole.
    pub fn set_threshold(&mut self, ns: u64) {
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            bss.threshold_ns = ns;
        }
    }

    /// When the first accounts began.
    pub fn watching_since_ns(&self) -> u64 {
        self.watching_since_ns
    }

    /// Stops all accounts, gives that moment, and detaches the programs. What the accounts were
    /// is read in between: a thread that ends after the moment still reports itself, or is still
    /// found.
    pub fn stop(&mut self) -> Result<Stopped, Error> {
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            bss.stopped = 1;
        }
        let at_ns = clock::monotonic_ns();
        let threads = self.dump_threads(true);
        if let Ok(threads) = &threads {
            self.wait_for_the_dying(threads.len());
        }
        // What is still being answered is complete as far as it is known.
        let answers = self.end_answers(0).and_then(|()| self.find_open_of_peers());
        self.links.clear();
        self.timers.stop();
        answers?;
        Ok(Stopped { at_ns, threads: threads? })
    }

    /// A thread that is about to end is in no walk any more, and has yet to report itself at its
    /// last step, for which it may have to wait for a CPU.
    fn wait_for_the_dying(&self, found: usize) {
        let watched = || self.skel.maps.bss_data.as_ref().map_or(0, |bss| bss.watched as usize);
        for _ in 0..LOOKS_FOR_THE_DYING {
            if watched() <= found {
                return;
            }
            thread::sleep(LOOK_FOR_THE_DYING);
        }
    }

    /// Makes histograms count into the other half; returns the half that is now quiet.
    pub fn flip_histograms(&mut self) -> u32 {
        let Some(bss) = self.skel.maps.bss_data.as_mut() else { return 0 };
        let old = bss.epoch & 1;
        bss.epoch = bss.epoch.wrapping_add(1);
        old
    }

    /// Lets another histogram have a slot.
    pub fn give_histogram_back(&mut self, slot: u32) {
        let Some(bss) = self.skel.maps.bss_data.as_mut() else { return };
        let Some(word) = bss.free_hists.get_mut(slot as usize / 64) else { return };
        // SAFETY: the word is aligned, lives as long as the skeleton, which maps it, and is
        // changed by atomic operations alone, here and by the kernel side.
        let word = unsafe { AtomicU64::from_ptr(word) };
        word.fetch_or(1 << (slot % 64), Ordering::Relaxed);
    }

    /// Histogram slots that have been used so far (slot 0 never is).
    pub fn histogram_slots(&self) -> u32 {
        let given = self.skel.maps.data_data.as_ref().map_or(1, |data| data.hist_next);
        given.min(self.skel.maps.hists.max_entries() / 2)
    }

    /// Accounts of watched threads that moved since the last dump, or of all.
    pub fn dump_threads(&mut self, all: bool) -> Result<Vec<thread_record>, Error> {
        if let Some(bss) = self.skel.maps.bss_data.as_mut() {
            bss.dump_all = u32::from(all);
        }
        let bytes = self.iterate("dump_threads")?;
        Ok(bytes.chunks_exact(size_of::<thread_record>()).filter_map(bpf::read).collect())
    }

    fn iterate(&self, program: &str) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        for program in self.skel.object().progs_mut().filter(|p| p.name() == program) {
            let link = program.attach().map_err(Error::bpf("attaching an iterator"))?;
            let mut iter = Iter::new(&link).map_err(Error::bpf("opening an iterator"))?;
            iter.read_to_end(&mut bytes).map_err(Error::io("walking all tasks"))?;
        }
        Ok(bytes)
    }

    /// What says the names of the kernel's functions.
    pub fn kernel_symbols(&self) -> Result<KernelSymbols, Error> {
        let addresses = &self.skel.maps.symbol_addresses;
        let answers =
            self.skel.progs.show_symbols.attach().map_err(Error::bpf("attaching an iterator"))?;
        let addresses = MapHandle::try_from(addresses).map_err(Error::bpf("sharing a map"))?;
        Ok(KernelSymbols::new(addresses, answers))
    }

    /// The programs that are loaded.
    pub fn programs(&self) -> impl Iterator<Item = ProgramMut<'_>> {
        let beside = self.beside.iter().flat_map(|skel| skel.object().progs_mut());
        self.skel.object().progs_mut().chain(beside).filter(|program| program_fd(program) >= 0)
    }

    /// The maps.
    pub fn skel(&self) -> &WhylagSkel<'static> {
        &self.skel
    }
}
