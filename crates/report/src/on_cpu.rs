//! What busy threads ran, by samples.

use std::io::{self, Write};

use model::OnCpu;
use model::units::{count, counted, duration, share_of};

use crate::{Style, text};

/// Functions of a way that are shown, the innermost.
const FRAMES: usize = 6;

/// Writes each thread with the functions that it was in, those with most of its time first; nothing if
/// there is none.
pub(crate) fn write(out: &mut dyn Write, busy: &[OnCpu], style: &Style) -> io::Result<()> {
    if busy.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("On a CPU (innermost function first)"))?;
    for thread in busy {
        let head = format!(
            "{} (tid {}): {} of its {} ({}), {}",
            thread.comm,
            thread.tid,
            duration(thread.on_cpu_ns),
            duration(thread.wall_ns),
            share_of(thread.on_cpu_ns, thread.wall_ns),
            counted(thread.samples, "sample"),
        );
        write!(out, "{}", text::labelled("  ", 2, &head, style.width))?;
        for function in &thread.functions {
            let mut path: Vec<&str> =
                function.path.iter().take(FRAMES).map(String::as_str).collect();
            if function.path.len() > FRAMES {
                path.push("...");
            }
            let share = share_of(function.ns, thread.sampled_ns);
            let spread = count(function.samples.isqrt());
            let words =
                format!("n = {} ± {spread}: {}", count(function.samples), path.join(" <- "));
            write!(out, "{}", text::labelled(&format!("    {share}"), 13, &words, style.width))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::SampledFunction;

    use super::*;
    use crate::sample;

    #[test]
    fn a_busy_thread_is_shown_with_samples_and_their_spread() {
        let function = |path: &[&str], samples| SampledFunction {
            path: path.iter().map(|name| (*name).to_owned()).collect(),
            samples,
            ns: samples * 1_000_000,
        };
        let busy = OnCpu {
            tid: 81,
            tgid: 77,
            comm: "worker".into(),
            on_cpu_ns: 1_980_000_000,
            wall_ns: 2_000_000_000,
            samples: 2_000,
            sampled_ns: 2_000_000_000,
            functions: vec![
                function(&["hash", "digest", "a", "b", "c", "d", "main"], 1_600),
                function(&["copy", "digest"], 400),
            ],
        };
        let text = sample::written(|out| write(out, &[busy], &Style::default()));
        sample::assert_fits(&text, 80);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "worker (tid 81): 1.98 s of its 2.00 s (99.0 %), 2,000 samples",
            "80.0 % n = 1,600 ± 40: hash <- digest <- a <- b <- c <- d <- ...",
            "20.0 % n = 400 ± 20: copy <- digest",
        ] {
            assert!(flat.contains(part), "{part}\n{flat}");
        }
        assert!(sample::written(|out| write(out, &[], &Style::default())).is_empty());
    }
}
