//! One stack of what C and Python called.
//!
//! The interpreter runs Python functions in a loop, `_PyEval_EvalFrameDefault`. A call from one to
//! another stays in that loop; a call of C that comes back to Python begins another. So the Python
//! functions up to one that C called are what one such loop runs, and take its place. Its name is
//! not always known: compilers split it, and from 3.14 on its parts can be functions that end in each
//! other. From 3.12 on a frame of each entry from C is among its variables, which a copy of the stack shows.

use std::collections::VecDeque;

use model::Frame;

/// Names of the loop; compilers make parts of it functions of their own.
const LOOP: [&str; 2] = ["_PyEval_EvalFrameDefault", "_TAIL_CALL_"];

/// A Python function that runs.
pub struct Called {
    pub frame: Frame,
    /// True if C called it.
    pub is_entry: bool,
}

/// The stack of both, innermost first. `known` are loops that the stack itself says, the innermost
/// ones; others are found by name. Of a native stack that is `whole` the outermost of these run the
/// outermost functions, else the innermost the innermost ones.
pub fn join(native: Vec<Frame>, known: &[usize], whole: bool, python: Vec<Called>) -> Vec<Frame> {
    let mut runs = runs(python);
    let beyond = known.last().map_or(0, |last| last + 1);
    let named = native.iter().enumerate().skip(beyond).filter(|(_, frame)| is_loop(frame));
    let mut loops: VecDeque<usize> = known.iter().copied().chain(named.map(|(n, _)| n)).collect();
    // A thread can be between its call of a loop and that loop's first function, or behind it.
    let mut lone_runs = 0;
    if whole && known.is_empty() {
        loops.drain(..loops.len().saturating_sub(runs.len()));
        lone_runs = runs.len().saturating_sub(loops.len());
    }
    let mut joined = Vec::with_capacity(native.len() + runs.iter().map(Vec::len).sum::<usize>());
    for (number, frame) in native.into_iter().enumerate() {
        if loops.front() != Some(&number) || runs.is_empty() {
            joined.push(frame);
            continue;
        }
        loops.pop_front();
        let here = 1 + std::mem::take(&mut lone_runs);
        joined.extend(runs.drain(..here.min(runs.len())).flatten());
    }
    joined.extend(runs.into_iter().flatten());
    joined
}

fn is_loop(frame: &Frame) -> bool {
    let symbol = frame.symbol.as_deref().unwrap_or_default();
    LOOP.iter().any(|name| symbol.starts_with(name))
}

/// Functions by the loop that runs them.
fn runs(python: Vec<Called>) -> Vec<Vec<Frame>> {
    let mut runs = Vec::new();
    let mut run = Vec::new();
    for called in python {
        run.push(called.frame);
        if called.is_entry {
            runs.push(std::mem::take(&mut run));
        }
    }
    if !run.is_empty() {
        runs.push(run);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(symbol: &str) -> Frame {
        Frame {
            address: 0,
            module: "m".into(),
            offset: 0,
            symbol: Some(symbol.to_owned()),
            symbol_offset: 0,
            unknown_because: None,
            after: None,
            source: None,
        }
    }

    /// `eval` is the loop; a Python function that C called has a `*`.
    fn joined(native: &str, whole: bool, python: &str) -> String {
        joined_at(native, &[], whole, python)
    }

    fn joined_at(native: &str, known: &[usize], whole: bool, python: &str) -> String {
        let symbol = |word: &str| word.replace("eval", "_PyEval_EvalFrameDefault");
        let native = native.split_whitespace().map(|word| frame(&symbol(word))).collect();
        let called = |word: &str| Called {
            frame: frame(word.trim_end_matches('*')),
            is_entry: word.ends_with('*'),
        };
        let all = join(native, known, whole, python.split_whitespace().map(called).collect());
        let names = all.into_iter().map(|frame| frame.symbol.unwrap());
        let names: Vec<_> =
            names.map(|name| name.replace("_PyEval_EvalFrameDefault", "eval")).collect();
        names.join(" ")
    }

    #[test]
    fn functions_take_the_place_of_the_loop_that_runs_them() {
        let native = "poll sleep eval sort eval main _start";
        assert_eq!(
            joined(native, true, "c b* a module*"),
            "poll sleep c b sort a module main _start"
        );
        assert_eq!(joined("read eval", false, "c b* a module*"), "read c b a module");
        assert_eq!(joined("read", false, "b a*"), "read b a");
        assert_eq!(joined("", false, "b a*"), "b a");
        assert_eq!(joined("read eval main", true, ""), "read eval main");
    }

    #[test]
    fn loops_without_a_name_are_where_the_stack_says() {
        let native = "sleep handler l sort l main _start";
        let python = "c b* a module*";
        assert_eq!(
            joined_at(native, &[2, 4], true, python),
            "sleep handler c b sort a module main _start"
        );
        // The outer ones have names.
        let native = "sleep l sort eval main _start";
        assert_eq!(joined_at(native, &[1], true, python), "sleep c b sort a module main _start");
        assert_eq!(joined_at("sleep l", &[1], false, python), "sleep c b a module");
        assert_eq!(joined_at("sleep l", &[1], false, ""), "sleep l");
    }

    #[test]
    fn what_does_not_fit_is_at_the_end_that_moves() {
        // The innermost loop has no function yet.
        assert_eq!(joined("eval f eval main", true, "b a*"), "eval f b a main");
        // A function is there, and its loop not yet.
        assert_eq!(joined("g eval main", true, "c* b a*"), "g c b a main");
        // Cut: the innermost ones belong together.
        assert_eq!(joined("f eval g eval", false, "d* c* b* a*"), "f d g c b a");
        // Functions that were too many: no function is that of the outermost loop.
        assert_eq!(joined("f eval g eval", false, "d"), "f d g eval");
        assert_eq!(joined("main _start", true, "b a*"), "main _start b a");
    }
}
