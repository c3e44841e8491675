//! seccomp-audit: each system call first goes through filters that judge it.
//!
//! A seccomp filter is a small program that the kernel runs at the entry of every system call, before
//! the call itself; a process inherits those of its parents, and all of them run each time. Container
//! runtimes, browsers and sandboxes install them. Since Linux 5.11 the kernel remembers calls that a
//! filter allows whatever their arguments; a filter that looks at arguments, or reaches its answer after
//! hundreds of comparisons, costs microseconds a call. Audit rules (auditctl -S) do the same at entry
//! and exit of each call of every process.
//!
//! # Evidence
//!
//! CPU samples within __seccomp_filter, or within the audit of system calls; how often calls were made.
//! The kernel runs the filters before it tells anybody that a call begins, so their time is in the
//! account `running:user`, and no tool that times calls sees it. The number of filters of the process
//! is shown beside it.
//!
//! # Without whylag
//!
//!     grep Seccomp /proc/PID/status              # 2: filters; their number is below it
//!     auditctl -l                                # rules with -S
//!     perf record -g -p PID -- sleep 5           # CPU time under __seccomp_filter
//!
//! # Sources
//!
//! kernel/seccomp.c (__seccomp_filter, seccomp_cache_check_allow); kernel/auditsc.c; seccomp(2).

use model::{Metric, RecorderPart};

use crate::case::Case;
use crate::case::kernel_paths::PathTime;
use crate::cause::{Absent, Cause, Claim, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean};

pub const CAUSE: Cause = Cause {
    id: ids::SECCOMP_AUDIT,
    title: "seccomp filters, or audit rules, run before each system call",
    fix: "Shorter filters: the calls that are made most first, a search tree instead of a list \
          (libseccomp: SCMP_FLTATR_CTL_OPTIMIZE 2), no look at arguments of frequent calls, so that \
          the kernel can remember its answer; one filter instead of several. Audit: rules for files \
          (-w) instead of calls (-S), or none. Or fewer calls.",
    reproduce: "mysteries/bin/seccomp-audit-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[],
    symptom: false,
    examine,
};

/// Where the filters of a process run.
const SECCOMP: [&str; 3] = ["__seccomp_filter", "seccomp_run_filters", "__secure_computing"];
/// Where rules of the audit are held against a call, and what they ask for is written.
const AUDIT: [&str; 6] = [
    "__audit_syscall_entry",
    "__audit_syscall_exit",
    "audit_filter_syscall",
    "audit_filter_rules",
    "audit_log_exit",
    "__audit_getname",
];
const FILTERS: &str = "process.seccomp_filters";

fn examine(case: &Case) -> Verdict {
    let seccomp = case.time_through(&SECCOMP, |path| path.sampled);
    let audit = case.time_through(&AUDIT, |path| path.sampled);
    let (what, functions, more, less) = match seccomp.ns() >= audit.ns() {
        true => ("seccomp filters", &SECCOMP[..], &seccomp, &audit),
        false => ("audit rules", &AUDIT[..], &audit, &seccomp),
    };
    let samples = seccomp.samples.saturating_add(audit.samples);
    if samples == 0 {
        return Err(Absent("no sample was in a filter of system calls".to_owned()));
    }
    let process = case.main_of(functions, |path| path.sampled).unwrap_or(0);
    let title = format!("{what} judge each system call of {}", case.process_name(process));
    let mut lost = seccomp.accounts.clone();
    lost.merge(&audit.accounts);
    let mut claim = Claim::new(title, lost, samples);
    let calls = calls(case);
    claim.mechanism(mechanism(what, more, less, calls));
    claim.trigger(trigger(case));
    claim.saw(
        format!("{} were in {what}: {}", case.samples_in_words(more), duration(more.ns())),
        "on-CPU samples under __seccomp_filter or the audit of system calls",
    );
    let path = case.path_in_words(functions, |path| path.sampled);
    claim.saw_if(path.map(|path| format!("judged in {path}")), "most frequent sampled path");
    if calls > 0 {
        claim.saw(counted(calls, "system call"), "histograms of system calls");
    }
    Ok(claim)
}

fn mechanism(what: &str, more: &PathTime, less: &PathTime, calls: u64) -> String {
    let other = match less.ns() {
        0 => String::new(),
        ns => format!("; {} in those of the other kind", duration(ns)),
    };
    let each = match calls {
        0 => String::new(),
        calls => format!(", {} for each of {} calls", mean(more.ns(), calls), count(calls)),
    };
    format!("{what} took {} on a CPU{each}{other}", duration(more.ns()))
}

fn trigger(case: &Case) -> String {
    match case.run.counter(FILTERS).map(|counter| counter.first.max(counter.last)) {
        Some(number) if number > 0 => {
            format!("the process has {} ({FILTERS})", counted(number, "seccomp filter"))
        }
        _ => "how many filters the process has was not recorded".to_owned(),
    }
}

/// System calls of all watched processes.
fn calls(case: &Case) -> u64 {
    case.merged(|metric| matches!(metric, Metric::Syscall(_))).map_or(0, |all| all.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::Syscall;

    const FILTER: [&str; 3] = ["bpf_prog_5b16c1", "__seccomp_filter", "syscall_trace_enter"];
    const RULES: [&str; 2] = ["audit_filter_rules", "__audit_syscall_exit"];

    #[test]
    fn claimed_with_what_each_call_costs() {
        let getuid = Metric::Syscall(Syscall::named("getuid").unwrap());
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, 2 * SECOND)])
            .sampled_path(10, USER, &FILTER, 1000)
            .sampled_path(10, USER, &[], 1000)
            .values(getuid, 5, &[100; 100_000])
            .counter(FILTERS, 1, 8)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!((claim.lost.get(USER), claim.waits), (SECOND, 1000));
        assert!(claim.title.starts_with("seccomp filters judge"), "{}", claim.title);
        let each = "seccomp filters took 1.00 s on a CPU, 10.0 us for each of 100,000 calls";
        assert_eq!(claim.chain[0].text, each);
        assert!(claim.chain[1].text.contains("8 seccomp filters"));
    }

    #[test]
    fn rules_of_the_audit_are_claimed_with_the_filters_and_named_where_they_take_more() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &RULES, 300)
            .sampled_path(10, USER, &FILTER, 100)
            .sampled_path(10, USER, &[], 600)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(USER), 4 * SECOND / 10);
        assert!(claim.title.starts_with("audit rules judge"), "{}", claim.title);
        assert!(claim.chain[0].text.ends_with("100 ms in those of the other kind"));
    }

    #[test]
    fn not_claimed_without_a_sample_in_them() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND)])
            .sampled_path(10, USER, &["do_syscall_64"], 100)
            .counter(FILTERS, 1, 1)
            .build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
