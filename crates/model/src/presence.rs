//! When programs had a CPU, watched or not.

use serde::{Deserialize, Serialize};

/// A process in one second: the pieces of it in which one of its threads had a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Begin of the second; a process may have several entries for it.
    pub start_ns: u64,
    /// Process.
    pub tgid: u32,
    /// Its name when last seen.
    pub comm: String,
    /// Ranges of pieces, from 0: first, and the one after the last.
    pub pieces: Vec<(u8, u8)>,
}

impl Presence {
    /// Length of a piece.
    pub const PIECE_NS: u64 = 10_000_000;
    /// Pieces of a second.
    pub const PIECES: u8 = 100;

    /// The same as times: from, and up to.
    pub fn intervals(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let at = |piece: u8| self.start_ns.saturating_add(u64::from(piece) * Self::PIECE_NS);
        self.pieces.iter().map(move |(from, to)| (at(*from), at(*to)))
    }

    /// Time in these pieces.
    pub fn ns(&self) -> u64 {
        self.intervals().map(|(from, to)| to.saturating_sub(from)).sum()
    }
}
