//! The time of two sets of runs as one flame graph of what differs.
//!
//! Widths are differences, not times, and what became slower, what became faster, what is new and
//! what is gone stand in branches of their own: so each branch is as wide as its sum, and their
//! signed sum is the difference of the accounts. What noise may explain is grey and by itself.

use std::collections::BTreeMap;
use std::io::{self, Write};

use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{self, Options};
use model::units::duration;
use model::{Account, Run};
use stats::shift::LEAST_RUNS;
use stats::{multiple, rank};

use super::folded;

/// A difference of single runs counts as one from so many standard errors of counting on: with one
/// interval more on a side it never does.
const ERRORS: f64 = 3.0;
/// p, adjusted for all stacks, up to this counts with enough runs.
const ALPHA: f64 = 0.05;

/// The runs of a side, and what their sums are divided by.
pub struct FlameSide<'a> {
    /// For the title.
    pub name: &'a str,
    /// Loaded whole.
    pub runs: &'a [Run],
    /// Units of work in all of them.
    pub units: u64,
}

/// How much time lies in each branch, ns per unit of work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Branches {
    /// Stacks that take longer.
    pub slower: f64,
    /// Stacks of the second side alone.
    pub new: f64,
    /// Stacks that take less long.
    pub faster: f64,
    /// Stacks of the first side alone.
    pub gone: f64,
    /// What noise may explain, what grew less what shrank.
    pub grey: f64,
}

impl Branches {
    /// The difference of the accounts.
    pub fn net(&self) -> f64 {
        self.slower + self.new - self.faster - self.gone + self.grey
    }

    /// Adds a stack that moved by so many ns.
    fn add(&mut self, kind: Kind, moved: f64) {
        match kind {
            Kind::Slower => self.slower += moved,
            Kind::New => self.new += moved,
            Kind::Faster => self.faster -= moved,
            Kind::Gone => self.gone -= moved,
            Kind::Grey => self.grey += moved,
        }
    }
}

/// How a stack differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It takes longer.
    Slower,
    /// The second side alone has it.
    New,
    /// It takes less long.
    Faster,
    /// The first side alone has it.
    Gone,
    /// Noise may explain it.
    Grey,
}

impl Kind {
    /// Each.
    pub const ALL: [Kind; 5] = [Kind::Slower, Kind::New, Kind::Faster, Kind::Gone, Kind::Grey];

    /// Ends each frame: the direction can be read without colour.
    pub fn mark(self) -> &'static str {
        match self {
            Kind::Slower => "\u{25b2}",
            Kind::New => "\u{271a}",
            Kind::Faster => "\u{25bc}",
            Kind::Gone => "\u{2715}",
            Kind::Grey => "=",
        }
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Slower => "slower",
            Kind::New => "new",
            Kind::Faster => "faster",
            Kind::Gone => "gone",
            Kind::Grey => "not shown to differ",
        }
    }

    /// Red, green, blue.
    pub fn color(self) -> [u8; 3] {
        match self {
            Kind::Slower => [235, 110, 90],
            Kind::New => [245, 160, 70],
            Kind::Faster => [110, 160, 235],
            Kind::Gone => [130, 200, 215],
            Kind::Grey => [205, 205, 205],
        }
    }
}

/// Writes the graph, of nanoseconds per unit of work, and returns what lies in each branch.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    a: &FlameSide<'_>,
    b: &FlameSide<'_>,
    unit: &str,
) -> io::Result<Branches> {
    let stacks = differences(a, b);
    let color = |kind: Kind| {
        let [red, green, blue] = kind.color();
        Color::new(red, green, blue)
    };
    let mut branches = Branches::default();
    let mut palette = PaletteMap::default();
    palette.insert("", Color::new(230, 230, 230));
    let mut lines = Vec::new();
    for (frames, kind, moved) in &stacks {
        branches.add(*kind, *moved);
        let marked: Vec<String> = std::iter::once(kind.name())
            .chain(frames.split(';'))
            .map(|name| format!("{} {}", name.trim_end_matches(folded::KERNEL), kind.mark()))
            .collect();
        for name in &marked {
            palette.insert(name.as_str(), color(*kind));
        }
        let width = moved.abs().round();
        if width >= 1.0 {
            lines.push(format!("{} {width}", marked.join(";")));
        }
    }
    if lines.is_empty() {
        // A graph without a line is an error to inferno.
        lines.push(format!("{} {} 1", Kind::Grey.name(), Kind::Grey.mark()));
        palette.insert("not shown to differ =", color(Kind::Grey));
    }
    lines.sort();
    let mut options = Options::default();
    options.title = format!("{} against {}: what differs, ns per {unit}", b.name, a.name);
    options.subtitle = Some(subtitle(&branches));
    options.count_name = "ns".to_owned();
    options.name_type = "Frame:".to_owned();
    options.palette_map = Some(&mut palette);
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
        .map_err(io::Error::other)?;
    Ok(branches)
}

/// `slower 2.00 ms, new 0 ns, faster 1.00 ms, gone 0 ns; the rest is not shown to differ`.
fn subtitle(branches: &Branches) -> String {
    let text = |ns: f64| duration(ns.round() as u64);
    format!(
        "slower {}, new {}, faster {}, gone {}; grey: noise may explain it",
        text(branches.slower),
        text(branches.new),
        text(branches.faster),
        text(branches.gone)
    )
}

/// A stack of one of the sides, or of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// How it differs.
    pub kind: Kind,
    /// Account, process and functions, the outermost first.
    pub frames: Vec<String>,
    /// By how much it is longer on the second side, ns per unit of work.
    pub ns: f64,
}

/// What the graph is drawn of, and what lies in its branches in words.
pub fn moved(a: &FlameSide<'_>, b: &FlameSide<'_>) -> (Vec<Moved>, String) {
    let mut branches = Branches::default();
    let stacks = differences(a, b).into_iter().map(|(frames, kind, ns)| {
        branches.add(kind, ns);
        let name = |frame: &str| frame.trim_end_matches(folded::KERNEL).to_owned();
        Moved { kind, frames: frames.split(';').map(name).collect(), ns }
    });
    let stacks = stacks.collect();
    (stacks, subtitle(&branches))
}

/// Time and intervals of a stack in one run.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    ns: i128,
    count: u64,
}

/// For each stack its kind and by how much it moved, ns per unit of work.
fn differences(a: &FlameSide<'_>, b: &FlameSide<'_>) -> Vec<(String, Kind, f64)> {
    let of_runs =
        |side: &FlameSide<'_>| side.runs.iter().map(stacks).collect::<Vec<BTreeMap<_, _>>>();
    let (of_a, of_b) = (of_runs(a), of_runs(b));
    let mut names: Vec<&String> = of_a.iter().chain(&of_b).flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    let parts = |side: &[BTreeMap<String, Part>], name: &String| -> Vec<Part> {
        side.iter().map(|run| run.get(name).copied().unwrap_or_default()).collect()
    };
    let both: Vec<(&String, Vec<Part>, Vec<Part>)> =
        names.into_iter().map(|name| (name, parts(&of_a, name), parts(&of_b, name))).collect();
    let is_shown = shown(&both, a, b);
    let per_unit = |parts: &[Part], side: &FlameSide<'_>| {
        parts.iter().map(|part| part.ns).sum::<i128>() as f64 / side.units.max(1) as f64
    };
    let compared = both.iter().zip(is_shown).map(|((name, x, y), is_shown)| {
        let (before, after) = (per_unit(x, a), per_unit(y, b));
        let kind = match is_shown {
            false => Kind::Grey,
            true if before == 0.0 => Kind::New,
            true if after == 0.0 => Kind::Gone,
            true if after > before => Kind::Slower,
            true => Kind::Faster,
        };
        ((*name).clone(), kind, after - before)
    });
    compared.collect()
}

/// For each stack whether more than noise explains that it moved: with enough runs by a test over
/// them, else by how much counting alone would make of so many intervals.
fn shown(
    both: &[(&String, Vec<Part>, Vec<Part>)],
    a: &FlameSide<'_>,
    b: &FlameSide<'_>,
) -> Vec<bool> {
    if a.runs.len().min(b.runs.len()) < LEAST_RUNS {
        return both.iter().map(|(_, x, y)| is_beyond_counting(x, y, a.units, b.units)).collect();
    }
    let values = |parts: &[Part], side: &FlameSide<'_>| -> Vec<f64> {
        let units = side.units.max(1) as f64 / parts.len().max(1) as f64;
        parts.iter().map(|part| part.ns as f64 / units).collect()
    };
    let ps: Vec<f64> = both
        .iter()
        .map(|(_, x, y)| {
            rank::mann_whitney(&values(x, a), &values(y, b)).map_or(1.0, |test| test.p)
        })
        .collect();
    multiple::benjamini_hochberg(&ps).into_iter().map(|p| p <= ALPHA).collect()
}

/// The variance of a sum of n intervals of a random number and length is twice n times the square
/// of their mean, if lengths are as uneven as those of an exponential distribution.
fn is_beyond_counting(a: &[Part], b: &[Part], units_a: u64, units_b: u64) -> bool {
    let of = |parts: &[Part], units: u64| {
        let units = units.max(1) as f64;
        let ns = parts.iter().map(|part| part.ns).sum::<i128>() as f64;
        let count = parts.iter().map(|part| part.count).sum::<u64>().max(1) as f64;
        (ns / units, 2.0 * ns * ns / count / units / units)
    };
    let ((ns_a, of_a), (ns_b, of_b)) = (of(a, units_a), of(b, units_b));
    (ns_b - ns_a).abs() > ERRORS * (of_a + of_b).sqrt()
}

/// All time of a run by stack: what has none (a CPU, intervals below the threshold) is by account,
/// so that the stacks sum to the accounts.
fn stacks(run: &Run) -> BTreeMap<String, Part> {
    let mut all = BTreeMap::<String, Part>::new();
    let mut left: BTreeMap<Account, i128> =
        run.accounts().iter().map(|(account, ns)| (account, i128::from(ns))).collect();
    for sum in &run.sums.stack_sums {
        *left.entry(sum.account).or_default() -= i128::from(sum.ns);
        let name =
            format!("{};{}", folded::frame(&sum.account.to_string()), folded::path(run, sum));
        let part = all.entry(name).or_default();
        part.ns += i128::from(sum.ns);
        part.count += sum.count;
    }
    for (account, ns) in left.into_iter().filter(|(_, ns)| *ns != 0) {
        let name = folded::frame(&account.to_string());
        // How many intervals there were is not known: as few as could be.
        all.insert(format!("{name};[no stack]"), Part { ns, count: 1 });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn drawn(a: &[Run], b: &[Run]) -> (String, Branches) {
        let mut out = Vec::new();
        let a = FlameSide { name: "one", runs: a, units: a.len() as u64 };
        let b = FlameSide { name: "two", runs: b, units: b.len() as u64 };
        let branches = write(&mut out, &a, &b, "run").unwrap();
        (String::from_utf8(out).unwrap(), branches)
    }

    /// The sample with its first stack this many times as long, and as many times as many intervals.
    fn longer(times: u64) -> Run {
        let mut run = sample::run();
        let sum = &mut run.sums.stack_sums[0];
        sum.count = 50 * times;
        let more = sum.ns * (times - 1);
        sum.ns += more;
        let account = sum.account;
        run.threads[0].accounts.add(account, more);
        run
    }

    #[test]
    fn the_branches_sum_to_the_difference_of_the_accounts() {
        let (a, b) = (longer(1), longer(4));
        let (svg, branches) = drawn(std::slice::from_ref(&a), std::slice::from_ref(&b));
        let net = b.accounts().total() - a.accounts().total();
        assert_eq!(branches.net().round() as u64, net);
        assert_eq!(branches.slower.round() as u64, net, "{branches:?}");
        assert!(svg.contains("two against one: what differs, ns per run"));
        assert!(svg.contains("slower \u{25b2}") && !svg.contains("gone \u{2715}"));
        let (svg, back) = drawn(&[b], &[a]);
        assert_eq!(back.faster, branches.slower);
        assert!(svg.contains("faster \u{25bc}") && !svg.contains("slower \u{25b2}"));
    }

    #[test]
    fn one_interval_against_none_is_grey() {
        let mut one = sample::run();
        one.sums.stack_sums.truncate(1);
        one.sums.stack_sums[0].count = 1;
        let mut none = one.clone();
        none.sums.stack_sums.clear();
        let (svg, branches) = drawn(&[none], &[one]);
        assert_eq!((branches.new, branches.slower), (0.0, 0.0));
        assert!(svg.contains("not shown to differ") && !svg.contains("new \u{271a}"));
    }

    #[test]
    fn what_is_gone_in_all_of_enough_runs_is_gone_and_equal_sides_are_drawn() {
        let mut without = longer(1);
        let sum = without.sums.stack_sums.remove(0);
        let mut left: Vec<_> = without.threads[0].accounts.iter().collect();
        left.iter_mut().filter(|(account, _)| *account == sum.account).for_each(|(_, ns)| {
            *ns = ns.saturating_sub(sum.ns);
        });
        without.threads[0].accounts = left.into_iter().collect();
        let (_, branches) = drawn(&vec![longer(1); 6], &vec![without; 6]);
        assert_eq!(branches.gone.round() as u64, sum.ns, "{branches:?}");
        let (svg, same) = drawn(&vec![longer(1); 6], &vec![longer(1); 6]);
        assert_eq!(same, Branches::default());
        roxmltree::Document::parse_with_options(
            &svg,
            roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() },
        )
        .unwrap();
    }
}
