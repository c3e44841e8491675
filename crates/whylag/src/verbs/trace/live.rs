//! `whylag trace -p PID`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use messages::{Follower, Look, guarded};
use report::messages as print;
use trace::reader::TraceFile;

use crate::failure::Failure;
use crate::output;
use crate::signals::Asked;

/// How often the trace is looked at: what a thread's ring of 64 slow messages has to last for.
const LOOK: Duration = Duration::from_millis(20);

/// Slow messages printed per interval; more are counted.
const PRINTED: usize = 20;

/// The shortest interval that makes sense.
const SHORTEST_NS: u64 = 20_000_000;

pub fn follow(pid: u32, every_ns: u64, json: bool) -> Result<ExitCode, Failure> {
    let every_ns = every_ns.max(SHORTEST_NS);
    let signal = Asked::listen()?;
    let start = clock::monotonic_ns();
    let mut follower = Follower::new(open(pid)?, pid, 0, start, every_ns)?;
    let (mut out, style) = output::stdout();
    let mut screen = Screen { out: &mut out, style, json, since_ns: start, printed: 0, held: 0 };
    loop {
        // Asked before the look: what the program wrote before it ended is read after that.
        let ends = signal.reason().is_some() || !follower.is_writing();
        let now = clock::monotonic_ns();
        let look = if ends { follower.last_look() } else { follower.look(now) };
        let unfinished = follower.unfinished(now).map(<[_]>::to_vec).unwrap_or_default();
        let stuck = unfinished.iter().filter(|m| now.saturating_sub(m.t0_ns) >= every_ns);
        screen.show(&follower, look?, stuck, now, ends)?;
        if ends {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(LOOK);
    }
}

fn open(pid: u32) -> Result<TraceFile, Failure> {
    if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
        return Err(Failure::Usage(format!("there is no process {pid}")));
    }
    let found = guarded::of_process(pid, true).map_err(|error| {
        Failure::Failed(anyhow!("the trace of process {pid} cannot be looked for: {error}"))
    })?;
    found?.ok_or_else(|| {
        Failure::Usage(format!(
            "process {pid} does not trace its messages: 'whylag trace ls' shows those that do"
        ))
    })
}

struct Screen<'a, W: Write> {
    out: &'a mut W,
    style: report::Style,
    json: bool,
    /// Start of the interval.
    since_ns: u64,
    /// Slow messages of the interval that were printed, and that were not.
    printed: usize,
    held: usize,
}

impl<W: Write> Screen<'_, W> {
    fn show<'m>(
        &mut self,
        follower: &Follower,
        look: Look,
        stuck: impl Iterator<Item = &'m model::UnfinishedMessage>,
        now: u64,
        ends: bool,
    ) -> Result<(), Failure> {
        let (out, style, program) = (&mut *self.out, &self.style, follower.program());
        for message in &look.slow {
            if self.json {
                print::json::write_slow(out, message)?;
            } else if self.printed < PRINTED {
                print::write_slow(out, program, message, style)?;
                self.printed += 1;
            } else {
                self.held += 1;
            }
        }
        if follower.has_turned() || ends {
            let length_ns = now.saturating_sub(self.since_ns);
            if self.held > 0 {
                writeln!(out, "     and {} more slow ones", self.held)?;
            }
            if self.json {
                print::json::write_interval(out, program, &look.seconds, length_ns)?;
            } else {
                print::write_interval(out, program, &look.seconds, length_ns, style)?;
            }
            for message in stuck {
                if self.json {
                    print::json::write_stuck(out, message)?;
                } else {
                    print::write_stuck(out, program, message, style)?;
                }
            }
            (self.since_ns, self.printed, self.held) = (now, 0, 0);
        }
        if ends && self.json {
            print::json::write_end(out, program)?;
        } else if ends {
            print::write_end(out, program, style)?;
        }
        Ok(out.flush()?)
    }
}
