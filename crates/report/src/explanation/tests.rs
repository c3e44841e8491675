use model::{LeadingAccount, NeverRests, RequestCost, RunStatus};

use super::*;
use crate::sample;

fn text(explanation: &Explanation) -> String {
    sample::written(|out| write(out, explanation, &sample::run(), &Style::default()))
}

#[test]
fn the_first_line_is_the_leading_cause() {
    let text = text(&sample::explanation());
    let first = text.split("\nRun ").next().unwrap().replace('\n', " ");
    assert_eq!(
        first,
        "Threads of scan wait for the mmap_lock of their own process (mmap-lock): 61.0 % of \
         the lost time, 30.5 % of the wall time"
    );
}

#[test]
fn what_a_cause_takes_of_the_slowest_requests_is_told_first() {
    let mut explanation = sample::explanation();
    let ms = 1_000_000;
    let cost = RequestCost { at: None, with: 38, of: 40, ns: 12_480 * ms, total_ns: 13_720 * ms };
    let shown = |explanation: &Explanation| {
        text(explanation).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    explanation.findings[0].requests = Some(cost.clone());
    let flat = shown(&explanation);
    let first = "(mmap-lock): 91.0 % of the time of the 40 slowest requests, 30.5 % of the wall";
    assert!(flat.contains(first), "{flat}");
    assert!(flat.contains("in 38 of the 40 slowest: 91.0 % of their 343 ms on average"), "{flat}");
    let of_port = RequestCost { at: Some("port 80".into()), ..cost.clone() };
    explanation.findings[0].requests = Some(of_port);
    let flat = shown(&explanation);
    assert!(flat.contains("91.0 % of the time of the 40 slowest requests of port 80,"), "{flat}");
    assert!(flat.contains("in 38 of the 40 slowest of port 80: 91.0 % of their"), "{flat}");
    explanation.findings[0].requests = Some(RequestCost { with: 0, ns: 0, ..cost.clone() });
    let flat = shown(&explanation);
    assert!(flat.contains("in none of the 40 slowest: something else made"), "{flat}");
    explanation.findings[0].requests = Some(RequestCost { ns: ms, ..cost });
    let flat = shown(&explanation);
    assert!(flat.contains("(mmap-lock): 61.0 % of the lost time"), "little of them: {flat}");
}

#[test]
fn a_finding_has_all_its_parts_in_order() {
    let text = text(&sample::explanation());
    let prose: String =
        text.lines().filter(|line| !line.contains("whylag bench")).collect::<Vec<_>>().join("\n");
    sample::assert_fits(&prose, 80);
    let parts = [
        "1. mmap-lock:",
        "explains   61.0 % of the lost time",
        "hurts      thread scan (tid 82): 40.0 % of the 1.50 s",
        "when       97 % within 45.0 ms, at the end of the run",
        "confidence 0.85",
        "doubts     - only 12 waits",
        "symptom    mmap takes",
        "mechanism  <- the lock",
        "trigger    <- MAP_POPULATE",
        "evidence   - 2,000 waits",
        "[mmap_lock tracepoints]",
        "ruled out  - not cpu-runqueue: threads were in state D",
        "undecided  - mmap-lock or mm-reader: not looked at: part",
        "apart, stop whatever reads",
        "- reading pages back from swap: not looked at: part 'page",
        "fix        read() instead",
        "reproduce  whylag bench mmap-populate",
        "verify     whylag prove",
        "2. cpu-runqueue:",
        "unexplained: 9.0 %",
        "below the bar: first-touch, 0.4 % of the wall time (16.0 ms)",
        "Not looked at",
        "part 'on-CPU samples' was off (not permitted): first-touch, fork-cow",
        "whylag itself:",
    ];
    let mut from = 0;
    for part in parts {
        let at = text[from..].find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
        from += at;
    }
}

#[test]
fn a_part_of_a_run_says_what_it_is_and_what_it_rests_on() {
    let mut explanation = sample::explanation();
    explanation.scope = Some(model::Scope {
        what: "outlier 1 (scan, tid 82)".into(),
        outlier: Some(1),
        from_ns: 1_500_000_000,
        to_ns: 1_512_100_000,
        threads: 1,
        intervals: 2,
        exact: false,
        estimated_ns: 0,
        basis: "Based on 2 intervals of at least 1.00 ms kept whole.".into(),
    });
    let shown = text(&explanation);
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Outlier 1 (scan, tid 82) of run 12 (pid 77), 1.500 s to 1.512 s"));
    assert!(flat.contains(": 1 thread and 4.00 s of wall time"), "{flat}");
    assert!(flat.contains("took 12.1 ms: 11.8 ms waiting to write mmap_lock"), "{flat}");
    assert!(flat.contains("Based on 2 intervals"), "{flat}");
    explanation.findings.clear();
    let first = text(&explanation).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(first.starts_with("No cause that was looked for explains the time lost"), "{first}");
    assert!(first.contains("; 2 causes were not looked at."), "{first}");
    explanation.not_looked_at.clear();
    assert!(text(&explanation).starts_with("No known cause explains the time lost in outlier"));
}

#[test]
fn a_run_that_has_not_ended_is_told_to_be_one() {
    let told = |status| {
        let mut run = sample::run();
        run.status = status;
        let explanation = sample::explanation();
        let style = Style::default();
        sample::written(|out| write(out, &explanation, &run, &style)).replace('\n', " ")
    };
    assert!(told(RunStatus::Recording).contains("It is still being recorded: this is what"));
    assert!(told(RunStatus::Interrupted).contains("Its recording was interrupted: it is"));
    let complete = told(RunStatus::Complete);
    assert!(!complete.contains("interrupted:") && !complete.contains("being recorded"));
}

#[test]
fn who_never_rests_while_others_wait_is_told_once() {
    let mut explanation = sample::explanation();
    explanation.never_rests = Some(NeverRests {
        tid: 81,
        comm: "indexer".into(),
        waited_ns: 1_800_000_000,
        wall_share: 0.45,
        busy_share: 0.99,
    });
    let sentence = "For 45.0 % of the wall time threads waited for indexer (tid 81), which had";
    let shown = |explanation: &Explanation| {
        text(explanation).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(&explanation).matches(sentence).count(), 1);
    explanation.findings.clear();
    let flat = shown(&explanation);
    assert_eq!(flat.matches(sentence).count(), 1, "{flat}");
    let first = flat.split(" Run ").next().unwrap_or_default();
    assert!(first.ends_with("it limits what they do."), "{flat}");
}

#[test]
fn what_nothing_explains_leads_where_it_is_most() {
    let mut explanation = sample::explanation();
    let not_looked_at = std::mem::take(&mut explanation.not_looked_at);
    explanation.leading_account = Some(LeadingAccount {
        account: model::Account::Blocked(model::Blocked::Disk),
        call: Some("sendfile".into()),
        ns: 3_840_000_000,
        wall_share: 0.96,
    });
    let flat = text(&explanation).split_whitespace().collect::<Vec<_>>().join(" ");
    let first = "96.0 % of the wall time waiting for the disk in sendfile (blocked:disk): no \
                 cause of the catalogue explains it";
    assert!(flat.starts_with(first), "{flat}");
    let accounts = flat.find("The largest accounts of lost time, unexplained").unwrap();
    assert!(accounts < flat.find("1. mmap-lock:").unwrap(), "{flat}");
    explanation.not_looked_at = not_looked_at;
    let flat = text(&explanation).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("explains it, and 2 causes were not looked at; here"), "{flat}");
}

#[test]
fn requests_that_nobody_worked_on_are_told_in_two_lines_where_they_matter() {
    let mut explanation = sample::explanation();
    let held = |at: &str, matters| model::HeldOpen {
        tgid: 7,
        comm: "mariadbd".into(),
        at: at.into(),
        count: 84,
        ns: 10_000_000_000,
        max_ns: 200_000_000,
        share: 0.9,
        matters,
    };
    explanation.held_open = vec![held("port 80", false), held("port 18433", true)];
    let shown = |explanation: &Explanation| -> Vec<String> {
        let text = text(explanation);
        let lines = text.lines().skip_while(|line| !line.starts_with("held open"));
        let own = lines.enumerate().take_while(|(n, line)| *n == 0 || line.starts_with(' '));
        own.map(|(_, line)| line.to_owned()).collect()
    };
    let lines = [
        "held open: 84 requests of port 18433 (mariadbd), mean 119 ms, 10.0 s in all:",
        "           nobody worked on them: long polls, or waits for a row or lock",
    ];
    assert_eq!(shown(&explanation), lines);
    (explanation.held_open[1].count, explanation.held_open[1].comm) =
        (1_040, "healthy_long_po".into());
    assert_eq!(shown(&explanation).len(), 2, "the name is as long as one can be");
    explanation.held_open.truncate(1);
    assert!(!text(&explanation).contains("held open"));
}

#[test]
fn a_peer_that_has_not_answered_is_told_first_where_nothing_is_found() {
    let mut explanation = sample::explanation();
    let silent = |to: &str, never, matters| model::Unanswered {
        tgid: 7,
        comm: "app".into(),
        to: to.into(),
        peer: None,
        peer_comm: "postgres".into(),
        connections: 3,
        never,
        ns: 12_000_000_000,
        packets: 0,
        matters,
    };
    explanation.unanswered = vec![silent("10.0.0.1:5432", 1, false)];
    let flat = |explanation: &Explanation| {
        text(explanation).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(!flat(&explanation).contains("unanswered"));
    explanation.unanswered = (0..5).map(|_| silent("10.0.0.1:5432", 1, true)).collect();
    let shown = flat(&explanation);
    let words = "unanswered: app (pid 7) has sent to 10.0.0.1:5432 (postgres) on 3 connections \
                 and heard nothing since (on 1 of them nothing ever came), for 12.0 s at the end";
    assert!(shown.contains(words) && shown.contains("and 2 peers more; --json"), "{shown}");
    (explanation.findings, explanation.lost_ns) = (Vec::new(), 0);
    let first = "No time was lost in run 12, unless app (pid 7) waits for an answer of \
                 10.0.0.1:5432 (postgres): nothing has come for 12.0 s.";
    assert!(flat(&explanation).starts_with(first), "{}", flat(&explanation));
}

#[test]
fn what_whylag_took_is_told_at_once_if_it_matters() {
    let mut explanation = sample::explanation();
    let own = |matters| {
        let (queued_ns, wall_share) = (80_000_000, 0.02);
        Some(model::OwnDelay { queued_ns, locked_ns: 0, wall_share, matters })
    };
    explanation.own_delay = own(true);
    let flat = text(&explanation).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.starts_with("Recording was in the way: whylag itself took 2.0 %"), "{flat}");
    explanation.own_delay = own(false);
    let flat = text(&explanation);
    assert!(!flat.contains("Recording was in the way"), "{flat}");
    assert!(flat.contains("whylag in the way: 80.0 ms on the CPU"), "{flat}");
}

#[test]
fn children_that_are_not_recorded_are_told_of_first_if_nothing_else_is_found() {
    let mut explanation = sample::explanation();
    let flat = |explanation: &Explanation| {
        text(explanation).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let sentence = |percent| {
        format!(
            "{percent} % of the wall time went by waiting for child processes that are not \
             recorded: 'whylag record --follow' records them as well."
        )
    };
    explanation.unrecorded_children_ns = explanation.wall_ns / 4;
    let text = flat(&explanation);
    assert!(text.starts_with("Threads of scan wait"), "{text}");
    assert!(text.contains(&format!("unaccounted. {}", sentence("25.0"))), "{text}");
    explanation.findings.clear();
    assert!(flat(&explanation).starts_with("No "), "other time is more");
    explanation.unrecorded_children_ns = explanation.wall_ns / 4 * 3;
    let text = flat(&explanation);
    assert!(text.starts_with(&sentence("75.0")), "{text}");
    assert_eq!(text.matches("child processes that are not").count(), 1, "{text}");
}

#[test]
fn commands_are_not_broken() {
    let explanation = sample::explanation();
    assert!(text(&explanation).contains(&explanation.findings[0].verify));
    assert!(explanation.findings[0].verify.len() > 80);
}

#[test]
fn without_a_cause_it_says_so_and_names_the_largest_accounts() {
    let mut explanation = sample::explanation();
    explanation.findings.clear();
    explanation.not_looked_at.clear();
    let unexplained = text(&explanation);
    assert!(unexplained.starts_with("No known cause explains the time lost in run 12."));
    assert!(unexplained.contains("waiting for the disk (blocked:disk)"), "{unexplained}");
    explanation.lost_ns = 0;
    explanation.unexplained.clear();
    let nothing = text(&explanation);
    assert!(nothing.starts_with("No time was lost in run 12"), "{nothing}");
    assert!(nothing.contains("(blocked:lock:mmap_lock:write)"), "{nothing}");
}
