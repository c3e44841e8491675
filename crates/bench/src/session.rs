//! A run of benchmarks in a process of its own.
//!
//! The asking process stays outside: it can record the measuring process, and removes what that
//! one leaves if it is killed. If the asking process is killed, the measuring process removes
//! everything itself.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use model::{BenchCase, BenchStep};
use serde::{Deserialize, Serialize};

use crate::cases;
use crate::clock::Clock;
use crate::ladder::{Bench, MOST_ROUNDS, ROUNDS, Settings};
use crate::tidy::Traces;
use crate::{Error, stop};

/// What the measuring process reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report {
    /// First: a description of the clock.
    Clock(String),
    /// Then: the empty operation.
    Empty(BenchStep),
    /// A case is under way; the part of it that is done, 0 to 1.
    Progress(String, f64),
    /// A case is done.
    Case(BenchCase),
    /// It cannot go on.
    Failed(String),
    /// All is done.
    End,
}

/// A measuring process.
pub struct Session {
    pid: libc::pid_t,
    messages: BufReader<UnixStream>,
    /// Set to let it begin.
    to_child: UnixStream,
    traces: Traces,
    reaped: bool,
}

/// Time for the empty operation.
const EMPTY_TIME: Duration = Duration::from_millis(200);
/// How often a process that waits for messages looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// How long a process that is asked to end may take to tidy up.
const PATIENCE: Duration = Duration::from_secs(5);

impl Session {
    /// Forks the measuring process, which waits for [`Session::go`]. From now on SIGINT and SIGTERM
    /// end the measurement instead of this process. The caller must have no other thread.
    pub fn start(settings: &Settings) -> Result<Session, Error> {
        let failed = |doing: &str| {
            let doing = doing.to_owned();
            move |source| Error::Os { doing, source }
        };
        let traces = Traces::begin()?;
        stop::on_signals().map_err(failed("handling signals"))?;
        let (ours, theirs) = UnixStream::pair().map_err(failed("making a socket pair"))?;
        ours.set_read_timeout(Some(LOOK)).map_err(failed("setting a timeout"))?;
        let to_child = ours.try_clone().map_err(failed("copying a descriptor"))?;
        let parent = std::process::id();
        // SAFETY: the caller has no other thread; the child leaves by _exit.
        match unsafe { libc::fork() } {
            -1 => Err(Error::os("starting the measuring process")),
            0 => {
                drop((ours, to_child));
                end_with(parent);
                let outcome = Measuring { to: theirs }.run(settings, &traces);
                traces.remove();
                // SAFETY: ends this process without running what the parent registered.
                unsafe { libc::_exit(i32::from(outcome.is_err())) };
            }
            pid => {
                let messages = BufReader::new(ours);
                Ok(Session { pid, messages, to_child, traces, reaped: false })
            }
        }
    }

    /// Pid of the measuring process.
    pub fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// Lets the measurement begin.
    pub fn go(&mut self) -> Result<(), Error> {
        let sent = self.to_child.write_all(b"\n");
        sent.map_err(|source| Error::Os { doing: "starting the measurement".to_owned(), source })
    }

    /// The next message; `None` when the process is gone.
    pub fn receive(&mut self) -> Option<Report> {
        let mut line = Vec::new();
        loop {
            match self.messages.read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(_) => return serde_json::from_slice(&line).ok(),
                // A signal handler does not interrupt the reading.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => self.pass_on(),
                Err(_) => return None,
            }
        }
    }

    /// A signal that came to this process alone is meant for the other, too.
    fn pass_on(&self) {
        if stop::requested() {
            // SAFETY: a child that was not waited for.
            unsafe { libc::kill(self.pid, libc::SIGTERM) };
        }
    }

    /// Waits for the process, which is killed if it takes too long to end.
    fn end(&mut self) {
        if std::mem::replace(&mut self.reaped, true) {
            return;
        }
        self.pass_on();
        let began = Instant::now();
        // SAFETY: a child of ours; its status is not wanted.
        while unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) } == 0 {
            if began.elapsed() > PATIENCE {
                // SAFETY: the child has not been waited for.
                unsafe {
                    libc::kill(self.pid, libc::SIGKILL);
                    libc::waitpid(self.pid, std::ptr::null_mut(), 0);
                }
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.traces.remove();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

/// Has the calling process get SIGTERM when `parent`, which forked it, ends.
fn end_with(parent: u32) {
    // SAFETY: plain system calls with constants.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        if libc::getppid() as u32 != parent {
            libc::_exit(1);
        }
    }
}

/// The other side.
struct Measuring {
    to: UnixStream,
}

impl Measuring {
    fn run(mut self, settings: &Settings, traces: &Traces) -> Result<(), Error> {
        let mut start = String::new();
        let from = self.to.try_clone();
        let read = from.and_then(|from| BufReader::new(from).read_line(&mut start));
        if !matches!(read, Ok(1)) {
            return Err(Error::Stopped);
        }
        match self.measure(settings, traces) {
            Ok(()) => self.send(&Report::End),
            Err(error) => self.send(&Report::Failed(error.to_string())),
        }
    }

    fn measure(&mut self, settings: &Settings, traces: &Traces) -> Result<(), Error> {
        let clock = Clock::choose();
        self.send(&Report::Clock(clock.describe()))?;
        let mut bench = Bench {
            clock,
            clock_step_ns: clock.step_ns(),
            traces,
            empty_ns: f64::INFINITY,
            // The tour takes no longer on a machine where others work.
            most_rounds: if settings.tour { ROUNDS } else { MOST_ROUNDS },
        };
        let alone = Settings {
            workers: Some((model::WorkerKind::Threads, vec![1])),
            time: EMPTY_TIME,
            ..settings.clone()
        };
        let empty = bench.measure(cases::EMPTY, &alone, &mut |_| {})?.steps.pop();
        let empty = empty.ok_or_else(|| Error::Refused("the empty operation failed".to_owned()))?;
        bench.empty_ns = crate::round::middle(&empty.single, bench.clock_step_ns);
        self.send(&Report::Empty(empty))?;
        for case in &settings.cases {
            let mut sent = Ok(());
            let mut report = |part| sent = self.send(&Report::Progress(case.id.to_owned(), part));
            report(0.0);
            let measured = bench.measure(case, settings, &mut report)?;
            sent?;
            self.send(&Report::Case(measured))?;
        }
        Ok(())
    }

    /// Fails if nobody listens any more.
    fn send(&mut self, message: &Report) -> Result<(), Error> {
        let sent =
            serde_json::to_vec(message).map_err(std::io::Error::from).and_then(|mut line| {
                line.push(b'\n');
                self.to.write_all(&line)
            });
        sent.map_err(|source| Error::Os { doing: "sending the results".to_owned(), source })
    }
}
