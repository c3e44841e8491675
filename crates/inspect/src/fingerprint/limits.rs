//! Resource limits of a process.

use model::Fact;

use crate::read::{fact, text, unknown};

/// (name of the fact, name of the row in /proc/PID/limits); memlock and stack are bytes.
const LIMITS: [(&str, &str); 4] = [
    ("rlimit.nofile", "Max open files"),
    ("rlimit.memlock", "Max locked memory"),
    ("rlimit.stack", "Max stack size"),
    ("rlimit.nproc", "Max processes"),
];

/// Limits of a process (`self` or a pid), each as `<soft> soft, <hard> hard`.
pub fn facts(process: &str) -> Vec<Fact> {
    let path = format!("/proc/{process}/limits");
    let table = text(&path);
    let limit = |(name, row): (&str, &str)| match &table {
        Err(reason) => unknown(name, reason, &path),
        Ok(table) => match soft_and_hard(table, row) {
            Some((soft, hard)) => fact(name, format!("{soft} soft, {hard} hard"), &path),
            None => unknown(name, format!("no row '{row}'"), &path),
        },
    };
    LIMITS.into_iter().map(limit).collect()
}

fn soft_and_hard<'t>(table: &'t str, row: &str) -> Option<(&'t str, &'t str)> {
    let values = table.lines().find_map(|line| line.strip_prefix(row))?;
    let mut values = values.split_whitespace();
    Some((values.next()?, values.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_by_its_name() {
        let table = "Limit            Soft Limit    Hard Limit   Units\n\
                     Max processes    96365         unlimited    processes\n";
        assert_eq!(soft_and_hard(table, "Max processes"), Some(("96365", "unlimited")));
        assert_eq!(soft_and_hard(table, "Max open files"), None);
    }
}
