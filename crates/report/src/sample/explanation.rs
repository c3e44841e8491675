//! What is said of the sample run.

use model::*;

use super::{MS, run};

/// Two findings that explain 91 % of the 2 s lost in [`run`].
pub fn explanation() -> Explanation {
    let run = run();
    let wall_ns = run.wall_ns();
    let accounts = run.accounts().largest_first();
    let lost_ns = 2_000 * MS;
    let finding = |cause: &str, title: &str, share: f64| Finding {
        cause: cause.into(),
        title: title.into(),
        share,
        lost_ns: (share * lost_ns as f64) as u64,
        wall_share: share * lost_ns as f64 / wall_ns as f64,
        hurts: Some(Hurt {
            who: "thread scan (tid 82)".into(),
            lost_ns: 600 * MS,
            wanted_ns: 1_500 * MS,
        }),
        when: Some(Concentration {
            text: "97 % within 45.0 ms, at the end of the run".into(),
            share: 0.97,
            from_ns: 1_955 * MS,
            to_ns: 2_000 * MS,
        }),
        requests: None,
        minor: false,
        turns: None,
        confidence: 0.85,
        doubts: vec!["only 12 waits were long enough to have a stack of their own".into()],
        chain: [
            (Role::Symptom, "mmap takes 12.1 ms at p99 where 0.1 ms would do"),
            (Role::Mechanism, "the lock of the one address space is held while pages are mapped"),
            (Role::Trigger, "MAP_POPULATE of 1,265,444 bytes by 16 threads"),
        ]
        .map(|(role, text)| Link { role, cause: None, text: text.into() })
        .into(),
        evidence: vec![Evidence {
            text: "2,000 waits for mmap_lock, 1.60 s, overlapped holds of the same lock".into(),
            source: "mmap_lock tracepoints".into(),
        }],
        ruled_out: vec![RuledOut {
            cause: "cpu-runqueue".into(),
            because: "threads were in state D, and the CPUs 37.5 % idle".into(),
        }],
        excluded: vec![Excluded {
            what: "waiting for the disk".into(),
            because: "0 ns in block I/O".into(),
        }],
        not_ruled_out: vec![NotRuledOut {
            cause: "mm-reader".into(),
            because: "not looked at: part 'mmap_lock holders' was off (not permitted)".into(),
            tell_apart: "stop whatever reads /proc/PID/smaps and record again".into(),
        }],
        not_looked_at: vec![Excluded {
            what: "reading pages back from swap".into(),
            because: "not looked at: part 'page faults' was off (not permitted)".into(),
        }],
        fix: "read() instead of mmap(), or map without MAP_POPULATE".into(),
        reproduce: "whylag bench mmap-populate --threads 16".into(),
        verify: "whylag prove --fix 'scan --no-mmap --threads 16 /var/lib/data/file' -- \
                 whylag bench mmap-populate"
            .into(),
    };
    Explanation {
        rhythms: Vec::new(),
        coincidences: Vec::new(),
        run: run.id,
        scope: None,
        wall_ns,
        unaccounted_ns: 20 * MS,
        lost_ns,
        idle_ns: 500 * MS,
        accounts: accounts.iter().map(|(a, ns)| (*a, *ns, *ns as f64 / wall_ns as f64)).collect(),
        findings: vec![
            finding(
                "mmap-lock",
                "Threads of scan wait for the mmap_lock of their own process",
                0.61,
            ),
            finding("cpu-runqueue", "Threads wait for a CPU while stress runs", 0.3),
        ],
        not_looked_at: vec![model::NotLookedAt {
            because: "part 'on-CPU samples' was off (not permitted)".into(),
            causes: vec!["first-touch".into(), "fork-cow".into()],
        }],
        leading_account: None,
        below_bar: vec![BelowBar {
            cause: "first-touch".into(),
            lost_ns: 16 * MS,
            wall_share: 0.004,
            because: "16.0 ms is 0.4 % of the wall time (5 % are needed)".into(),
        }],
        own_delay: None,
        unrecorded_children_ns: 0,
        many_calls: None,
        slow_requests: None,
        never_rests: None,
        working_children: None,
        frequent_call: None,
        held_open: Vec::new(),
        unanswered: Vec::new(),
        unexplained: vec![(Account::Blocked(Blocked::Disk), 180 * MS)],
        unexplained_stacks: Vec::new(),
        idle_stacks: Vec::new(),
        unseen_tasks: Vec::new(),
        on_cpu: Vec::new(),
        losses: run.losses.by_kind(),
    }
}
