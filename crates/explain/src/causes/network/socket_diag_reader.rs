//! socket-diag-reader: making, binding and closing sockets is slow while somebody lists all
//! sockets.
//!
//! The kernel finds sockets in hash tables with a spinlock for each chain. Who reads
//! /proc/net/udp, unix or tcp, or asks as ss does (NETLINK_SOCK_DIAG), walks through each chain
//! under its lock; /proc begins again at the head of the chain for every 4 KiB of text. Where many
//! sockets are in one chain (UDP sockets of one port), socket calls that need it spin that long.
//!
//! # Evidence
//!
//! CPU samples that spin for a spinlock within functions that take the lock of a table of sockets;
//! and who was in a read of /proc/net/udp, tcp or unix, or in a request of sock_diag, when waits of
//! 10 us or more ended. On a host of more than two CPUs that is one of several, not proof of the
//! holder.
//!
//! # Without whylag
//!
//!     perf record -a -g -- sleep 5               # *_spin_lock_slowpath below bind, socket, close
//!     perf lock record -a -- sleep 5; perf lock contention   # since Linux 5.19
//!     bpftrace -e 'tracepoint:syscalls:sys_enter_openat {
//!         @[comm, str(args->filename)] = count(); }'
//!
//! # Sources
//!
//! sock_diag(7); net/ipv4/udp.c; net/unix/af_unix.c; net/ipv4/inet_hashtables.c.

use model::{ConcurrentCall, PathSum, RecorderPart, TableRead};

use crate::case::Case;
use crate::case::spinning::{SPIN, doubt_holder, in_words, named_holder, readers, spun};
use crate::cause::{Absent, Cause, Claim, LookAlike, Needs, Verdict};
use crate::causes::ids;
use crate::text::{duration, percent};

pub const CAUSE: Cause = Cause {
    id: ids::SOCKET_DIAG_READER,
    title: "socket calls wait for the socket tables while somebody lists all sockets",
    fix: "Stop whoever reads the tables, or have it read less often, or what it needs of a few \
          sockets only: getsockopt(SO_MEMINFO) in the process itself, /proc/net/sockstat for \
          counts, BPF iterators from outside. Spread UDP sockets over more ports.",
    reproduce: "mysteries/bin/socket-diag-reader-faulty 5",
    needs: Needs::parts(&[RecorderPart::Threads, RecorderPart::Samples, RecorderPart::Locks])
        .and_kernel_symbols(),
    look_alikes: &[LookAlike {
        cause: ids::SYSV_SEM,
        tell_apart: "see the call that spins ('perf record -g -p PID'): semget and semctl wait \
                         for the table of semaphores, socket, bind and close for those of sockets",
        mutual: true,
    }],
    symptom: false,
    examine,
};

/// What takes the lock of a chain, by protocol.
const TABLES: &[&str] = &[
    "udp_lib_get_port",
    "udp_lib_unhash",
    "udp_lib_rehash",
    "unix_insert_unbound_socket",
    "unix_remove_socket",
    "unix_release_sock",
    "unix_bind",
    "unix_bind_bsd",
    "unix_bind_abstract",
    "unix_find_other",
    "inet_csk_get_port",
    "inet_hash",
    "__inet_hash",
    "inet_unhash",
    "inet_put_port",
    "inet_ehash_insert",
    "inet_ehash_nolisten",
    "__inet_hash_connect",
    "__inet_check_established",
];
const FOLDER: &str = "net/";
const PROTOCOLS: &[&str] = &["udp", "udp6", "udplite", "udplite6", "unix", "tcp", "tcp6"];

/// The tables of sockets are read.
fn lists_sockets(read: &TableRead) -> bool {
    match read {
        TableRead::SocketDiag => true,
        TableRead::Proc(file) => {
            file.strip_prefix(FOLDER).is_some_and(|name| PROTOCOLS.contains(&name))
        }
        TableRead::Unknown => false,
    }
}

fn examine(case: &Case) -> Verdict {
    let time = spun(case, TABLES);
    let spins = |path: &PathSum| path.sampled && case.passes(path, SPIN);
    let Some(tgid) = case.main_of(TABLES, spins) else {
        return Err(Absent("no socket call was seen spinning for a table of sockets".to_owned()));
    };
    let readers = readers(case, tgid, TABLES, lists_sockets);
    let meanwhile = sum(&readers, |reader| reader.ns);
    // Several others may be on a CPU then, so that this may also be more.
    if meanwhile < time.ns() / 2 {
        return Err(Absent(format!(
            "{} were spent spinning for tables of sockets, of which {} ended while somebody listed \
             sockets",
            duration(time.ns()),
            duration(meanwhile)
        )));
    }
    let Some(reader) = readers.first() else {
        return Err(Absent("nobody was seen listing sockets".to_owned()));
    };
    let title = format!(
        "{} spins for the table of sockets while {} (pid {}) reads {}",
        case.process_name(tgid),
        reader.other_comm,
        reader.other_tgid,
        reader.reads
    );
    let mut claim = Claim::new(title, time.accounts.clone(), sum(&readers, |reader| reader.count));
    claim.mechanism(format!(
        "{} on a CPU, spinning for the lock of a chain of the table ({}): {} of all spinning",
        duration(time.ns()),
        case.samples_in_words(&time),
        percent(time.ns(), case.time_through(SPIN, |path| path.sampled).ns().max(time.ns()))
    ));
    claim.trigger(format!(
        "{} walks through all sockets under these locks: {}",
        named_holder(case, reader),
        reader.reads
    ));
    for reader in readers.iter().take(3) {
        claim.saw(
            format!("waits of 10 us or more that ended while this ran: {}", in_words(reader)),
            "contention_begin, contention_end; the tasks of the other CPUs",
        );
    }
    claim.saw_if(
        case.path_in_words(TABLES, spins),
        "the most frequent stack in the lock, kernel first (CPU samples)",
    );
    rule_out(case, time.ns(), &mut claim);
    Ok(claim)
}

fn rule_out(case: &Case, spun_ns: u64, claim: &mut Claim) {
    let queued = case.accounts.sum_of(|account| account.is_waiting_for_cpu());
    claim.rule_out(
        ids::CPU_RUNQUEUE,
        format!(
            "{} were on a CPU, spinning; waiting for a CPU is {} of the wall time",
            duration(spun_ns),
            percent(queued, case.wall_ns)
        ),
    );
    claim.rule_out(
        ids::SOFTIRQ_INTERFERENCE,
        format!(
            "softirqs took {} of the wall time; the spinning is in socket calls",
            percent(case.accounts.get(model::Account::SoftIrq), case.wall_ns)
        ),
    );
    doubt_holder(case, claim);
}

fn sum(readers: &[ConcurrentCall], of: impl Fn(&ConcurrentCall) -> u64) -> u64 {
    readers.iter().fold(0, |sum, reader| sum.saturating_add(of(reader)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, SECOND, USER, concurrent_call};
    use model::Account;

    const BIND: [&str; 4] =
        ["__pv_queued_spin_lock_slowpath", "_raw_spin_lock_bh", "udp_lib_get_port", "inet_bind"];
    const FUTEX: [&str; 2] = ["__pv_queued_spin_lock_slowpath", "futex_wake"];

    fn gateway() -> RunBuilder {
        RunBuilder::new()
            .thread(10, 10, &[(USER, 3 * SECOND), (Account::Spin, SECOND)])
            .sampled_path(10, Account::Spin, &BIND, 900)
            .sampled_path(10, Account::Spin, &FUTEX, 100)
            .sampled_path(10, USER, &[], 3000)
    }

    fn udp() -> TableRead {
        TableRead::Proc("net/udp".to_owned())
    }

    #[test]
    fn spinning_in_socket_calls_beside_a_reader_is_claimed_and_the_reader_named() {
        let run = gateway()
            .concurrent_call(concurrent_call(77, "netstat", udp(), SECOND / 10 * 8), &BIND)
            .build();
        let claim = examine(&Case::new(&run)).unwrap();
        assert_eq!(claim.lost.get(Account::Spin), SECOND / 10 * 9);
        assert!(claim.title.contains("netstat (pid 77) reads /proc/net/udp"), "{}", claim.title);
        let by_ss = gateway()
            .concurrent_call(concurrent_call(77, "ss", TableRead::SocketDiag, SECOND), &BIND)
            .build();
        assert!(examine(&Case::new(&by_ss)).unwrap().title.contains("netlink"));
    }

    #[test]
    fn among_several_cpus_the_holder_is_one_of_those_that_ran() {
        let seen = |cpus| {
            let run = gateway().cpus(cpus, SECOND, SECOND);
            let run = run
                .concurrent_call(concurrent_call(77, "ss", TableRead::SocketDiag, SECOND), &BIND)
                .build();
            let claim = examine(&Case::new(&run)).unwrap();
            (claim.chain[1].text.clone(), claim.doubts.iter().map(|d| d.text.clone()).collect())
        };
        let (two, doubts): (String, Vec<String>) = seen(2);
        assert!(two.starts_with("ss (pid 77) walks") && doubts.is_empty(), "{two} {doubts:?}");
        let (eight, doubts) = seen(8);
        assert!(eight.starts_with("one of those in the kernel on the other CPUs"), "{eight}");
        assert!(doubts[0].contains("one of those that were in the kernel on the 7 other CPUs"));
    }

    #[test]
    fn the_same_spinning_beside_somebody_else_is_not() {
        let absent = |run: RunBuilder| examine(&Case::new(&run.build())).unwrap_err().0;
        assert!(absent(gateway()).contains("of which 0 ns"));
        let others = gateway()
            .concurrent_call(concurrent_call(78, "gateway", TableRead::Unknown, SECOND), &BIND)
            .concurrent_call(
                concurrent_call(79, "ps", TableRead::Proc("79/stat".to_owned()), SECOND),
                &BIND,
            )
            .concurrent_call(concurrent_call(77, "netstat", udp(), SECOND / 10), &BIND);
        assert!(absent(others).contains("of which 100 ms"));
    }

    #[test]
    fn a_reader_beside_another_spinlock_is_not() {
        let run = RunBuilder::new()
            .thread(10, 10, &[(Account::Spin, SECOND)])
            .sampled_path(10, Account::Spin, &FUTEX, 100)
            .concurrent_call(concurrent_call(77, "netstat", udp(), SECOND), &FUTEX)
            .build();
        assert!(examine(&Case::new(&run)).unwrap_err().0.contains("no socket call"));
    }
}
