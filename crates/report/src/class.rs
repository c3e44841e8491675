//! Classes of accounts, and the one colour that each has everywhere: in tables on a terminal, on the
//! page, in its pictures.
//!
//! The colours are those of Okabe and Ito, which people without red or green tell apart, made
//! darker or lighter where the ground needs it. No picture relies on colour alone.

use model::{Account, Blocked};

/// What kind of time an account is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// On a CPU, in the program's own code.
    User,
    /// On a CPU, in the kernel for the program.
    Kernel,
    /// Something else had the thread's CPU: interrupts, the hypervisor.
    Taken,
    /// Ready to run, without a CPU.
    RunQueue,
    /// Waiting for a lock, a futex among them.
    Lock,
    /// Waiting for a disk or for memory.
    Storage,
    /// Waiting for what others send: sockets, pipes, poll.
    Message,
    /// Other sleep: timers, children, stops.
    Sleep,
    /// Not known.
    Unknown,
}

impl Class {
    /// All, in the order in which they are stacked.
    pub const ALL: [Class; 9] = [
        Class::User,
        Class::Kernel,
        Class::Taken,
        Class::RunQueue,
        Class::Lock,
        Class::Storage,
        Class::Message,
        Class::Sleep,
        Class::Unknown,
    ];

    /// That of an account.
    pub fn of(account: Account) -> Class {
        match account {
            Account::User => Class::User,
            Account::Syscall(_) | Account::Kernel | Account::Running => Class::Kernel,
            Account::HardIrq | Account::SoftIrq | Account::Stolen => Class::Taken,
            Account::RunnableWakeup | Account::RunnablePreempted | Account::Throttled => {
                Class::RunQueue
            }
            Account::Spin => Class::Lock,
            Account::Blocked(kind) => Class::of_sleep(kind),
            Account::Unaccounted => Class::Unknown,
        }
    }

    fn of_sleep(kind: Blocked) -> Class {
        match kind {
            Blocked::Futex | Blocked::FileLock => Class::Lock,
            kind if kind.is_kernel_lock() => Class::Lock,
            Blocked::FaultMinor
            | Blocked::FaultMajor
            | Blocked::Disk
            | Blocked::DirtyThrottle
            | Blocked::Uninterruptible => Class::Storage,
            Blocked::SocketReceive
            | Blocked::SocketSend
            | Blocked::SocketAccept
            | Blocked::SocketConnect
            | Blocked::Poll
            | Blocked::PipeRead
            | Blocked::PipeWrite => Class::Message,
            _ => Class::Sleep,
        }
    }

    /// Place in [`Class::ALL`].
    pub fn place(self) -> usize {
        self as usize
    }

    /// What people read: `waiting for a lock`.
    pub fn name(self) -> &'static str {
        match self {
            Class::User => "on a CPU, own code",
            Class::Kernel => "on a CPU, kernel",
            Class::Taken => "CPU taken by interrupts or host",
            Class::RunQueue => "ready, without a CPU",
            Class::Lock => "waiting for a lock",
            Class::Storage => "waiting for disk or memory",
            Class::Message => "waiting for sockets or pipes",
            Class::Sleep => "other sleep",
            Class::Unknown => "unaccounted",
        }
    }

    /// Colour on a light ground, as CSS writes it.
    pub fn on_light(self) -> &'static str {
        match self {
            Class::User => "#009e73",
            Class::Kernel => "#3aa0dc",
            Class::Taken => "#b3a100",
            Class::RunQueue => "#e08f00",
            Class::Lock => "#d55e00",
            Class::Storage => "#b8558f",
            Class::Message => "#0072b2",
            Class::Sleep => "#8a8f98",
            Class::Unknown => "#c4c7cc",
        }
    }

    /// Colour on a dark ground.
    pub fn on_dark(self) -> &'static str {
        match self {
            Class::User => "#1fbf92",
            Class::Kernel => "#6cc3f2",
            Class::Taken => "#f0e442",
            Class::RunQueue => "#f2ae2e",
            Class::Lock => "#ff7a1a",
            Class::Storage => "#dd8fb9",
            Class::Message => "#4b9fe0",
            Class::Sleep => "#868c96",
            Class::Unknown => "#4d525a",
        }
    }

    /// The nearest of a terminal's 256 colours.
    pub(crate) fn of_terminal(self) -> u8 {
        match self {
            Class::User => 36,
            Class::Kernel => 74,
            Class::Taken => 178,
            Class::RunQueue => 214,
            Class::Lock => 166,
            Class::Storage => 175,
            Class::Message => 32,
            Class::Sleep => 245,
            Class::Unknown => 240,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_in_the_list_and_no_colour_stands_twice() {
        for (place, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class.place(), place);
            for other in &Class::ALL[..place] {
                assert_ne!(class.on_light(), other.on_light());
                assert_ne!(class.on_dark(), other.on_dark());
                assert_ne!(class.of_terminal(), other.of_terminal());
            }
        }
    }

    #[test]
    fn a_lock_is_a_lock_however_it_is_waited_for() {
        for name in ["blocked:futex", "blocked:lock:mmap_lock:write", "running:spinlock"] {
            assert_eq!(Class::of(name.parse().unwrap()), Class::Lock, "{name}");
        }
        assert_eq!(Class::of("blocked:page_fault:major".parse().unwrap()), Class::Storage);
        assert_eq!(Class::of("running:mmap".parse().unwrap()), Class::Kernel);
    }
}
