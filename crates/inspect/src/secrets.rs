//! What is left out of a fingerprint.
//!
//! The rule, for a variable `NAME=value` of an environment or a parameter `name=value` of the
//! kernel's command line. Letter case does not matter. The name is always kept; the value is
//! replaced by [`LEFT_OUT`] when one of these holds:
//!
//! 1. The name is that of a secret: it contains one of `KEY`, `TOKEN`, `SECRET`, `PASS`, `PWD`,
//!    `CRED`, `AUTH`, `COOKIE`, `SESSION`, `PRIVATE`, `DSN`, `JWT`; but not the shell's `PWD` and
//!    `OLDPWD`.
//! 2. The value holds a URL with a user part: `postgres://user:password@host/`,
//!    `https://token@host/`.
//! 3. The value assigns to a name that rule 1 covers: `-DkeyStorePassword=x`, `?token=x`,
//!    `{"password": "x"}`, `--password x`.
//! 4. The value holds a PEM block (`-----BEGIN`).
//!
//! It would rather leave out too much (`SSH_AUTH_SOCK`, `KEYBOARD`) than too little. It cannot
//! know a secret that is named and shaped like anything else.

/// What replaces a secret.
pub const LEFT_OUT: &str = "(left out)";

const SECRET_WORDS: [&str; 12] = [
    "KEY", "TOKEN", "SECRET", "PASS", "PWD", "CRED", "AUTH", "COOKIE", "SESSION", "PRIVATE", "DSN",
    "JWT",
];

/// The value as it may be stored: itself, or [`LEFT_OUT`].
pub fn without_secret<'v>(name: &str, value: &'v str) -> &'v str {
    let secret = is_secret_name(name)
        || has_url_with_user(value)
        || assigns_secret(value)
        || value.contains("-----BEGIN");
    if secret { LEFT_OUT } else { value }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_directory = name == "PWD" || name == "OLDPWD";
    !is_directory && SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// `scheme://user@` or `scheme://user:password@` anywhere in the value.
fn has_url_with_user(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '"', '\'']).next().unwrap_or("");
        // A password may contain an unescaped slash, so a later '@' counts after a ':' as well.
        authority.contains('@') || (authority.contains(':') && rest.contains('@'))
    })
}

/// `name=`, `"name":`, `name: ` or `-name value`, with a name that rule 1 covers.
fn assigns_secret(value: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut rest = value;
    while let Some(start) = rest.find(in_word) {
        let word_on = &rest[start..];
        let (word, after) =
            word_on.split_at(word_on.find(|c| !in_word(c)).unwrap_or(word_on.len()));
        let spaced = after.trim_start_matches(['"', '\'', '\\']);
        let quoted = spaced.len() < after.len();
        let next = spaced.trim_start();
        let assigned = next.starts_with('=')
            || (next.starts_with(':') && (quoted || next[1..].starts_with(' ')))
            || (word.starts_with('-') && after.starts_with(' '));
        if assigned && is_secret_name(word) {
            return true;
        }
        rest = after;
    }
    false
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
        ] {
            assert_eq!(without_secret(name, "hunter2"), LEFT_OUT, "{name}");
        }
        for name in ["PWD", "OLDPWD", "PATH", "LD_PRELOAD", "MALLOC_ARENA_MAX"] {
            assert_eq!(without_secret(name, "/srv"), "/srv", "{name}");
        }
    }

    #[test]
    fn secrets_by_value() {
        for value in [
            "postgres://me:hunter2@db/orders",
            "see https://hunter2@example.org/ for more",
            "amqp://me:hun/ter2@mq",
            "a=http://x b=http://u:hunter2@y",
            "-Xmx4g -Djavax.net.ssl.keyStorePassword=hunter2",
            "host=db user=me password = hunter2",
            "https://example.org/?access_token=hunter2",
            r#"{"db": {"Password": "hunter2"}}"#,
            "{'passwd':'hunter2'}",
            r#"{\"secret\":\"hunter2\"}"#,
            "passphrase: hunter2",
            "--user me --password hunter2",
            "-----BEGIN RSA PRIVATE KEY-----\nhunter2",
        ] {
            assert_eq!(without_secret("THING", value), LEFT_OUT, "{value}");
        }
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
        ] {
            assert_eq!(without_secret("THING", value), value);
        }
    }
}
