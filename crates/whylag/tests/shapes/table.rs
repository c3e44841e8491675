//! The verdicts together.

use std::fmt;

use crate::verdict::Verdict;

/// So many verdicts have to be right.
#[derive(Default)]
pub struct Floors {
    pub first: usize,
    pub causes: usize,
    pub size: usize,
    pub chain: usize,
    /// Healthy programs of which nothing is found.
    pub healthy: usize,
}

/// All verdicts.
#[derive(Default)]
pub struct Table(Vec<Verdict>);

/// Programs in one respect.
struct Count {
    right: usize,
    /// Wrong in a recording that something disturbed.
    not_judged: usize,
    of: usize,
}

impl Table {
    pub fn add(&mut self, verdict: Verdict) {
        self.0.push(verdict);
    }

    fn count(&self, healthy: bool, is_right: impl Fn(&Verdict) -> bool) -> Count {
        let all: Vec<&Verdict> =
            self.0.iter().filter(|verdict| verdict.is_of_healthy() == healthy).collect();
        let wrong = all.iter().filter(|verdict| !is_right(verdict));
        Count {
            right: all.iter().filter(|verdict| is_right(verdict)).count(),
            not_judged: wrong.filter(|verdict| verdict.disturbed.is_some()).count(),
            of: all.len(),
        }
    }

    fn counts(&self) -> [(&'static str, Count); 5] {
        [
            ("right in first cause", self.count(false, |verdict| verdict.first)),
            ("all causes", self.count(false, |verdict| verdict.causes)),
            ("size", self.count(false, |verdict| verdict.size)),
            ("chain", self.count(false, |verdict| verdict.chain)),
            ("healthy without finding", self.count(true, |verdict| verdict.silent)),
        ]
    }

    /// A wrong verdict on a disturbed recording does not count against the engine.
    pub fn assert_reaches(&self, floors: &Floors) {
        let Floors { first, causes, size, chain, healthy } = *floors;
        for ((what, count), floor) in
            self.counts().into_iter().zip([first, causes, size, chain, healthy])
        {
            assert!(count.right + count.not_judged >= floor, "{what}: {count}, below {floor}");
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.right, self.of)?;
        match self.not_judged {
            0 => Ok(()),
            disturbed => write!(f, " ({disturbed} more not judged)"),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts().map(|(what, count)| format!("{what}: {count}"));
        f.write_str(&counts.join("; "))
    }
}
