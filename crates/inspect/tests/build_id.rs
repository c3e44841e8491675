//! Build ids against readelf and against files made for the purpose.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use inspect::elf::build_id;
use proptest::prelude::*;

/// An executable of an empty program, linked with the given options.
fn linked(directory: &Path, options: &[&str]) -> PathBuf {
    let (source, program) = (directory.join("empty.c"), directory.join("empty"));
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let status =
        Command::new("cc").args(options).arg("-o").arg(&program).arg(&source).status().unwrap();
    assert!(status.success());
    program
}

#[test]
fn agrees_with_readelf() {
    for path in ["/bin/sh", "/bin/ls", "/usr/bin/env"] {
        let Ok(output) = Command::new("readelf").args(["-n", path]).output() else {
            eprintln!("skipped: no readelf here (Debian: binutils)");
            return;
        };
        let output = String::from_utf8(output.stdout).unwrap();
        let expected = output.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
        assert_eq!(build_id(path).as_deref(), expected, "{path}");
    }
}

#[test]
fn the_id_given_to_the_linker_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let program = linked(directory.path(), &["-Wl,--build-id=0x00c0ffee1234"]);
    assert_eq!(build_id(&program).unwrap(), "00c0ffee1234");
    let stripped = Command::new("strip").arg("-s").arg(&program).status().unwrap();
    assert!(stripped.success());
    assert_eq!(build_id(&program).unwrap(), "00c0ffee1234");
    let program = linked(directory.path(), &["-Wl,--build-id=none"]);
    assert_eq!(build_id(&program), None);
}

#[test]
fn what_is_no_elf_file_gives_none() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = directory.path().join("text");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    for path in [&pipe, &text, &directory.path().to_owned(), &directory.path().join("absent")] {
        assert_eq!(build_id(path), None, "{}", path.display());
    }
    assert_eq!(build_id("/dev/zero"), None);
}

/// A header may claim a note as long as the file, and a sparse file may be as long as it likes.
/// Read in full this one would give its id, for that is at its start.
#[test]
fn a_note_of_a_claimed_64_mib_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let program = linked(directory.path(), &["-Wl,--build-id=0x01"]);
    let mut bytes = fs::read(&program).unwrap();
    let table = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).unwrap();
    let segments = usize::from(u16::from_le_bytes(bytes[56..58].try_into().unwrap()));
    let mut notes = 0;
    for segment in 0..segments {
        let header = table + 56 * segment;
        if bytes[header] == 4 {
            notes += 1;
            bytes[header + 32..header + 40].copy_from_slice(&(64u64 << 20).to_le_bytes());
        }
    }
    assert!(notes > 0);
    fs::write(&program, &bytes).unwrap();
    File::options().write(true).open(&program).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(build_id(&program), None);
}

proptest! {
    /// Damage anywhere gives some answer or none, but never a panic.
    #[test]
    fn damaged_files_never_panic(
        damage in prop::collection::vec((0usize..1024, any::<u8>()), 1..20),
        length in 0usize..2048,
    ) {
        let mut bytes = fs::read("/bin/ls").unwrap();
        for (offset, byte) in damage {
            bytes[offset] = byte;
        }
        bytes.truncate(length);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        let id = build_id(file.path());
        prop_assert!(id.is_none_or(|id| !id.is_empty() && id.len() <= 2 * length));
    }
}
