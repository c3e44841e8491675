//! Command lines put together at random from options, numbers and texts that are right, wrong or
//! absurd: each is done or refused, and none makes whylag panic, hang or be killed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Helper, Lab, wait_for};

/// So long this goes on; FUZZ_SECONDS sets another time.
const SECONDS: u64 = 6;

/// No such command line takes longer than this, on a host that is busy as well.
const LIMIT: Duration = Duration::from_secs(60);

/// Each verb with what is always given, so that none measures for long, and what may be added.
/// `~` takes a value behind it.
const VERBS: [(&str, &[&str], &[&str]); 17] = [
    (
        "explain",
        &[],
        &[
            "~--outlier",
            "~--message",
            "~--window",
            "~--thread",
            "~--why-not",
            "~--cause",
            "--json",
            "~",
        ],
    ),
    ("show", &[], &["--json", "~", "~"]),
    (
        "runs",
        &[],
        &["--json", "~", "--grid", "~--lost", "~--label", "~--cause", "~--since", "~--host"],
    ),
    ("compare", &[], &["~", "~", "~--threshold", "--json", "~--flame"]),
    ("series", &[], &["--json", "--all", "~--dismiss", "~--set", "~--until", "~--command"]),
    ("prove", &["1"], &["~", "~--", "~--expect", "--json", "~--cause"]),
    ("export", &[], &["~--format", "~-o", "~"]),
    ("report", &[], &["~", "~", "~-o"]),
    ("import", &[], &["~", "~"]),
    ("forget", &["--dry-run"], &["~", "~--older", "~--keep", "~--size"]),
    ("doctor", &["--time", "1ms", "--watch"], &["~-p", "~--time", "--why", "--json"]),
    ("doctor", &["--diff", "1"], &["~", "--strict", "--json", "--why"]),
    ("trace", &["-p", "4194303"], &["~--every", "--json", "ls", "harvest", "~"]),
    (
        "record",
        &["-p", "4194303"],
        &[
            "~--time",
            "~--threshold",
            "~--budget",
            "~--max-size",
            "--follow",
            "~-t",
            "~-u",
            "~--cgroup",
            "~--container",
        ],
    ),
    ("record", &["-t", "4194303"], &["--keep-command-line", "-a", "~--", "~-p"]),
    (
        "jitter",
        &["--factor", "1ns"],
        &["~--true", "~--clock-hz", "~--bound", "--json", "~--factor"],
    ),
    (
        "bench",
        &["--list"],
        &["~", "~--threads", "~--processes", "~--population", "~--time", "--pin", "--json"],
    ),
];

const VALUES: [&str; 40] = [
    "",
    " ",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "4194303",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1e300",
    "NaN",
    "inf",
    "0x10",
    "1..2",
    "0..1s",
    "2..1",
    "1..",
    "..",
    "1ms",
    "1s",
    "99999999999h",
    "0s",
    "5%",
    "0%",
    "1e-300%",
    "1GB",
    "999999999999TB",
    "svg",
    "csv",
    "json",
    "mmap-lock",
    "/dev/null",
    "/",
    "--",
    "-",
    "\u{202e}\u{1b}[2J\n",
    "%s%n{}",
];

/// The same numbers each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % limit
    }

    fn value(&mut self) -> OsString {
        match self.below(12) {
            0 => OsString::from_vec(vec![0xff, 0xfe, b'x', 0x80]),
            1 => "x".repeat(1 + self.below(100_000)).into(),
            2 => std::env::current_exe().unwrap().into(),
            _ => VALUES[self.below(VALUES.len())].into(),
        }
    }

    fn command_line(&mut self) -> Vec<OsString> {
        let (verb, always, options) = VERBS[self.below(VERBS.len())];
        let mut words = vec![OsString::from(verb)];
        if self.below(8) > 0 {
            words.extend(always.iter().map(OsString::from));
        } else {
            // Whatever comes then, it is no measurement.
            words.push("--no-such-option".into());
        }
        for _ in 0..self.below(6) {
            let option = options[self.below(options.len())];
            match option.strip_prefix('~') {
                Some(option) => {
                    words.extend((!option.is_empty()).then(|| option.into()));
                    words.push(self.value());
                }
                None => words.push(option.into()),
            }
        }
        words
    }
}

#[test]
fn no_command_line_makes_a_panic() {
    let lab = Lab::anywhere_beside_others();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in ["healthy-sleeper", "timer-slack-faulty"] {
        let file = fixtures.join(name).with_extension("whylag");
        lab.answer("import", &[file.to_str().unwrap()]);
    }
    let folder = lab.folder.path().join("here");
    std::fs::create_dir(&folder).unwrap();
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let began = Instant::now();
    let mut random = Random(seconds.unwrap_or(1));
    let (mut done, mut tried) = (0, 0);
    while began.elapsed() < time || tried < 40 {
        let words = random.command_line();
        let mut command = crate::common::whylag();
        command.env("WHYLAG_STORE", lab.store()).current_dir(&folder).args(&words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = Helper::spawn(&mut command);
        let status = wait_for(&mut child.0, LIMIT);
        // 3: --strict, --threshold or --expect.
        assert!(matches!(status.code(), Some(0..=3)), "{status:?}: whylag {words:?}");
        done += u32::from(status.success());
        tried += 1;
    }
    println!("{tried} command lines, {done} of them done");
    assert!(done * 20 > tried, "nearly all were refused: {done} of {tried}");
    assert_eq!(lab.runs().len(), 2, "a run was lost or recorded");
}
