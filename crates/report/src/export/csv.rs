//! The histograms of a run per second, as CSV.

use std::io::{self, Write};

use model::Run;

const TITLES: &str = "second,tgid,comm,metric,count,sum_ns,min_ns,p50_ns,p90_ns,p99_ns,max_ns";

/// Writes one line per process, metric and second. `second` counts from the start of the run;
/// `tgid` 0 is the host, without a name. Quoted as in RFC 4180, lines end in `\n`.
///
/// The quantiles describe the values of that second, to within a bucket (3.1 %); whether they say
/// more is for the reader to judge by `count`. Count, sum, minimum and maximum are exact.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, run: &Run) -> io::Result<()> {
    writeln!(out, "{TITLES}")?;
    for second in &run.seconds {
        let histogram = &second.histogram;
        let quantile = |q| histogram.quantile(q).unwrap_or(0);
        let comm = if second.tgid == 0 { "" } else { run.comm(second.tgid) };
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{}",
            second.start_ns.saturating_sub(run.header.started_ns) / 1_000_000_000,
            second.tgid,
            quoted(comm),
            quoted(&second.metric.to_string()),
            histogram.count(),
            histogram.sum(),
            histogram.min().unwrap_or(0),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            histogram.max().unwrap_or(0),
        )?;
    }
    Ok(())
}

/// The field, in quotes if it needs them.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn another_reader_finds_the_same_values() {
        let mut run = sample::run();
        let odd = "a \"b\", c\nd";
        run.processes[0].comm = odd.into();
        let mut out = Vec::new();
        write(&mut out, &run).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>().join(","), TITLES);
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), run.seconds.len());
        for (row, second) in rows.iter().zip(&run.seconds) {
            let number = |n: usize| row[n].parse::<u64>().unwrap();
            let at = second.start_ns - run.header.started_ns;
            assert_eq!(number(0), at / 1_000_000_000);
            assert_eq!(number(1), u64::from(second.tgid));
            assert_eq!(&row[2], if second.tgid == 77 { odd } else { "" });
            assert_eq!(row[3], second.metric.to_string());
            assert_eq!(number(4), second.histogram.count());
            assert_eq!(number(5), second.histogram.sum());
            assert_eq!(Some(number(6)), second.histogram.min());
            assert_eq!(Some(number(9)), second.histogram.quantile(0.99));
            assert_eq!(Some(number(10)), second.histogram.max());
        }
        assert!(rows.iter().any(|row| row[3].contains("i_rwsem, ext4")));
    }
}
