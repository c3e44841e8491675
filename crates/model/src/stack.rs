//! Call stacks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::sums::adds_up;
use crate::text_form::text_form;
use crate::{Account, Sum, Syscall};

/// Identity of a stack within a run: a 64-bit hash of its addresses (and of the process, for user
/// stacks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StackId(pub u64);

/// Which side of the system call boundary a stack is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Space {
    /// Kernel.
    Kernel,
    /// User.
    User,
}

/// A call stack, innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Identity.
    pub id: StackId,
    /// Kernel or user.
    pub space: Space,
    /// Frames, innermost first.
    pub frames: Vec<Frame>,
    /// Set when the walk ended before a known outermost frame (code built without frame pointers),
    /// or when the stack was longer than what is kept (127 frames).
    pub truncated: bool,
    /// From so many copies of the top of such stacks the frames were unwound, and all of these have
    /// them; 0 for what frame pointers gave.
    #[serde(default)]
    pub copies: u64,
}

/// One frame: always module and offset, and the symbol if one was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The address as seen (return address, except in the innermost frame).
    pub address: u64,
    /// File name of the mapping (`/usr/lib/libc.so.6`), `[kernel]`, `[jit]`, or empty if unknown.
    pub module: String,
    /// Offset in the module's file; for the kernel the offset from the symbol.
    pub offset: u64,
    /// Function name (demangled).
    pub symbol: Option<String>,
    /// Offset from the start of the symbol.
    pub symbol_offset: u64,
    /// Why there is no symbol, when there is none.
    pub unknown_because: Option<String>,
    /// The function of another library whose call returns to the address.
    #[serde(default)]
    pub after: Option<ImportedCall>,
    /// Of a function of an interpreter, such as Python's: where it is in `module`, its source file.
    /// Addresses and offsets then say nothing of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLine>,
}

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourceLine {
    /// The line that runs, if that is known.
    pub line: Option<u32>,
    /// The line where its function begins.
    pub first: u32,
}

/// A call of a function of another library: `sched_yield@plt`, `*sched_yield@got`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ImportedCall {
    /// Through the procedure linkage table: it may be bound by its first call.
    Plt(String),
    /// Through a slot that is bound when the library is loaded.
    Got(String),
}

impl ImportedCall {
    /// Name of the function.
    pub fn symbol(&self) -> &str {
        match self {
            ImportedCall::Plt(symbol) | ImportedCall::Got(symbol) => symbol,
        }
    }
}

impl fmt::Display for ImportedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportedCall::Plt(symbol) => write!(f, "{symbol}@plt"),
            ImportedCall::Got(symbol) => write!(f, "*{symbol}@got"),
        }
    }
}

impl FromStr for ImportedCall {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at_load = || text.strip_prefix('*')?.strip_suffix("@got");
        match (text.strip_suffix("@plt"), at_load()) {
            (Some(symbol), _) => Ok(ImportedCall::Plt(symbol.to_owned())),
            (None, Some(symbol)) => Ok(ImportedCall::Got(symbol.to_owned())),
            (None, None) => Err(format!("'{text}' is no call of another library")),
        }
    }
}

text_form!(ImportedCall);

impl Frame {
    /// The function's name (that of an interpreter with its file: `Handler.get (server.py)`), or
    /// `module+0xoffset`, or the bare address: what a flame graph shows.
    pub fn label(&self) -> String {
        match (&self.symbol, self.module.is_empty()) {
            (Some(symbol), false) if self.source.is_some() => {
                format!("{symbol} ({})", self.module_name())
            }
            (Some(symbol), _) => symbol.clone(),
            (None, false) => format!("{}+{:#x}", self.module_name(), self.offset),
            (None, true) => format!("{:#x}", self.address),
        }
    }

    /// `librate.so:rate_timer+0x9e3 (after call sched_yield@plt)`; the same without what is not
    /// known.
    pub fn place(&self) -> String {
        let place = match &self.symbol {
            Some(symbol) if self.source.is_some() => self.in_source(symbol),
            Some(symbol) if self.module != "[kernel]" => {
                format!("{}:{symbol}+{:#x}", self.module_name(), self.symbol_offset)
            }
            _ => self.label(),
        };
        match &self.after {
            Some(call) => format!("{place} (after call {call})"),
            None => place,
        }
    }

    /// `Handler.get (server.py:42)`, or `Handler.get (server.py, begins at line 30)`.
    fn in_source(&self, symbol: &str) -> String {
        match &self.source {
            Some(SourceLine { line: Some(line), .. }) => {
                format!("{symbol} ({}:{line})", self.module_name())
            }
            Some(SourceLine { first, .. }) => {
                format!("{symbol} ({}, begins at line {first})", self.module_name())
            }
            None => symbol.to_owned(),
        }
    }

    /// Last component of the module's path.
    pub fn module_name(&self) -> &str {
        self.module.rsplit('/').next().unwrap_or(&self.module)
    }
}

/// `symbol+0x1f [libc.so.6+0x8f2a0]`: symbol and module+offset; of a frame that called another
/// library `librate.so:rate_timer+0x9e3 (after call sched_yield@plt) [librate.so+0x19e3]`; of a
/// function of an interpreter `Handler.get (server.py:42) [/srv/app/server.py]`.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.symbol {
            Some(symbol) if self.source.is_some() => {
                write!(f, "{} [{}]", self.in_source(symbol), self.module)
            }
            _ if self.after.is_some() => {
                write!(f, "{} [{}+{:#x}]", self.place(), self.module_name(), self.offset)
            }
            Some(symbol) if self.module == "[kernel]" => {
                write!(f, "{symbol}+{:#x} [kernel]", self.symbol_offset)
            }
            Some(symbol) => write!(
                f,
                "{symbol}+{:#x} [{}+{:#x}]",
                self.symbol_offset,
                self.module_name(),
                self.offset
            ),
            None if self.module.is_empty() => write!(f, "{:#x} [no mapping]", self.address),
            None => write!(f, "{}+{:#x}", self.module_name(), self.offset),
        }
    }
}

/// Time of a process by kernel code path: every sleep inside the kernel that is no wait for work
/// (exact), and samples of what ran on the CPUs.
///
/// Futex, pipe and socket waits are not in here: they are kept by object in `WaitSum`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSum {
    /// Process.
    pub tgid: u32,
    /// What the thread did or waited for. A page fault on the CPU is in the account that faulted.
    pub account: Account,
    /// System call it happened in.
    pub call: Option<Syscall>,
    /// Kernel side of the stack; none for a sample in user mode.
    pub kernel: Option<StackId>,
    /// User side of the stack; samples only.
    pub user: Option<StackId>,
    /// True for samples: `ns` is the sum of what each stands for, the period when it was taken.
    pub sampled: bool,
    /// Thread that was sampled; 0 of sleeps, where there were too many to keep them apart, and in
    /// older runs.
    #[serde(default)]
    pub tid: u32,
    /// Sleeps or samples.
    pub count: u64,
    /// Their time.
    pub ns: u64,
    /// Longest sleep; the period for samples.
    pub max_ns: u64,
}

impl Sum for PathSum {
    fn key(&self) -> impl Serialize {
        let stacks = (self.kernel, self.user);
        // As before samples had a thread, for what has none.
        let who = u64::from(self.tgid) | u64::from(self.tid) << 32;
        (who, self.account, self.call, stacks, self.sampled)
    }

    adds_up!(count, ns, max_ns);

    fn stacks(&self) -> [Option<StackId>; 2] {
        [self.kernel, self.user]
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), None]
    }

    fn generalize(&mut self) {
        self.user = None;
        self.tid = 0;
    }
}

/// Time off the CPU (at least the threshold long each time) summed by where it was spent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSum {
    /// Process.
    pub tgid: u32,
    /// What the thread waited for; `RunnablePreempted` and `RunnableWakeup` for the run queue.
    pub account: Account,
    /// Kernel side of the stack.
    pub kernel: Option<StackId>,
    /// User side of the stack.
    pub user: Option<StackId>,
    /// Intervals.
    pub count: u64,
    /// Their sum.
    pub ns: u64,
}

impl Sum for StackSum {
    fn key(&self) -> impl Serialize {
        (self.tgid, self.account, self.kernel, self.user)
    }

    adds_up!(count, ns);

    fn stacks(&self) -> [Option<StackId>; 2] {
        [self.kernel, self.user]
    }

    fn processes(&mut self) -> [Option<&mut u32>; 2] {
        [Some(&mut self.tgid), None]
    }

    fn generalize(&mut self) {
        self.user = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_what_it_called() {
        let mut frame = Frame {
            address: 0x7f00_0000_19e3,
            module: "/opt/librate.so".into(),
            offset: 0x19e3,
            symbol: Some("rate_timer".into()),
            symbol_offset: 0x9e3,
            unknown_because: None,
            after: Some(ImportedCall::Plt("sched_yield".into())),
            source: None,
        };
        let place = "librate.so:rate_timer+0x9e3 (after call sched_yield@plt)";
        assert_eq!(frame.to_string(), format!("{place} [librate.so+0x19e3]"));
        frame.symbol = None;
        assert_eq!(frame.place(), "librate.so+0x19e3 (after call sched_yield@plt)");
        frame.after = None;
        assert_eq!(frame.to_string(), "librate.so+0x19e3");
    }

    #[test]
    fn a_function_of_an_interpreter_is_in_its_source_file() {
        let mut frame = Frame {
            address: 0,
            module: "/srv/app/server.py".into(),
            offset: 0,
            symbol: Some("Handler.get".into()),
            symbol_offset: 0,
            unknown_because: None,
            after: None,
            source: Some(SourceLine { line: Some(42), first: 30 }),
        };
        assert_eq!(frame.label(), "Handler.get (server.py)");
        assert_eq!(frame.to_string(), "Handler.get (server.py:42) [/srv/app/server.py]");
        frame.source = Some(SourceLine { line: None, first: 30 });
        assert_eq!(frame.place(), "Handler.get (server.py, begins at line 30)");
        frame.source = None;
        assert_eq!(frame.label(), "Handler.get");
    }

    #[test]
    fn calls_are_read_back_from_their_text() {
        for text in ["sched_yield@plt", "*sched_yield@got"] {
            let call: ImportedCall = text.parse().unwrap();
            assert_eq!((call.symbol(), call.to_string().as_str()), ("sched_yield", text));
        }
        assert!("sched_yield".parse::<ImportedCall>().is_err());
    }
}
