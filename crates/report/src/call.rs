//! A system call with its arguments and result, as strace would print it as far as registers go.

use model::{Syscall, SyscallCall};
use syscalls::Errno;

/// Largest errno that a system call returns.
const MAX_ERRNO: i64 = 4095;

/// How many arguments a call takes: those that are often slow. Beyond a call's own arity the
/// registers hold leftovers.
const ARITY: [&str; 7] = [
    "fork vfork getpid gettid sched_yield pause sync munlockall rt_sigreturn inotify_init",
    "close brk exit exit_group fsync fdatasync syncfs unlink rmdir chdir pipe dup \
     epoll_create epoll_create1 mlockall shmdt umask sched_get_priority_max",
    "munmap mlock munlock stat fstat lstat rename mkdir access truncate ftruncate kill \
     nanosleep clock_gettime gettimeofday dup2 flock link symlink listen shutdown \
     eventfd2 pipe2 getrusage msgget timerfd_create clone3 memfd_create \
     timerfd_gettime",
    "read write readv writev lseek open poll mprotect madvise msync ioctl fcntl connect \
     bind accept socket sendmsg recvmsg execve getdents64 semop semget shmget shmat \
     tgkill getrandom sched_setaffinity sched_getaffinity mlock2 unlinkat mkdirat \
     readlink membarrier io_submit readahead dup3",
    "pread64 pwrite64 sendfile wait4 openat newfstatat epoll_wait epoll_ctl accept4 \
     clock_nanosleep fallocate futex_wake semctl semtimedop msgsnd socketpair rt_sigaction \
     rt_sigprocmask rt_sigtimedwait prlimit64 timerfd_settime openat2 sync_file_range \
     fadvise64 sendmmsg",
    "mremap select ppoll clone preadv pwritev waitid statx prctl getsockopt setsockopt \
     msgrcv recvmmsg renameat2 perf_event_open io_getevents linkat execveat",
    "mmap futex sendto recvfrom epoll_pwait epoll_pwait2 pselect6 splice copy_file_range \
     preadv2 pwritev2 io_uring_enter mbind process_vm_readv process_vm_writev",
];

const PROT: [(u64, &str); 3] = [(1, "PROT_READ"), (2, "PROT_WRITE"), (4, "PROT_EXEC")];

const MAP: [(u64, &str); 12] = [
    (0x01, "MAP_SHARED"),
    (0x02, "MAP_PRIVATE"),
    (0x10, "MAP_FIXED"),
    (0x20, "MAP_ANONYMOUS"),
    (0x100, "MAP_GROWSDOWN"),
    (0x2000, "MAP_LOCKED"),
    (0x4000, "MAP_NORESERVE"),
    (0x8000, "MAP_POPULATE"),
    (0x1_0000, "MAP_NONBLOCK"),
    (0x2_0000, "MAP_STACK"),
    (0x4_0000, "MAP_HUGETLB"),
    (0x10_0000, "MAP_FIXED_NOREPLACE"),
];

/// `mmap(0, 1265444, PROT_READ, MAP_PRIVATE|MAP_POPULATE, 65, 0)`. All six registers are shown
/// for a call whose arity is not known here.
pub fn call(call: &SyscallCall) -> String {
    let arity = arity(call.call).unwrap_or(6);
    let args: Vec<String> = (0..arity).map(|n| argument(call, n)).collect();
    format!("{}({})", call.call, args.join(", "))
}

/// A result: a number, an address in hex, or the errno's name and meaning.
pub fn result(result: i64) -> String {
    if (-MAX_ERRNO..0).contains(&result) {
        let errno = Errno::new(-result as i32);
        return match errno.name_and_description() {
            Some((name, meaning)) => format!("-{name} ({meaning})"),
            None => result.to_string(),
        };
    }
    number(result as u64)
}

fn arity(call: Syscall) -> Option<usize> {
    let name = call.to_string();
    ARITY.iter().position(|names| names.split(' ').any(|known| known == name))
}

fn argument(call: &SyscallCall, n: usize) -> String {
    let value = call.args[n];
    if n == 2 && call.call.is_one_of(&["mmap", "mprotect"]) {
        return if value == 0 { "PROT_NONE".to_owned() } else { flags(value, &PROT) };
    }
    if n == 3 && call.call.is_one_of(&["mmap"]) {
        return flags(value, &MAP);
    }
    number(value)
}

/// The names of the bits set in `value`, and what is left of it in hex.
fn flags(value: u64, names: &[(u64, &str)]) -> String {
    let mut rest = value;
    let mut words = Vec::new();
    for (bit, name) in names {
        if value & bit != 0 {
            words.push((*name).to_owned());
            rest &= !bit;
        }
    }
    if rest != 0 || words.is_empty() {
        words.push(format!("{rest:#x}"));
    }
    words.join("|")
}

/// A register: small negative numbers (of 32 or 64 bits) as such, up to 32 bits in decimal,
/// more, which is an address as a rule, in hex.
fn number(value: u64) -> String {
    let signed = value as i64;
    let low = value as u32 as i32;
    if (-MAX_ERRNO..0).contains(&signed) {
        signed.to_string()
    } else if value <= u64::from(u32::MAX) && (-MAX_ERRNO..0).contains(&i64::from(low)) {
        low.to_string()
    } else if value <= u64::from(u32::MAX) {
        value.to_string()
    } else {
        format!("{value:#x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, args: [u64; 6]) -> SyscallCall {
        SyscallCall { call: Syscall::named(name).unwrap(), args, result: None }
    }

    #[test]
    fn mmap_is_shown_with_its_flags() {
        let mmap = named("mmap", [0, 1_265_444, 1, 0x8002, 65, 0]);
        assert_eq!(call(&mmap), "mmap(0, 1265444, PROT_READ, MAP_PRIVATE|MAP_POPULATE, 65, 0)");
        let anonymous = named("mmap", [0x7f00_0000_0000, 4096, 0, 0x8000_0022, u64::MAX, 0]);
        assert_eq!(
            call(&anonymous),
            "mmap(0x7f0000000000, 4096, PROT_NONE, MAP_PRIVATE|MAP_ANONYMOUS|0x80000000, -1, 0)"
        );
    }

    #[test]
    fn only_the_arguments_of_a_known_call_are_shown() {
        let leftovers = [3, 0x7ffc_1234_5678, 100, 0xdead, 0xbeef, 9];
        assert_eq!(call(&named("read", leftovers)), "read(3, 0x7ffc12345678, 100)");
        assert_eq!(call(&named("sched_yield", leftovers)), "sched_yield()");
        let unknown = SyscallCall { call: Syscall(999), args: [1, 2, 3, 4, 5, 6], result: None };
        assert_eq!(call(&unknown), "syscall#999(1, 2, 3, 4, 5, 6)");
        // AT_FDCWD as a 32-bit register.
        assert!(call(&named("openat", [0xffff_ff9c, 0, 0, 0, 0, 0])).starts_with("openat(-100, "));
    }

    #[test]
    fn every_name_in_the_table_is_a_call_and_is_there_once() {
        let mut names: Vec<&str> = ARITY.iter().flat_map(|names| names.split(' ')).collect();
        #[cfg(target_arch = "x86_64")]
        assert!(names.iter().all(|name| Syscall::named(name).is_some()));
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn results() {
        assert_eq!(result(0), "0");
        assert_eq!(result(1_265_444), "1265444");
        assert_eq!(result(0x7f12_3456_7000), "0x7f1234567000");
        assert_eq!(result(-11), "-EAGAIN (Try again)");
        assert!(result(-512).starts_with("-ERESTARTSYS"));
        assert_eq!(result(-4000), "-4000");
    }
}
