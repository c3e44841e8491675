//! The symbols of stripped files, where they are installed, were downloaded before, or lie beside the
//! file. Nothing is downloaded.

use std::env;
use std::fs::File;
use std::io::Read;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flate2::Crc;

use crate::elf::{DebugLink, build_id_of};
use crate::{files, patience};

/// Where packages of distributions install them: below it by build id, and by the path of the
/// stripped file.
const INSTALLED: &str = "/usr/lib/debug";

/// The largest file of which the checksum is taken, bytes.
const LARGEST_SUMMED: u64 = 256 << 20;

/// A file that was stripped.
#[derive(Clone, Debug, Default)]
pub struct Stripped {
    /// Its path.
    pub path: PathBuf,
    /// The process that has it mapped, by that path.
    pub process: u32,
    /// Its GNU build id.
    pub build_id: Option<String>,
    /// The file that it says has its symbols.
    pub link: Option<DebugLink>,
}

/// True of users whose files are looked at: root's, and those of the user that asks.
pub fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}

/// The file with the symbols of another one: of a package, in the cache of debuginfod, or where that
/// file says (`.gnu_debuglink`). It belongs to root or to the user that asks, and has the same build
/// id; one that was found by its name has the checksum that the other one says.
///
/// The folders can be anything that a user has put into the environment, or that a process has mapped
/// a file by, and lie on a file system whose server does not answer: then there is none, after a
/// second.
pub fn find(stripped: &Stripped) -> Option<File> {
    let (id, owned) = (stripped.build_id.clone(), stripped.clone());
    let by_id = patience::ask(patience::OF_FOLDERS, move || by_id(&id?)).ok().flatten();
    let linked = move || linked(Path::new(INSTALLED), &owned);
    by_id.or_else(|| patience::ask(stripped.process, linked).ok().flatten())
}

fn by_id(id: &str) -> Option<File> {
    let cache = cache().map(|cache| cache.join(id).join("debuginfo"));
    let installed = installed(&Path::new(INSTALLED).join(".build-id"), id);
    installed.into_iter().chain(cache).find_map(|path| open(&path, id))
}

/// The file that the link names: beside the stripped one, in its folder .debug, or below `global`.
fn linked(global: &Path, stripped: &Stripped) -> Option<File> {
    let link = stripped.link.as_ref()?;
    let folder = stripped.path.parent()?;
    let below = folder.strip_prefix("/").ok()?;
    let folders = [folder.join(".debug"), folder.to_owned(), global.join(below)];
    let paths = folders.into_iter().map(|folder| folder.join(&link.name));
    paths.filter(|path| *path != stripped.path).find_map(|path| {
        let file = trusted(&path)?;
        let id = build_id_of(file.try_clone().ok()?);
        let is_other = id.is_some() && stripped.build_id.is_some() && id != stripped.build_id;
        (!is_other && checksum(&path)? == link.crc).then_some(file)
    })
}

/// CRC-32 of a file; `None` of one that is too large.
fn checksum(path: &Path) -> Option<u32> {
    let mut file = trusted(path)?;
    if file.metadata().ok()?.len() > LARGEST_SUMMED {
        return None;
    }
    let (mut sum, mut piece) = (Crc::new(), vec![0; 64 << 10]);
    loop {
        let read = file.read(&mut piece).ok()?;
        if read == 0 {
            return Some(sum.sum());
        }
        sum.update(&piece[..read]);
        // It may grow while it is read.
        if u64::from(sum.amount()) > LARGEST_SUMMED {
            return None;
        }
    }
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

fn trusted(path: &Path) -> Option<File> {
    let file = files::regular(path).ok()?;
    is_trusted(file.metadata().ok()?.st_uid()).then_some(file)
}

fn open(path: &Path, build_id: &str) -> Option<File> {
    let file = trusted(path)?;
    let found = build_id_of(file.try_clone().ok()?)?;
    (found == build_id).then_some(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::elf::{CallSites, build_id, debug_link};

    const SOURCE: &str = "static __attribute__((noinline)) int hidden(int a) { return a * 3; }\n\
                          int main(int n, char **v) { return hidden(n); }";

    fn run(command: &mut Command) {
        assert!(command.status().unwrap().success(), "{command:?}");
    }

    fn objcopy(arguments: &[&str], from: &Path, to: &Path) {
        run(Command::new("objcopy").args(arguments).arg(from).arg(to));
    }

    /// A program with symbols in a folder, linked with these options.
    fn program(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
        let source = folder.join(format!("{name}.c"));
        fs::write(&source, SOURCE).unwrap();
        let path = folder.join(name);
        run(Command::new("cc").args(["-O1", "-g"]).args(options).arg("-o").arg(&path).arg(&source));
        path
    }

    /// Where `hidden` begins, by offset.
    fn hidden(sites: &CallSites) -> Option<u64> {
        (0..0x8000).find(|offset| {
            sites.function_at_offset(*offset).is_ok_and(|found| found == ("hidden".to_owned(), 0))
        })
    }

    #[test]
    fn a_linked_file_is_found_by_its_name_and_taken_by_its_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        // Without a build id only the checksum tells.
        let whole = program(folder, "a", &["-Wl,--build-id=none"]);
        let expected = hidden(&CallSites::open(&whole).unwrap()).unwrap();
        let (debug, stripped) = (folder.join("a.debug"), folder.join("bin/a"));
        fs::create_dir_all(folder.join("bin/.debug")).unwrap();
        objcopy(&["--only-keep-debug"], &whole, &debug);
        let link = format!("--add-gnu-debuglink={}", debug.display());
        objcopy(&["--strip-all", &link], &whole, &stripped);
        let mut sites = CallSites::open(&stripped).unwrap();
        let link = sites.debug_link().unwrap();
        assert_eq!(link.name, "a.debug");
        let of_stripped = Stripped {
            path: stripped.clone(),
            process: std::process::id(),
            build_id: build_id(&stripped),
            link: Some(link),
        };
        assert!(of_stripped.build_id.is_none() && hidden(&sites).is_none());
        assert!(find(&of_stripped).is_none(), "it is not there yet");

        let beside = folder.join("bin/.debug/a.debug");
        fs::copy(&debug, &beside).unwrap();
        let found = find(&of_stripped).expect("in .debug");
        sites.take_symbols(Box::new(found)).unwrap();
        assert_eq!(hidden(&sites), Some(expected));

        let mut changed = fs::read(&debug).unwrap();
        *changed.last_mut().unwrap() ^= 1;
        fs::write(&beside, changed).unwrap();
        assert!(find(&of_stripped).is_none(), "one bit is another");
        fs::remove_file(&beside).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &beside,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(find(&of_stripped).is_none(), "a FIFO keeps nobody waiting");

        let global = folder.join("global");
        let below = global.join(folder.join("bin").strip_prefix("/").unwrap());
        fs::create_dir_all(&below).unwrap();
        fs::copy(&debug, below.join("a.debug")).unwrap();
        assert!(linked(&global, &of_stripped).is_some());
        let of_no_link = Stripped { link: None, ..of_stripped };
        assert!(linked(&global, &of_no_link).is_none());
    }

    #[test]
    fn a_linked_file_with_another_build_id_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let whole = program(folder, "a", &["-Wl,--build-id=0xabcd"]);
        let other = program(folder, "b", &["-Wl,--build-id=0xabce"]);
        let debug = folder.join("b.debug");
        objcopy(&["--only-keep-debug"], &other, &debug);
        let stripped = folder.join("stripped");
        let link = format!("--add-gnu-debuglink={}", debug.display());
        objcopy(&["--strip-all", &link], &whole, &stripped);
        let link = debug_link(&fs::read(&stripped).unwrap());
        let of = |id: &str| Stripped {
            path: stripped.clone(),
            process: std::process::id(),
            build_id: Some(id.to_owned()),
            link: link.clone(),
        };
        assert!(linked(folder, &of("abcd")).is_none());
        assert!(linked(folder, &of("abce")).is_some());
    }

    #[test]
    fn a_link_leads_to_no_other_folder() {
        let folder = tempfile::tempdir().unwrap();
        let whole = program(folder.path(), "a", &[]);
        let section = folder.path().join("section");
        let stripped = folder.path().join("stripped");
        for name in ["../secret", "/etc/passwd", "..", "", "no end"] {
            let mut bytes = name.as_bytes().to_vec();
            if name != "no end" {
                bytes.resize(bytes.len() / 4 * 4 + 8, 0);
            }
            fs::write(&section, bytes).unwrap();
            let add = format!(".gnu_debuglink={}", section.display());
            objcopy(&["--strip-all", "--add-section", &add], &whole, &stripped);
            assert_eq!(debug_link(&fs::read(&stripped).unwrap()), None, "{name}");
        }
    }

    #[test]
    fn symbols_that_a_file_has_compressed_are_unpacked_as_far_as_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let whole = program(folder, "a", &[]);
        let expected = hidden(&CallSites::open(&whole).unwrap());
        let (debug, packed) = (folder.join("a.debug"), folder.join("a.debug.xz"));
        let stripped = folder.join("stripped");
        let with = |contents: &Path| {
            let add = format!(".gnu_debugdata={}", contents.display());
            objcopy(&["--strip-all", "--add-section", &add], &whole, &stripped);
            let mut sites = CallSites::open(&stripped).unwrap();
            assert!(sites.is_stripped() && hidden(&sites).is_none());
            let before = sites.memory();
            sites.take_packed_symbols();
            (hidden(&sites), sites.memory() - before)
        };
        objcopy(&["--only-keep-debug"], &whole, &debug);
        run(Command::new("xz").args(["-k", "-f"]).arg(&debug));
        let (found, memory) = with(&packed);
        assert!(found.is_some() && found == expected);
        assert!(memory as u64 >= fs::metadata(&debug).unwrap().len(), "{memory}");

        // Not what it says it is, cut short, and more than there is room for.
        assert_eq!(with(&debug), (None, 0));
        let whole_length = fs::metadata(&packed).unwrap().len();
        fs::File::options().write(true).open(&packed).unwrap().set_len(whole_length / 2).unwrap();
        assert_eq!(with(&packed), (None, 0));
        let bomb = folder.join("bomb");
        fs::File::create(&bomb).unwrap().set_len(40 << 20).unwrap();
        run(Command::new("xz").args(["-k", "-f"]).arg(&bomb));
        assert_eq!(with(&folder.join("bomb.xz")), (None, 0));
    }

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
        let at = installed(&Path::new(INSTALLED).join(".build-id"), "abcdef").unwrap();
        assert_eq!(at, Path::new("/usr/lib/debug/.build-id/ab/cdef.debug"));
    }
}
