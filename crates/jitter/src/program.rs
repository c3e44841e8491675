//! A program that prints its own ticks: one line `intended_ns actual_ns` each, CLOCK_MONOTONIC.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use model::{JitterProgram, JitterThread};
use rustix::process::{Pid, Signal, kill_process};

use crate::{Error, Series, facts};

/// Lines that may wait to be judged; a program that prints faster waits for us.
const WAITING: usize = 65_536;
/// Longest line that is looked at.
const LINE: usize = 256;
/// How often its threads are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Time that it gets to end when asked to.
const GRACE: Duration = Duration::from_secs(2);
/// So long it is waited for the end of its output once it has ended: a process that it has left behind
/// may hold that for as long as it lives.
const LINGER: Duration = Duration::from_secs(1);

enum Line {
    Tick { intended: u64, actual: u64 },
    Other,
}

/// A running program.
pub struct Program {
    child: Child,
    lines: Receiver<Line>,
    series: Series,
    other_lines: u64,
    threads: BTreeMap<u32, JitterThread>,
    looked: Option<Instant>,
    started_ns: u64,
    /// When it was seen to have ended.
    ended: Option<Instant>,
}

impl Program {
    /// Starts it; it dies with us.
    pub fn start(words: &[OsString], over_ns: Option<u64>) -> Result<Program, Error> {
        let started_ns = clock::monotonic_ns();
        let name = words.first().cloned().unwrap_or_default();
        let mut command = Command::new(&name);
        command.args(&words[1.min(words.len())..]).stdout(Stdio::piped());
        // SAFETY: runs between fork and exec; one system call, no allocation.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let child = command.spawn().map_err(|source| Error::Command {
            program: name.to_string_lossy().into_owned(),
            source,
        })?;
        Ok(Program::of(child, started_ns, over_ns))
    }

    /// One that was started after `started_ns`, with its standard output in a pipe.
    pub fn of(mut child: Child, started_ns: u64, over_ns: Option<u64>) -> Program {
        let (sender, lines) = sync_channel(WAITING);
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || read_lines(stdout, &sender));
        }
        Program {
            child,
            lines,
            series: Series::new("program", 0, over_ns),
            other_lines: 0,
            threads: BTreeMap::new(),
            looked: None,
            started_ns,
            ended: None,
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The ticks so far.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// The same, to take what is new.
    pub fn series_mut(&mut self) -> &mut Series {
        &mut self.series
    }

    /// Takes what it has printed; true once it has closed its output, or has ended a second ago.
    pub fn drain(&mut self) -> bool {
        self.look_at_threads();
        let now = clock::monotonic_ns();
        loop {
            match self.lines.try_recv() {
                // No tick of this clock: another clock's, or not a time at all.
                Ok(Line::Tick { intended, actual })
                    if actual < self.started_ns
                        || actual > now + 1_000_000_000
                        || intended.abs_diff(actual) > 3_600_000_000_000 =>
                {
                    self.other_lines += 1;
                }
                Ok(Line::Tick { intended, actual }) => self.series.tick(intended, actual),
                Ok(Line::Other) => self.other_lines += 1,
                Err(TryRecvError::Empty) => return self.has_ended(),
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }

    fn has_ended(&mut self) -> bool {
        if self.ended.is_none() && matches!(self.child.try_wait(), Ok(Some(_))) {
            self.ended = Some(Instant::now());
        }
        self.ended.is_some_and(|ended| ended.elapsed() > LINGER)
    }

    fn look_at_threads(&mut self) {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        for thread in facts::threads(self.pid()) {
            self.threads.insert(thread.tid, thread);
        }
    }

    /// Ends it if it still runs, takes the rest, and gives its ticks, what is known of it, and its
    /// exit status as a shell reports it; `None` if it was ended here.
    pub fn finish(mut self) -> Result<(Series, JitterProgram, Option<i32>), Error> {
        let ended = self.drain();
        if !ended && let Some(pid) = Pid::from_raw(self.pid() as i32) {
            // It may end by itself at this moment.
            let _ = kill_process(pid, Signal::TERM);
        }
        let asked = Instant::now();
        let status = loop {
            self.drain();
            let waited = self.child.try_wait().map_err(Error::system("waiting for the program"))?;
            if let Some(status) = waited {
                break status;
            }
            if asked.elapsed() > GRACE {
                // Fails only if it has ended.
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        while !self.drain() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let program = JitterProgram {
            pid: self.child.id(),
            other_lines: self.other_lines,
            threads: self.threads.into_values().collect(),
        };
        let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok((self.series, program, ended.then_some(status)))
    }
}

fn read_lines(stdout: ChildStdout, lines: &SyncSender<Line>) {
    let mut reader = BufReader::new(stdout);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match read_line(&mut reader, &mut bytes) {
            Ok(true) => {}
            _ => return,
        }
        let line = parse(&bytes).unwrap_or(Line::Other);
        if lines.send(line).is_err() {
            return;
        }
    }
}

/// The beginning of a line, however long it is; false at the end.
fn read_line(reader: &mut impl BufRead, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(!bytes.is_empty());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(buffer.len());
        let room = LINE.saturating_sub(bytes.len()).min(taken);
        bytes.extend_from_slice(&buffer[..room]);
        reader.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(true);
        }
    }
}

fn parse(line: &[u8]) -> Option<Line> {
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (intended, actual) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(Line::Tick { intended, actual })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> (Series, JitterProgram, Option<i32>) {
        let words = ["sh", "-c", script].map(OsString::from);
        let mut program = Program::start(&words, None).unwrap();
        while !program.drain() {
            std::thread::sleep(Duration::from_millis(2));
        }
        program.finish().unwrap()
    }

    #[test]
    fn ticks_are_taken_and_other_lines_counted() {
        let now = clock::monotonic_ns() + 200_000_000;
        let long = "x".repeat(5000);
        let script = format!(
            "echo hello; echo {} {}; echo {long}; echo; echo {} {now}; echo 1 2; echo {now} {now} 3; exit 4",
            now - 500,
            now - 100,
            now - 50
        );
        let (series, program, status) = run(&script);
        assert_eq!(series.summary().intended, 2);
        assert_eq!(series.summary().late.max(), Some(400));
        assert_eq!((program.other_lines, status), (5, Some(4)));
    }

    #[test]
    fn a_program_without_end_is_ended() {
        let words = ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"].map(OsString::from);
        let mut program = Program::start(&words, None).unwrap();
        let pid = program.pid();
        std::thread::sleep(Duration::from_millis(300));
        program.drain();
        let (_, facts, status) = program.finish().unwrap();
        assert_eq!(status, None);
        assert!(facts.threads.iter().any(|thread| thread.tid == pid), "{facts:?}");
        assert!(facts::threads(pid).is_empty());
    }

    #[test]
    fn a_process_that_it_leaves_behind_is_not_waited_for() {
        let began = Instant::now();
        let now = clock::monotonic_ns() + 200_000_000;
        let (series, _, status) = run(&format!("sleep 20 & echo {now} {now}; exit 3"));
        assert_eq!((series.summary().intended, status), (1, Some(3)));
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }

    #[test]
    fn no_program_is_an_error_of_usage() {
        let error = Program::start(&["/no/such/program".into()], None).err().unwrap();
        assert!(error.is_usage() && error.to_string().contains("/no/such/program"), "{error}");
    }
}
