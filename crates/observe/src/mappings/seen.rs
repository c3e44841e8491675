//! What /proc shows of a living process: its mappings, and who it runs as.

use inspect::mappings::{self, Mapping};
use inspect::patience;
use inspect::read::text;

/// What was seen of a living process.
#[derive(Debug, Default)]
pub struct Seen {
    /// Who it runs as.
    pub user: Option<u32>,
    /// What it has mapped; nothing if it is gone, or does not answer.
    pub mappings: Vec<Mapping>,
    /// True if it has more mapped than was read.
    pub is_cut: bool,
}

/// What is to be seen of a process now. Of a list that is too long the beginning.
pub fn of_process(tgid: u32) -> Seen {
    match patience::ask(tgid, move || mappings::read(tgid)).and_then(|read| read) {
        Ok(list) => Seen { user: user_of(tgid), mappings: list.all, is_cut: !list.is_whole },
        Err(_) => Seen { user: user_of(tgid), ..Seen::default() },
    }
}

/// Effective user of a process, as it is known here.
pub fn user_of(tgid: u32) -> Option<u32> {
    let status = text(format!("/proc/{tgid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().nth(1)?.parse().ok()
}
