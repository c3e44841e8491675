//! Words at many addresses, with few reads.

/// Words further apart than this are read separately, bytes.
const FAR: u64 = 512;
/// No single read is longer, bytes.
const LONGEST: u64 = 1 << 20;

/// The 8-byte little-endian words at addresses; neighbours in ascending order are read together.
pub(crate) fn words<E>(
    addresses: &[u64],
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<u64>, E> {
    let mut words = Vec::with_capacity(addresses.len());
    let mut rest = addresses;
    let mut bytes = Vec::new();
    while let Some(first) = rest.first() {
        let is_within = |from: u64, to: u64, most| to.checked_sub(from).is_some_and(|d| d <= most);
        let is_near =
            |pair: &[u64]| is_within(pair[0], pair[1], FAR) && is_within(*first, pair[1], LONGEST);
        let together = 1 + rest.windows(2).take_while(|pair| is_near(pair)).count();
        let (group, others) = rest.split_at(together);
        rest = others;
        let length = group[together - 1] - first + 8;
        bytes.resize(usize::try_from(length).unwrap_or(0), 0);
        read(*first, &mut bytes)?;
        words.extend(group.iter().map(|address| {
            let at = (address - first) as usize;
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        }));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_read_at_once_and_the_rest_where_it_is() {
        let addresses = [8, 16, 16, 40, 40 + FAR, 100_000, u64::MAX - 8, 0];
        let mut reads = Vec::new();
        let words = words(&addresses, |address, bytes| {
            reads.push((address, bytes.len()));
            // Each word says where it is.
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = (address.wrapping_add(at as u64) & 0xff) as u8;
            }
            Ok::<_, ()>(())
        });
        let first = words.unwrap().iter().map(|word| word & 0xff).collect::<Vec<_>>();
        assert_eq!(first, addresses.map(|address| address & 0xff));
        assert_eq!(reads, [(8, 40 + FAR as usize), (100_000, 8), (u64::MAX - 8, 8), (0, 8)]);
        assert_eq!(super::words(&addresses, |_, _| Err(7)), Err(7));
    }

    #[test]
    fn no_read_is_longer_than_the_limit() {
        let addresses: Vec<u64> = (0..400_000).map(|n| n * 8).collect();
        let mut longest = 0;
        let read = |_, bytes: &mut [u8]| {
            longest = longest.max(bytes.len());
            Ok::<_, ()>(())
        };
        assert_eq!(words(&addresses, read).unwrap().len(), addresses.len());
        assert!(longest as u64 <= LONGEST + 8);
    }
}
