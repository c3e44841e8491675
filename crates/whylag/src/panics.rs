//! What is said when whylag itself is at fault.
//!
//! A panic's text can have bytes in it that somebody else chose; std prints them as they are.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook};
use std::thread;

use crate::output::{tell, tell_plainly};

/// From now on panics are printed as all else is.
pub fn install() {
    set_hook(Box::new(report));
}

fn report(panic: &PanicHookInfo<'_>) {
    let thread = thread::current();
    tell(format_args!("a fault in thread '{}': {panic}", thread.name().unwrap_or("unnamed")));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        trace.to_string().lines().for_each(tell_plainly);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const HOSTILE: &str = "\x1b]0;x\x07\u{202e}\nwhylag: all is well";

    /// Runs this test once more, where nobody else's panics are.
    #[test]
    fn what_a_panic_says_steers_no_terminal() {
        const AGAIN: &str = "WHYLAG_TEST_PANICS";
        if std::env::var_os(AGAIN).is_some() {
            install();
            let one = thread::Builder::new().name("one".to_owned());
            let _ = one.spawn(|| panic!("{HOSTILE}")).unwrap().join();
            return;
        }
        let name = "panics::tests::what_a_panic_says_steers_no_terminal";
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", name, "--nocapture"]).env(AGAIN, "1").env("RUST_BACKTRACE", "0");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        let line = errors.lines().find(|line| line.contains("a fault in thread 'one'")).unwrap();
        assert!(line.contains("\\x1b]0;x\\x07\\u{202e}\\nwhylag: all is well"), "{line}");
        assert!(!errors.contains(['\x1b', '\x07', '\u{202e}']), "{errors:?}");
    }
}
