//! The symbols of stripped files, where they are installed or were downloaded before. Nothing is
//! downloaded.

use std::env;
use std::fs::File;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::elf::build_id_of;
use crate::{files, patience};

/// Where packages of distributions install them.
const INSTALLED: &str = "/usr/lib/debug/.build-id";

/// The file with the symbols of the one that has this build id: of a package, or in the cache of
/// debuginfod. It belongs to root or to the user that asks, and has the same build id.
///
/// The folders can be anything that a user has put into the environment, and lie on a file system
/// whose server does not answer: then there is none, after a second.
pub fn find(build_id: &str) -> Option<File> {
    let build_id = build_id.to_owned();
    patience::ask(patience::OF_FOLDERS, move || look_for(&build_id)).ok().flatten()
}

fn look_for(build_id: &str) -> Option<File> {
    let cache = cache().map(|cache| cache.join(build_id).join("debuginfo"));
    let installed = installed(Path::new(INSTALLED), build_id);
    installed.into_iter().chain(cache).find_map(|path| open(&path, build_id))
}

fn installed(folder: &Path, build_id: &str) -> Option<PathBuf> {
    let (first, rest) = build_id.split_at_checked(2)?;
    Some(folder.join(first).join(format!("{rest}.debug")))
}

/// As debuginfod(8) has it.
fn cache() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let below = |path: PathBuf| path.join("debuginfod_client");
    let own = || variable("HOME").map(|home| below(home.join(".cache")));
    variable("DEBUGINFOD_CACHE_PATH").or_else(|| variable("XDG_CACHE_HOME").map(below)).or_else(own)
}

fn open(path: &Path, build_id: &str) -> Option<File> {
    let file = files::regular(path).ok()?;
    let owner = file.metadata().ok()?.st_uid();
    let is_trusted = owner == 0 || owner == rustix::process::geteuid().as_raw();
    let found = build_id_of(file.try_clone().ok()?)?;
    (is_trusted && found == build_id).then_some(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::elf::{CallSites, build_id};

    #[test]
    fn a_stripped_program_has_the_names_of_its_debug_file_and_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let [source, program, debug, other] =
            ["a.c", "a", "a.debug", "b"].map(|name| folder.path().join(name));
        fs::write(
            &source,
            "static __attribute__((noinline)) int hidden(int a) { return a * 3; }\n\
                            int main(int n, char **v) { return hidden(n); }",
        )
        .unwrap();
        let run = |command: &mut Command| assert!(command.status().unwrap().success());
        run(Command::new("cc")
            .args(["-O1", "-g", "-Wl,--build-id", "-o"])
            .arg(&program)
            .arg(&source));
        run(Command::new("cc").args(["-O2", "-Wl,--build-id", "-o"]).arg(&other).arg(&source));
        let hidden = |sites: &CallSites| {
            (0..0x8000)
                .filter_map(|offset| sites.function_at_offset(offset).ok())
                .find(|found| found.0 == "hidden" && found.1 == 0)
        };
        let whole = hidden(&CallSites::open(&program).unwrap());
        assert!(whole.is_some());
        let only = |what: &str, from: &Path, to: &Path| {
            run(Command::new("objcopy").arg(what).arg(from).arg(to));
        };
        only("--only-keep-debug", &program, &debug);
        only("--strip-all", &program, &program.with_extension("stripped"));
        let stripped = program.with_extension("stripped");
        let id = build_id(&stripped).unwrap();
        let mut sites = CallSites::open(&stripped).unwrap();
        assert!(sites.is_stripped() && hidden(&sites).is_none());
        assert!(open(&other, &id).is_none(), "another file");
        let found = open(&debug, &id).unwrap();
        sites.take_symbols(Box::new(found)).unwrap();
        assert_eq!(hidden(&sites), whole);
        let at = installed(Path::new(INSTALLED), "abcdef").unwrap();
        assert_eq!(at, Path::new("/usr/lib/debug/.build-id/ab/cdef.debug"));
    }
}
