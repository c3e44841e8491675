//! The functions that Python's side of stacks refers to: their names, and their lines.

use std::collections::HashMap;

use model::{Frame, SourceLine};

use super::{Call, lines};
use crate::bpf::{self, code_record, python_text};

/// Memory for all functions of a recording, bytes: a large server has some ten thousand, of 500
/// bytes each.
const MOST_MEMORY: usize = 48 << 20;
/// Bytes that a function takes besides its texts and lines.
const KEPT_BESIDE: usize = 160;

/// What `module` is where a function's file is not known.
const NO_FILE: &str = "[python]";

/// A function, as its code object described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    name: String,
    file: String,
    first: u32,
    /// Address of its first instruction.
    start: u64,
    lines: Box<[u8]>,
}

impl Function {
    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        KEPT_BESIDE + self.name.len() + self.file.len() + self.lines.len()
    }
}

/// The functions that were sent.
#[derive(Default)]
pub struct Functions {
    known: HashMap<u64, Function>,
    memory: usize,
    left_out: u64,
}

impl Functions {
    /// Takes those that came, as far as there is room.
    pub fn take(&mut self, functions: Vec<(u64, Function)>) {
        for (id, function) in functions {
            if self.known.contains_key(&id) {
                continue;
            }
            if self.memory + function.memory() > MOST_MEMORY {
                self.left_out += 1;
                continue;
            }
            self.memory += function.memory();
            self.known.insert(id, function);
        }
    }

    /// True if its names are known.
    pub fn has(&self, function: u64) -> bool {
        self.known.contains_key(&function)
    }

    /// Functions that found no room since the last call.
    pub fn left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// A frame of a stack.
    pub fn frame(&self, call: &Call) -> Frame {
        let mut frame = Frame {
            address: call.at(),
            module: NO_FILE.to_owned(),
            offset: 0,
            symbol: None,
            symbol_offset: 0,
            unknown_because: None,
            after: None,
            source: None,
        };
        let Some(function) = self.known.get(&call.function) else {
            let because =
                "a Python function whose names were not copied: too many new ones at once";
            frame.unknown_because = Some(because.to_owned());
            return frame;
        };
        let offset = call.at().wrapping_sub(function.start);
        let line = lines::line(&function.lines, function.first, offset);
        frame.source = Some(SourceLine { line, first: function.first });
        frame.symbol = Some(function.name.clone()).filter(|name| !name.is_empty());
        if frame.symbol.is_none() {
            frame.unknown_because = Some("a Python function without a name".to_owned());
        }
        if !function.file.is_empty() {
            frame.module.clone_from(&function.file);
        }
        frame
    }
}

/// A record of the kernel side, which is as long as the table in it.
pub fn read_function(bytes: &[u8]) -> Option<(u64, Function)> {
    let header = std::mem::offset_of!(code_record, lines);
    let lines = bytes.get(header..)?;
    let mut whole = vec![0; size_of::<code_record>()];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let record = bpf::read::<code_record>(&whole)?;
    let lines = &lines[..lines.len().min(record.count as usize)];
    let (mut name, mut file) = (text(&record.name), text(&record.file));
    if record.name.left_out > 0 {
        name.push('…');
    }
    if record.file.left_out > 0 {
        file.insert(0, '…');
    }
    let function =
        Function { name, file, first: record.line, start: record.address, lines: lines.into() };
    Some((record.id, function))
}

/// Python keeps a text as the numbers of its characters, each as wide as the largest needs.
fn text(text: &python_text) -> String {
    let bytes = &text.text[..text.text.len().min(text.bytes as usize)];
    let character = |bytes: &[u8]| {
        let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    match text.width {
        1 | 2 | 4 => bytes.chunks_exact(text.width as usize).map(character).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, file: &str) -> code_record {
        let text = |text: &str| {
            let mut all = python_text { width: 1, bytes: text.len() as u32, ..Default::default() };
            all.text[..text.len()].copy_from_slice(text.as_bytes());
            all
        };
        let mut record = code_record {
            id: 7,
            address: 0x5000,
            line: 10,
            count: 2,
            name: text(name),
            file: text(file),
            ..Default::default()
        };
        // One instruction, in the line where it begins.
        record.lines[..2].copy_from_slice(&[0x80, 0]);
        record
    }

    fn read(record: &code_record) -> (u64, Function) {
        let length = std::mem::offset_of!(code_record, lines) + record.count as usize;
        read_function(&bpf::bytes(record)[..length]).unwrap()
    }

    #[test]
    fn a_frame_has_name_file_and_the_line_of_its_instruction() {
        let mut functions = Functions::default();
        functions.take(vec![read(&record("Handler.get", "/srv/app/server.py"))]);
        let call = |function, place| Call { function, place };
        let frame = functions.frame(&call(7, 0x5000));
        assert_eq!(frame.to_string(), "Handler.get (server.py:10) [/srv/app/server.py]");
        let beyond = functions.frame(&call(7, 0x5002));
        assert_eq!(beyond.place(), "Handler.get (server.py, begins at line 10)");
        let before = functions.frame(&call(7, 0x4000));
        assert_eq!(before.place(), beyond.place());
        let unknown = functions.frame(&call(8, 0x5000));
        assert!(unknown.symbol.is_none() && unknown.unknown_because.is_some());
        assert_eq!(unknown.module, "[python]");
    }

    #[test]
    fn texts_of_any_width_and_what_was_left_out_of_them() {
        let mut wide = record("n", "/ä.py");
        wide.name.width = 2;
        let letters = [0x3b1, 0xd800, 0x78].map(|letter: u16| letter.to_le_bytes());
        wide.name.text[..6].copy_from_slice(&letters.concat());
        (wide.name.bytes, wide.name.left_out) = (6, 2);
        wide.file.left_out = 100;
        let (_, function) = read(&wide);
        // Latin-1: each byte of what UTF-8 made of it is a character.
        assert_eq!((function.name.as_str(), function.file.as_str()), ("α\u{fffd}x…", "…/Ã¤.py"));
        for (width, bytes) in [(3, 4), (0, 4), (4, u32::MAX), (9, 0)] {
            (wide.name.width, wide.name.bytes) = (width, bytes);
            read(&wide);
        }
        (wide.count, wide.name.width) = (u32::MAX, 4);
        assert!(read_function(bpf::bytes(&wide)).is_some());
        assert!(read_function(&bpf::bytes(&wide)[..40]).is_none());
        assert!(read_function(&[0; 1 << 16]).is_none());
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut functions = Functions { memory: MOST_MEMORY, ..Functions::default() };
        functions.take(vec![read(&record("f", "/f.py"))]);
        assert_eq!((functions.known.len(), functions.left_out(), functions.left_out()), (0, 1, 0));
    }
}
