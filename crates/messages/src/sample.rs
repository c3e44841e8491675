//! A bounded, even sample of messages that were not slow: the control group.

/// Messages of one flow in the sample.
pub(crate) const PLACES: u32 = 128;

/// Which message takes which place (Vitter's algorithm R): each that is offered has the same
/// chance to be there in the end.
#[derive(Default)]
pub(crate) struct Sample {
    offered: u64,
}

impl Sample {
    /// The place of the next message, if it is to have one; who was there before leaves it.
    pub fn place(&mut self) -> Option<u32> {
        let place = fastrand::u64(0..=self.offered).min(u64::from(u32::MAX)) as u32;
        let first = u32::try_from(self.offered).ok().filter(|offered| *offered < PLACES);
        self.offered += 1;
        first.or((place < PLACES).then_some(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_of_the_stream_are_in_the_sample_alike() {
        let mut sample = Sample::default();
        let mut places = vec![0; PLACES as usize];
        for message in 0..12_800u32 {
            if let Some(place) = sample.place() {
                places[place as usize] = message;
            }
        }
        // Each half has 64 in the mean, with a standard deviation of 5.7.
        let first_half = places.iter().filter(|message| **message < 6_400).count();
        assert!((24..=104).contains(&first_half), "{first_half}");
    }
}
