//! The arguments that our programs were written for, and whether a tracepoint passes them.
//!
//! A tracepoint may get, lose or move an argument in any release, and distributions take such
//! changes into older ones: a version says nothing. A program on a tracepoint reads its arguments
//! by position, so one that was written for others would be refused, or read nonsense. The kernel's
//! own description decides (see `kernel_btf`).

use std::fmt;

include!(concat!(env!("OUT_DIR"), "/prototypes.rs"));

/// The types of a tracepoint's arguments, as far as it matters for reading them: `u8` (also a
/// bool), `u32` (also an enum) or `u64`, signed or not, or `NAME *` for a pointer to a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prototype(pub Vec<String>);

impl fmt::Display for Prototype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({})", self.0.join(", "))
    }
}

impl Prototype {
    /// What a program of bpf/ was written for: nothing if it reads no argument.
    pub fn of_program(program: &str) -> Prototype {
        let known = PROTOTYPES.iter().find(|(name, _)| *name == program);
        let arguments = known.map_or(&[][..], |(_, arguments)| arguments);
        Prototype(arguments.iter().map(|&argument| argument.to_owned()).collect())
    }

    /// True if a program that was written for this one gets the same from a tracepoint that passes
    /// `passed`. What that passes beyond is not read.
    pub fn fits(&self, passed: &Prototype) -> bool {
        let same = |(wanted, passed): (&String, &String)| {
            wanted == passed || (wanted == "void *" && passed.ends_with('*'))
        };
        self.0.len() <= passed.0.len() && self.0.iter().zip(&passed.0).all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_btf;

    fn passed(arguments: &[&str]) -> Prototype {
        Prototype(arguments.iter().map(|&argument| argument.to_owned()).collect())
    }

    #[test]
    fn what_programs_want_is_read_from_their_source() {
        let switch = passed(&["u8", "task_struct *", "task_struct *", "u32"]);
        assert_eq!(Prototype::of_program("on_switch"), switch);
        assert_eq!(Prototype::of_program("on_contention_begin"), passed(&["void *", "u32"]));
        assert_eq!(Prototype::of_program("on_reclaim_begin"), passed(&[]));
    }

    #[test]
    fn more_arguments_fit_and_fewer_or_others_do_not() {
        let fits =
            |program, arguments: &[&str]| Prototype::of_program(program).fits(&passed(arguments));
        assert!(fits("on_waking", &["task_struct *", "u32"]));
        assert!(fits("on_contention_end", &["mutex *", "u32"]), "any pointer");
        assert!(!fits("on_exit", &["task_struct *"]), "its second is missing");
        assert!(!fits("on_mmap_start", &["mm_struct *", "char *", "u8"]), "a path is no bool");
        assert!(!fits("on_dirty_pause", &["bdi_writeback *", "u64", "u64"]));
    }

    #[test]
    fn the_running_kernel_says_what_it_passes() {
        let tracepoints = kernel_btf::kernel_types().unwrap().tracepoints;
        assert_eq!(tracepoints["sched_waking"], passed(&["task_struct *"]));
        assert_eq!(tracepoints["sys_exit"], passed(&["pt_regs *", "u64"]));
        assert!(!tracepoints.contains_key("no_such_tracepoint"));
    }
}
