//! Whether a message of the kernel is one of a kind.
//!
//! A pattern is compared with the beginning of a message, where its format string has what only the
//! kernel writes. Anybody has something to say in messages: a thread's name (15 bytes at most) begins
//! those of a segfault, the name of a file is in them, a mount option is repeated. So a pattern needs
//! more than a name and what follows it (`[`, `:`, ` (`) can be, before it lets anything (`*`) pass.

/// In a pattern: digits; what device names and functions consist of; anything; the end.
const DIGITS: char = '#';
const WORD: char = '&';
const ANYTHING: char = '*';
const END: char = '$';

/// True if the message begins as the pattern says.
pub(super) fn begins(message: &str, pattern: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return true };
    let rest = &pattern[first.len_utf8()..];
    let run = |is_of: fn(char) -> bool| message.find(|c| !is_of(c)).unwrap_or(message.len());
    match first {
        DIGITS | WORD => {
            let is_of = if first == DIGITS { is_digit } else { is_of_word };
            let length = run(is_of);
            length > 0 && begins(&message[length..], rest)
        }
        ANYTHING => {
            let mut starts = message.char_indices().map(|(at, _)| at).chain([message.len()]);
            starts.any(|start| begins(&message[start..], rest))
        }
        END => message.is_empty(),
        literal => message.strip_prefix(literal).is_some_and(|after| begins(after, rest)),
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '!' | '.')
}

#[cfg(test)]
mod tests {
    use super::begins;

    #[test]
    fn a_pattern_is_the_beginning_of_a_message() {
        for (pattern, fits, does_not) in [
            ("soft", "soft lockup", "a soft lockup"),
            ("CPU#: &", "CPU12: Core hot", "CPU: Core hot"),
            ("on &,", "on nvme0n1, x", "on , x"),
            ("a*b*c", "a bc", "a cb"),
            ("a#$", "a12", "a12 "),
            ("a*#s.$", "a b 12s.", "a 12s. b"),
            ("a*", "a", "b"),
        ] {
            assert!(begins(fits, pattern), "{pattern}: {fits}");
            assert!(!begins(does_not, pattern), "{pattern}: {does_not}");
        }
    }
}
