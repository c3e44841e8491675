//! Where a file has the data that it exports.

use object::LittleEndian as Le;
use object::elf::{SHN_UNDEF, Sym64};

use super::bytes::{Bytes, entries, piece};
use super::dynamic::Dynamic;
use super::error::ElfError;
use super::functions::LONGEST_CHAIN;
use super::header::Header;

/// What a file exports, found by name as the dynamic linker finds it: a few reads for each.
pub struct Exports<'b> {
    source: &'b dyn Bytes,
    header: Header,
    dynamic: Dynamic,
}

impl Exports<'_> {
    /// Those of these bytes; `None` if no other file can use any.
    ///
    /// # Errors
    /// See [`ElfError`].
    pub fn read(source: &dyn Bytes) -> Result<Option<Exports<'_>>, ElfError> {
        let header = Header::read(source)?;
        let dynamic = Dynamic::read(source, &header)?.filter(|dynamic| dynamic.gnu_hash != 0);
        Ok(dynamic.map(|dynamic| Exports { source, header, dynamic }))
    }

    /// Address of what has this name, relative to where the file is loaded.
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn address(&self, name: &str) -> Result<Option<u64>, ElfError> {
        const WHAT: &str = "the hash table";
        let hash = hash(name);
        let table = self.dynamic.gnu_hash;
        let [buckets, first, bloom] = [0, 4, 8].map(|at| self.word(WHAT, table.saturating_add(at)));
        let (buckets, first, bloom) = (buckets?, first?, bloom?);
        if buckets == 0 {
            return Ok(None);
        }
        let start = table.saturating_add(16).saturating_add(8 * u64::from(bloom));
        let chains = start.saturating_add(4 * u64::from(buckets));
        let bucket = 4 * u64::from(hash % buckets);
        let begin = self.word(WHAT, start.saturating_add(bucket))?;
        for symbol in begin..begin.saturating_add(LONGEST_CHAIN) {
            let Some(place) = symbol.checked_sub(first) else { return Ok(None) };
            let found = self.word(WHAT, chains.saturating_add(4 * u64::from(place)))?;
            if found | 1 == hash | 1
                && let Some(address) = self.address_of(symbol, name)?
            {
                return Ok(Some(address));
            }
            if found & 1 == 1 {
                return Ok(None);
            }
        }
        Err(ElfError::damaged("a chain without end in the hash table"))
    }

    /// Of a symbol, if it is the one of this name, and defined here.
    fn address_of(&self, symbol: u32, name: &str) -> Result<Option<u64>, ElfError> {
        const WHAT: &str = "a dynamic symbol";
        const SIZE: u64 = size_of::<Sym64<Le>>() as u64;
        let at = self.dynamic.symbols.saturating_add(SIZE * u64::from(symbol));
        let offset = self.header.offset_of(WHAT, at, SIZE)?;
        let bytes = piece(self.source, WHAT, (offset, SIZE), SIZE)?;
        let [symbol] = entries::<Sym64<Le>>(WHAT, &bytes)? else { return Ok(None) };
        let is_it = self.dynamic.strings.name(symbol.st_name.get(Le)) == name;
        let is_here = symbol.st_shndx.get(Le) != SHN_UNDEF;
        Ok((is_it && is_here).then(|| symbol.st_value.get(Le)))
    }

    /// What the file has at an address, as it is before it runs.
    ///
    /// # Errors
    /// If it has nothing there.
    pub fn data(&self, address: u64, into: &mut [u8]) -> Result<(), ElfError> {
        let offset = self.header.offset_of("data", address, into.len() as u64)?;
        Ok(self.source.read_at(offset, into)?)
    }

    /// What is to be added to its addresses in a process that has `length` bytes of its code, from
    /// an offset of the file on, mapped at `start`.
    pub fn load_bias(&self, start: u64, offset: u64, length: u64) -> Option<u64> {
        let is_in = |place: u64| place.checked_sub(offset).is_some_and(|at| at < length);
        let mut code = self.header.segments.iter().filter(|segment| segment.is_code);
        let segment = code.find(|segment| {
            let last = segment.offset.saturating_add(segment.in_file.saturating_sub(1));
            is_in(segment.offset) || is_in(last)
        })?;
        let at = start.wrapping_sub(offset).wrapping_add(segment.offset);
        Some(at.wrapping_sub(segment.address))
    }

    fn word(&self, what: &str, address: u64) -> Result<u32, ElfError> {
        let mut word = [0; 4];
        self.source.read_at(self.header.offset_of(what, address, 4)?, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }
}

/// As in tables of DT_GNU_HASH.
fn hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C library that this test runs with.
    fn c_library() -> Vec<u8> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let paths = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5));
        let library = paths.into_iter().find(|path| path.contains("libc.so")).unwrap();
        std::fs::read(library).unwrap()
    }

    #[test]
    fn an_address_is_that_in_this_process() {
        let bytes = c_library();
        let exports = Exports::read(&bytes).unwrap().unwrap();
        let [getpid, getppid] = ["getpid", "getppid"].map(|name| exports.address(name).unwrap());
        let here = libc::getpid as *const () as u64;
        let distance = here.wrapping_sub(libc::getppid as *const () as u64);
        assert_eq!(getpid.unwrap().wrapping_sub(getppid.unwrap()), distance);
        assert_eq!(exports.address("no_such_name").unwrap(), None);

        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|l| l.contains("libc.so") && l.contains("r-xp")).unwrap();
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = words[0].split_once('-').unwrap();
        let (start, end) = (number(start), number(end));
        let bias = exports.load_bias(start, number(words[2]), end - start).unwrap();
        assert_eq!(bias + getpid.unwrap(), here);
        assert_eq!(exports.load_bias(start, u64::MAX / 2, end - start), None);
    }

    #[test]
    fn data_is_that_of_the_file_and_lies_are_errors() {
        let mut bytes = c_library();
        let address = {
            let exports = Exports::read(&bytes).unwrap().unwrap();
            let address = exports.address("getpid").unwrap().unwrap();
            let mut code = [0; 4];
            exports.data(address, &mut code).unwrap();
            assert_ne!(code, [0; 4]);
            assert!(exports.data(u64::MAX - 2, &mut code).is_err());
            exports.dynamic.gnu_hash
        };
        // No chain of a bucket ends.
        let exports = Exports::read(&bytes).unwrap().unwrap();
        let offset = exports.header.offset_of("the table", address, 4).unwrap() as usize;
        let sizes: Vec<u32> = bytes[offset..offset + 12]
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        let chains = offset + 16 + 8 * sizes[2] as usize + 4 * sizes[0] as usize;
        for byte in (chains..bytes.len()).step_by(4).take(16_384) {
            bytes[byte] &= 0xfe;
        }
        let exports = Exports::read(&bytes).unwrap().unwrap();
        assert!(exports.address("no_such_name").is_err());
    }
}
