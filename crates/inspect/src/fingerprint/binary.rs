//! Which program file it is.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::Fact;

use crate::elf::{self, Binding, Elf, ElfError};
use crate::files::{self, FileOfProcess};
use crate::read::{fact, fact_of, unknown};

const PATH: &str = "binary.path";
const BUILD_ID: &str = "binary.build_id";
const BINDING: &str = "binary.binding";
const SLOTS: &str = "binary.plt_slots";

/// Path, build id and binding of what `program` will run as, found as execvp finds it.
pub fn of_command(program: &Path, environment: &[(OsString, OsString)]) -> Vec<Fact> {
    const SOURCE: &str = "the command";
    let Some(path) = found(program, environment) else {
        let reason = format!("no executable file '{}'", program.display());
        return [PATH, BUILD_ID, BINDING, SLOTS].map(|it| unknown(it, &reason, SOURCE)).into();
    };
    let source = path.to_string_lossy();
    let mut facts = vec![fact(PATH, &*source, SOURCE), build_id(elf::build_id(&path), &source)];
    facts.extend(binding(Elf::open(&path), &source));
    facts
}

/// Path, build id and binding of a live process.
pub fn of_process(pid: u32) -> Vec<Fact> {
    // The link opens the very file that runs, even when it was deleted or is in another mount
    // namespace; its text is the path.
    let link = format!("/proc/{pid}/exe");
    let path = fs::read_link(&link);
    let known = path.is_ok();
    let path = fact_of(PATH, path.map(|path| path.to_string_lossy().into_owned()), &*link);
    if !known {
        let same = |name: &str| Fact { name: name.to_owned(), ..path.clone() };
        return [PATH, BUILD_ID, BINDING, SLOTS].map(same).into();
    }
    let program = files::program(pid);
    let id = program.as_ref().ok().and_then(FileOfProcess::build_id);
    let elf = program.map_err(ElfError::from).and_then(|program| Elf::read(&*program.bytes()?));
    let mut facts = vec![path, build_id(id, &link)];
    facts.extend(binding(elf, &link));
    facts
}

/// When its calls of libraries are bound, and how many slots there are for them.
fn binding(elf: Result<Elf, ElfError>, source: &str) -> [Fact; 2] {
    match elf {
        Ok(elf) => {
            let how = match elf.binding {
                Binding::Lazy => "at first calls".to_owned(),
                Binding::Now(entry) => format!("at load time ({entry})"),
                Binding::Nothing if elf.bound_at_load() > 0 => "at load time (no PLT)".to_owned(),
                Binding::Nothing => "nothing to bind".to_owned(),
            };
            [fact(BINDING, how, source), fact(SLOTS, elf.slots.len().to_string(), source)]
        }
        Err(error) => [BINDING, SLOTS].map(|name| unknown(name, &error, source)),
    }
}

fn build_id(id: Option<String>, source: &str) -> Fact {
    match id {
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
