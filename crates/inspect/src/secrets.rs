//! What is left out of a fingerprint, a command line, a label: shown and stored as [`LEFT_OUT`].
//!
//! The rule, for a variable `NAME=value` of an environment or a parameter `name=value` of the
//! kernel's command line. Letter case does not matter. The name is always kept; the value is
//! replaced when one of these holds:
//!
//! 1. The name is that of a secret: it contains one of `KEY`, `TOKEN`, `SECRET`, `PASS`, `PWD`,
//!    `CRED`, `AUTH`, `COOKIE`, `SESSION`, `PRIVATE`, `DSN`, `JWT`, `WEBHOOK`; but not the shell's
//!    `PWD` and `OLDPWD`.
//! 2. There is a secret in it that [`masked`] finds.
//!
//! In other texts ([`masked`]) only the secret itself is replaced:
//!
//! 1. `password` in `postgres://user:password@host/` and `user:password@host`, `token` in
//!    `https://token@host/`.
//! 2. What is assigned to a name as above, `KEY` only where it is one of access (`api_key`, not
//!    `sort --key`): `-DkeyStorePassword=x`, `?token=x`, `{"password": "x"}`, `--password x`,
//!    `Authorization: Bearer x`.
//! 3. What has the form of a known token (secrets/tokens.rs), and a PEM block (`-----BEGIN`).
//!
//! It would rather leave out too much (`SSH_AUTH_SOCK`, `KEYBOARD`) than too little. It cannot
//! know a secret that is named and shaped like anything else, such as `-p x`.

mod assigned;
mod tokens;

use std::borrow::Cow;
use std::ops::Range;

/// What replaces a secret.
pub const LEFT_OUT: &str = "***";

const SECRET_WORDS: [&str; 13] = [
    "KEY", "TOKEN", "SECRET", "PASS", "PWD", "CRED", "AUTH", "COOKIE", "SESSION", "PRIVATE", "DSN",
    "JWT", "WEBHOOK",
];

/// The value as it may be stored: itself, or [`LEFT_OUT`].
pub fn without_secret<'v>(name: &str, value: &'v str) -> &'v str {
    let is_secret = is_secret_name(name) || masked(value) != value || assigned::any(value);
    if is_secret { LEFT_OUT } else { value }
}

/// The text with each secret in it as [`LEFT_OUT`]. Takes time in proportion to its length, whatever
/// it is: it comes from processes that may mean harm.
pub fn masked(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    for find in [begin_of_pem, users_of_urls, assigned::after_bearer, assigned::all, tokens::all] {
        let found = find(&masked);
        if !found.is_empty() {
            let left = with_left_out(&masked, &found);
            masked = Cow::Owned(left);
        }
    }
    masked
}

/// The text without these parts of it, which are in order.
fn with_left_out(text: &str, parts: &[Range<usize>]) -> String {
    let mut left = String::with_capacity(text.len());
    let mut from = 0;
    for part in parts {
        left.push_str(&text[from..part.start]);
        left.push_str(LEFT_OUT);
        from = part.end;
    }
    left + &text[from..]
}

/// The words of a command line, with each secret in them as [`LEFT_OUT`]: also where a secret is
/// the word after its option.
pub fn masked_words(words: &[String]) -> Vec<String> {
    let mut is_next = false;
    let mut masked_words = Vec::with_capacity(words.len());
    for word in words {
        let is_option = word.starts_with('-');
        if is_next && !is_option {
            masked_words.push(LEFT_OUT.to_owned());
        } else {
            masked_words.push(masked(word).into_owned());
        }
        is_next = is_option && !word.contains('=') && assigned::is_secret_option(word);
    }
    masked_words
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_directory = name == "PWD" || name == "OLDPWD";
    !is_directory && SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// The rest of the text from the first PEM block on.
fn begin_of_pem(text: &str) -> Vec<Range<usize>> {
    text.find("-----BEGIN").map(|at| at..text.len()).into_iter().collect()
}

/// Each `user:password` or `token` in `scheme://user:password@host`, and `password` in
/// `user:password@host`.
fn users_of_urls(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut before = BeforeAt::default();
    // All that is looked for is ASCII.
    for (at, byte) in text.bytes().enumerate() {
        if byte != b'@' {
            before.take(at, byte);
            continue;
        }
        if let Some(start) = before.url.secret(at).or_else(|| before.pair.secret(text, at)) {
            found.push(start..at);
            before = BeforeAt { pair: Pair { start: at, colon: None }, ..BeforeAt::default() };
        }
    }
    found
}

/// What is known of the text before an `@`, since the last secret.
#[derive(Default)]
struct BeforeAt {
    url: Url,
    pair: Pair,
    /// Of the bytes just before, how many are the beginning of `://`.
    scheme: usize,
}

impl BeforeAt {
    fn take(&mut self, at: usize, byte: u8) {
        self.url.take(byte);
        self.pair.take(at, byte);
        self.scheme = match (self.scheme, byte) {
            (1 | 2, b'/') => self.scheme + 1,
            (_, b':') => 1,
            _ => 0,
        };
        if self.scheme == 3 {
            self.url = Url { start: Some(at + 1), ..Url::default() };
        }
    }
}

/// What follows the last `://`.
#[derive(Default)]
struct Url {
    start: Option<usize>,
    has_colon: bool,
    has_slash: bool,
    /// Beyond what can be a user.
    is_over: bool,
}

impl Url {
    fn take(&mut self, byte: u8) {
        match byte {
            b':' => self.has_colon = true,
            b'/' => self.has_slash = true,
            b' ' | b'"' | b'\'' | b'\n' | b'?' | b'#' => self.is_over = true,
            _ => {}
        }
    }

    /// A password may have an unescaped slash: then the colon before it decides.
    fn secret(&self, at: usize) -> Option<usize> {
        let is_user = !self.is_over && (self.has_colon || !self.has_slash);
        self.start.filter(|start| is_user && *start < at)
    }
}

/// What follows the last character that is in no `user:password`.
#[derive(Default)]
struct Pair {
    start: usize,
    colon: Option<usize>,
}

impl Pair {
    fn take(&mut self, at: usize, byte: u8) {
        match byte {
            b'/' | b'?' | b'#' | b' ' | b'"' | b'\'' | b'\n' | b',' => {
                *self = Pair { start: at + 1, colon: None };
            }
            b':' => self.colon = self.colon.or(Some(at)),
            _ => {}
        }
    }

    fn secret(&self, text: &str, at: usize) -> Option<usize> {
        let is_host = |c: char| c.is_ascii_alphanumeric() || c == '[';
        let colon = self.colon.filter(|colon| *colon > self.start && colon + 1 < at)?;
        text[at + 1..].starts_with(is_host).then_some(colon + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn secrets_by_name() {
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "github_token",
            "PGPASSWORD",
            "MYSQL_PWD",
            "GOOGLE_CREDENTIALS",
            "Authorization",
            "COOKIE_JAR",
            "PHPSESSIONID",
            "MY_PRIVATE_THING",
            "SENTRY_DSN",
            "SLACK_WEBHOOK_URL",
        ] {
            assert_eq!(without_secret(name, "hunter2"), LEFT_OUT, "{name}");
        }
        for name in ["PWD", "OLDPWD", "PATH", "LD_PRELOAD", "MALLOC_ARENA_MAX"] {
            assert_eq!(without_secret(name, "/srv"), "/srv", "{name}");
        }
    }

    #[test]
    fn secrets_by_value() {
        for (value, shown) in [
            ("postgres://me:hunter2@db/orders", "postgres://***@db/orders"),
            ("see https://hunter2@example.org/ for more", "see https://***@example.org/ for more"),
            ("amqp://me:hun/ter2@mq", "amqp://***@mq"),
            ("a=http://x b=http://u:hunter2@y", "a=http://x b=http://***@y"),
            ("me:hunter2@db.example.org:3306", "me:***@db.example.org:3306"),
            ("-Djavax.net.ssl.keyStorePassword=hunter2", "-Djavax.net.ssl.keyStorePassword=***"),
            ("host=db user=me password = hunter2", "host=db user=me password = ***"),
            ("https://a.org/?access_token=hunter2&b=1", "https://a.org/?access_token=***&b=1"),
            (r#"{"db": {"Password": "hunter2"}}"#, r#"{"db": {"Password": "***"}}"#),
            ("{'passwd':'hunter2'}", "{'passwd':'***'}"),
            ("passphrase: hunter2", "passphrase: ***"),
            ("--user me --password hunter2 --x", "--user me --password *** --x"),
            ("-HAuthorization: Bearer hunter2", "-HAuthorization: ***"),
            ("X-Api-Key: hunter2", "X-Api-Key: ***"),
            ("with bearer hunter2hunter2hunter2 sent", "with bearer *** sent"),
            ("a -----BEGIN RSA PRIVATE KEY-----\nhunter2", "a ***"),
        ] {
            assert_eq!(masked(value), shown);
            assert_eq!(without_secret("THING", value), LEFT_OUT, "{value}");
            assert_eq!(masked(shown), shown, "twice");
        }
        // Each is found by itself, and in what is left of the text.
        for (value, shown) in [
            (
                "https://t@h/ me:hunter2@db, me:hunter2@[::1]",
                "https://***@h/ me:***@db, me:***@[::1]",
            ),
            ("a://b:c@d@e://hunter2@f", "a://***@d@e://***@f"),
            ("password=a b token=c; d cookie: e", "password=*** b token=***; d cookie: ***"),
            ("AKIAAAAAAAAAAAAAAAAA-ghp_", "***-ghp_"),
        ] {
            assert_eq!(masked(value), shown);
        }
        assert_eq!(without_secret("THING", r#"{\"secret\":\"hunter2\"}"#), LEFT_OUT);
    }

    #[test]
    fn what_is_no_secret_stays() {
        for value in [
            "",
            "/usr/local/bin:/usr/bin:/opt/authd/bin:/opt/passenger:/bin",
            "https://example.org:8080/a/b",
            "mail me@example.org",
            "-XX:+UseG1GC -Xmx4g",
            "rs=0:di=01;34:*.tar=01;31",
            "münchen=1 größe: 2",
            "git@github.com:owner/repository.git",
            "/sys/fs/cgroup/user@1000.service/app",
        ] {
            assert_eq!(without_secret("THING", value), value);
        }
        for words in ["sort --key 2 -t : a", "whylag record --threshold 1ms", "gcc -p -o a a.c"] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(masked_words(&words), words);
        }
    }

    /// Twenty times the text takes some twenty times as long, not four hundred times.
    #[test]
    fn no_text_takes_more_time_than_in_proportion_to_its_length() {
        // Of this thread: on a busy machine it waits for a CPU as well.
        let on_cpu = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::try_from(time).unwrap()
        };
        let time = |text: &str| {
            let began = on_cpu();
            assert!(!masked(text).is_empty());
            on_cpu() - began
        };
        for piece in [
            "@",
            "a://b@ ",
            "://",
            "a:b/@",
            "eyJ-",
            "eyJ-AKIAAAAAAAAAAAAAAAAA-",
            "SG.-",
            "bearer ",
            "bearer aaaaaaaaaaaaaaaa ",
            "password=a ",
            "password=",
            "password \"",
            "AKIAAAAAAAAAAAAAAAAA ",
            "-----BEGI",
        ] {
            let of = |length: usize| piece.repeat(length / piece.len());
            let (short, long) = (of(3_000), of(60_000));
            let least = |text: &str| (0..3).map(|_| time(text)).min().unwrap();
            let (few, many) = (least(&short), least(&long));
            assert!(many < few * 100, "{piece:?}: {few:?} for a twentieth of {many:?}");
        }
    }

    #[test]
    fn secrets_among_words() {
        for (words, shown) in [
            ("mysql --password hunter2 -h db", "mysql --password *** -h db"),
            ("mysql --password=hunter2 -h db", "mysql --password=*** -h db"),
            ("mysql --password -h db", "mysql --password -h db"),
            ("x --api-key hunter2 API_TOKEN=hunter2", "x --api-key *** API_TOKEN=***"),
            ("curl -u me:hunter2@db https://t@h/", "curl -u me:***@db https://***@h/"),
        ] {
            let split = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(masked_words(&split(words)), split(shown));
        }
        let words =
            ["curl".to_owned(), "-H".to_owned(), "Authorization: Basic aHVudGVyMg==".to_owned()];
        assert_eq!(masked_words(&words)[2], "Authorization: ***");
    }
}
