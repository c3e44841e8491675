//! A page in Markdown for a terminal: paragraphs and list items in lines of 80 columns, the rest as
//! it is.

use std::io::{self, Write};

use crate::text::wrap;

const WIDTH: usize = 80;

/// Writes the page.
pub fn write(out: &mut impl Write, page: &str) -> io::Result<()> {
    for block in blocks(page) {
        let indent = if block.starts_with("- ") { "  " } else { "" };
        if block.starts_with([' ', '#', '|']) {
            writeln!(out, "{block}")?;
            continue;
        }
        for (n, line) in wrap(&block, WIDTH - indent.len()).into_iter().enumerate() {
            writeln!(out, "{}{line}", if n == 0 { "" } else { indent })?;
        }
    }
    Ok(())
}

/// Lines that belong to one paragraph or list item, joined; others each by itself.
fn blocks(page: &str) -> Vec<String> {
    let is_text = |line: &str| !line.is_empty() && !line.starts_with(['#', '|']);
    let mut blocks: Vec<String> = Vec::new();
    let mut code = false;
    for line in page.lines() {
        let goes_on = blocks.last().is_some_and(|last| is_text(last) && !last.starts_with("    "));
        let is_code = line.starts_with("    ") && !goes_on || code && line.starts_with("    ");
        code = is_code;
        if goes_on && is_text(line) && !is_code && !line.starts_with("- ") {
            if let Some(last) = blocks.last_mut() {
                last.push(' ');
                last.push_str(line.trim_start());
            }
        } else {
            blocks.push(line.to_owned());
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_filled_and_code_stays() {
        let long = "word ".repeat(30);
        let page = format!("# id\n\n{long}\nnext line\n\n- item\n  goes on\n\n    a  b\n    c\n");
        let mut out = Vec::new();
        write(&mut out, &page).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(text.contains("word next line\n") && text.contains("\n- item goes on\n"), "{text}");
        assert!(text.ends_with("\n\n    a  b\n    c\n"), "{text}");
    }
}
