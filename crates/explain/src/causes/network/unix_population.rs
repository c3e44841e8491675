//! unix-population: giving an abstract AF_UNIX name, or finding one, takes longer the more such
//! names there are.
//!
//! The kernel keeps the sockets with abstract names of a network namespace in 256 lists
//! (net/unix/af_unix.c). Which one is a checksum of the name, the same for names made of the same
//! words, so sockets with names alike share a few lists. bind(), connect() and sends to a name
//! compare with all in one list. Sockets without a name, or with one in the file system, are in
//! others.
//!
//! # Evidence
//!
//! CPU samples in the search for a socket by its abstract name (unix_find_socket_byname), by system
//! call; how many AF_UNIX sockets the network namespace has, and how many that makes in each of 256
//! lists.
//!
//! # Without whylag
//!
//!     grep -c @ /proc/PID/net/unix               # sockets with abstract names
//!     nsenter -t PID -n ss -xa | wc -l           # all AF_UNIX sockets of its namespace
//!     perf record -g -p PID -- sleep 5           # CPU time under __unix_find_socket_byname
//!
//! # Sources
//!
//! unix(7); net/unix/af_unix.c.

use std::collections::BTreeMap;

use model::{PathSum, RecorderPart, Syscall};

use crate::case::Case;
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{count, counted, duration, mean, percent};

pub const CAUSE: Cause = Cause {
    id: ids::UNIX_POPULATION,
    title: "the kernel searches long lists of abstract AF_UNIX names",
    fix: "Close the sockets that nobody uses, and keep those that are needed again; use names in \
          the file system, or none at all (socketpair, SCM_RIGHTS); or give the service a network \
          namespace of its own (unshare --net).",
    reproduce: "mysteries/bin/unix-population-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples]).and_kernel_symbols(),
    look_alikes: &[LookAlike {
        cause: ids::RCU_SYNC_FDTABLE,
        tell_apart: "count the process's descriptors and the host's AF_UNIX sockets ('whylag \
                         doctor -p PID'): a table of descriptors grows at powers of two, a search \
                         is as long at any of them",
        mutual: false,
    }],
    symptom: false,
    examine,
};

/// The search through one list.
const SEARCH: &[&str] = &["__unix_find_socket_byname", "unix_find_socket_byname"];
const LISTS: u64 = 256;
/// With fewer the lists are short: something else has to be behind the time.
const MANY: u64 = 5_000;

fn examine(case: &Case) -> Verdict {
    let sockets = case.run.counter("net.unix_sockets").map(|c| c.first.max(c.last));
    let population = sockets.map_or("not counted".to_owned(), |n| counted(n, "AF_UNIX socket"));
    let on_cpu = |path: &PathSum| path.sampled;
    let time = case.time_through(SEARCH, on_cpu);
    let Some(tgid) = case.main_of(SEARCH, on_cpu) else {
        return Err(Absent(format!(
            "no time on a CPU in the search for a name of an AF_UNIX socket (in the network \
             namespace: {population})"
        )));
    };

    let calls = calls(case);
    let names: Vec<_> = calls.keys().map(|call| call.to_string()).collect();
    let in_calls =
        case.time_through(&[], |p| p.sampled && p.call.is_some_and(|c| calls.contains_key(&c)));
    let process = case.process_name(tgid);
    let title = format!("{process} searches long lists of abstract AF_UNIX names");
    let mut claim = Claim::new(title, time.accounts.clone(), time.observations());
    claim.mechanism(format!(
        "{} of CPU time in the search for a name, {} of all in {}",
        duration(time.ns()),
        percent(time.ns(), in_calls.ns()),
        names.join(", ")
    ));
    match sockets {
        Some(n) => claim.trigger(format!(
            "{} in the network namespace; those with abstract names are in {LISTS} lists, {} in \
             each if they were spread evenly (names that are alike are not)",
            counted(n, "AF_UNIX socket"),
            count(n / LISTS)
        )),
        None => claim.trigger("too many sockets with abstract names".to_owned()),
    }
    claim.saw(case.samples_in_words(&time), "CPU samples, by kernel function");
    for (call, ns) in &calls {
        let (n, all) = case.calls(&call.to_string());
        if n == 0 {
            continue;
        }
        let text = format!(
            "{}, {} on average, {} of it searching",
            case.calls_in_words(n, &call.to_string()),
            mean(all, n),
            mean(*ns, n)
        );
        claim.saw(text, "system call histograms; CPU samples");
    }
    claim.saw(population, "/proc/PID/net/protocols of the target's namespace");
    claim.saw_if(case.path_in_words(SEARCH, on_cpu), "the most frequent such stack, kernel first");
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "only time on a CPU is counted; waiting for one came to {}",
            duration(case.accounts.sum_of(|account| account.is_waiting_for_cpu()))
        ),
    );
    if sockets.is_none_or(|n| n < MANY) {
        claim.doubt(0.7, "that there are many AF_UNIX sockets was not seen");
    }
    Ok(claim)
}

/// Calls that searched, and how long.
fn calls(case: &Case) -> BTreeMap<Syscall, u64> {
    let mut calls = BTreeMap::<Syscall, u64>::new();
    let found = case.run.sums.paths.iter().filter(|path| path.sampled && case.passes(path, SEARCH));
    for call in found.filter_map(|path| path.call) {
        calls.entry(call).or_insert_with(|| {
            case.time_through(SEARCH, |path| path.sampled && path.call == Some(call)).ns()
        });
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER};
    use model::{Account, Metric};

    fn bind() -> Syscall {
        Syscall::named("bind").unwrap()
    }

    fn service(frames: &[&str]) -> RunBuilder {
        let in_bind = Account::Syscall(bind());
        RunBuilder::new()
            .thread(10, 10, &[(USER, SECOND), (in_bind, 3 * SECOND)])
            .values(Metric::Syscall(bind()), 5, &[40_000; 100])
            .sampled_path(10, in_bind, frames, 80)
            .sampled_path(10, in_bind, &["__kmalloc", "unix_create_addr", "unix_bind"], 20)
    }

    #[test]
    fn claimed_is_the_search_alone() {
        let run = service(&["__unix_find_socket_byname.isra.0", "unix_bind"])
            .counter("net.unix_sockets", 2, 40_000)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(Account::Syscall(bind())), SECOND * 3 / 10 * 8);
        assert!(claim.doubts.is_empty());
        let trigger = &claim.chain[1].text;
        assert!(trigger.starts_with("40,000 AF_UNIX sockets") && trigger.contains("156 in each"));
        assert!(claim.evidence[1].text.starts_with("100 binds, 40.0 us on average"));
    }

    #[test]
    fn a_small_population_is_a_doubt_and_other_work_of_bind_is_not_this() {
        let run = service(&["__unix_find_socket_byname", "unix_bind"]).build();
        assert_eq!(examine(&Case::new(&run)).unwrap().doubts.len(), 1);
        let run = service(&["unix_bind_bsd", "unix_bind"]).build();
        assert!(examine(&Case::new(&run)).is_err());
    }
}
