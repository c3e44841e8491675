//! What makes a Java process wait for a disk.

use std::path::Path;

use rustix::fs::statfs;

use super::Target;
use crate::doctor::entry::{Entry, Look};
use crate::files::FileError;
use crate::user_namespace::has_mounts_of_others;

pub(super) const ENTRIES: &[Entry<Target>] = &[
    Entry {
        id: "jvm-perf-data",
        why: "The JVM counts in a mapped file; while that is written to disk, a thread that counts, \
              also at a safepoint, waits.",
        source: "/proc/PID/maps",
        look: |of| {
            let mappings = of.process.mappings().map_err(|error| error.to_string())?;
            let file = mappings.all.iter().find_map(|mapping| {
                let (path, _) = mapping.path_of_file()?;
                path.contains("/hsperfdata_").then(|| path.to_owned())
            });
            can_be_asked(of)?;
            let is_in_memory = |path: &str| {
                let inside = format!("/proc/{}/root{path}", of.pid());
                is_memory(Path::new(&inside))
            };
            Ok(perf_data(is_jvm(of)?, file.map(|path| (is_in_memory(&path), path))))
        },
    },
    Entry {
        id: "jvm-gc-log",
        why: "A garbage collector that writes its log within a pause waits for the file: the pause \
              becomes as long as the disk likes.",
        source: "/proc/PID/cmdline",
        look: |of| {
            let command_line = of.get("cmdline")?;
            can_be_asked(of)?;
            let is_in_memory = gc_log_file(&command_line).is_some_and(|file| {
                let folder = Path::new(file).parent().unwrap_or(Path::new(""));
                let place = if folder.is_absolute() { "root" } else { "cwd" };
                let folder = folder.strip_prefix("/").unwrap_or(folder);
                is_memory(&Path::new(&format!("/proc/{}/{place}", of.pid())).join(folder))
            });
            Ok(gc_log(is_jvm(of)?, &command_line, is_in_memory))
        },
    },
    Entry {
        id: "jvm-memory",
        why: "Without AlwaysPreTouch the heap's pages are first touched, one page fault each, while \
              the program works.",
        source: "/proc/PID/cmdline",
        look: |of| Ok(pre_touch(is_jvm(of)?, &of.get("cmdline")?)),
    },
];

/// Whether its file systems may be asked what they are.
fn can_be_asked(of: &Target) -> Result<(), String> {
    match has_mounts_of_others(of.pid()) {
        true => Err(FileError::MountsOfOthers.to_string()),
        false => Ok(()),
    }
}

fn is_jvm(of: &Target) -> Result<bool, String> {
    Ok(of.libraries()?.iter().any(|library| library.name() == "libjvm.so"))
}

/// True on tmpfs, ramfs and hugetlbfs.
fn is_memory(path: &Path) -> bool {
    const MAGIC: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
    statfs(path).is_ok_and(|of| MAGIC.contains(&(of.f_type & 0xffff_ffff)))
}

fn not_java() -> Look {
    Look::good("no JVM")
}

fn perf_data(is_jvm: bool, file: Option<(bool, String)>) -> Look {
    match (is_jvm, file) {
        (false, _) => not_java(),
        (true, None) => Look::good("not mapped"),
        (true, Some((true, path))) => Look::good("in memory").detail(path),
        (true, Some((false, path))) => Look::attention(
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

fn gc_log(is_jvm: bool, command_line: &str, is_in_memory: bool) -> Look {
    if !is_jvm {
        return not_java();
    }
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

fn pre_touch(is_jvm: bool, command_line: &str) -> Look {
    if !is_jvm {
        return not_java();
    }
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

    #[test]
    fn flags_that_matter() {
        let gc = |line: &str| gc_log(true, &line.replace(' ', "\0"), false);
        assert_eq!(gc("java -Xlog:gc*:file=/var/log/gc.log Main").verdict, Attention);
        assert_eq!(gc("java -Xlog:gc:file=/var/log/gc.log -Xlog:async Main").verdict, Good);
        assert_eq!(gc("java -Xloggc:/gc.log Main").verdict, Attention);
        assert_eq!(gc("java -Xlog:gc Main").verdict, Good);
        assert_eq!(gc("java -Xlog:gc:file=/gc.log:time Main").fact, "to /gc.log");
        assert_eq!(gc_log(true, "java\0-Xloggc:/dev/shm/gc.log\0", true).verdict, Good);
        assert_eq!(gc_log(false, "x -Xloggc:/gc.log", false).fact, "no JVM");
        assert_eq!(pre_touch(true, "java\0-XX:+AlwaysPreTouch\0").verdict, Good);
        assert_eq!(pre_touch(true, "java\0").verdict, Attention);
        let file = |in_memory| Some((in_memory, "/tmp/hsperfdata_me/7".to_owned()));
        assert_eq!(perf_data(true, file(false)).verdict, Attention);
        assert_eq!(perf_data(true, file(true)).verdict, Good);
        assert!(is_memory(Path::new("/dev/shm")) && !is_memory(Path::new("/proc")));
    }
}
