//! Which parts of the recorder work here, and which causes can be found with them.

use explain::catalogue;
use explain::cause::Cause;
use model::{Capability, Check, CheckResult, Compared, Subject};
use observe::capability::{HostFacts, Plan, decide, describe};

/// A check for each part and for each cause. Nothing is loaded: whether the kernel then takes the
/// programs, only a recording shows.
pub fn checks() -> Vec<Check> {
    let plan = decide(&HostFacts::of_this_host());
    let is_sampled = matches!(plan, Plan::Sample(_));
    let parts = describe(&plan, &[]);
    let causes = catalogue::ALL.iter().map(|cause| of_cause(cause, &parts, is_sampled));
    parts.iter().map(of_part).chain(causes).collect()
}

fn of_part(part: &Capability) -> Check {
    let id = format!("part-{}", part.part.name().replace(' ', "-"));
    let why = format!("What whylag record says about {} rests on it.", part.part);
    match part.on {
        true => check(id, CheckResult::Good, "can be recorded", why, String::new()),
        false => check(id, CheckResult::Unknown, "off", why, format!("{}.", part.because)),
    }
}

/// With all it needs a cause is measured; sampled thread states carry those that need no more.
fn of_cause(cause: &Cause, parts: &[Capability], is_sampled: bool) -> Check {
    let (id, why) = (format!("cause-{}", cause.id), format!("{}.", cause.title));
    let missing = parts.iter().find(|part| !part.on && cause.needs.contains(&part.part));
    let Some(missing) = missing else {
        return check(id, CheckResult::Good, "measured", why, String::new());
    };
    let because = format!("{}.", missing.because);
    match is_sampled && cause.needs.len() > 1 {
        true => check(id, CheckResult::Unknown, "unavailable here", why, because),
        false => check(id, CheckResult::Attention, "approximated", why, because),
    }
}

fn check(id: String, verdict: CheckResult, fact: &str, why: String, advice: String) -> Check {
    Check {
        id,
        subject: Subject::Recorder,
        verdict,
        fact: fact.to_owned(),
        detail: String::new(),
        why,
        advice,
        source: "privileges, BTF and tracepoints".to_owned(),
        compared: Compared::Setting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_measured_approximated_or_unavailable() {
        let part = |name: &str, on| Capability {
            part: name.to_owned().into(),
            on,
            because: if on { String::new() } else { "no privilege".to_owned() },
        };
        let cause = |id: &str| catalogue::ALL.iter().find(|cause| cause.id.as_str() == id).unwrap();
        let fact = |id, parts: &[_], sampled| of_cause(cause(id), parts, sampled).fact;
        let all = [part("threads", true), part("system calls", true), part("on-CPU samples", true)];
        assert_eq!(fact("malloc-trim", &all, false), "measured");
        let some = [part("threads", true), part("on-CPU samples", false)];
        assert_eq!(fact("malloc-trim", &some, false), "approximated");
        assert_eq!(fact("cpu-runqueue", &some, false), "measured");
        let none =
            [part("threads", false), part("system calls", false), part("on-CPU samples", false)];
        assert_eq!(fact("malloc-trim", &none, true), "unavailable here");
        assert_eq!(fact("cpu-runqueue", &none, true), "approximated");
        assert_eq!(checks().len(), model::RecorderPart::ALL.len() + catalogue::ALL.len());
    }
}
