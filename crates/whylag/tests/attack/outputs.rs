//! Names, paths, command lines and labels that were made to steer the terminal of whoever reads a
//! report, or the spreadsheet that a CSV is opened in.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use model::{Batch, Finding, RunEnd, RunHeader};
use serde_json::Value;
use store::Sqlite;

use crate::common::{Helper, Lab, wait_until};

/// What is put behind each text: a line of its own, and what clears a screen, sets its title, goes
/// back to the start of the line, writes from right to left, or is not seen.
const TAIL: &str = "\nINJECTED\x1b[2J\x1b]0;x\x07\r\t\u{7f}\u{9b}2J\u{85}\u{202e}\u{2066}\u{200b}\
                    \u{200e}\u{2028}\u{feff}";

/// What is put before each text that may have something there: to a spreadsheet, a formula.
const HEAD: &str = "=cmd|' /C calc'!A0";

/// Recordings that have something in most parts of a run.
const RUNS: [&str; 3] = ["queueing-faulty", "tcp-rto-faulty", "timer-slack-faulty"];

fn unpacked(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn packed(lines: &[Value], path: &Path) {
    let mut out = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
    lines.iter().for_each(|line| writeln!(out, "{line}").unwrap());
    out.finish().unwrap();
}

/// Every text of the tree with the names of the fields that it is in.
fn texts(tree: &mut Value, key: &str, each: &mut impl FnMut(&str, &mut String)) {
    match tree {
        Value::String(text) => each(key, text),
        Value::Array(values) => values.iter_mut().for_each(|value| texts(value, key, each)),
        Value::Object(fields) => {
            fields
                .iter_mut()
                .for_each(|(name, value)| texts(value, &format!("{key}.{name}"), each));
        }
        _ => {}
    }
}

/// True if the reader of run files takes the line for what it is: else the text was a word of ours.
fn is_readable(line: &Value) -> bool {
    let is = |part: &Value, read: fn(Value) -> bool| part.is_null() || read(part.clone());
    is(&line["batch"], |batch| serde_json::from_value::<Batch>(batch).is_ok())
        && is(&line["header"], |header| serde_json::from_value::<RunHeader>(header).is_ok())
        && is(&line["complete"]["end"], |end| serde_json::from_value::<RunEnd>(end).is_ok())
        && is(&line["complete"]["findings"], |findings| {
            serde_json::from_value::<Vec<Finding>>(findings).is_ok()
        })
}

/// Writes the run of a file anew, with hostile texts wherever a run can have any; says of how many
/// fields.
fn made_hostile(from: &Path, to: &Path) -> usize {
    let mut lines = unpacked(from);
    let mut keys = BTreeMap::<String, usize>::new();
    for (number, line) in lines.iter_mut().enumerate() {
        texts(line, "", &mut |key, _| {
            keys.entry(key.to_owned()).or_insert(number);
        });
    }
    let with = |heads: &BTreeMap<String, &str>, line: &Value| {
        let mut line = line.clone();
        texts(&mut line, "", &mut |key, text| {
            if let Some(head) = heads.get(key) {
                *text = format!("{head}{text}{TAIL}");
            }
        });
        line
    };
    let mut heads = BTreeMap::new();
    for (key, first) in keys {
        let can_have = |head: &&str| {
            is_readable(&with(&BTreeMap::from([(key.clone(), *head)]), &lines[first]))
        };
        if let Some(head) = [HEAD, ""].into_iter().find(can_have) {
            heads.insert(key, head);
        }
    }
    let lines: Vec<Value> = lines.iter().map(|line| with(&heads, line)).collect();
    packed(&lines, to);
    assert!(Sqlite::open_run_file(to).is_ok(), "{}", from.display());
    heads.len()
}

/// No character that steers a terminal, and no line of somebody else's.
#[track_caller]
fn assert_harmless(what: &str, output: &[u8]) -> String {
    let text = std::str::from_utf8(output).unwrap_or_else(|error| panic!("{what}: {error}"));
    let hostile = |c: char| c != '\n' && TAIL.contains(c) && !c.is_ascii_graphic() && c != '\t';
    for line in text.lines() {
        assert!(!line.contains(hostile), "{what}: {line:?}");
        assert!(!line.starts_with("INJECTED"), "{what}: a name has made a line: {text}");
    }
    text.to_owned()
}

/// Both outputs of a verb, which may refuse, but not fail otherwise.
#[track_caller]
fn harmless(command: &mut Command) -> String {
    let what = format!("{command:?}");
    let output: Output = command.output().unwrap();
    let errors = assert_harmless(&what, &output.stderr);
    assert!(matches!(output.status.code(), Some(0..=2)), "{what}: {:?} {errors}", output.status);
    let text = assert_harmless(&what, &output.stdout);
    if what.contains("--json\"") || what.contains("\"json\"") {
        let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
        assert!(text.is_empty() || is_json(&text), "{what}: {text}");
    }
    text
}

/// Every verb that reads runs, in every format.
fn read_with_every_verb(lab: &Lab, file: &str, other: &str) -> String {
    let mut read = String::new();
    for words in [
        &["explain", file][..],
        &["explain", file, "--outlier", "1"],
        &["explain", file, "--message", "1"],
        &["explain", file, "--window", "0..2s"],
        &["explain", file, "--why-not", "mmap-lock"],
        &["show", file],
        &["compare", file, other],
        &["prove", file, "--", other],
        &["doctor", "--diff", file, other],
        &["doctor", "--diff", file],
    ] {
        for json in [&[][..], &["--json"]] {
            read += &harmless(lab.verb(words[0]).args(&words[1..]).args(json));
        }
    }
    read += &harmless(lab.verb("export").args([file, "--format", "json"]));
    read += &harmless(lab.verb("export").args([file, "--format", "folded"]));
    let flame = lab.folder.path().join("difference.svg");
    let flame = flame.to_str().unwrap();
    read += &harmless(lab.verb("compare").args([file, other, "--flame", flame]));
    if let Ok(svg) = fs::read_to_string(flame) {
        assert_harmless("the flame graph of a comparison", svg.as_bytes());
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        roxmltree::Document::parse_with_options(&svg, options).unwrap();
    }
    let csv = harmless(lab.verb("export").args([file, "--format", "csv"]));
    assert_no_formulas(&csv);
    let svg = harmless(lab.verb("export").args([file, "--format", "svg"]));
    if !svg.is_empty() {
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        roxmltree::Document::parse_with_options(&svg, options).unwrap();
    }
    read + &csv + &svg
}

#[track_caller]
fn assert_no_formulas(csv: &str) {
    for cell in csv.lines().flat_map(|line| line.split(',')) {
        let cell = cell.trim_start_matches('"');
        let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
        assert!(!is_formula || cell.parse::<f64>().is_ok(), "{cell}");
    }
}

#[test]
fn hostile_names_in_a_run_steer_no_output_of_any_verb() {
    let lab = Lab::anywhere_beside_others();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let bench = lab.folder.path().join("bench.whylag");
    lab.answer("bench", &["getppid", "--time", "50ms", "--json"]);
    lab.answer("export", &["--format", "run", "-o", bench.to_str().unwrap()]);
    let mut sources: Vec<PathBuf> =
        RUNS.map(|name| fixtures.join(name).with_extension("whylag")).into();
    sources.push(bench);
    let files: Vec<PathBuf> = (0..sources.len())
        .map(|number| lab.folder.path().join(format!("hostile-{number}.whylag")))
        .collect();
    for (source, file) in sources.iter().zip(&files) {
        let changed = made_hostile(source, file);
        assert!(changed >= 8, "{}: only {changed} texts", source.display());
    }
    let mut all = String::new();
    for (number, file) in files.iter().enumerate() {
        let other = &files[(number + 1) % files.len()];
        all += &read_with_every_verb(&lab, file.to_str().unwrap(), other.to_str().unwrap());
        harmless(lab.verb("import").arg(file));
    }
    // The names are there, with their escapes.
    assert!(all.contains(r"\nINJECTED\x1b[2J\x1b]0;x\x07\r\t\x7f\u{9b}2J"));
    for json in [&[][..], &["--json"]] {
        assert!(harmless(lab.verb("runs").args(json)).contains("INJECTED"));
        harmless(lab.verb("runs").arg("--grid").args(json));
        harmless(lab.verb("series").args(json));
    }
}

#[test]
fn hostile_file_names_steer_no_message() {
    let lab = Lab::anywhere_beside_others();
    let name = format!("{HEAD}{TAIL}").replace('/', "");
    let file = lab.folder.path().join(&name);
    let folder = lab.folder.path().join(format!("folder{name}"));
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "not a run").unwrap();
    let run = |verb: &str, words: &[&OsStr]| harmless(lab.verb(verb).args(words));
    for verb in ["explain", "show", "import"] {
        run(verb, &[file.as_os_str()]);
        run(verb, &[folder.as_os_str()]);
    }
    for output in [folder.as_os_str(), folder.join("no/such").as_os_str()] {
        run("export", &["--format".as_ref(), "csv".as_ref(), "-o".as_ref(), output]);
    }
    run("doctor", &["--diff".as_ref(), file.as_os_str()]);
    run("compare", &[file.as_os_str(), folder.as_os_str()]);
    run("trace", &["harvest".as_ref(), file.as_os_str()]);
    run("record", &["--".as_ref(), file.as_os_str()]);
    run("record", &["--cgroup".as_ref(), file.as_os_str()]);
    run("record", &["-u".as_ref(), OsStr::new(&name)]);
    run("bench", &[OsStr::new(&name)]);
    run("jitter", &["--source".as_ref(), OsStr::new(&name)]);
    for verb in ["runs", "show"] {
        for store in [&file, &folder, &folder.join("whylag.db")] {
            harmless(crate::common::whylag().arg("--store").arg(store).arg(verb));
        }
    }
    let folder = lab.folder.path().join(format!("traces{name}"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("12-34.trace"), "no trace").unwrap();
    for json in [&[][..], &["--json"]] {
        let listed =
            harmless(lab.verb("trace").arg("ls").args(json).env("WHYLAG_TRACE_DIR", &folder));
        assert!(listed.contains("12-34.trace"), "{listed}");
    }
}

#[test]
fn a_hostile_process_steers_no_report_of_it() {
    let Some(lab) = Lab::beside_others() else { return };
    let mut command = Command::new("sh");
    command
        .arg0(format!("sh{TAIL}"))
        .args(["-c", "printf %s \"$1\" >/proc/self/comm; while :; do sleep 0.01; done"]);
    command.arg(format!("a{TAIL}")).arg(format!("b{TAIL}"));
    command.env(format!("EVIL{TAIL}"), format!("x{TAIL}"));
    command.env("LD_LIBRARY_PATH", format!("/x{TAIL}")).env("LD_DEBUG_OUTPUT", TAIL);
    command.env("WHYLAG_TRACE_DIR", format!("/tmp{TAIL}"));
    let process = Helper::spawn(&mut command);
    let comm = format!("/proc/{}/comm", process.pid());
    wait_until("its name", || fs::read_to_string(&comm).is_ok_and(|name| name.starts_with('b')));
    let pid = process.pid();
    harmless(lab.verb("record").args(["-p", &pid, "--follow", "--time", "500ms"]));
    harmless(lab.verb("doctor").args(["-p", &pid, "--why"]));
    harmless(lab.verb("doctor").args(["-p", &pid, "--json"]));
    harmless(lab.verb("doctor").args(["-p", &pid, "--plt"]));
    harmless(lab.verb("trace").args(["-p", &pid]));
    for verb in ["explain", "show", "runs"] {
        harmless(&mut lab.verb(verb));
    }
    assert_no_formulas(&harmless(lab.verb("export").args(["--format", "csv"])));
    let evil = format!("exit 0 # {HEAD}{TAIL}");
    harmless(&mut lab.recording(&[], ["sh", "-c", &evil]));
    for verb in ["explain", "show", "runs"] {
        harmless(&mut lab.verb(verb));
    }
}
