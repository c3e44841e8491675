//! Slots of live processes: what was called and what was not, wherever the process is.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;
#[path = "../fuzz/hostile.rs"]
#[allow(dead_code, reason = "only its files are used here")]
mod hostile;

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Running, built, program};
use inspect::live::{Library, LiveError, Places, Process, Watch, bindings};

/// libten.so with f0 to f9, and a program that calls them, in a folder.
fn ten(folder: &Path, options: &[&str]) -> PathBuf {
    let functions: String = (0..10).map(|n| format!("void f{n}(void) {{}}\n")).collect();
    built(folder, "libten.so", &functions, &["-shared", "-fPIC"]);
    let place = format!("-L{}", folder.display());
    let run_path = format!("-Wl,-rpath,{}", folder.display());
    program(folder, "calls", &[&["-O1", &place, "-lten", &run_path], options].concat())
}

fn of<'l>(libraries: &'l [Library], name: &str) -> &'l Library {
    libraries.iter().find(|library| library.name() == name).unwrap_or_else(|| panic!("no {name}"))
}

fn look(pid: u32) -> Vec<Library> {
    bindings(&Process::open(pid).unwrap()).unwrap()
}

fn functions(range: std::ops::Range<u8>) -> Vec<String> {
    range.map(|n| format!("f{n}")).collect()
}

/// The unbound symbols of the program itself, but for `execl`, which it never calls.
fn unbound(libraries: &[Library]) -> Vec<String> {
    let mut names: Vec<String> = of(libraries, "calls").unbound().collect();
    names.sort();
    assert_eq!(names.first().map(String::as_str), Some("execl"));
    names.split_off(1)
}

#[test]
fn exactly_what_was_not_called_is_unbound() {
    let folder = tempfile::tempdir().unwrap();
    for (options, form) in [
        (&["-Wl,-z,lazy"][..], "plain"),
        (&["-Wl,-z,lazy", "-no-pie", "-fno-pie"], "at a fixed address"),
        (&["-Wl,-z,lazy", "-Wl,-z,ibtplt", "-fcf-protection=full"], "with landing pads"),
    ] {
        let program = ten(folder.path(), options);
        for called in [0, 3, 10] {
            let running = Running::start(Command::new(&program).arg(called.to_string()));
            let libraries = look(running.pid());
            assert_eq!(unbound(&libraries), functions(called..10), "{form}, {called} called");
            // atoi, write, read and the ten; execl was not called.
            let (slots, unbound) = of(&libraries, "calls").counts().unwrap();
            assert_eq!((slots, unbound), (14, 11 - usize::from(called)), "{form}");
        }
    }
}

#[test]
fn what_is_bound_at_load_time_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    let lazy = ten(folder.path(), &["-Wl,-z,lazy"]);
    let eager = Running::start(Command::new(&lazy).arg("0"));
    assert_eq!(unbound(&look(eager.pid())).len(), 10);
    // LD_BIND_NOW is taken away by start(), so it goes through env(1).
    let mut command = Command::new("env");
    let bound = Running::start(command.arg("LD_BIND_NOW=1").arg(&lazy).arg("0"));
    for library in look(bound.pid()) {
        assert!(library.counts().is_some_and(|(_, unbound)| unbound == 0), "{}", library.path);
    }
    let now = ten(folder.path(), &["-Wl,-z,now"]);
    let now = Running::start(Command::new(&now).arg("0"));
    assert_eq!(of(&look(now.pid()), "calls").counts(), Some((14, 0)));
}

#[test]
fn each_call_is_seen_as_it_becomes_bound() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(Command::new(ten(folder.path(), &["-Wl,-z,lazy"])).arg("2"));
    let mut watch = Watch::new(Process::open(running.pid()).unwrap()).unwrap();
    assert_eq!(watch.look().unwrap(), []);
    for n in 2..6 {
        running.send(b'.');
        running.ready();
        if n == 4 {
            watch.refresh().unwrap();
        }
        let bound = watch.look().unwrap();
        assert_eq!(bound.len(), 1, "{bound:?}");
        assert_eq!(bound[0].symbol, format!("f{n}"));
        assert!(bound[0].library.ends_with("/calls"));
        assert!(bound[0].provider.as_ref().unwrap().ends_with("/libten.so"), "{bound:?}");
    }
    assert_eq!(unbound(watch.libraries()), functions(6..10));
    // It is asked to execute another program: an end with a reason, not slots of two programs.
    running.send(b'x');
    let began = Instant::now();
    let end = loop {
        match watch.look() {
            Ok(bound) => assert!(bound.iter().all(|one| one.symbol == "execl"), "{bound:?}"),
            Err(error) => break error,
        }
        assert!(began.elapsed() < Duration::from_secs(10));
    };
    assert!(matches!(end, LiveError::Gone(_)), "{end}");
    assert!(end.to_string().contains("exited or executed another program"), "{end}");
    // It can be looked at again.
    assert!(look(running.pid()).iter().any(|library| library.name() == "sleep"));
}

#[test]
fn a_process_that_exits_in_the_middle_gives_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(Command::new(ten(folder.path(), &["-Wl,-z,lazy"])).arg("2"));
    let pid = running.pid();
    let process = Process::open(pid).unwrap();
    running.0.kill().unwrap();
    let status = format!("/proc/{pid}/status");
    while !fs::read_to_string(&status).unwrap().contains("State:\tZ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(matches!(bindings(&process), Err(LiveError::Gone(_))));
    let zombie = Process::open(pid).map(|_| ()).unwrap_err().to_string();
    assert!(zombie.contains("has exited already"), "{zombie}");
    running.0.wait().unwrap();
    let none = Process::open(pid).map(|_| ()).unwrap_err().to_string();
    assert_eq!(none, format!("there is no process {pid}"));
}

#[test]
fn what_is_no_program_is_said_so() {
    let kernel = Process::open(2).map(|_| ()).unwrap_err().to_string();
    // In a container pid 2 is an ordinary process, or another user's.
    let comm = fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if comm.trim() == "kthreadd" {
        assert_eq!(kernel, "process 2 is a thread of the kernel: it has no program");
    }
    assert!(matches!(Process::open(u32::MAX), Err(LiveError::NoProcess(_))));
}

/// A library that is replaced on disk, and one that is deleted, are read as they were loaded.
#[test]
fn deleted_and_replaced_files_are_those_that_were_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let program = ten(folder.path(), &["-Wl,-z,lazy"]);
    let running = Running::start(Command::new(&program).arg("4"));
    fs::remove_file(&program).unwrap();
    fs::copy("/bin/true", &program).unwrap();
    fs::remove_file(folder.path().join("libten.so")).unwrap();
    let process = Process::open(running.pid()).unwrap();
    let libraries = match fs::metadata(format!("/proc/{}/map_files", running.pid())) {
        Ok(_) => bindings(&process).unwrap(),
        Err(error) => {
            println!("skipped: map_files: {error}");
            return;
        }
    };
    assert_eq!(unbound(&libraries), functions(4..10));
    assert!(of(&libraries, "calls").is_deleted && of(&libraries, "libten.so").is_deleted);
    assert!(!libraries.iter().any(|library| library.name() == "true"));
}

/// The same path is another file outside.
#[test]
fn a_process_in_other_name_spaces_is_read_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let program = ten(folder.path(), &["-Wl,-z,lazy"]);
    fs::copy("/bin/true", inner.join("calls")).unwrap();
    let script = format!(
        "mount -t tmpfs none {0} && cp {1} {0}/calls && exec {0}/calls 6",
        inner.display(),
        program.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script]);
    let mut can = Command::new("unshare");
    can.args(["--mount", "--pid", "--fork", "true"]).stderr(Stdio::null());
    if !can.status().is_ok_and(|status| status.success()) {
        println!("skipped: no privilege for namespaces");
        return;
    }
    let running = Running::start(&mut command);
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let pid: u32 = fs::read_to_string(children).unwrap().trim().parse().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.lines().any(|line| line == format!("NSpid:\t{pid}\t1")), "{status}");
    let libraries = look(pid);
    assert_eq!(unbound(&libraries), functions(6..10));
    assert_eq!(of(&libraries, "calls").path, inner.join("calls").to_str().unwrap());
}

/// A file as code in this very process, until dropped.
struct Mapped(*mut libc::c_void);

impl Mapped {
    const LENGTH: usize = 8192;

    fn new(path: &Path) -> Mapped {
        let file = fs::File::open(path).unwrap();
        // SAFETY: a new mapping of a file that nobody changes; nothing runs from it.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Mapped::LENGTH,
                libc::PROT_READ | libc::PROT_EXEC,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(mapped, libc::MAP_FAILED);
        Mapped(mapped)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping from above, which nobody uses.
        unsafe { libc::munmap(self.0, Mapped::LENGTH) };
    }
}

/// A process can map what it likes as code, and its maps then name that file.
#[test]
fn files_that_lie_can_be_mapped_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.so");
    let mut random = 88_172_645_463_325_252u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut looked = 0;
    for round in 0..400 {
        let mut file = hostile::good(round).to_vec();
        // Addresses of segments are in the first part, those of slots in the last.
        for _ in 0..1 + next() % 6 {
            let at = (next() as usize % if next() % 2 == 0 { 600 } else { file.len() - 8 }) & !7;
            let value = match next() % 4 {
                0 => u64::MAX - next() % 4096,
                1 => next() % 8192,
                2 => 1 << (next() % 64),
                _ => next(),
            };
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        fs::write(&path, file).unwrap();
        let _mapped = Mapped::new(&path);
        let process = Process::open(std::process::id()).unwrap();
        let libraries = bindings(&process).unwrap();
        looked += libraries.iter().filter(|library| library.name() == "hostile.so").count();
        fs::remove_file(&path).unwrap();
    }
    assert!(looked > 100, "{looked}");
}

/// 32-bit code is mapped by this very process.
#[test]
fn a_32_bit_library_is_unknown_here() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/elf/i386.so");
    let _mapped = Mapped::new(&corpus);
    let libraries = look(std::process::id());
    let why = of(&libraries, "i386.so").slots.as_ref().err().unwrap();
    assert!(why.contains("unknown here: a 32-bit ELF file"), "{why}");
}

/// A program of which two threads run and five wait.
struct Seven {
    _folder: tempfile::TempDir,
    running: Running,
    threads: Vec<u32>,
}

/// Of each thread: whether it waits, and how often it gave its CPU up, or had to.
type Switches = Vec<(bool, u64, u64)>;

impl Seven {
    fn start() -> Seven {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "loader", &["-O1", "-pthread", "-Wl,-z,lazy"]);
        let running = Running::start(Command::new(&program).args(["2", "4"]));
        let threads: Vec<u32> = fs::read_dir(format!("/proc/{}/task", running.pid()))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
            .collect();
        assert_eq!(threads.len(), 7);
        let seven = Seven { _folder: folder, running, threads };
        // All have got to where they stay.
        while seven.switches().iter().filter(|(waits, ..)| *waits).count() != 5 {
            std::thread::sleep(Duration::from_millis(1));
        }
        seven
    }

    fn row(&self, tid: u32, name: &str) -> String {
        let path = format!("/proc/{}/task/{tid}/status", self.running.pid());
        let status = fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}")).trim().to_owned()
    }

    fn switches(&self) -> Switches {
        let of = |tid: &u32| {
            let number = |name| self.row(*tid, name).parse::<u64>().unwrap();
            let waits = self.row(*tid, "State:").starts_with('S');
            (waits, number("voluntary_ctxt_switches:"), number("nonvoluntary_ctxt_switches:"))
        };
        self.threads.iter().map(of).collect()
    }
}

/// What a reader does to threads that wait and threads that run: nothing.
#[test]
fn no_thread_is_ever_stopped_or_woken() {
    let seven = Seven::start();
    let before = seven.switches();
    let mut states = std::collections::BTreeSet::new();
    let pid = seven.running.pid();
    let reader = std::thread::spawn(move || {
        let process = Process::open(pid).unwrap();
        for _ in 0..300 {
            bindings(&process).unwrap();
        }
    });
    while !reader.is_finished() {
        for tid in &seven.threads {
            assert_eq!(seven.row(*tid, "TracerPid:"), "0");
            states.insert(seven.row(*tid, "State:"));
        }
    }
    reader.join().unwrap();
    assert_eq!(
        states.iter().map(String::as_str).collect::<Vec<_>>(),
        ["R (running)", "S (sleeping)"]
    );
    for (before, after) in before.iter().zip(seven.switches()) {
        // Nothing made a running thread wait; nothing woke a waiting one, so that it never ran.
        assert_eq!(before.1, after.1, "voluntary switches");
        assert!(!before.0 || before.2 == after.2, "a waiting thread ran: {before:?} {after:?}");
    }
}

/// The counts of the test above, when the program is stopped for a moment by the two ways that there
/// are: they change, however short it was.
#[test]
fn a_stop_would_be_noticed() {
    let seven = Seven::start();
    let pid = i32::try_from(seven.running.pid()).unwrap();
    let before = seven.switches();
    // SAFETY: signals to our own child.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    while !seven.threads.iter().all(|tid| seven.row(*tid, "State:").starts_with('T')) {
        std::thread::yield_now();
    }
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGCONT) };
    let after = seven.switches();
    assert!(before.iter().zip(&after).all(|(before, after)| before.1 < after.1), "{before:?}");

    let runs = seven.threads[before.iter().position(|(waits, ..)| !waits).unwrap()];
    let runs = i32::try_from(runs).unwrap();
    let count = || seven.row(runs.unsigned_abs(), "voluntary_ctxt_switches:");
    let before = count();
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: requests without memory, for a thread of our own child, and a wait that asks nothing.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, runs, none, none), 0);
        assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, runs, none, none), 0);
        assert_eq!(libc::waitpid(runs, std::ptr::null_mut(), libc::__WALL), runs);
        assert_eq!(libc::ptrace(libc::PTRACE_DETACH, runs, none, none), 0);
    }
    assert_ne!(before, count());
}

/// Story 1's question, asked of the real thing: 300 libraries with 170 imports each.
#[test]
fn three_hundred_libraries_with_51000_slots() {
    let folder = tempfile::tempdir().unwrap();
    let functions: String = (0..170).map(|n| format!("void g{n}(void) {{}}\n")).collect();
    built(folder.path(), "libtarget.so", &functions, &["-shared", "-fPIC"]);
    let declared: String = (0..170).map(|n| format!("void g{n}(void);\n")).collect();
    let calls: String = (0..170).map(|n| format!("if (n == {n}) g{n}();\n")).collect();
    // touch() calls 20 of the 170.
    let source = format!(
        "{declared}void pick(int n) {{\n{calls}}}\n\
         void touch(void) {{ for (int n = 0; n < 20; n++) pick(n * 8); }}\n"
    );
    let place = format!("-L{}", folder.path().display());
    let run_path = format!("-Wl,-rpath,{}", folder.path().display());
    let options = ["-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-z,lazy"];
    let source =
        source.replace("void touch", "__attribute__((visibility(\"default\"))) void touch");
    let one = built(
        folder.path(),
        "libone.so",
        &source,
        &[&options[..], &[&place, "-ltarget", &run_path]].concat(),
    );
    // Another file is another library to the dynamic linker.
    let libraries: Vec<PathBuf> = (0..300)
        .map(|n| {
            let copy = folder.path().join(format!("lib{n}.so"));
            fs::copy(&one, &copy).unwrap();
            copy
        })
        .collect();
    let program = program(folder.path(), "loader", &["-O1", "-pthread", "-Wl,-z,lazy"]);
    let running = Running::start(Command::new(&program).args(["0", "0"]).args(&libraries));

    let began = Instant::now();
    let found = look(running.pid());
    let took = began.elapsed();
    let copies = found
        .iter()
        .filter(|library| libraries.iter().any(|path| path.to_str() == Some(&library.path)));
    let mut all = (0, 0, 0);
    for library in copies {
        assert_eq!(library.counts(), Some((170, 150)), "{}", library.path);
        let names: Vec<String> = library.unbound().collect();
        assert!(!names.contains(&"g8".to_owned()) && names.contains(&"g9".to_owned()));
        all = (all.0 + 1, all.1 + 170, all.2 + 150);
    }
    assert_eq!(all, (300, 51_000, 45_000));
    println!("{} libraries, {} slots, {} unbound: {took:?}", found.len(), all.1, all.2);
    let mut watch = Watch::new(Process::open(running.pid()).unwrap()).unwrap();
    let began = Instant::now();
    assert_eq!(watch.look().unwrap(), []);
    println!("a look at {} slots: {:?}", all.2, began.elapsed());
}

/// 10,000 return addresses of a live process, and what each follows.
#[test]
fn return_addresses_of_a_live_process() {
    let folder = tempfile::tempdir().unwrap();
    let program = ten(folder.path(), &["-Wl,-z,lazy"]);
    let running = Running::start(Command::new(&program).arg("1"));
    let process = Process::open(running.pid()).unwrap();
    let places = Places::of(&process).unwrap();
    let libraries = bindings(&process).unwrap();
    let base = of(&libraries, "calls").base;
    let elf = inspect::elf::Elf::open(&program).unwrap();
    let code = elf.segments().iter().find(|segment| segment.is_code).unwrap();
    // Every address of the program's code; those after a call of f0 ... f9 are among them.
    let inside = (0..code.in_file).map(|at| base + code.address + at);
    let found: Vec<String> = inside.filter_map(|at| Some(places.at(at)?.to_string())).collect();
    for n in 0..10 {
        let call = format!("(after call f{n}@plt)");
        let hits: Vec<&String> = found.iter().filter(|place| place.contains(&call)).collect();
        assert_eq!(hits.len(), 1, "{hits:?}");
        assert!(hits[0].starts_with("calls:"), "{hits:?}");
    }
    assert!(places.at(0).is_none() && places.at(u64::MAX).is_none());

    let libc = of(&libraries, "libc.so.6");
    let elf = &libc.slots.as_ref().unwrap().elf;
    let code = elf.segments().iter().find(|segment| segment.is_code).unwrap();
    let began = Instant::now();
    let known = (0..10_000).filter(|n| {
        let address = libc.base + code.address + n * code.in_file / 10_000;
        places.at(address).is_some()
    });
    assert_eq!(known.count(), 10_000);
    println!("10,000 addresses: {:?}", began.elapsed());
}
