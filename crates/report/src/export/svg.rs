//! Off-CPU time by stack as a flame graph: an SVG with search and zoom.

use std::io::{self, Write};

use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{self, Options};
use model::Run;

use super::folded::{self, BOUNDARY, Coverage, KERNEL};
use super::on_cpu::{self, Sampled};

/// Why there is no flame graph.
#[derive(Debug, thiserror::Error)]
pub enum SvgError {
    /// Nothing to draw.
    #[error(
        "run {0} has no off-CPU stacks: nothing slept as long as the outlier threshold, or stacks \
         could not be taken; record again with a lower --threshold"
    )]
    NoStacks(model::RunId),
    /// No samples.
    #[error("run {0} has no samples of that on a CPU")]
    NoSamples(model::RunId),
    /// Writing failed.
    #[error("cannot write the flame graph: {0}")]
    Io(#[from] io::Error),
}

/// Writes the flame graph and returns which part of the off-CPU time it covers, which is its
/// subtitle too. Widths are microseconds; kernel frames are blue, user frames orange, what is
/// missing or cut short grey.
///
/// # Errors
/// [`SvgError::NoStacks`] before anything is written, or those of `out`.
pub fn write(out: &mut dyn Write, run: &Run) -> Result<Coverage, SvgError> {
    let lines = folded::lines(run);
    if lines.is_empty() {
        return Err(SvgError::NoStacks(run.id));
    }
    let coverage = Coverage::of(run);
    draw(out, &lines, format!("Off-CPU time of run {}", run.id), coverage.to_string())?;
    Ok(coverage)
}

/// The same of time on the CPUs, of one thread or all, by samples.
///
/// # Errors
/// [`SvgError::NoSamples`] before anything is written, or those of `out`.
pub fn write_on_cpu(out: &mut dyn Write, run: &Run, tid: Option<u32>) -> Result<Sampled, SvgError> {
    let lines = on_cpu::lines(run, tid);
    if lines.is_empty() {
        return Err(SvgError::NoSamples(run.id));
    }
    let sampled = Sampled::of(run, tid);
    draw(out, &lines, format!("On-CPU time of run {}", run.id), sampled.to_string())?;
    Ok(sampled)
}

fn draw(out: &mut dyn Write, lines: &[String], title: String, subtitle: String) -> io::Result<()> {
    let mut palette = palette(lines);
    let mut options = Options::default();
    options.title = title + " in microseconds";
    options.subtitle = Some(subtitle);
    options.count_name = "us".to_owned();
    options.name_type = "Frame:".to_owned();
    options.palette_map = Some(&mut palette);
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}

/// A colour for every frame.
fn palette(lines: &[String]) -> PaletteMap {
    let mut palette = PaletteMap::default();
    // The frame below all others.
    palette.insert("", Color::new(230, 230, 230));
    for line in lines {
        let stack = line.rsplit_once(' ').map_or(line.as_str(), |(stack, _)| stack);
        for name in stack.split(';').filter(|name| *name != BOUNDARY) {
            palette.insert(name, color(name));
        }
    }
    palette
}

/// Blue for the kernel, orange for user code, grey for what is missing; the shade depends on the
/// name only, so that the same function looks the same in two graphs.
fn color(name: &str) -> Color {
    let spread = name.bytes().fold(7u8, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte));
    let shade = spread % 48;
    match name.strip_suffix(KERNEL) {
        _ if name.starts_with("[no ") || name.starts_with("[cut ") => Color::new(190, 190, 190),
        Some(_) => Color::new(90 + shade, 150 + shade, 235),
        None => Color::new(250, 140 + shade, 60 + shade),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn drawn(run: &Run) -> String {
        sample::written(|out| write(out, run).map(|_| ()).map_err(io::Error::other))
    }

    /// (title, fill) of each frame.
    fn frames(svg: &str) -> Vec<(String, String)> {
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(svg, options).unwrap();
        let child = |g: roxmltree::Node, name: &str| {
            g.children().find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name))).map(
                |node| match name {
                    "rect" => node.attribute("fill").unwrap_or("").to_owned(),
                    _ => node.text().unwrap_or("").to_owned(),
                },
            )
        };
        document
            .descendants()
            .filter_map(|g| Some((child(g, "title")?, child(g, "rect")?)))
            .collect()
    }

    #[test]
    fn it_is_well_formed_and_has_every_frame_with_its_time() {
        let run = sample::run();
        let frames = frames(&drawn(&run));
        let ns: u64 = run.sums.stack_sums.iter().map(|s| s.ns).sum();
        let all = format!("all ({} us, 100%)", model::units::count(ns / 1_000));
        assert!(frames.iter().any(|(title, _)| *title == all), "{frames:?}");
        for name in ["rwsem_down_write_slowpath (", "scanner+0x1234 (", "[no user stack] ("] {
            assert!(frames.iter().any(|(title, _)| title.starts_with(name)), "{name} {frames:?}");
        }
    }

    #[test]
    fn kernel_and_user_frames_differ_in_colour() {
        let frames = frames(&drawn(&sample::run()));
        let fill = |name: &str| {
            let (_, fill) = frames.iter().find(|(title, _)| title.starts_with(name)).unwrap();
            let numbers = fill.trim_start_matches("rgb(").trim_end_matches(')');
            let numbers: Vec<u8> = numbers.split(',').map(|n| n.trim().parse().unwrap()).collect();
            (numbers[0], numbers[2])
        };
        for (name, is_kernel) in
            [("rwsem_down", true), ("vm_mmap", true), ("__mmap", false), ("scanner", false)]
        {
            let (red, blue) = fill(name);
            assert_eq!(blue > red, is_kernel, "{name}: red {red}, blue {blue}");
        }
    }

    #[test]
    fn it_has_search_and_zoom_and_says_unit_and_coverage() {
        let svg = drawn(&sample::run());
        for part in [
            "function search(",
            "function zoom(",
            "Off-CPU time of run 12 in microseconds",
            "stacks cover 2.10 s of 2.60 s off the CPU (80.8 %)",
        ] {
            assert!(svg.contains(part), "{part}");
        }
    }

    #[test]
    fn without_stacks_nothing_is_written_and_the_error_says_what_to_do() {
        let mut run = sample::run();
        run.sums.stack_sums.clear();
        let mut out = Vec::new();
        let error = write(&mut out, &run).unwrap_err();
        assert!(out.is_empty());
        assert!(error.to_string().contains("--threshold"), "{error}");
    }
}
