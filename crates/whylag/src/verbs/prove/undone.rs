//! Is a change outside of the program made and taken back? Where a fact shows it, that is known.

use std::collections::BTreeMap;

use model::TrialSide;

type Facts = BTreeMap<String, String>;

/// What the recorded executions have said of it so far.
#[derive(Default)]
pub struct Undone {
    before: Option<Facts>,
    after: Option<Facts>,
}

impl Undone {
    /// Looks at one more execution.
    ///
    /// # Errors
    /// In words, if everything that the change had changed is still so although it was taken back.
    pub fn look(&mut self, side: TrialSide, facts: &Facts) -> Result<(), String> {
        let first = match side {
            TrialSide::Before => &mut self.before,
            TrialSide::After => &mut self.after,
        };
        let first_of_side = first.get_or_insert_with(|| facts.clone()).clone();
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return Ok(()) };
        let changed = changed(before, after);
        let other = if side == TrialSide::Before { after } else { before };
        let is_other = |name: &&String| {
            facts.get(*name) == other.get(*name) && first_of_side.get(*name) != other.get(*name)
        };
        let Some(name) = changed.first().filter(|_| changed.iter().all(is_other)) else {
            return Ok(());
        };
        let text = |facts: &Facts| facts.get(*name).map_or("not set", String::as_str).to_owned();
        let (was, is) = (text(&first_of_side), text(facts));
        Err(match side {
            TrialSide::Before => {
                format!("--undo did not take back what --fix does: {name} is {is}, it was {was}")
            }
            TrialSide::After => {
                format!("--fix had no effect this time: {name} is {is}, it was {was} with the fix")
            }
        })
    }

    /// True if no fact shows that the change is made.
    pub fn is_unknown(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => changed(before, after).is_empty(),
            _ => true,
        }
    }
}

/// Facts that differ; what is measured differs by itself.
fn changed<'a>(before: &'a Facts, after: &'a Facts) -> Vec<&'a String> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names.filter(|name| !name.ends_with("_ns") && before.get(*name) != after.get(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(clock: &str, read_ns: &str) -> Facts {
        [("clocksource.current", clock), ("clocksource.read_ns", read_ns)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn what_is_not_taken_back_is_told_and_what_is_measured_is_not() {
        let mut undone = Undone::default();
        undone.look(TrialSide::Before, &facts("tsc", "25")).unwrap();
        assert!(undone.is_unknown());
        undone.look(TrialSide::After, &facts("hpet", "900")).unwrap();
        assert!(!undone.is_unknown());
        undone.look(TrialSide::Before, &facts("tsc", "26")).unwrap();
        let error = undone.look(TrialSide::Before, &facts("hpet", "25")).unwrap_err();
        assert!(error.contains("clocksource.current is hpet, it was tsc"), "{error}");
        let error = undone.look(TrialSide::After, &facts("tsc", "900")).unwrap_err();
        assert!(error.starts_with("--fix had no effect"), "{error}");

        let mut no_fact = Undone::default();
        no_fact.look(TrialSide::After, &facts("tsc", "25")).unwrap();
        no_fact.look(TrialSide::Before, &facts("tsc", "26")).unwrap();
        no_fact.look(TrialSide::Before, &facts("tsc", "25")).unwrap();
        assert!(no_fact.is_unknown());
    }
}
