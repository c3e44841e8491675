//! The layout of CPython interpreters, against the headers of those that are installed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use inspect::python::{Interpreter, interpreter};

/// Prints offsets by name, as the compiler has them.
const OFFSETS: &str = r#"
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "internal/pycore_runtime.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_frame.h"
#define AT(name, type, field) printf(name " %zu\n", offsetof(type, field))
#define BITS(name, field) do { \
	PyASCIIObject text = { 0 }; \
	unsigned state; \
	text.state.field = -1; \
	memcpy(&state, &text.state, sizeof(state)); \
	printf(name " %u\n", state); \
} while (0)
int main(void)
{
	BITS("width", kind);
	BITS("is_compact", compact);
	BITS("is_ascii", ascii);
	AT("interpreters", _PyRuntimeState, interpreters.head);
	AT("next_interpreter", PyInterpreterState, next);
	AT("threads", PyInterpreterState, threads.head);
	AT("previous_thread", PyThreadState, prev);
	AT("next_thread", PyThreadState, next);
	AT("interpreter", PyThreadState, interp);
	AT("thread_self", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030d0000
	AT("frames", PyThreadState, current_frame);
	AT("code", _PyInterpreterFrame, f_executable);
	AT("instruction", _PyInterpreterFrame, instr_ptr);
#else
	AT("frames", PyThreadState, cframe);
	AT("innermost", _PyCFrame, current_frame);
	AT("code", _PyInterpreterFrame, f_code);
	AT("instruction", _PyInterpreterFrame, prev_instr);
#endif
#if PY_VERSION_HEX < 0x030c0000
	AT("entry", _PyInterpreterFrame, is_entry);
#endif
	AT("previous", _PyInterpreterFrame, previous);
	AT("owner", _PyInterpreterFrame, owner);
	AT("file", PyCodeObject, co_filename);
	AT("name", PyCodeObject, co_qualname);
	AT("line", PyCodeObject, co_firstlineno);
	AT("lines", PyCodeObject, co_linetable);
	AT("instructions", PyCodeObject, co_code_adaptive);
	AT("length", PyASCIIObject, length);
	AT("hash", PyASCIIObject, hash);
	AT("state", PyASCIIObject, state);
	AT("type", PyObject, ob_type);
	AT("bytes_length", PyVarObject, ob_size);
	AT("bytes", PyBytesObject, ob_sval);
	printf("text_ascii %zu\ntext_other %zu\n", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject));
	return 0;
}
"#;

/// A Python of this host: its headers and the file that has its interpreter.
struct Python {
    include: PathBuf,
    file: PathBuf,
}

fn python(name: &str) -> Option<Python> {
    let ask = "import os, sys, sysconfig
of = sysconfig.get_config_var
own = os.path.realpath(sys.executable)
shared = os.path.join(of('LIBDIR'), of('INSTSONAME') or '')
print(sysconfig.get_paths()['include'])
print(shared if of('Py_ENABLE_SHARED') and 'lib' + 'python' in os.popen('ldd ' + own).read() else own)";
    let output = Command::new(name).args(["-c", ask]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().map(PathBuf::from);
    let (include, file) = (lines.next()?, lines.next()?);
    include.join("internal/pycore_frame.h").exists().then_some(Python { include, file })
}

fn offsets(folder: &Path, include: &Path) -> HashMap<String, u32> {
    let (source, built) = (folder.join("offsets.c"), folder.join("offsets"));
    fs::write(&source, OFFSETS).unwrap();
    let mut cc = Command::new("cc");
    let output = cc.arg("-w").arg("-I").arg(include).arg("-o").arg(&built).arg(&source).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&built).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let of_line = |line: &str| {
        let (name, offset) = line.split_once(' ').unwrap();
        (name.to_owned(), offset.parse().unwrap())
    };
    text.lines().map(of_line).collect()
}

fn compare(found: &Interpreter, offsets: &HashMap<String, u32>) {
    let layout = &found.layout;
    let by_name = [
        ("interpreters", layout.interpreters),
        ("next_interpreter", layout.next_interpreter),
        ("threads", layout.threads),
        ("previous_thread", layout.previous_thread),
        ("next_thread", layout.next_thread),
        ("interpreter", layout.interpreter),
        ("thread_self", layout.thread_self),
        ("frames", layout.frames),
        ("previous", layout.previous),
        ("code", layout.code),
        ("instruction", layout.instruction),
        ("owner", layout.owner),
        ("file", layout.file),
        ("name", layout.name),
        ("line", layout.line),
        ("lines", layout.lines),
        ("instructions", layout.instructions),
        ("text_ascii", layout.text_ascii),
        ("text_other", layout.text_other),
        // These bpf/python.h has as numbers.
        ("type", 8),
        ("length", 16),
        ("hash", 24),
        ("state", 32),
        ("width", 7 << 2),
        ("is_compact", 1 << 5),
        ("is_ascii", 1 << 6),
        ("bytes_length", 16),
        ("bytes", 32),
    ];
    for (name, offset) in by_name {
        assert_eq!(offset, offsets[name], "{name} of {:?}", found.version);
    }
    assert_eq!(layout.innermost, offsets.get("innermost").copied(), "{:?}", found.version);
    assert_eq!(layout.entry, offsets.get("entry").copied(), "{:?}", found.version);
    assert!(layout.is_plausible());
}

#[test]
fn layouts_are_those_of_the_installed_headers() {
    let folder = tempfile::tempdir().unwrap();
    for minor in 11..=15 {
        let Some(python) = python(&format!("python3.{minor}")) else {
            eprintln!("not judged: there is no python3.{minor} with its headers");
            continue;
        };
        let file = File::open(&python.file).unwrap();
        let found = interpreter(&file).unwrap().expect("an interpreter").unwrap();
        assert_eq!(found.version, (3, minor));
        compare(&found, &offsets(folder.path(), &python.include));
    }
}

#[test]
fn other_files_have_none() {
    let shell = File::open("/bin/sh").unwrap();
    assert!(interpreter(&shell).unwrap().is_none());
    assert!(interpreter(&b"#!/usr/bin/python3\n".to_vec()).is_err());
}
