//! The one clock: CLOCK_MONOTONIC in nanoseconds, as the recorder and Java's nanoTime have it.
//!
//! Read through the vDSO, so that it is no system call where the clocksource allows that. Reading
//! the TSC would save half of the cost, and lose what the kernel knows about it: that it is
//! unstable here. That is the very fault this crate is to find.

/// CLOCK_MONOTONIC, ns.
#[inline(always)]
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970.
pub fn since_1970() -> u64 {
    read(libc::CLOCK_REALTIME)
}

#[inline(always)]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = std::mem::MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to a timespec of ours. The call fills it: both clocks exist on every
    // Linux, and it has no other reason to fail.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
