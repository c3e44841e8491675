//! Runs beside each other in a store, and the findings of each.

use model::*;
use store::{Sqlite, Store, StoreError};

use crate::common::*;
use crate::{begun_with, new_store, reopened};

#[test]
fn runs_do_not_mix() {
    let (_folder, mut store) = new_store();
    let one = begun_with(&mut store, &[full_batch()]);
    let two = begun_with(&mut store, &[]);
    assert!(store.load(two).unwrap().threads.is_empty());
    assert!(store.load(two).unwrap().stacks.is_empty());
    let mut third = full_batch();
    third.stacks[0].frames.clear();
    third.threads[0].accounts.add(Account::User, 1);
    begun_with(&mut store, &[third]);
    let loaded = store.load(one).unwrap();
    assert_eq!(loaded.stacks[&StackId(u64::MAX - 1)], full_batch().stacks[0]);
    assert_eq!(loaded.threads.len(), 2);
    assert_eq!(loaded.threads[0].accounts.get(Account::User), 300);
}

#[test]
fn runs_are_listed_oldest_first() {
    let (folder, mut store) = new_store();
    assert_eq!(store.newest().unwrap(), None);
    assert_eq!(store.runs().unwrap(), []);
    let one = begun_with(&mut store, &[full_batch()]);
    store.finish(one, &end()).unwrap();
    let gone = RunHeader { recorder_pid: u32::MAX, ..header() };
    let two = store.begin(&gone).unwrap();
    let three = begun_with(&mut store, &[full_batch()]);
    store.put_findings(one, &[finding("lazy_binding", 0.7), finding("steal", 0.2)]).unwrap();

    let mut listed = reopened(&folder).runs().unwrap();
    let sizes = listed.iter_mut().map(|run| std::mem::take(&mut run.bytes));
    let sizes: Vec<u64> = sizes.collect();
    assert!(sizes[0] >= 4096 && sizes[0] < 1 << 20, "{sizes:?}");
    // One of the threads is not there one by one.
    let expected = |id, status, length_ns, outliers: u64, leading: Option<&str>| RunSummary {
        id,
        header: header(),
        status,
        length_ns,
        threads: if outliers > 0 { outliers + 1 } else { 0 },
        outliers,
        bytes: 0,
        leading_cause: leading.map(str::to_owned),
        origin: None,
    };
    assert_eq!(
        listed,
        [
            expected(one, RunStatus::Complete, 2_500_000_000, 2, Some("lazy_binding")),
            RunSummary { header: gone, ..expected(two, RunStatus::Interrupted, 0, 0, None) },
            expected(three, RunStatus::Recording, 2_000_000_000, 2, None),
        ]
    );
    assert_eq!(store.newest().unwrap(), Some(three));
}

#[test]
fn findings_replace_the_earlier_ones_and_keep_their_order() {
    let (_folder, mut store) = new_store();
    let run = begun_with(&mut store, &[]);
    let first = [finding("a", 0.1), finding("b", 0.5), finding("c", 1.0 / 3.0)];
    store.put_findings(run, &first).unwrap();
    assert_eq!(store.findings(run).unwrap(), first);
    store.put_findings(run, &[finding("d", 0.9)]).unwrap();
    assert_eq!(store.findings(run).unwrap(), [finding("d", 0.9)]);
    store.put_findings(run, &[]).unwrap();
    assert_eq!(store.findings(run).unwrap(), []);
}

#[test]
fn a_run_that_is_not_there_is_named() {
    let (folder, mut store) = new_store();
    let nine = RunId(9);
    let expected = format!(
        "{}: there is no run 9; `whylag runs` lists what there is",
        folder.path().join("w.db").display()
    );
    let errors: [StoreError; 5] = [
        store.load(nine).unwrap_err(),
        store.append(nine, &full_batch()).unwrap_err(),
        store.finish(nine, &end()).unwrap_err(),
        store.put_findings(nine, &[]).unwrap_err(),
        store.findings(nine).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn odd_names_are_only_names() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a b?mode=ro#x%41.db", "file:x.db", ":memory:"] {
        let path = folder.path().join(name);
        let mut store = Sqlite::open(&path).unwrap();
        begun_with(&mut store, &[]);
        drop(store);
        assert!(path.metadata().unwrap().len() > 0, "{name}");
        assert_eq!(Sqlite::open(&path).unwrap().runs().unwrap().len(), 1);
    }
}

fn finding(cause: &str, share: f64) -> Finding {
    let text = |name: &str| format!("{name} of {cause}");
    Finding {
        cause: cause.into(),
        title: text("title"),
        share,
        lost_ns: u64::MAX,
        confidence: 0.1 + 0.2,
        doubts: vec![text("doubt")],
        chain: vec![Link { role: Role::Symptom, cause: Some("c".into()), text: text("link") }],
        evidence: vec![Evidence { text: text("evidence"), source: "sched_switch".into() }],
        ruled_out: vec![RuledOut { cause: "other".into(), because: text("because") }],
        not_looked_at: vec![Excluded { what: "sight".into(), because: text("off") }],
        excluded: vec![Excluded { what: "luck".into(), because: text("because") }],
        not_ruled_out: vec![],
        fix: text("fix"),
        reproduce: text("reproduce"),
        verify: text("verify"),
        ..Finding::default()
    }
}

#[test]
fn a_proof_is_found_by_its_runs_and_goes_with_the_last_of_them() {
    let (folder, mut store) = new_store();
    let runs = [(); 3].map(|()| begun_with(&mut store, &[]));
    runs.iter().for_each(|run| store.finish(*run, &end()).unwrap());
    let [one, two, other] = runs;
    let proof = |summary: &str, of: &[RunId]| Proof {
        summary: summary.to_owned(),
        trials: of.iter().map(|run| trial(*run)).collect(),
        ..Proof::default()
    };
    assert_eq!(store.proof_of(&[one]).unwrap(), None);
    store.put_proof(&proof("first", &[one, two])).unwrap();
    store.put_proof(&proof("second", &[one, other])).unwrap();
    let found = |store: &Sqlite, of: &[RunId]| store.proof_of(of).unwrap().map(|p| p.summary);
    let store = reopened(&folder);
    assert_eq!(found(&store, &[one]).as_deref(), Some("second"), "the newest");
    assert_eq!(found(&store, &[two, one]).as_deref(), Some("first"));
    assert_eq!(found(&store, &[two, other]), None, "in no proof together");
    assert_eq!(found(&store, &[]), None);
    let kept = store.proof_of(&[two]).unwrap().unwrap();
    assert!(kept.trials.iter().all(|trial| trial.figures.is_none()), "they are in the store");

    let mut store = Sqlite::open(&folder.path().join("w.db")).unwrap();
    store.forget(two).unwrap();
    assert_eq!(found(&store, &[two]), None);
    store.forget(one).unwrap();
    assert_eq!(found(&store, &[other]).as_deref(), Some("second"));
}

fn trial(run: RunId) -> Trial {
    let figures = Some(RunFigures::default());
    Trial { side: TrialSide::Before, pair: 0, run: Some(run), wall_ns: 7, metric: None, figures }
}
