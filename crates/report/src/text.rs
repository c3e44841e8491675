//! Running text: cleaning it, and breaking it into lines.

use model::outside::visible;

/// `text` in one line and without a character that could steer a terminal, as
/// [`model::outside`] says: for texts that were not escaped when they came in.
pub fn clean(text: &str) -> String {
    visible(text).into_owned()
}

/// Width of `text` in columns, taking each character as one.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// The words of `text` in lines of at most `width` columns; a longer word has a line of its own.
/// A number stays on the line of its unit. At least one line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in words(text) {
        let word = clean(&word);
        let length = self::width(&word);
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(&word);
            used += length;
        }
    }
    lines
}

/// The words of `text`; a number and its unit are one word.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 11] = ["ns", "us", "ms", "s", "min", "h", "%", "B", "KiB", "MiB", "GiB"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', '.', ':', ';', ')']);
        match words.last_mut() {
            Some(number)
                if UNITS.contains(&unit) && number.ends_with(|c: char| c.is_ascii_digit()) =>
            {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// `label` in a column of `indent`, and `text` wrapped after it. Ends in a newline.
pub fn labelled(label: &str, indent: usize, text: &str, width: usize) -> String {
    let mut out = String::new();
    for (n, line) in wrap(text, width.saturating_sub(indent).max(20)).into_iter().enumerate() {
        let label = if n == 0 { label } else { "" };
        out.push_str(format!("{label:<indent$}{line}").trim_end());
        out.push('\n');
    }
    out
}

/// `text` in lines of at most `width` columns; longer words are cut, after one of `-:/_.` if there is one.
pub fn wrap_hard(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for line in wrap(text, width) {
        let mut rest: Vec<char> = line.chars().collect();
        while rest.len() > width {
            let joint = rest[..width].iter().rposition(|c| "-:/_.".contains(*c));
            let tail = rest.split_off(joint.map_or(width, |at| at + 1));
            lines.push(rest.iter().collect());
            rest = tail;
        }
        lines.push(rest.iter().collect());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(clean("a\x1b[31mb\nc\u{9b}"), r"a\x1b[31mb\nc\u{9b}");
    }

    #[test]
    fn wrapping_keeps_all_words_and_the_width() {
        let text = "the quick brown fox jumps over a dog";
        let lines = wrap(text, 10);
        assert!(lines.iter().all(|line| line.len() <= 10), "{lines:?}");
        assert_eq!(lines.join(" "), text);
        assert_eq!(wrap("abcdefghijklmnop qr", 10), ["abcdefghijklmnop", "qr"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("it took 12.1 ms, all", 10), ["it took", "12.1 ms,", "all"]);
    }

    #[test]
    fn hard_wrapping_cuts_long_words_at_their_joints() {
        assert_eq!(wrap_hard("lock:mmap_lock:write", 10), ["lock:mmap_", "lock:write"]);
        assert_eq!(wrap_hard("abcdefgh", 3), ["abc", "def", "gh"]);
    }

    #[test]
    fn labels_stand_beside_the_first_line_only() {
        let text = labelled("  fix", 8, "one two three four five six", 28);
        assert_eq!(text, "  fix   one two three four\n        five six\n");
    }
}
