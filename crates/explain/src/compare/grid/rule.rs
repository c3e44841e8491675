//! What makes a run a lost or a recovered one: a condition on its figures, as typed.

use std::fmt;
use std::str::FromStr;

use model::units::parse_duration;
use model::{LatencyFigure, RunFigures};

/// A condition: `exit != 0`, `cause:lazy-binding`, `loss:drops > 0`, `p99:syscall:read > 5ms`,
/// `account:blocked:futex > 10%`, `length > 2s`, `fact:clocksource.current = hpet`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    typed: String,
    what: What,
    compare: Compare,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Exit,
    Length,
    Cause(String),
    Loss(String),
    Account(String),
    Quantile(usize, String),
    Fact(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Compare {
    /// It is there at all: above 0.
    There,
    Below(f64),
    Above(f64),
    Is(String),
    IsNot(String),
}

/// Why a text is no rule.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no rule: write one of exit, length, cause:ID, loss:KIND, account:NAME, p50:LATENCY, \
     p99:LATENCY or fact:NAME, and behind it nothing, or < > = != and a value, such as 'exit != 0' \
     or 'p99:syscall:read > 5ms'"
)]
pub struct NoRule(String);

impl FromStr for Rule {
    type Err = NoRule;

    fn from_str(typed: &str) -> Result<Rule, NoRule> {
        let failed = || NoRule(typed.to_owned());
        let (left, compare) = split(typed).ok_or_else(failed)?;
        let what = what(left).ok_or_else(failed)?;
        let is_text = matches!(what, What::Fact(_));
        let is_number = matches!(compare, Compare::Below(_) | Compare::Above(_));
        if is_text && is_number {
            return Err(failed());
        }
        Ok(Rule { typed: typed.to_owned(), what, compare })
    }
}

/// What is left of the sign, and the rest.
fn split(typed: &str) -> Option<(&str, Compare)> {
    for sign in [" != ", " = ", " < ", " > "] {
        let Some((left, right)) = typed.split_once(sign) else { continue };
        let right = right.trim();
        let compare = match sign.trim() {
            "=" => Compare::Is(right.to_owned()),
            "!=" => Compare::IsNot(right.to_owned()),
            "<" => Compare::Below(value(right)?),
            _ => Compare::Above(value(right)?),
        };
        return Some((left.trim(), compare));
    }
    Some((typed.trim(), Compare::There))
}

/// A duration in ns, a percentage as a part, or a number.
fn value(text: &str) -> Option<f64> {
    if let Some(percent) = text.strip_suffix('%') {
        return percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0);
    }
    text.parse().ok().or_else(|| parse_duration(text).ok().map(|ns| ns as f64))
}

fn what(text: &str) -> Option<What> {
    let (kind, name) = text.split_once(':').unwrap_or((text, ""));
    let named = || (!name.is_empty()).then(|| name.to_owned());
    Some(match kind {
        "exit" if name.is_empty() => What::Exit,
        "length" if name.is_empty() => What::Length,
        "cause" => What::Cause(named()?),
        "loss" => What::Loss(named()?),
        "account" => What::Account(named()?),
        "p50" => What::Quantile(LatencyFigure::P50, named()?),
        "p99" => What::Quantile(LatencyFigure::P99, named()?),
        "fact" => What::Fact(named()?),
        _ => return None,
    })
}

impl Rule {
    /// True if it holds of the run. What the run does not have is 0, and a fact is then no value.
    pub fn holds(&self, run: &RunFigures) -> bool {
        if let What::Fact(name) = &self.what {
            let value = run.facts.get(name).map(String::as_str);
            return match &self.compare {
                Compare::Is(wanted) => value == Some(wanted),
                Compare::IsNot(wanted) => value != Some(wanted),
                _ => value.is_some(),
            };
        }
        let found = self.number(run);
        match &self.compare {
            Compare::There => found != 0.0,
            Compare::Below(bound) => found < *bound,
            Compare::Above(bound) => found > *bound,
            Compare::Is(wanted) => value(wanted) == Some(found),
            Compare::IsNot(wanted) => value(wanted) != Some(found),
        }
    }

    fn number(&self, run: &RunFigures) -> f64 {
        match &self.what {
            What::Exit => run.exit_status.map_or(0.0, f64::from),
            What::Length => run.length_ns as f64,
            What::Cause(id) => run.cause(id).map_or(0.0, |figure| figure.wall_share),
            What::Loss(kind) => *run.losses.get(kind).unwrap_or(&0) as f64,
            What::Account(name) => {
                let named = run.accounts.iter().filter(|(account, _)| account.to_string() == *name);
                named.map(|(_, ns)| *ns as f64).sum::<f64>() / run.wall_ns.max(1) as f64
            }
            What::Quantile(place, name) => {
                let latency = run.latencies.get(name);
                latency
                    .and_then(|latency| latency.quantiles_ns.get(*place))
                    .map_or(0.0, |ns| *ns as f64)
            }
            What::Fact(_) => 0.0,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{Account, CauseFigure};

    use super::*;

    #[test]
    fn rules_are_about_figures() {
        let mut run = RunFigures {
            length_ns: 3_000_000_000,
            wall_ns: 1_000,
            exit_status: Some(2),
            accounts: BTreeMap::from([(Account::User, 300)]),
            ..RunFigures::default()
        };
        run.causes.push(CauseFigure {
            cause: "lazy-binding".to_owned(),
            lost_ns: 1,
            wall_share: 0.2,
            confidence: 0.9,
            minor: false,
        });
        run.losses.insert("drops".to_owned(), 3);
        run.facts.insert("clocksource.current".to_owned(), "hpet".to_owned());
        let quantiles_ns = (1..=24).map(|q| q * 1_000_000).collect();
        run.latencies.insert("syscall:read".to_owned(), LatencyFigure { count: 400, quantiles_ns });
        let account = format!("account:{} > 25%", Account::User);
        for (rule, holds) in [
            ("exit != 0", true),
            ("exit = 2", true),
            ("length > 2s", true),
            ("length < 2s", false),
            ("cause:lazy-binding", true),
            ("cause:lazy-binding > 25%", false),
            ("loss:drops > 2", true),
            ("loss:others", false),
            ("p99:syscall:read > 21ms", true),
            ("p50:syscall:read > 11ms", false),
            (&account, true),
            ("fact:clocksource.current = hpet", true),
            ("fact:clocksource.current != hpet", false),
            ("fact:no.such", false),
        ] {
            assert_eq!(rule.parse::<Rule>().unwrap().holds(&run), holds, "{rule}");
        }
        for text in ["", "exit:3", "cause:", "speed > 2", "length > fast", "fact:a > 2"] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }
}
