//! Names of the kernel's functions, from the kernel itself (bpf/symbols.bpf.c).

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Read;

use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle};

use crate::demangle::demangle;
use crate::wire;

/// A function and how far into it, or why it has no name.
pub type Symbol = Result<(String, u64), String>;

/// Asks the kernel, once for each address.
pub struct KernelSymbols {
    /// What is asked for.
    addresses: MapHandle,
    /// The walk that answers.
    answers: Link,
    known: HashMap<u64, Symbol>,
}

impl KernelSymbols {
    pub fn new(addresses: MapHandle, answers: Link) -> KernelSymbols {
        KernelSymbols { addresses, answers, known: HashMap::new() }
    }

    /// One for each address. To ask for those of each stack apart takes as long as to read /proc/kallsyms:
    /// many are to be learned at once before.
    pub fn of(&mut self, addresses: &[u64]) -> Vec<Symbol> {
        self.learn(addresses);
        let known = |address| self.known.get(address).cloned();
        let none = || Err("an address of 0".to_owned());
        addresses.iter().map(|address| known(address).unwrap_or_else(none)).collect()
    }

    /// Asks for those that are not known yet.
    pub fn learn(&mut self, addresses: &[u64]) {
        let mut new = addresses.to_vec();
        new.sort_unstable();
        new.dedup();
        new.retain(|address| *address != 0 && !self.known.contains_key(address));
        let mut rest = new.as_slice();
        while !rest.is_empty() {
            let asked = rest.len().min(wire::SYMBOLS_AT_ONCE);
            let answered = match self.answers_for(&rest[..asked]) {
                Ok(answers) => self.take(rest, &answers),
                Err(because) => self.know_nothing_of(rest, &because),
            };
            rest = &rest[answered..];
        }
    }

    /// Where there are few tasks only the first addresses are answered; how many those are.
    fn take(&mut self, addresses: &[u64], answers: &str) -> usize {
        let symbols = answers.lines().map(parse);
        let before = self.known.len();
        self.known.extend(addresses.iter().copied().zip(symbols));
        match self.known.len() - before {
            0 => self.know_nothing_of(addresses, "the kernel did not answer"),
            answered => answered,
        }
    }

    fn know_nothing_of(&mut self, addresses: &[u64], because: &str) -> usize {
        let unknown = addresses.iter().map(|address| (*address, Err(because.to_owned())));
        self.known.extend(unknown);
        addresses.len()
    }

    /// A line for each of as many addresses as the map has room for.
    fn answers_for(&self, addresses: &[u64]) -> Result<String, String> {
        let slots = 0..wire::SYMBOLS_AT_ONCE as u32;
        let keys: Vec<u8> = slots.flat_map(u32::to_ne_bytes).collect();
        let mut values = vec![0; wire::SYMBOLS_AT_ONCE * size_of::<u64>()];
        for (value, address) in values.chunks_exact_mut(size_of::<u64>()).zip(addresses) {
            value.copy_from_slice(&address.to_ne_bytes());
        }
        let because = |error: &dyn Display| format!("asking the kernel failed: {error}");
        let (count, any) = (wire::SYMBOLS_AT_ONCE as u32, MapFlags::ANY);
        self.addresses
            .update_batch(&keys, &values, count, any, any)
            .map_err(|error| because(&error))?;
        let mut text = String::new();
        let mut walk = Iter::new(&self.answers).map_err(|error| because(&error))?;
        walk.read_to_string(&mut text).map_err(|error| because(&error))?;
        Ok(text)
    }
}

/// Of `function+0x1/0x20 [module]`, or of an address that is in none.
fn parse(line: &str) -> Result<(String, u64), String> {
    let unknown = || Err("no function of the kernel is there".to_owned());
    let Some((function, place)) = line.rsplit_once("+0x") else { return unknown() };
    let offset = place.split('/').next().and_then(|hex| u64::from_str_radix(hex, 16).ok());
    offset.map_or_else(unknown, |offset| Ok((demangle(function), offset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_module_and_an_address_in_none() {
        assert_eq!(parse("schedule+0x1f/0xd0"), Ok(("schedule".to_owned(), 0x1f)));
        let sync = parse("ext4_sync_file+0x0/0x3a0 [ext4]");
        assert_eq!(sync, Ok(("ext4_sync_file".to_owned(), 0)));
        assert!(parse("0xffffffffc0a01234").is_err());
        assert!(parse("").is_err());
    }
}
