//! A benchmark run.

use std::io::{self, Write};

use model::Run;

use crate::Style;

/// Writes it.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run, histogram: bool, _style: &Style) -> io::Result<()> {
    let _ = histogram;
    for case in run.bench.iter().flat_map(|bench| &bench.cases) {
        writeln!(out, "{}", case.id)?;
        for step in &case.steps {
            writeln!(
                out,
                "  {:>3} {:?} {:>7} {:>10} ops {:>10.0} ns {:?}",
                step.workers,
                step.kind,
                step.population,
                step.operations,
                step.net_ns,
                step.warnings
            )?;
        }
    }
    Ok(())
}
