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

/// The text with each secret in it as [`LEFT_OUT`].
pub fn masked(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    for find in [begin_of_pem, user_of_url, assigned::first, tokens::first] {
        let mut from = 0;
        // What was found is replaced before the search goes on behind it.
        while let Some((start, end)) = find(&masked, from) {
            if &masked[start..end] != LEFT_OUT {
                masked.to_mut().replace_range(start..end, LEFT_OUT);
            }
            from = start + LEFT_OUT.len();
        }
    }
    masked
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
fn begin_of_pem(text: &str, from: usize) -> Option<(usize, usize)> {
    text[from..].find("-----BEGIN").map(|at| (from + at, text.len()))
}

/// `user:password` or `token` in `scheme://user:password@host`, and `password` in
/// `user:password@host`.
fn user_of_url(text: &str, from: usize) -> Option<(usize, usize)> {
    const ENDS: [char; 8] = ['/', '?', '#', ' ', '"', '\'', '\n', ','];
    let mut at = from;
    while let Some(found) = text[at..].find('@') {
        let end = at + found;
        at = end + 1;
        // A password may have an unescaped slash: then the colon before it decides.
        if let Some(scheme) = text[from..end].rfind("://") {
            let start = from + scheme + "://".len();
            let user = &text[start..end];
            let is_url = !user.is_empty() && !user.contains([' ', '"', '\'', '\n', '?', '#']);
            if is_url && (user.contains(':') || !user.contains('/')) {
                return Some((start, end));
            }
        }
        let start = text[from..end].rfind(ENDS).map_or(from, |at| from + at + 1);
        let pair = text[start..end].split_once(':');
        let host = text[at..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
        if let Some((user, password)) = pair
            && !user.is_empty()
            && !password.is_empty()
            && host
        {
            return Some((start + user.len() + 1, end));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

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
