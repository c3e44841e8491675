//! What a program says of itself in its last line.

use std::collections::HashMap;

/// What the names of truths mean that are no ids of the catalogue: the causes that say the same. A
/// new cause of the catalogue for one of them is added here.
const CALLED: [(&str, &[&str]); 8] = [
    // N threads, one at a time, whatever lets them in.
    ("turn", &["futex-convoy"]),
    // The same, several at a time.
    ("pool", &[]),
    // All wait for the one that comes last.
    ("barrier", &["barrier-straggler"]),
    ("deadlock", &["futex-convoy"]),
    // Another thread or process of the host, which was asked for something.
    ("peer", &["slow-peer"]),
    // The ends themselves.
    ("timer", &[]),
    ("disk", &["disk-sync", "disk-read"]),
    ("cpu", &[]),
];

/// A loss: what it may be called, how long, because of whom.
pub struct Loss {
    names: String,
    pub lost_ns: u64,
    /// Name of the thread behind it; that of a crew ends with `-`.
    pub behind: String,
    /// sleep, cpu, disk, stop or deadlock.
    pub does: String,
}

impl Loss {
    /// True if a cause of the catalogue is one of the loss's names.
    pub fn is_called(&self, cause: &str) -> bool {
        let mut names = self.names.split(',');
        names.any(|name| match CALLED.iter().find(|(called, _)| *called == name) {
            Some((_, causes)) => causes.contains(&cause),
            None => name == cause,
        })
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Loss { names, lost_ns, behind, does } = self;
        write!(f, "{names} {:.2} s behind {behind} ({does})", *lost_ns as f64 / 1e9)
    }
}

/// All losses of a program; none is healthy.
pub struct Truth {
    pub losses: Vec<Loss>,
}

impl Truth {
    /// Of the last line that the program printed.
    pub fn of(output: &str) -> Truth {
        let line = output.lines().last().unwrap_or_default();
        assert!(line.starts_with("truth: healthy="), "no truth: {output}");
        let pairs = line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        let values: HashMap<&str, &str> = pairs.collect();
        let loss = |number: u32| {
            let value = |key: &str| values[format!("{key}.{number}").as_str()].to_owned();
            let is_there = values.contains_key(format!("cause.{number}").as_str());
            is_there.then(|| Loss {
                names: value("cause"),
                lost_ns: value("lost_ns").parse().unwrap(),
                behind: value("behind"),
                does: value("does"),
            })
        };
        let losses: Vec<Loss> = (0..).map_while(loss).collect();
        assert_eq!(losses.is_empty(), values["healthy"] == "1", "{line}");
        Truth { losses }
    }
}
