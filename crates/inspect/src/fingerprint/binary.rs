//! Which program file it is.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::Fact;

use crate::elf;
use crate::read::{fact, fact_of, unknown};

const PATH: &str = "binary.path";
const BUILD_ID: &str = "binary.build_id";

/// Path and build id of what `program` will run as, found as execvp finds it.
pub fn of_command(program: &Path, environment: &[(OsString, OsString)]) -> Vec<Fact> {
    const SOURCE: &str = "the command";
    let Some(path) = found(program, environment) else {
        let reason = format!("no executable file '{}'", program.display());
        return vec![unknown(PATH, &reason, SOURCE), unknown(BUILD_ID, &reason, SOURCE)];
    };
    vec![fact(PATH, path.to_string_lossy(), SOURCE), build_id(&path)]
}

/// Path and build id of a live process (`self` or a pid).
pub fn of_process(process: &str) -> Vec<Fact> {
    // The link opens the very file that runs, even when it was deleted or is in another mount
    // namespace; its text is the path.
    let link = format!("/proc/{process}/exe");
    let path = fs::read_link(&link);
    let known = path.is_ok();
    let path = fact_of(PATH, path.map(|path| path.to_string_lossy().into_owned()), &*link);
    let id = match known {
        true => build_id(Path::new(&link)),
        false => Fact { name: BUILD_ID.to_owned(), ..path.clone() },
    };
    vec![path, id]
}

fn build_id(path: &Path) -> Fact {
    let source = path.to_string_lossy();
    match elf::build_id(path) {
        Some(id) => fact(BUILD_ID, id, source),
        None => unknown(BUILD_ID, "not an ELF file, or one without a build id", source),
    }
}

fn found(program: &Path, environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return executable(program);
    }
    let (_, path) = environment.iter().find(|(name, _)| name == "PATH")?;
    std::env::split_paths(path).find_map(|directory| executable(&directory.join(program)))
}

/// The file itself, links resolved, if it may be run at all.
fn executable(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let metadata = path.metadata().ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(path)
}
