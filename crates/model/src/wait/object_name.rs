//! The name of what was waited for.

use serde::Serialize;

use crate::{Account, Blocked};

/// The name of what was waited for; exported as its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum ObjectName {
    /// Class of a lock of the kernel: `mmap_lock (write)`, `lock in ext4_file_write_iter`.
    LockClass(String),
    /// Path of the file behind a page that was missing.
    File(String),
    /// Memory that is no file's: `[heap]`, `[stack]`, `anonymous memory`.
    Anonymous(String),
}

impl ObjectName {
    /// Memory without a name.
    pub const ANONYMOUS: &str = "anonymous memory";

    /// Reads the text of an object that was waited for in this account.
    pub fn read(account: Account, text: String) -> ObjectName {
        match account {
            Account::Blocked(Blocked::FaultMajor | Blocked::FaultMinor) => {
                ObjectName::of_mapping(text)
            }
            _ => ObjectName::LockClass(text),
        }
    }

    /// From the last column of /proc/PID/maps.
    pub fn of_mapping(path: String) -> ObjectName {
        match path.as_str() {
            "" => ObjectName::Anonymous(Self::ANONYMOUS.to_owned()),
            text if text.starts_with('[') || text == Self::ANONYMOUS => ObjectName::Anonymous(path),
            _ => ObjectName::File(path),
        }
    }

    /// As shown.
    pub fn as_str(&self) -> &str {
        match self {
            ObjectName::LockClass(name) | ObjectName::File(name) | ObjectName::Anonymous(name) => {
                name
            }
        }
    }
}

impl From<ObjectName> for String {
    fn from(name: ObjectName) -> String {
        name.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_by_what_was_waited_for() {
        let fault = Account::Blocked(Blocked::FaultMajor);
        let mutex = Account::Blocked(Blocked::Mutex);
        for (account, name) in [
            (fault, ObjectName::File("/data/prices.bin".into())),
            (fault, ObjectName::Anonymous("[heap]".into())),
            (fault, ObjectName::of_mapping(String::new())),
            (mutex, ObjectName::LockClass("lock in ext4_file_write_iter".into())),
        ] {
            assert_eq!(ObjectName::read(account, String::from(name.clone())), name);
        }
    }
}
