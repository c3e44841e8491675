//! The list of benchmark cases.

use std::io::{self, Write};

use crate::Style;
use crate::table::{Align, Table};

/// Writes a line per case: its name and what one operation of it is.
///
/// # Errors
/// Those of `out`.
pub fn write<'a>(
    out: &mut dyn Write,
    cases: impl Iterator<Item = (&'a str, &'a str)>,
    style: &Style,
) -> io::Result<()> {
    let mut table = Table::new(0, &[("case", Align::Left), ("one operation", Align::Left)]);
    cases.for_each(|(id, measures)| table.row([id.into(), measures.into()]));
    table.write(out, style)
}
