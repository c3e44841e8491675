//! An input of the fuzzer, as a file that the reader follows. Also used by tests/hostile.rs.
//!
//! The first byte says how: 0, the rest is the file. Else the file is a good one, changed by
//! patches of 12 bytes each: where (4 bytes, modulo the length) and what (8 bytes). After each
//! patch but the first the same reader looks again.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::OnceLock;

use trace::reader::{Reader, Source};

/// Bytes that change while they are read.
#[derive(Clone)]
struct Changing(Rc<RefCell<Vec<u8>>>);

impl Source for Changing {
    fn copy(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.borrow().copy(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.0.borrow().length()
    }
}

pub fn good() -> &'static [u8] {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let golden = include_bytes!("../golden/rust-1.0.trace.gz");
        let mut bytes = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&golden[..]);
        std::io::Read::read_to_end(&mut decoder, &mut bytes).expect("a golden file");
        bytes
    })
}

/// Reads what the input makes. Gives how many looks there were without an error.
pub fn read(input: &[u8]) -> usize {
    let Some((how, rest)) = input.split_first() else { return 0 };
    if *how == 0 {
        return Reader::new(rest.to_vec()).map_or(0, |mut reader| usize::from(look(&mut reader)));
    }
    let file = Changing(Rc::new(RefCell::new(good().to_vec())));
    let (patches, _) = rest.as_chunks::<12>();
    let mut patches = patches.iter();
    let mut change = |file: &Changing| {
        let Some(patch) = patches.next() else { return false };
        let mut bytes = file.0.borrow_mut();
        let [a, b, c, d, value @ ..] = *patch;
        let at = u32::from_le_bytes([a, b, c, d]) as usize % bytes.len();
        let length = value.len().min(bytes.len() - at);
        bytes[at..at + length].copy_from_slice(&value[..length]);
        true
    };
    change(&file);
    let Ok(mut reader) = Reader::new(file.clone()) else { return 0 };
    let mut looks = usize::from(look(&mut reader));
    while change(&file) {
        looks += usize::from(look(&mut reader));
    }
    looks
}

fn look<S: Source>(reader: &mut Reader<S>) -> bool {
    let whole = [
        reader.flows().is_ok(),
        reader.threads().is_ok(),
        reader.messages().is_ok(),
        reader.histograms().is_ok_and(|all| all.iter().all(|one| one.low() <= one.high())),
        reader.dropped().is_ok() && reader.is_closed().is_ok(),
    ];
    whole.iter().all(|is_whole| *is_whole)
}
