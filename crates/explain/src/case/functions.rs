//! Which stacks pass a function: asked some hundred times of one run, which may have 100,000 stacks.

use std::collections::{HashMap, HashSet};

use model::{Run, StackId};

/// Stacks by the functions in them, without what the compiler split off.
pub struct Functions(HashMap<String, Vec<StackId>>);

impl Functions {
    /// Of all stacks of a run.
    pub fn of(run: &Run) -> Functions {
        let mut stacks = HashMap::<&str, Vec<StackId>>::new();
        for stack in run.stacks.values() {
            // A Python function can have the name of one of C.
            let frames = stack.frames.iter().filter(|frame| frame.source.is_none());
            for symbol in frames.filter_map(|frame| frame.symbol.as_deref()) {
                let passing = stacks.entry(whole(symbol)).or_default();
                // A recursive function is there several times.
                if passing.last() != Some(&stack.id) {
                    passing.push(stack.id);
                }
            }
        }
        Functions(stacks.into_iter().map(|(name, passing)| (name.to_owned(), passing)).collect())
    }

    /// Those that pass at least one of the functions.
    pub fn stacks_through(&self, functions: &[&str]) -> HashSet<StackId> {
        functions.iter().filter_map(|function| self.0.get(*function)).flatten().copied().collect()
    }
}

/// `symbol` is the function, or a part of it that the compiler split off (`.isra.0`, `.cold`).
pub fn is_function(symbol: &str, function: &str) -> bool {
    whole(symbol) == function
}

/// The function that a symbol is, or is a part of.
fn whole(symbol: &str) -> &str {
    symbol.split_once('.').map_or(symbol, |(function, _)| function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, USER};

    #[test]
    fn stacks_are_found_by_their_functions_and_parts_of_them() {
        let run = RunBuilder::new()
            .sampled_path(10, USER, &["do_wp_page.isra.0", "handle_mm_fault"], 1)
            .sampled_path(10, USER, &["do_anonymous_page", "handle_mm_fault"], 1)
            .build();
        let functions = Functions::of(&run);
        assert_eq!(functions.stacks_through(&["do_wp_page"]).len(), 1);
        assert_eq!(functions.stacks_through(&["handle_mm_fault", "do_wp_page"]).len(), 2);
        assert!(functions.stacks_through(&["do_wp", "isra"]).is_empty());
        assert!(
            is_function("do_wp_page.cold", "do_wp_page")
                && !is_function("do_wp_page2", "do_wp_page")
        );
    }
}
