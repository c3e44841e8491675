//! Another user, who may do nothing.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// A folder that anybody may look into, with a copy of the program in it.
pub fn for_anybody() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let binary = folder.path().join("whylag");
    super::copy_program(env!("CARGO_BIN_EXE_whylag"), &binary);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    (folder, binary)
}

/// A command as nobody.
pub fn as_nobody(mut command: Command) -> Command {
    command.uid(65_534).gid(65_534);
    command
}
