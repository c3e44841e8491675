//! What makes a Java process wait for a disk.

use std::path::{Path, PathBuf};

use super::Target;
use crate::doctor::entry::{Entry, Look};
use crate::{files, patience};

pub(super) const ENTRIES: &[Entry<Target>] = &[
    Entry {
        id: "jvm-perf-data",
        why: "The JVM counts in a mapped file; while that is written to disk, a thread that counts, \
              also at a safepoint, waits.",
        source: "/proc/PID/maps",
        look: |of| {
            if !is_jvm(of)? {
                return Ok(not_java());
            }
            let mappings = of.process.mappings().map_err(|error| error.to_string())?;
            let file = mappings.all.iter().find_map(|mapping| {
                let (path, _) = mapping.path_of_file()?;
                path.contains("/hsperfdata_").then_some(path)
            });
            let Some(file) = file else { return Ok(perf_data(None)) };
            Ok(perf_data(Some((is_in_memory(of, file)?, file))))
        },
    },
    Entry {
        id: "jvm-gc-log",
        why: "A garbage collector that writes its log within a pause waits for the file: the pause \
              becomes as long as the disk likes.",
        source: "/proc/PID/cmdline",
        look: |of| {
            if !is_jvm(of)? {
                return Ok(not_java());
            }
            let command_line = of.get("cmdline")?;
            let Some(file) = gc_log_file(&command_line) else {
                return Ok(gc_log(&command_line, false));
            };
            let folder = Path::new(file).parent().unwrap_or(Path::new("")).join(".");
            Ok(gc_log(&command_line, is_in_memory(of, folder)?))
        },
    },
    Entry {
        id: "jvm-memory",
        why: "Without AlwaysPreTouch the heap's pages are first touched, one page fault each, while \
              the program works.",
        source: "/proc/PID/cmdline",
        look: |of| match is_jvm(of)? {
            true => Ok(pre_touch(&of.get("cmdline")?)),
            false => Ok(not_java()),
        },
    },
];

fn is_jvm(of: &Target) -> Result<bool, String> {
    Ok(of.libraries()?.iter().any(|library| library.name() == "libjvm.so"))
}

/// True if what it has at a path is on a file system in memory.
fn is_in_memory(of: &Target, path: impl Into<PathBuf>) -> Result<bool, String> {
    let (pid, path) = (of.pid(), path.into());
    let kind = patience::ask(pid, move || files::file_system(pid, &path));
    let kind = kind.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    Ok(["tmpfs", "ramfs", "hugetlbfs"].contains(&kind.as_str()))
}

fn not_java() -> Look {
    Look::good("no JVM")
}

fn perf_data(file: Option<(bool, &str)>) -> Look {
    match file {
        None => Look::good("not mapped"),
        Some((true, path)) => Look::good("in memory").detail(path),
        Some((false, path)) => Look::attention(
            "in a file on disk",
            "-XX:+PerfDisableSharedMem (jps and jstat no longer see the process), or tmpfs for \
             /tmp/hsperfdata_*.",
        )
        .detail(path),
    }
}

/// The arguments of a command line with zero bytes between.
fn words(command_line: &str) -> impl Iterator<Item = &str> {
    command_line.split('\0').filter(|word| !word.is_empty())
}

/// `-Xloggc:FILE`, `-Xlog:gc*:file=FILE:decorators`.
fn gc_log_file(command_line: &str) -> Option<&str> {
    words(command_line).find_map(|word| {
        let of_log = || Some(word.strip_prefix("-Xlog:")?.split_once(":file=")?.1);
        let file = word.strip_prefix("-Xloggc:").or_else(of_log)?;
        Some(file.split(':').next().unwrap_or(file).trim_matches('"'))
    })
}

fn gc_log(command_line: &str, is_in_memory: bool) -> Look {
    let Some(file) = gc_log_file(command_line) else { return Look::good("no log file") };
    let is_async = words(command_line).any(|word| word.starts_with("-Xlog:async"));
    match (is_in_memory, is_async) {
        (true, _) => Look::good("in memory").detail(file),
        (_, true) => Look::good("written by a thread of its own").detail(file),
        _ => Look::attention(
            format!("to {file}"),
            "-Xlog:async (JDK 17 or newer), or a log file in memory (tmpfs).",
        ),
    }
}

fn pre_touch(command_line: &str) -> Look {
    match words(command_line).any(|word| word == "-XX:+AlwaysPreTouch") {
        true => Look::good("touched at start"),
        false => Look::attention(
            "touched as it is used",
            "-XX:+AlwaysPreTouch with -Xms equal to -Xmx, if start-up time allows.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use model::CheckResult::{Attention, Good};

    use super::*;
    use crate::live::Process;

    #[test]
    fn flags_that_matter() {
        let gc = |line: &str| gc_log(&line.replace(' ', "\0"), false);
        assert_eq!(gc("java -Xlog:gc*:file=/var/log/gc.log Main").verdict, Attention);
        assert_eq!(gc("java -Xlog:gc:file=/var/log/gc.log -Xlog:async Main").verdict, Good);
        assert_eq!(gc("java -Xloggc:/gc.log Main").verdict, Attention);
        assert_eq!(gc("java -Xlog:gc Main").verdict, Good);
        assert_eq!(gc("java -Xlog:gc:file=/gc.log:time Main").fact, "to /gc.log");
        assert_eq!(gc_log("java\0-Xloggc:/dev/shm/gc.log\0", true).verdict, Good);
        assert_eq!(pre_touch("java\0-XX:+AlwaysPreTouch\0").verdict, Good);
        assert_eq!(pre_touch("java\0").verdict, Attention);
        let file = |in_memory| Some((in_memory, "/tmp/hsperfdata_me/7"));
        assert_eq!(perf_data(file(false)).verdict, Attention);
        assert_eq!(perf_data(file(true)).verdict, Good);
        let of = Target::new(Process::open(std::process::id()).unwrap(), Ok(Vec::new()));
        assert!(is_in_memory(&of, "/dev/shm").unwrap() && !is_in_memory(&of, "/proc").unwrap());
    }
}
