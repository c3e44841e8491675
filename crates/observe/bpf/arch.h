/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * All that depends on the architecture: the registers of a system call and of
 * a fault, and the numbers of the calls that are told apart by number. Other
 * calls are told apart by the table that user space fills in by name.
 *
 * Included by kernel.h, among the structures that are relocated.
 */
#ifndef WHYLAG_ARCH_H
#define WHYLAG_ARCH_H

#if defined(__TARGET_ARCH_x86)

struct pt_regs {
	unsigned long bp, r10, r9, r8, dx, si, di, orig_ax, ip, sp;
};

#define CALL_NUMBER(regs)	((long)(regs)->orig_ax)
#define ARGUMENT_1(regs)	((regs)->di)
#define ARGUMENT_2(regs)	((regs)->si)
#define ARGUMENT_3(regs)	((regs)->dx)
#define ARGUMENT_4(regs)	((regs)->r10)
#define ARGUMENT_5(regs)	((regs)->r8)
#define ARGUMENT_6(regs)	((regs)->r9)
#define INSTRUCTION(regs)	((regs)->ip)
#define STACK_TOP(regs)		((regs)->sp)
#define FRAME_POINTER(regs)	((regs)->bp)
#define CAN_UNWIND		true	/* the recorder, for this machine */
/* pthread_self(): the thread control block begins with its own address. */
#define THREAD_SELF(task)	((task)->thread.fsbase)

/* In a call by the table of 32-bit programs (TS_COMPAT). */
#define IS_32_BIT(task)		((task)->thread_info.status & 2)
#define IS_POLL(call)		((call) == 7 || (call) == 271)	/* poll, ppoll */
#define IS_SELECT(call)		((call) == 23 || (call) == 270)	/* select, pselect6 */
#define CALL_NR_GETDENTS64	217
/* Between the first two and the number of the thread in musl's control block. */
#define MUSL_FIELDS		4	/* prev, next, sysinfo, canary */

#elif defined(__TARGET_ARCH_arm64)

struct pt_regs {
	unsigned long regs[31], sp, pc, orig_x0;
	int syscallno;
};

#define CALL_NUMBER(ptregs)	((long)(ptregs)->syscallno)
/* regs[0] has the result at the exit. */
#define ARGUMENT_1(ptregs)	((ptregs)->orig_x0)
#define ARGUMENT_2(ptregs)	((ptregs)->regs[1])
#define ARGUMENT_3(ptregs)	((ptregs)->regs[2])
#define ARGUMENT_4(ptregs)	((ptregs)->regs[3])
#define ARGUMENT_5(ptregs)	((ptregs)->regs[4])
#define ARGUMENT_6(ptregs)	((ptregs)->regs[5])
#define INSTRUCTION(ptregs)	((ptregs)->pc)
#define STACK_TOP(ptregs)	((ptregs)->sp)
#define FRAME_POINTER(ptregs)	((ptregs)->regs[29])
#define CAN_UNWIND		false
/* The control block lies below the thread pointer, how far depends on the C library. */
#define THREAD_SELF(task)	((void)(task), 0ULL)

/* A 32-bit program (TIF_32BIT). */
#define IS_32_BIT(task)		((task)->thread_info.flags >> 22 & 1)
#define IS_POLL(call)		((call) == 73)	/* ppoll; there is no poll */
#define IS_SELECT(call)		((call) == 72)	/* pselect6; there is no select */
#define CALL_NR_GETDENTS64	61
#define MUSL_FIELDS		2	/* next, sysinfo; canary and dtv are at its end */

#else
#error "the registers and call numbers of this architecture are missing in arch.h"
#endif

#endif
