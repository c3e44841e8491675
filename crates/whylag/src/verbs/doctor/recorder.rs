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
    let of_cause = |cause: &&Cause| of_cause(cause, &parts, is_sampled);
    let causes = catalogue::ALL.iter().map(of_cause);
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
/// Nothing is said of a cause that lacks some of it: neither that it is there nor that it is not.
fn of_cause(cause: &Cause, parts: &[Capability], is_sampled: bool) -> Check {
    let (id, why) = (format!("cause-{}", cause.id), format!("{}.", cause.title));
    let needs = cause.needs;
    let off = parts.iter().find(|part| !part.on && needs.parts.contains(&part.part));
    let off = off.map(|off| format!("part '{}' is off: {}.", off.part, off.because));
    let Some(because) = off else {
        return check(id, CheckResult::Good, "measured", why, String::new());
    };
    match is_sampled && needs.parts.len() == 1 && !needs.kernel_symbols {
        true => check(id, CheckResult::Attention, "approximated", why, because),
        false => check(id, CheckResult::Unknown, "not looked at here", why, because),
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
    fn every_cause_is_measured_approximated_or_not_looked_at() {
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
        let off = of_cause(cause("malloc-trim"), &some, false);
        assert_eq!(off.fact, "not looked at here");
        assert_eq!(off.advice, "part 'on-CPU samples' is off: no privilege.");
        assert_eq!(fact("cpu-runqueue", &some, false), "measured");
        let none =
            [part("threads", false), part("system calls", false), part("on-CPU samples", false)];
        assert_eq!(fact("malloc-trim", &none, true), "not looked at here");
        assert_eq!(fact("cpu-runqueue", &none, true), "approximated");
        // Calls are sampled only where they are not all recorded.
        assert_eq!(checks().len(), model::RecorderPart::ALL.len() - 1 + catalogue::ALL.len());
    }
}
