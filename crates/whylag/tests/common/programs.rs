//! Programs to be recorded: tests/programs/*.c, tests/shapes/*.c and the mysteries, built where
//! needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// tests/programs/NAME.c, built.
pub fn program(name: &str) -> PathBuf {
    program_built(name, &[])
}

/// The same with more options of the compiler.
pub fn program_built(name: &str, options: &[&str]) -> PathBuf {
    let folder = tests().join("programs");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/c/include");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    build("cc", &[folder.join(name).with_extension("c")], &include, options, &built);
    built
}

/// The same, built for musl.
pub fn program_of_musl(name: &str) -> PathBuf {
    let source = tests().join("programs").join(name).with_extension("c");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-musl"));
    build("musl-gcc", &[source], &tests(), &OF_KERNEL, &built);
    built
}

/// A C library that a program is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libc {
    Glibc,
    Musl,
}

/// Debian's musl has none of the kernel's headers.
const OF_KERNEL: [&str; 4] =
    ["-idirafter", "/usr/include", "-idirafter", "/usr/include/x86_64-linux-gnu"];

/// tests/shapes/NAME.c, built.
pub fn shape(name: &str, libc: Libc) -> PathBuf {
    let folder = tests().join("shapes");
    let include = tests().join("../../../mysteries");
    let (compiler, options, built): (_, &[&str], _) = match libc {
        Libc::Glibc => ("cc", &[], "shapes"),
        Libc::Musl => ("musl-gcc", &OF_KERNEL, "shapes-musl"),
    };
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(built);
    fs::create_dir_all(&built).unwrap();
    let built = built.join(name);
    let source = folder.join(name).with_extension("c");
    let headers = ["shape.h", "loop_and_threads.h"].map(|name| folder.join(name));
    let sources = [vec![source], headers.to_vec(), vec![include.join("common.h")]].concat();
    build(compiler, &sources, &include, options, &built);
    built
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Compiles the first of `sources`, where one of them was changed since.
fn build(compiler: &str, sources: &[PathBuf], include: &Path, options: &[&str], built: &Path) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    let is_newer = |at| sources.iter().all(|source| at > modified(source).unwrap());
    if modified(built).is_ok_and(is_newer) {
        return;
    }
    // Test files that run at the same time never see half a program.
    let fresh = built.with_extension(std::process::id().to_string());
    let mut cc = Command::new(compiler);
    cc.args(["-O1", "-g", "-fno-omit-frame-pointer", "-Wall", "-Wextra", "-Wno-unused-parameter"]);
    cc.args(["-Werror", "-pthread"]).args(options).arg("-I").arg(include);
    let output = cc.arg("-o").arg(&fresh).arg(&sources[0]).output();
    let output = output.unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&fresh, built).unwrap();
}

/// mysteries/bin/NAME, built.
pub fn mystery(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mysteries");
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let output = Command::new("make").arg("-sC").arg(&folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
    folder.canonicalize().unwrap().join("bin").join(name)
}
