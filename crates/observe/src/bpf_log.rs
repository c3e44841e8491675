//! What libbpf and the kernel's verifier say while programs are loaded.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::PrintLevel;

use crate::Error;
use crate::capability::Refusal;

/// A file for all of it, for a bug report.
pub const FILE_VARIABLE: &str = "WHYLAG_BPF_LOG";
/// The verifier's whole log is megabytes; its end says why.
const KEPT_BYTES: usize = 256 << 10;

static LOG: Mutex<String> = Mutex::new(String::new());

/// Begins anew to keep what is said; everything if a file for it is asked for, else only of
/// programs that are refused.
///
/// # Errors
/// If that file cannot be written: whoever asks for it wants nothing else.
pub fn begin() -> Result<(), Error> {
    let file = std::env::var_os(FILE_VARIABLE);
    if let Some(path) = &file {
        append(Path::new(path), "").map_err(Error::io(
            "WHYLAG_BPF_LOG names a file that cannot be written; give another, or unset it",
        ))?;
    }
    let level = if file.is_some() { PrintLevel::Debug } else { PrintLevel::Warn };
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
    libbpf_rs::set_print(Some((level, keep)));
    Ok(())
}

fn keep(_: PrintLevel, text: String) {
    if let Some(path) = std::env::var_os(FILE_VARIABLE) {
        // The recording is worth more than its log.
        let _ = append(Path::new(&path), &text);
    }
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    log.push_str(&text);
    let beyond = log.len().saturating_sub(KEPT_BYTES);
    if let Some(cut) = (beyond..=log.len()).find(|at| log.is_char_boundary(*at)) {
        log.drain(..cut);
    }
}

/// A link could lead root elsewhere.
fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    file.open(path)?.write_all(text.as_bytes())
}

/// Why loading failed with `error`.
pub fn refusal(error: &libbpf_rs::Error) -> Refusal {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    match failed_program(&log) {
        Some(program) => {
            let reason = last_words(&log, program).map_or(error.to_string(), str::to_owned);
            let because = format!(
                "the kernel refused its program {program}: {reason}; {FILE_VARIABLE}=FILE keeps all it said"
            );
            Refusal { program: Some(program.to_owned()), because }
        }
        None => Refusal {
            program: None,
            because: format!(
                "the kernel refused it: {error}; {FILE_VARIABLE}=FILE keeps all it said"
            ),
        },
    }
}

/// `libbpf: prog 'NAME': failed to load: -13`, or words like these, of the last that failed.
fn failed_program(log: &str) -> Option<&str> {
    let failed = log.lines().rev().find(|line| line.contains("prog '") && line.contains("fail"))?;
    failed.split('\'').nth(1)
}

/// What the verifier said last of a program: the line before its own statistics.
fn last_words<'a>(log: &'a str, program: &str) -> Option<&'a str> {
    let (before_end, _) = log.rsplit_once("-- END PROG LOAD LOG --")?;
    // Of a long log the begin is not kept.
    let said = before_end.rsplit_once(&format!("prog '{program}': -- BEGIN PROG LOAD LOG --"));
    let said = said.map_or(before_end, |parts| parts.1);
    let is_statistics = |line: &str| {
        ["processed ", "verification time", "stack depth", "mark_precise", "libbpf: "]
            .iter()
            .any(|word| line.starts_with(word))
    };
    said.lines().map(str::trim).rfind(|line| !line.is_empty() && !is_statistics(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As libbpf 1.7 printed it for a program of ours on Debian's Linux 6.1.
    const SAID: &str = "libbpf: prog 'on_x': BPF program load failed: Permission denied\n\
        libbpf: prog 'on_x': -- BEGIN PROG LOAD LOG --\n\
        0: R1=ctx(off=0,imm=0) R10=fp0\n\
        12: (79) r2 = *(u64 *)(r1 +8)\n\
        R2 unbounded memory access, make sure to bounds check any such access\n\
        processed 99 insns (limit 1000000) max_states_per_insn 1 total_states 8 peak_states 8 mark_read 3\n\
        -- END PROG LOAD LOG --\n\
        libbpf: prog 'on_x': failed to load: -13\n\
        libbpf: failed to load object 'whylag_bpf'\n";

    #[test]
    fn the_program_and_the_verifiers_last_words_are_found() {
        assert_eq!(failed_program(SAID), Some("on_x"));
        let words = "R2 unbounded memory access, make sure to bounds check any such access";
        assert_eq!(last_words(SAID, "on_x"), Some(words));
        let tail = &SAID[SAID.find("12: (79)").unwrap()..];
        assert_eq!(last_words(tail, "on_x"), Some(words), "whose begin was not kept");
        assert_eq!(failed_program("libbpf: failed to load object 'whylag_bpf'\n"), None);
    }

    #[test]
    fn a_kernel_that_gives_no_reason_has_no_words() {
        let silent = "libbpf: prog 'on_x': BPF program load failed: -EPERM\n\
            libbpf: prog 'on_x': -- BEGIN PROG LOAD LOG --\n\
            processed 0 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0\n\
            -- END PROG LOAD LOG --\n\
            libbpf: prog 'on_x': failed to load: -EPERM\n";
        assert_eq!(last_words(silent, "on_x"), None);
    }
}
