//! CPython interpreters: where a file has one, and how it lays out what tells which Python
//! functions run.
//!
//! All of it is in the file that has the interpreter, before it runs. From 3.13 on `_PyRuntime`
//! begins with the offsets that debuggers need (`_Py_DebugOffsets`, known up to 3.15); of 3.11 and 3.12 they are in a
//! table here. Another version is not guessed at.
//!
//! A file may say of itself what it likes: an offset is only used to read from the process that
//! runs the file, within bounds that [`Layout::is_plausible`] checks.

use crate::elf::{Bytes, ElfError, Exports};

/// An interpreter in a file: addresses are relative to where the file is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// `(3, 11)`.
    pub version: (u8, u8),
    /// Of `_PyRuntime`.
    pub runtime: u64,
    /// Of `PyCode_Type`: what a code object says that it is.
    pub code_type: u64,
    /// Of `PyUnicode_Type`.
    pub text_type: u64,
    /// Where what is.
    pub layout: Layout,
}

/// Offsets in the structures of an interpreter, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// In the runtime: the first interpreter.
    pub interpreters: u32,
    /// In an interpreter: the next, and its first thread.
    pub next_interpreter: u32,
    /// Likewise.
    pub threads: u32,
    /// In a thread: the one before, the next, its interpreter, and `pthread_self()`.
    pub previous_thread: u32,
    /// Likewise.
    pub next_thread: u32,
    /// Likewise.
    pub interpreter: u32,
    /// Likewise.
    pub thread_self: u32,
    /// In a thread: its innermost frame, or the place that has it.
    pub frames: u32,
    /// In that place.
    pub innermost: Option<u32>,
    /// In a frame: the one that called it.
    pub previous: u32,
    /// In a frame: its code object.
    pub code: u32,
    /// In a frame: the instruction that runs.
    pub instruction: u32,
    /// In a frame: what it is; from 3.12 on 3 and more is an entry from C.
    pub owner: u32,
    /// In a frame of 3.11: 1 if C called it.
    pub entry: Option<u32>,
    /// In a code object: its file, qualified name, first line, table of lines, and instructions.
    pub file: u32,
    /// Likewise.
    pub name: u32,
    /// Likewise.
    pub line: u32,
    /// Likewise.
    pub lines: u32,
    /// Likewise.
    pub instructions: u32,
    /// Bytes in front of the characters of a text that is ASCII, and of one that is not.
    pub text_ascii: u32,
    /// Likewise.
    pub text_other: u32,
}

/// `offsetof` and `sizeof` in the internal headers of CPython 3.11.7 (Include/internal/
/// pycore_runtime.h, pycore_interp.h, pycore_frame.h, cpython/code.h, cpython/unicodeobject.h), for
/// 64-bit machines; tests/python_layout.rs compares them with the headers that are installed.
const PYTHON_3_11: Layout = Layout {
    interpreters: 40,
    next_interpreter: 0,
    threads: 16,
    previous_thread: 0,
    next_thread: 8,
    interpreter: 16,
    thread_self: 152,
    frames: 56,
    innermost: Some(8),
    previous: 48,
    code: 32,
    instruction: 56,
    owner: 69,
    entry: Some(68),
    file: 112,
    name: 128,
    line: 72,
    lines: 136,
    instructions: 184,
    text_ascii: 48,
    text_other: 72,
};

/// Likewise of 3.12.1.
const PYTHON_3_12: Layout = Layout {
    threads: 72,
    thread_self: 136,
    innermost: Some(0),
    previous: 8,
    code: 0,
    owner: 70,
    entry: None,
    line: 68,
    instructions: 192,
    text_ascii: 40,
    text_other: 56,
    ..PYTHON_3_11
};

/// Bytes of a frame and of a code object that are read at once, at most (bpf/python.h).
pub const READ_AT_ONCE: u32 = 256;
/// Of a structure that is read word by word.
const LARGEST: u32 = 1 << 20;

impl Layout {
    /// True if each offset is where it can be read.
    pub fn is_plausible(&self) -> bool {
        let words = [self.previous, self.code, self.instruction, self.file, self.name, self.lines];
        let bytes = [self.owner, self.entry.unwrap_or(0)];
        let far = [
            self.interpreters,
            self.next_interpreter,
            self.threads,
            self.previous_thread,
            self.next_thread,
            self.interpreter,
            self.thread_self,
            self.frames,
            self.innermost.unwrap_or(0),
            self.instructions,
        ];
        words.iter().all(|at| at.is_multiple_of(8) && *at <= READ_AT_ONCE - 16)
            && self.line.is_multiple_of(4)
            && self.line <= READ_AT_ONCE - 16
            && bytes.iter().all(|at| *at < READ_AT_ONCE - 8)
            && far.iter().all(|at| at.is_multiple_of(8) && *at <= LARGEST)
            && self.text_ascii <= self.text_other
            && self.text_other <= 128
    }

    /// Bytes of a frame that have all that is asked for.
    pub fn frame_bytes(&self) -> u32 {
        let words = [self.previous, self.code, self.instruction].map(|at| at + 8);
        let bytes = [self.owner, self.entry.unwrap_or(0)].map(|at| at + 1);
        words.into_iter().chain(bytes).max().unwrap_or(0)
    }

    /// The same of a code object.
    pub fn code_bytes(&self) -> u32 {
        let words = [self.file, self.name, self.lines].map(|at| at + 8);
        words.into_iter().chain([self.line + 4]).max().unwrap_or(0)
    }
}

/// The interpreter that a file has, or in words why that is not one whose layout is known; `None` if
/// it has none.
///
/// # Errors
/// If the file is damaged, or no program.
pub fn interpreter(source: &dyn Bytes) -> Result<Option<Result<Interpreter, String>>, ElfError> {
    let Some(exports) = Exports::read(source)? else { return Ok(None) };
    let Some(runtime) = exports.address("_PyRuntime")? else { return Ok(None) };
    let (version, layout) = match layout(&exports, runtime)? {
        Ok(known) => known,
        Err(because) => return Ok(Some(Err(because))),
    };
    let types = [exports.address("PyCode_Type")?, exports.address("PyUnicode_Type")?];
    let [Some(code_type), Some(text_type)] = types else {
        return Ok(Some(Err("CPython that does not export its types".to_owned())));
    };
    Ok(Some(Ok(Interpreter { version, runtime, code_type, text_type, layout })))
}

type Known = ((u8, u8), Layout);

fn layout(exports: &Exports<'_>, runtime: u64) -> Result<Result<Known, String>, ElfError> {
    let mut offsets = [0; DebugOffsets::BYTES];
    // A runtime without them may be all zero, and not in the file.
    if exports.data(runtime, &mut offsets).is_ok() && offsets.starts_with(b"xdebugpy") {
        return Ok(DebugOffsets(&offsets).layout());
    }
    let Some(at) = exports.address("Py_Version")? else {
        return Ok(Err("CPython before 3.11".to_owned()));
    };
    let mut number = [0; 8];
    exports.data(at, &mut number)?;
    let version = version(u64::from_le_bytes(number));
    Ok(match version {
        (3, 11) => Ok((version, PYTHON_3_11)),
        (3, 12) => Ok((version, PYTHON_3_12)),
        (major, minor) => Err(format!("CPython {major}.{minor}")),
    })
}

/// Of PY_VERSION_HEX.
fn version(hex: u64) -> (u8, u8) {
    let [_, _, minor, major, ..] = hex.to_le_bytes();
    (major, minor)
}

/// `_Py_DebugOffsets`: numbers of 64 bits, in the order of Include/internal/pycore_debug_offsets.h
/// (of 3.13 pycore_runtime.h).
struct DebugOffsets<'b>(&'b [u8]);

/// At which number its parts begin, each with the size of a structure.
struct Parts {
    thread: usize,
    /// In the part of a thread.
    thread_self: usize,
    frame: usize,
    code: usize,
    text: usize,
}

const PARTS_3_13: Parts = Parts { thread: 19, thread_self: 5, frame: 28, code: 34, text: 67 };
const PARTS_3_14: Parts = Parts { thread: 22, thread_self: 5, frame: 31, code: 39, text: 77 };
const PARTS_3_15: Parts = Parts { thread: 22, thread_self: 8, frame: 39, code: 47, text: 89 };

impl DebugOffsets<'_> {
    /// Up to the last that is read, in any version.
    const BYTES: usize = 93 * 8;

    fn number(&self, place: usize) -> u64 {
        let bytes = self.0.get(8 * place..8 * place + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(u64::MAX, u64::from_le_bytes)
    }

    fn offset(&self, place: usize) -> u32 {
        u32::try_from(self.number(place)).unwrap_or(u32::MAX)
    }

    fn layout(&self) -> Result<Known, String> {
        let version = version(self.number(1));
        let (major, minor) = version;
        if self.number(2) != 0 {
            return Err(format!("CPython {major}.{minor} without a global lock"));
        }
        let layout = match version {
            (3, 13) => self.of(&PARTS_3_13),
            (3, 14) => self.of(&PARTS_3_14),
            (3, 15) => self.of(&PARTS_3_15),
            _ => return Err(format!("CPython {major}.{minor}")),
        };
        match layout.is_plausible() {
            true => Ok((version, layout)),
            false => Err(format!("CPython {major}.{minor} with offsets that cannot be")),
        }
    }

    fn of(&self, parts: &Parts) -> Layout {
        let (runtime, interpreter) = (3, 6);
        let Parts { thread, frame, code, .. } = *parts;
        let text_ascii = self.offset(parts.text + 3);
        Layout {
            interpreters: self.offset(runtime + 2),
            next_interpreter: self.offset(interpreter + 2),
            threads: self.offset(interpreter + 3),
            previous_thread: self.offset(thread + 1),
            next_thread: self.offset(thread + 2),
            interpreter: self.offset(thread + 3),
            frames: self.offset(thread + 4),
            thread_self: self.offset(thread + parts.thread_self),
            innermost: None,
            previous: self.offset(frame + 1),
            code: self.offset(frame + 2),
            instruction: self.offset(frame + 3),
            owner: self.offset(frame + 5),
            entry: None,
            file: self.offset(code + 1),
            name: self.offset(code + 3),
            lines: self.offset(code + 4),
            line: self.offset(code + 5),
            instructions: self.offset(code + 9),
            text_ascii,
            // Two more words: the length and the text as UTF-8.
            text_other: text_ascii.saturating_add(16),
        }
    }
}
