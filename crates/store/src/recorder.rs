//! Whether the process that began a run is still there.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process, distinguished from any other that ever had its pid.
#[derive(Serialize, Deserialize)]
pub(crate) struct Recorder {
    pub pid: u32,
    /// Start time in clock ticks since boot; `None` if it was gone already when the run began.
    pub start_ticks: Option<i64>,
    /// The boot these ticks count from.
    pub boot_id: Option<String>,
}

impl Recorder {
    /// The process that has this pid now.
    pub fn of_pid(pid: u32) -> Recorder {
        Recorder { pid, start_ticks: start_ticks(pid), boot_id: boot_id() }
    }

    /// One of another host.
    pub fn elsewhere(pid: u32) -> Recorder {
        Recorder { pid, start_ticks: None, boot_id: None }
    }

    /// True if that very process still runs.
    pub fn is_alive(&self) -> bool {
        self.start_ticks.is_some()
            && self.start_ticks == start_ticks(self.pid)
            && self.boot_id == boot_id()
    }
}

fn start_ticks(pid: u32) -> Option<i64> {
    // The name in it may be any bytes, once another process has this pid.
    start_ticks_in(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// Field 22 of /proc/PID/stat; `None` for a process that has ended and only waits for its parent.
fn start_ticks_in(stat: &str) -> Option<i64> {
    // Field 2, the name in parentheses, may itself hold spaces and parentheses.
    let mut fields_from_3 = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields_from_3.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields_from_3.nth(22 - 4)?.parse().ok()
}

fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "1234 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n";

    #[test]
    fn the_start_time_is_field_22_whatever_the_name() {
        assert_eq!(start_ticks_in(STAT), Some(4711));
        assert_eq!(start_ticks_in(&STAT.replace(") S", ") Z")), None);
        assert_eq!(start_ticks_in("1234 (cut"), None);
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let mut recorder = Recorder::of_pid(std::process::id());
        assert!(recorder.is_alive());
        recorder.start_ticks = recorder.start_ticks.map(|ticks| ticks - 1);
        assert!(!recorder.is_alive());
    }
}
