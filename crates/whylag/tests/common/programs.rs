//! Programs to be recorded: tests/programs/*.c and the mysteries, built where needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

/// tests/programs/NAME.c, built.
pub fn program(name: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let source = source.with_extension("c");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    if modified(&built).is_ok_and(|at| at > modified(&source).unwrap()) {
        return built;
    }
    // Test files that run at the same time never see half a program.
    let fresh = built.with_extension(std::process::id().to_string());
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-fno-omit-frame-pointer", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    cc.arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/c/include"));
    let output = cc.arg("-o").arg(&fresh).arg(&source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&fresh, &built).unwrap();
    built
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
