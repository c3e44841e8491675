//! Ordinary programs have no known cause, or none that takes 5 % of their wall time. All of them
//! are recorded by `make test-mysteries`, a few by `make test`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::Lab;
use common::disturbance::{Figures, figures_are_asked_for, undisturbed};
use common::programs::mystery;
use model::Finding;

/// What each does, and how, in a scratch folder; each takes about a second. No pipelines: there the
/// faster half waits for the slower one, and whylag says so (as of the lock of sort's own threads).
const PROGRAMS: [(&str, &str); 20] = [
    ("sleeper", "sleep 1"),
    ("poller", "perl -e 'for (1..100) { select undef, undef, undef, 0.01 }'"),
    ("spinner alone on a CPU", "exec taskset -c 1 perl -e '$t = time + 2; 1 while time < $t'"),
    ("shell script", "i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done"),
    ("C compiler", "cc -O2 -c $SOURCE -o program.o; cc -O3 -c $SOURCE -o program.o"),
    ("make", "make -s -B -C $MYSTERIES bin/healthy bin/futex-convoy-faulty >/dev/null"),
    ("sort", "sort --parallel=1 -k3 text >sorted; sort --parallel=1 -r text >sorted"),
    ("awk", "for i in $(seq 9); do awk '{ sum += $3 % 7 } END { print sum }' text; done"),
    ("grep", "for i in $(seq 24); do grep -c 'a.*b.*c' text; done"),
    ("sed", "for i in 1 2 3; do sed 's/a/b/g; s/[0-9]*$//' text >changed; done"),
    ("gzip", "gzip -c text >text.gz && gzip -dc text.gz | cmp - text"),
    ("xz", "xz -1 -T1 -c text >text.xz"),
    ("tar", "for i in 1 2 3; do tar cf - -C /usr/share/doc . 2>/dev/null | wc -c; done"),
    ("find", "find /usr -name '*.so*' | wc -l; find /usr -size +1M | wc -l"),
    ("sha256sum", "for i in 1 2 3 4; do sha256sum text text text text; done"),
    ("dd from the page cache", "for i in $(seq 200); do dd if=text of=/dev/null bs=64k; done"),
    ("wc", "for i in $(seq 20); do wc text; done"),
    (
        "database in memory",
        "sqlite3 :memory: 'create table t (a, b); with recursive n(i) as (select 1 union all \
         select i + 1 from n where i < 1000000) insert into t select i, i * 7 % 1000 from n; \
         select b, count(*), sum(a) from t group by b order by 3 limit 3;'",
    ),
    ("perl", "perl -e 'my %h; $h{$_ % 9973} .= chr(65 + $_ % 26) for 1..3000000; print scalar %h'"),
    ("web server under light load", "exec perl $SERVER"),
];

/// So many of them are recorded by `make test`.
const FEW: usize = 5;

/// A server that answers 20 requests a second of its own client, over loopback.
const SERVER: &str = r#"
use IO::Socket::INET;
my $server = IO::Socket::INET->new(Listen => 8, LocalAddr => '127.0.0.1') or die;
my $port = $server->sockport;
if (!fork) {
    for (1..30) {
        my $client = IO::Socket::INET->new("127.0.0.1:$port") or die;
        print $client "GET / HTTP/1.0\r\n\r\n";
        my @answer = <$client>;
        select undef, undef, undef, 0.05;
    }
    exit;
}
for (1..30) {
    my $request = $server->accept;
    while (<$request>) { last if /^\s*$/ }
    print $request "HTTP/1.0 200 OK\r\n\r\n", join(',', map { $_ * $_ } 1..2000);
    close $request;
}
wait;
"#;

#[test]
fn ordinary_programs_have_no_cause() {
    let Some(lab) = Lab::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..400_000u64)
        .map(|i| format!("{:x} abc {} line {i}\n", i.wrapping_mul(0x9e37_79b9), i % 97))
        .collect();
    std::fs::write(folder.path().join("text"), text).unwrap();
    std::fs::write(folder.path().join("server.pl"), SERVER).unwrap();
    let mysteries = mystery("healthy").parent().unwrap().parent().unwrap().to_owned();
    let script = |body: &str| {
        format!(
            "cd {0}; MYSTERIES={1} SOURCE={1}/futex-convoy/program.c SERVER=server.pl; {body}",
            folder.path().display(),
            mysteries.display()
        )
    };

    let mut wrong = Vec::new();
    let programs = if figures_are_asked_for() { &PROGRAMS[..] } else { &PROGRAMS[..FEW] };
    for (name, body) in programs {
        let body = script(body);
        let (mut found, mut figures) = causes(&lab, name, &body);
        // It did wait for the disk if its files were not in memory yet. Now they are.
        let is_of_disk =
            |c: &String| c.starts_with("file-major-fault") || c.starts_with("disk-read");
        if found.iter().any(is_of_disk) {
            (found, figures) = causes(&lab, name, &body);
        }
        if figures.judge(&format!("{name} has no cause")) && !found.is_empty() {
            wrong.push(format!("{name}: {}", found.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Causes that took more than 5 % of the wall time of a shell's programs.
fn causes(lab: &Lab, name: &str, body: &str) -> (Vec<String>, Figures) {
    let record = || lab.record(&["--follow"], ["sh", "-c", body]);
    let (recorded, figures) = undisturbed(record, |recorded| Some(&recorded.run));
    let mut answer = lab.explain();
    let findings: Vec<Finding> = serde_json::from_value(answer["findings"].take()).unwrap();
    let wall_ns = recorded.run.wall_ns();
    assert!(wall_ns > 200_000_000, "{name} ended at once: {:?}", recorded.output);
    let share = |finding: &Finding| finding.lost_ns as f64 / wall_ns as f64;
    let text = |finding: &Finding| format!("{} {:.3}", finding.cause, share(finding));
    let all: Vec<String> = findings.iter().map(text).collect();
    println!("{name}: {} ms, found {}", wall_ns / 1_000_000, all.join(", "));
    (findings.iter().filter(|finding| share(finding) > 0.05).map(text).collect(), figures)
}
