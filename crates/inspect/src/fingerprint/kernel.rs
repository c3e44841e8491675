//! The name of the host, and the kernel: which one, how it was started, how it preempts.

use std::io::Read;

use flate2::read::GzDecoder;
use model::Fact;

use crate::read::{bytes, fact, file_fact, text, unknown};
use crate::secrets::without_secret;

const RELEASE: &str = "/proc/sys/kernel/osrelease";
const COMMAND_LINE: &str = "/proc/cmdline";
const PREEMPTION: &str = "kernel.preemption";

/// A kernel configuration is about 300 kB; no more than this is unpacked, bytes.
const LONGEST_CONFIG: u64 = 4 << 20;

pub fn facts() -> Vec<Fact> {
    let mut command_line = file_fact("kernel.command_line", COMMAND_LINE);
    command_line.value = without_secrets(&command_line.value);
    vec![
        file_fact("host.name", "/proc/sys/kernel/hostname"),
        file_fact("kernel.release", RELEASE),
        file_fact("kernel.version", "/proc/sys/kernel/version"),
        command_line,
        preemption(),
    ]
}

/// The parameters of a kernel command line, secret values left out.
fn without_secrets(command_line: &str) -> String {
    let word = |word: &str| match word.split_once('=') {
        Some((name, value)) => format!("{name}={}", without_secret(name, value)),
        None => word.to_owned(),
    };
    command_line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// How a thread in the kernel can be preempted: `none`, `voluntary`, `lazy`, `full` or `rt`.
///
/// With PREEMPT_DYNAMIC it can be changed while the system runs, and only debugfs shows it.
/// Otherwise `preempt=` on the command line holds, and without it the kernel's configuration.
pub(crate) fn preemption() -> Fact {
    const DEBUGFS: &str = "/sys/kernel/debug/sched/preempt";
    if let Some(model) = text(DEBUGFS).ok().as_deref().and_then(in_parentheses) {
        return fact(PREEMPTION, model, DEBUGFS);
    }
    let (config, source) = match config() {
        Ok(found) => found,
        Err(tried) => return unknown(PREEMPTION, format!("no {tried}"), DEBUGFS),
    };
    let from_command_line = text(COMMAND_LINE).ok().as_deref().and_then(preempt_word);
    match (from_command_line, preemption_in_config(&config)) {
        (Some(model), _) if has_line(&config, "CONFIG_PREEMPT_DYNAMIC=y") => {
            fact(PREEMPTION, model, COMMAND_LINE)
        }
        (_, Some(model)) => fact(PREEMPTION, model, source),
        (_, None) => unknown(PREEMPTION, "no CONFIG_PREEMPT option is set", source),
    }
}

/// The current choice in a file such as `none voluntary (full)`.
fn in_parentheses(choices: &str) -> Option<String> {
    let (_, rest) = choices.split_once('(')?;
    rest.split_once(')').map(|(choice, _)| choice.to_owned())
}

fn preempt_word(command_line: &str) -> Option<String> {
    let word = command_line.split_whitespace().rev().find_map(|w| w.strip_prefix("preempt="));
    word.map(str::to_owned)
}

fn has_line(config: &str, wanted: &str) -> bool {
    config.lines().any(|line| line == wanted)
}

fn preemption_in_config(config: &str) -> Option<String> {
    let models = [
        ("CONFIG_PREEMPT_RT=y", "rt"),
        ("CONFIG_PREEMPT_LAZY=y", "lazy"),
        ("CONFIG_PREEMPT=y", "full"),
        ("CONFIG_PREEMPT_VOLUNTARY=y", "voluntary"),
        ("CONFIG_PREEMPT_NONE=y", "none"),
    ];
    let chosen = models.into_iter().find(|(line, _)| has_line(config, line));
    chosen.map(|(_, model)| model.to_owned())
}

/// Text of the running kernel's configuration and where it was found, or the places that were
/// tried.
pub(crate) fn config() -> Result<(String, String), String> {
    const PACKED: &str = "/proc/config.gz";
    if let Ok(packed) = bytes(PACKED) {
        let mut config = String::new();
        if GzDecoder::new(&packed[..]).take(LONGEST_CONFIG).read_to_string(&mut config).is_ok() {
            return Ok((config, PACKED.to_owned()));
        }
    }
    let release = text(RELEASE).unwrap_or_default();
    let places = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    for place in &places {
        if let Ok(config) = text(place) {
            return Ok((config, place.clone()));
        }
    }
    Err(format!("debugfs, {PACKED}, {}", places.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marked_choice_is_taken() {
        assert_eq!(in_parentheses("none voluntary (full) lazy").unwrap(), "full");
        assert_eq!(in_parentheses("full)("), None);
    }

    #[test]
    fn the_last_preempt_word_holds() {
        assert_eq!(preempt_word("quiet preempt=full preempt=none").unwrap(), "none");
        assert_eq!(preempt_word("quiet nopreempt=1"), None);
    }

    #[test]
    fn a_dynamic_kernel_says_preempt_build_beside_its_default() {
        let config = "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_NONE=y\n# CONFIG_PREEMPT is not set\n";
        assert_eq!(preemption_in_config(config).unwrap(), "none");
        let config = "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_RT=y\n";
        assert_eq!(preemption_in_config(config).unwrap(), "rt");
    }

    #[test]
    fn secrets_of_a_command_line_are_left_out() {
        let line = "quiet luks.key=hunter2 root=http://a:hunter2@b isolcpus=1";
        let expected = "quiet luks.key=*** root=*** isolcpus=1";
        assert_eq!(without_secrets(line), expected);
    }
}
