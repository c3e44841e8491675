//! What the threads of a recorder may do, as README says it, and that its command may do as before.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use model::{RecorderPart, RunStatus};
use rustix::process::Signal;

use crate::common::{Helper, Lab, wait_for, wait_until};

/// Numbers of include/uapi/linux/capability.h.
const NAMED: [(&str, u32); 12] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_SYS_NICE", 23),
    ("CAP_KILL", 5),
    ("CAP_DAC_READ_SEARCH", 2),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYSLOG", 34),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
    ("CAP_CHECKPOINT_RESTORE", 40),
];

/// Its words, with one space between two.
fn readme() -> String {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"));
    readme.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The capabilities that README names in its sentence about what a recorder keeps, before and after
/// the words about the one thread.
fn kept_by_readme() -> (u64, u64) {
    let readme = readme();
    let kept = readme.split("thread of the recorder keeps ").nth(1).expect("the sentence");
    let (kept, timing) = kept.split_once("thread `cost`").expect("the thread");
    let timing = timing.split('.').next().unwrap();
    (set_of(kept), set_of(timing))
}

fn set_of(text: &str) -> u64 {
    let named = NAMED.iter().filter(|(name, _)| {
        text.match_indices(name).any(|(at, _)| {
            !text[at + name.len()..].starts_with(|c: char| c == '_' || c.is_alphanumeric())
        })
    });
    named.fold(0, |set, (_, number)| set | 1 << number)
}

/// A file of /proc/PID/task/TID; `None` if the thread has ended, as those do that read what might
/// not answer.
fn of_thread(pid: &str, tid: &str, file: &str) -> Option<String> {
    match fs::read_to_string(format!("/proc/{pid}/task/{tid}/{file}")) {
        Ok(text) => Some(text),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{file} of thread {tid}: {error}"),
    }
}

/// Fields of /proc/PID/task/TID/status, hexadecimal or decimal.
fn status(pid: &str, tid: &str) -> Option<BTreeMap<String, u64>> {
    let text = of_thread(pid, tid, "status")?;
    let fields = text.lines().filter_map(|line| line.split_once(":\t"));
    let numbers = fields.filter_map(|(name, value)| {
        Some((name.to_owned(), u64::from_str_radix(value.trim(), 16).ok()?))
    });
    Some(numbers.collect())
}

#[test]
fn every_thread_has_what_readme_says_and_no_more() {
    let Some(lab) = Lab::beside_others() else { return };
    let (kept, timing) = kept_by_readme();
    assert!(kept != 0 && timing == 1 << 21, "{kept:x} {timing:x}");
    let mut target = Helper::spawn(Command::new("sleep").arg("60"));
    for of_command in [false, true] {
        let mut record = match of_command {
            true => lab.recording(&[], ["sleep", "60"]),
            false => lab.verb("record"),
        };
        if !of_command {
            record.args(["-p", &target.pid()]);
        }
        let before = lab.runs_so_far().len();
        let mut recorder = Helper::spawn(record.stderr(Stdio::null()));
        wait_until("the run to begin", || lab.runs_so_far().len() > before);
        let pid = recorder.pid();
        let mut names = Vec::new();
        for (tid, status) in settled(&pid) {
            let Some(name) = of_thread(&pid, &tid, "comm") else { continue };
            let name = name.trim().to_owned();
            let kill = 1 << 5;
            let allowed = match name.as_str() {
                "cost" => timing,
                "command" => 0,
                _ if of_command => kept,
                _ => kept & !kill,
            };
            for set in ["CapEff", "CapPrm", "CapBnd"] {
                assert_eq!(status[set], allowed, "{set} of {name}: {:x}", status[set]);
            }
            for set in ["CapInh", "CapAmb"] {
                assert_eq!(status[set], 0, "{set} of {name}");
            }
            assert_eq!((status["NoNewPrivs"], status["Seccomp"]), (1, 2), "{name}");
            names.push(name);
        }
        assert!(names.len() >= 3 && names.contains(&"cost".to_owned()), "{names:?}");
        recorder.signal(Signal::TERM);
        wait_for(&mut recorder.0, Duration::from_secs(10));
        // The time in BPF is measured all the same.
        assert!(lab.run().cost.bpf_ns > 0);
    }
    assert!(target.0.try_wait().unwrap().is_none());
}

/// Has a verb start until its first line is there, and gives what its threads may do.
fn threads_of(mut verb: Command) -> (Helper, Vec<BTreeMap<String, u64>>) {
    let mut helper = Helper::spawn(verb.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    let watches = verb.get_args().any(|word| word == "--watch");
    if watches {
        BufReader::new(helper.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    } else {
        BufReader::new(helper.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    }
    assert!(!line.is_empty(), "{verb:?} has ended");
    let threads = settled(&helper.pid()).into_values().collect();
    (helper, threads)
}

/// What the threads of a process may do, by tid, when all have given up what they do: the filter of
/// system calls is what a thread takes on last.
fn settled(pid: &str) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    wait_until("privileges to be given up", || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let tids = threads.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        all = tids.filter_map(|tid| status(pid, &tid).map(|status| (tid, status))).collect();
        !all.is_empty() && all.values().all(|thread| thread["Seccomp"] != 0)
    });
    all
}

/// The capabilities that README names in the rest of the sentence that begins so.
fn sentence(beginning: &str) -> u64 {
    let readme = readme();
    let rest = readme.split(beginning).nth(1).expect("the sentence");
    set_of(rest.split('.').next().unwrap())
}

/// The server of pages is asked by whoever is on this host.
#[test]
fn what_serves_or_watches_keeps_what_readme_says() {
    let Some(lab) = Lab::beside_others() else { return };
    drop(lab.record(&[], ["true"]));
    let (kept, _) = kept_by_readme();
    let kept = kept & !(1 << 5);
    let target = Helper::spawn(Command::new("sleep").arg("60"));
    let mut watch = lab.verb("doctor");
    watch.args(["-p", &target.pid(), "--watch", "--time", "60s"]);
    let of_serve = kept | sentence("`serve`, before its first answer, keeps ");
    for (verb, kept) in [(lab.verb("serve"), of_serve), (watch, kept)] {
        let (_helper, threads) = threads_of(verb);
        assert!(!threads.is_empty());
        for thread in threads {
            for set in ["CapEff", "CapPrm", "CapBnd"] {
                assert_eq!(thread[set], kept, "{set}: {:x}", thread[set]);
            }
            assert_eq!((thread["CapInh"], thread["CapAmb"]), (0, 0));
            assert_eq!((thread["NoNewPrivs"], thread["Seccomp"]), (1, 2));
        }
    }
}

/// What a verb may do that has more to say than a pipe takes, and nobody who reads it.
fn of_a_verb_that_writes(mut verb: Command) -> BTreeMap<String, u64> {
    let (_reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    let helper = Helper::spawn(verb.stdout(writer).stderr(Stdio::null()));
    let pid = helper.pid();
    wait_until("its output to wait for room", || {
        of_thread(&pid, &pid, "wchan").is_some_and(|wchan| wchan.contains("pipe_write"))
    });
    status(&pid, &pid).unwrap()
}

/// Runs, traces and processes are other people's, and are read as root.
#[test]
fn what_only_reads_gives_up_privileges_first() {
    let Some(lab) = Lab::beside_others() else { return };
    drop(lab.record(&[], ["true"]));
    let of_files = sentence("stored runs or traces keep ") & !(1 << 19);
    let of_checkup = kept_by_readme().0 & !(1 << 5) | sentence("`doctor` keeps ");
    let mut export = lab.verb("export");
    export.args(["--format", "json"]);
    let mut doctor = lab.verb("doctor");
    doctor.arg("--json");
    for (verb, allowed) in [(export, of_files), (doctor, of_checkup)] {
        let name = format!("{verb:?}");
        let status = of_a_verb_that_writes(verb);
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            assert_eq!(status[set], allowed, "{set} of {name}: {:x}", status[set]);
        }
        assert_eq!((status["NoNewPrivs"], status["Seccomp"]), (1, 2), "{name}");
    }
}

#[test]
fn a_signal_is_passed_on_to_a_command_that_became_another_user() {
    let Some(lab) = Lab::beside_others() else { return };
    let command = ["setpriv", "--reuid", "65534", "--clear-groups", "sleep", "60"];
    let mut recorder = Helper::spawn(lab.recording(&[], command).stderr(Stdio::null()));
    wait_until("the run to begin", || !lab.runs_so_far().is_empty());
    std::thread::sleep(Duration::from_millis(300));
    recorder.signal(Signal::TERM);
    let status = wait_for(&mut recorder.0, Duration::from_secs(10));
    assert_eq!(status.code(), Some(128 + 15));
}

/// Has the kernel refuse perf_event_open to a command, and nothing else.
fn refuse_perf_events(command: &mut Command) {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const IS: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
    let program = [
        step(LOAD, 0, 0, 0), // the number of the call
        step(IS, 0, 1, libc::SYS_perf_event_open as u32),
        step(RETURN, 0, 0, refused),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // SAFETY: between fork and exec; two system calls, the program outlives the second.
    unsafe {
        command.pre_exec(move || {
            let mut program = program;
            let filter =
                libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
            let mode = libc::SECCOMP_MODE_FILTER;
            // As root no promise is needed, and it would be inherited.
            match libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
}

#[test]
fn without_perf_events_samples_alone_are_off() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut recording = lab.recording(&[], ["sleep", "0.3"]);
    refuse_perf_events(&mut recording);
    let output = recording.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let run = lab.run();
    assert_eq!((run.status, run.header.sampled), (RunStatus::Complete, false));
    let off: Vec<_> = run.capabilities.iter().filter(|part| !part.on).collect();
    let parts: Vec<_> =
        off.iter().map(|off| off.part).filter(|part| *part != RecorderPart::Timers).collect();
    assert_eq!(parts, [RecorderPart::Samples], "{off:?}");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("not recorded"), "{errors}");
}
