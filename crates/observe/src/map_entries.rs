//! All entries of a hash map of the kernel side.
//!
//! libbpf-rs takes a batch that is not full for the last one, but the kernel also ends a batch early,
//! before a bucket that does not fit in whole. It would have to be asked for a batch as large as the
//! map, and makes room for that: 17 MB of waits each second, of which a program has some hundred.

use std::os::fd::AsRawFd;
use std::ptr;

use libbpf_rs::MapCore;
use libbpf_rs::libbpf_sys::{bpf_map_batch_opts, bpf_map_lookup_batch};
use rustix::io::Errno;

use crate::Error;
use crate::bpf::{self, Record};

/// Entries asked for at once.
const AT_ONCE: usize = 512;

/// Key and value.
type Entry = (Vec<u8>, Vec<u8>);

/// All of a hash map: key as bytes, key and value.
pub fn entries<K: Record, V: Record>(map: &dyn MapCore) -> Result<Vec<(Vec<u8>, K, V)>, Error> {
    let read = |(key, value): Entry| {
        let typed = (bpf::read::<K>(&key)?, bpf::read::<V>(&value)?);
        Some((key, typed.0, typed.1))
    };
    Ok(all(map)?.into_iter().filter_map(read).collect())
}

/// All of a hash map: keys and values, as bytes. One that comes meanwhile may be missing.
pub fn all(map: &dyn MapCore) -> Result<Vec<Entry>, Error> {
    let mut batch = Batch::new(map, AT_ONCE);
    let mut entries = Vec::new();
    loop {
        let more = batch.next(map);
        batch.take(&mut entries);
        match more {
            Ok(true) => {}
            Ok(false) => return Ok(entries),
            // Not even the next bucket fits in.
            Err(Errno::NOSPC) => batch.double(),
            Err(error) => {
                let error = libbpf_rs::Error::from_raw_os_error(error.raw_os_error());
                return Err(Error::bpf("reading a map")(error));
            }
        }
    }
}

/// Room for some entries, and where the next ones begin.
struct Batch {
    keys: Vec<u8>,
    values: Vec<u8>,
    key_size: usize,
    value_size: usize,
    count: u32,
    /// The kernel's own number of a bucket, `None` at first.
    at: Option<u32>,
}

impl Batch {
    fn new(map: &dyn MapCore, count: usize) -> Batch {
        let (key_size, value_size) = (map.key_size() as usize, map.value_size() as usize);
        Batch {
            keys: vec![0; count * key_size],
            values: vec![0; count * value_size],
            key_size,
            value_size,
            count: 0,
            at: None,
        }
    }

    fn double(&mut self) {
        self.keys.resize(2 * self.keys.len(), 0);
        self.values.resize(2 * self.values.len(), 0);
    }

    /// Reads some, `count` of them; false if they are the last.
    fn next(&mut self, map: &dyn MapCore) -> Result<bool, Errno> {
        let options = bpf_map_batch_opts {
            sz: size_of::<bpf_map_batch_opts>() as _,
            ..bpf_map_batch_opts::default()
        };
        let mut at = self.at;
        let from = at.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        let mut next = 0u32;
        let mut count = (self.keys.len() / self.key_size) as u32;
        // SAFETY: there is room for `count` keys and as many values of this map, and for where a hash
        // map's next batch begins, which is a u32 (kernel/bpf/hashtab.c); all of it lives until the
        // call ends.
        let result = unsafe {
            bpf_map_lookup_batch(
                map.as_fd().as_raw_fd(),
                from.cast(),
                ptr::from_mut(&mut next).cast(),
                self.keys.as_mut_ptr().cast(),
                self.values.as_mut_ptr().cast(),
                &mut count,
                &options,
            )
        };
        let outcome = match result {
            0 => Ok(true),
            error => match Errno::from_raw_os_error(error.saturating_neg()) {
                Errno::NOENT => Ok(false),
                error => Err(error),
            },
        };
        if outcome == Ok(true) {
            self.at = Some(next);
        }
        self.count = outcome.map_or(0, |_| count);
        outcome
    }

    fn take(&self, entries: &mut Vec<Entry>) {
        let keys = self.keys.chunks_exact(self.key_size);
        let values = self.values.chunks_exact(self.value_size);
        let both = keys.zip(values).take(self.count as usize);
        entries.extend(both.map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use libbpf_rs::libbpf_sys::bpf_map_create_opts;
    use libbpf_rs::{MapFlags, MapHandle, MapType};

    use super::*;

    /// A map of the running kernel with keys from 0 on, each with its square.
    fn squares(count: u32) -> MapHandle {
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            ..bpf_map_create_opts::default()
        };
        let map = MapHandle::create(MapType::Hash, Some("squares"), 4, 8, 65_536, &options);
        let map = map.unwrap();
        for key in 0..count {
            let square = u64::from(key).pow(2).to_ne_bytes();
            map.update(&key.to_ne_bytes(), &square, MapFlags::ANY).unwrap();
        }
        map
    }

    #[test]
    fn every_entry_is_read_once_whatever_the_size_of_a_batch() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        for count in [0, 1, AT_ONCE as u32, 20_000] {
            let entries = entries::<u32, u64>(&squares(count)).unwrap();
            assert_eq!(entries.len(), count as usize);
            let squares: BTreeSet<(u32, u64)> = entries.iter().map(|e| (e.1, e.2)).collect();
            let expected = (0..count).map(|key| (key, u64::from(key).pow(2)));
            assert!(squares.into_iter().eq(expected), "{count}");
        }
    }

    #[test]
    fn a_bucket_that_does_not_fit_in_is_read_with_more_room() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        // Of 65,536 keys in as many buckets some share one.
        let map = squares(65_536);
        let mut batch = Batch::new(&map, 1);
        let (mut entries, mut doubled) = (Vec::new(), 0);
        loop {
            let more = batch.next(&map);
            batch.take(&mut entries);
            match more {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    assert_eq!(error, Errno::NOSPC);
                    doubled += 1;
                    batch.double();
                }
            }
        }
        assert!(doubled > 0);
        assert_eq!(entries.len(), 65_536);
    }
}
