/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * The recorder's kernel side, one file per subject; they share the maps and
 * the thread state of state.h and so make one object.
 *
 * A function that is not static is so for the verifier, which checks it once, for any arguments, and
 * not along every path to it. It is handed no ctx, and what it is handed may be NULL.
 */
#include "threads.bpf.c"
#include "wakeups.bpf.c"
#include "lifetimes.bpf.c"
#include "syscalls.bpf.c"
#include "sampled_calls.bpf.c"
#include "mm_locks.bpf.c"
#include "locks.bpf.c"
#include "faults.bpf.c"
#include "irqs.bpf.c"
#include "block.bpf.c"
#include "signals.bpf.c"
#include "memory.bpf.c"
#include "writeback.bpf.c"
#include "page_cache.bpf.c"
#include "samples.bpf.c"
#include "timers.bpf.c"
#include "sockets.bpf.c"
#include "requests.bpf.c"
#include "symbols.bpf.c"

/* Some helpers are for GPL-compatible programs only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
