//! Lines about calls as they become bound.

use model::units::duration;

use crate::text::clean;

/// What is known of how long it took to bind a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    /// From the first page fault in the dynamic linker on.
    AtMost {
        /// Length, ns.
        ns: u64,
        /// Page faults without a disk.
        minor_faults: u64,
        /// Page faults that read from one.
        major_faults: u64,
    },
    /// The recorder saw no page fault in the linker.
    NoFault,
    /// Nobody recorded.
    Unknown,
}

/// `10:00:03.014` in UTC of nanoseconds since 1970.
pub fn clock(unix_ns: i64) -> String {
    let ms = unix_ns.max(0) / 1_000_000 % 86_400_000;
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    format!("{hour:02}:{minute:02}:{:02}.{:03}", ms / 1000 % 60, ms % 1000)
}

/// `10:00:03.014  librate.so  sched_yield -> libc.so.6  took at most 12.4 ms (3 major, 9 minor page
/// faults)`.
pub fn bound(
    unix_ns: i64,
    library: &str,
    symbol: &str,
    provider: Option<&str>,
    took: Took,
) -> String {
    let name = |path: &str| clean(path.rsplit('/').next().unwrap_or(path));
    let to = provider.map(|path| format!(" -> {}", name(path))).unwrap_or_default();
    let took = match took {
        Took::AtMost { ns, minor_faults, major_faults } => format!(
            "took at most {} ({major_faults} major, {minor_faults} minor page faults)",
            duration(ns)
        ),
        Took::NoFault => "no page fault seen".to_owned(),
        Took::Unknown => "duration unknown".to_owned(),
    };
    format!("{}  {}  {}{to}  {took}", clock(unix_ns), name(library), clean(symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_who_what_and_how_long() {
        let line = |took| bound(36_003_014_000_000, "/opt/librate.so", "sched_yield", None, took);
        let seen = Took::AtMost { ns: 12_400_000, minor_faults: 9, major_faults: 3 };
        assert_eq!(
            line(seen),
            "10:00:03.014  librate.so  sched_yield  took at most 12.4 ms (3 major, 9 minor page \
             faults)"
        );
        assert!(line(Took::NoFault).ends_with("sched_yield  no page fault seen"));
        assert!(line(Took::Unknown).ends_with("  duration unknown"));
    }
}
