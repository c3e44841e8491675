//! A run as one JSON object.

use std::io::{self, Write};

use model::Run;

/// Writes all that is known of the run, in the names and units of the model: times and durations
/// are nanoseconds, stacks are keyed by their 64-bit identity.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    serde_json::to_writer(&mut *out, run)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_run_is_read_back_as_it_was() {
        let run = sample::run();
        let mut out = Vec::new();
        write(&mut out, &run).unwrap();
        let back: Run = serde_json::from_slice(&out).unwrap();
        assert_eq!(format!("{:?}", back.accounts()), format!("{:?}", run.accounts()));
        assert_eq!(back.stacks, *run.stacks);
        assert_eq!(back.outliers, run.outliers);
        assert_eq!(back.seconds, *run.seconds);
        assert_eq!(back.header, run.header);
    }
}
