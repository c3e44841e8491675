//! Tokens that are known by their form.
//!
//! The list is a part of the rules of gitleaks (MIT, github.com/gitleaks/gitleaks,
//! config/gitleaks.toml), named here by their ids: those whose tokens begin with letters of their
//! own. No crate of such rules that is kept was found.

use std::ops::Range;

/// A token: its first letters, how many follow at least, and which.
struct Form {
    /// The rule of gitleaks.
    #[cfg_attr(not(test), allow(dead_code, reason = "says where the form is from"))]
    rule: &'static str,
    begins: &'static str,
    more: usize,
    letters: Letters,
}

/// Of which a token consists.
#[derive(Clone, Copy)]
enum Letters {
    /// Letters and digits.
    Alphanumeric,
    /// Capitals and digits.
    Upper,
    /// As in base64 for URLs: also `-` and `_`.
    Base64Url,
    /// Of three parts with points between them.
    Dotted,
    /// Whatever a URL has.
    Url,
}

use Letters::{Alphanumeric, Base64Url, Dotted, Upper, Url};

const fn form(rule: &'static str, begins: &'static str, more: usize, letters: Letters) -> Form {
    Form { rule, begins, more, letters }
}

const FORMS: &[Form] = &[
    form("aws-access-token", "AKIA", 16, Upper),
    form("aws-access-token", "ASIA", 16, Upper),
    form("aws-access-token", "ABIA", 16, Upper),
    form("aws-access-token", "ACCA", 16, Upper),
    form("anthropic-api-key", "sk-ant-", 20, Base64Url),
    form("openai-api-key", "sk-proj-", 20, Base64Url),
    form("openai-api-key", "sk-", 32, Base64Url),
    form("stripe-access-token", "sk_live_", 10, Alphanumeric),
    form("stripe-access-token", "sk_test_", 10, Alphanumeric),
    form("stripe-access-token", "rk_live_", 10, Alphanumeric),
    form("stripe-access-token", "rk_test_", 10, Alphanumeric),
    form("github-pat", "ghp_", 36, Alphanumeric),
    form("github-oauth", "gho_", 36, Alphanumeric),
    form("github-app-token", "ghu_", 36, Alphanumeric),
    form("github-app-token", "ghs_", 36, Alphanumeric),
    form("github-refresh-token", "ghr_", 36, Alphanumeric),
    form("github-fine-grained-pat", "github_pat_", 40, Base64Url),
    form("gitlab-pat", "glpat-", 20, Base64Url),
    form("gitlab-ptt", "glptt-", 20, Base64Url),
    form("gitlab-deploy-token", "gldt-", 20, Base64Url),
    form("slack-bot-token", "xoxb-", 10, Base64Url),
    form("slack-user-token", "xoxp-", 10, Base64Url),
    form("slack-user-token", "xoxe-", 10, Base64Url),
    form("slack-legacy-workspace-token", "xoxa-", 10, Base64Url),
    form("slack-legacy-workspace-token", "xoxr-", 10, Base64Url),
    form("slack-legacy-token", "xoxs-", 10, Base64Url),
    form("slack-app-token", "xapp-", 10, Base64Url),
    form("slack-webhook-url", "hooks.slack.com/services/", 10, Url),
    form("slack-webhook-url", "hooks.slack.com/workflows/", 10, Url),
    form("slack-webhook-url", "hooks.slack.com/triggers/", 10, Url),
    form("microsoft-teams-webhook", "webhook.office.com/webhookb2/", 10, Url),
    // Not of gitleaks: Discord's documentation of webhooks.
    form("discord-webhook", "discord.com/api/webhooks/", 10, Url),
    form("discord-webhook", "discordapp.com/api/webhooks/", 10, Url),
    form("gcp-api-key", "AIza", 35, Base64Url),
    form("npm-access-token", "npm_", 36, Alphanumeric),
    form("pypi-upload-token", "pypi-AgEIcHlwaS5vcmc", 20, Base64Url),
    form("huggingface-access-token", "hf_", 34, Alphanumeric),
    form("sendgrid-api-token", "SG.", 60, Dotted),
    form("digitalocean-pat", "dop_v1_", 64, Alphanumeric),
    form("digitalocean-access-token", "doo_v1_", 64, Alphanumeric),
    form("shopify-access-token", "shpat_", 32, Alphanumeric),
    form("shopify-shared-secret", "shpss_", 32, Alphanumeric),
    form("databricks-api-token", "dapi", 32, Alphanumeric),
    form("vault-service-token", "hvs.", 24, Base64Url),
    form("vault-batch-token", "hvb.", 24, Base64Url),
    form("new-relic-user-api-key", "NRAK-", 27, Alphanumeric),
    form("linear-api-key", "lin_api_", 40, Alphanumeric),
    form("age-secret-key", "AGE-SECRET-KEY-1", 58, Upper),
    form("jwt", "eyJ", 30, Dotted),
];

impl Letters {
    fn has(self, c: char) -> bool {
        match self {
            Alphanumeric => c.is_ascii_alphanumeric(),
            Upper => c.is_ascii_uppercase() || c.is_ascii_digit(),
            Base64Url => c.is_ascii_alphanumeric() || matches!(c, '-' | '_'),
            Dotted => c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '='),
            Url => !c.is_whitespace() && !matches!(c, '"' | '\'' | ')' | ','),
        }
    }
}

/// Each token; of a URL only what comes behind its known part.
pub(super) fn all(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // Before these places nothing begins that has not been looked at, and no part ends with a point.
    let (mut from, mut no_point) = (0, 0);
    let mut before = None;
    for (at, c) in text.char_indices() {
        if at >= from {
            let is_word = !before.is_some_and(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let may_be_dotted = at >= no_point;
            let may_be = |form: &&Form| match form.letters {
                Url => true,
                Dotted => is_word && may_be_dotted,
                _ => is_word,
            };
            let forms = FORMS.iter().filter(may_be);
            for form in forms.filter(|form| text[at..].starts_with(form.begins)) {
                match form.at(text, at) {
                    Ok(token) => {
                        from = token.end;
                        found.push(token);
                        break;
                    }
                    Err(end) => no_point = no_point.max(end),
                }
            }
        }
        // Behind a token a word may begin.
        before = (at + c.len_utf8() != from).then_some(c);
    }
    found
}

impl Form {
    /// The token that begins here; or up to where there is none with points.
    fn at(&self, text: &str, start: usize) -> Result<Range<usize>, usize> {
        let more = start + self.begins.len();
        let length = text[more..].find(|c| !self.letters.has(c));
        let end = length.map_or(text.len(), |length| more + length);
        let is_dotted = matches!(self.letters, Dotted);
        if is_dotted && !text[more..end].contains('.') {
            return Err(end);
        }
        if end - more < self.more {
            return Err(start);
        }
        Ok(if matches!(self.letters, Url) { more } else { start }..end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LEFT_OUT, masked};
    use super::*;

    #[test]
    fn every_form_is_found_where_a_word_begins_and_only_if_it_is_long_enough() {
        for form in FORMS {
            let filling = |length: usize| match form.letters {
                Dotted => format!("{}.{}", "a".repeat(length), "b".repeat(length)),
                Upper => "A".repeat(length),
                _ => "a1".repeat(length),
            };
            let token = format!("{}{}", form.begins, filling(form.more));
            let shown = masked(&format!("x {token} y")).into_owned();
            assert!(shown.starts_with("x ") && shown.ends_with("*** y"), "{}: {shown}", form.rule);
            assert!(!shown.contains(&filling(form.more)), "{}: {shown}", form.rule);
            let short = format!("x {} y", form.begins);
            assert_eq!(masked(&short), short, "{}", form.rule);
        }
    }

    #[test]
    fn what_only_looks_like_a_token_stays() {
        for text in [
            "task-runner-of-the-whole-company-with-a-long-name",
            "/usr/lib/eyJ",
            "risk_live_abcdefghijkl",
            "sk-learn",
            "AKIAshort",
        ] {
            assert_eq!(masked(text), text);
            assert_ne!(masked(text), LEFT_OUT);
        }
    }
}
