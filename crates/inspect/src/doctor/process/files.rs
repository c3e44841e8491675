//! Its descriptors.

use model::units::{count, counted, percentage};

use super::Target;
use super::memory::limit;
use crate::doctor::entry::{Entry, Look};

pub(super) const ENTRIES: &[Entry<Target>] = &[
    Entry {
        id: "fd-table",
        why: "When its table of descriptors is full the next open, socket or accept makes a larger \
              one and, with several threads, waits for all CPUs to pass a quiet moment: 8 to 24 ms.",
        source: "/proc/PID/status, /proc/PID/fd",
        look: |of| Ok(table(open(of)?, of.number("FDSize")?, of.number("Threads")?)),
    },
    Entry {
        id: "fd-limit",
        why: "At the limit open and accept fail, and servers that retry at once turn in a circle.",
        source: "/proc/PID/limits",
        look: |of| Ok(near_limit(open(of)?, limit(&of.get("limits")?, "Max open files")?)),
    },
    Entry {
        id: "logs-to-pipe",
        why: "A program whose output goes to a pipe waits in write() when the reader is slow.",
        source: "/proc/PID/fd/1, /proc/PID/fd/2",
        look: |of| {
            let target = |n: u32| std::fs::read_link(format!("/proc/{}/fd/{n}", of.pid()));
            let output = |n: u32| target(n).map(|path| path.to_string_lossy().into_owned());
            let (out, err) = (output(1), output(2));
            if let (Err(error), Err(_)) = (&out, &err) {
                return match error.kind() {
                    std::io::ErrorKind::NotFound => Ok(Look::good("no output")),
                    _ => Err(format!("its descriptors cannot be read: {error}")),
                };
            }
            Ok(output_goes(&out.unwrap_or_default(), &err.unwrap_or_default()))
        },
    },
];

fn open(of: &Target) -> Result<u64, String> {
    let entries = std::fs::read_dir(format!("/proc/{}/fd", of.pid()));
    let entries = entries.map_err(|error| format!("its descriptors cannot be read: {error}"))?;
    Ok(entries.count() as u64)
}

fn table(used: u64, size: u64, threads: u64) -> Look {
    let fact = format!("{} of {} places used", count(used), count(size));
    let is_nearly_full = used * 10 >= size * 9;
    match is_nearly_full && threads > 1 && size >= 256 {
        true => Look::attention(
            fact,
            "Make it grow at start: dup2() one descriptor to the highest number that will be \
             needed, and close that again.",
        ),
        false => Look::good(fact),
    }
    .passing()
}

fn near_limit(used: u64, limit: u64) -> Look {
    let share = 100.0 * used as f64 / limit.max(1) as f64;
    const ADVICE: &str = "Raise LimitNOFILE, or find the descriptors that are not closed.";
    let fact = format!("{} open", counted(used, "descriptor"));
    Look::by(share, 70.0, 95.0, fact, ADVICE)
        .detail(format!("{} of its limit", percentage(share / 100.0)))
        .passing()
}

fn output_goes(out: &str, err: &str) -> Look {
    let is_pipe = |path: &str| path.starts_with("pipe:");
    match is_pipe(out) || is_pipe(err) {
        true => Look::attention(
            "to a pipe",
            "Write logs in a thread of their own, with a bounded queue that drops; or to a file.",
        )
        .passing(),
        false => {
            let to = [out, err].into_iter().find(|path| !path.is_empty()).unwrap_or("nothing");
            Look::good(format!("to {to}")).passing()
        }
    }
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Bad, Good};

    use super::*;

    #[test]
    fn tables_and_pipes() {
        assert_eq!(table(250, 256, 8).verdict, Attention);
        assert_eq!((table(250, 256, 1).verdict, table(100, 256, 8).verdict), (Good, Good));
        assert_eq!([10, 80, 99].map(|n| near_limit(n, 100).verdict), [Good, Attention, Bad]);
        assert_eq!(output_goes("/dev/null", "pipe:[77]").verdict, Attention);
        assert_eq!(output_goes("/var/log/x", "/var/log/x").fact, "to /var/log/x");
    }
}
