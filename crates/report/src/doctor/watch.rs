//! Lines about calls as they become bound.

use crate::text::clean;

/// `10:00:03.014` in UTC of nanoseconds since 1970.
pub fn clock(unix_ns: i64) -> String {
    let ms = unix_ns.max(0) / 1_000_000 % 86_400_000;
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    format!("{hour:02}:{minute:02}:{:02}.{:03}", ms / 1000 % 60, ms % 1000)
}

/// `10:00:03.014  librate.so  sched_yield -> libc.so.6`.
pub fn bound(unix_ns: i64, library: &str, symbol: &str, provider: Option<&str>) -> String {
    let name = |path: &str| clean(path.rsplit('/').next().unwrap_or(path));
    let to = provider.map(|path| format!(" -> {}", name(path))).unwrap_or_default();
    format!("{}  {}  {}{to}", clock(unix_ns), name(library), clean(symbol))
}
