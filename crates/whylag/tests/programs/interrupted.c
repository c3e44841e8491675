/*
 * Is interrupted 40 times by a signal whose handler naps for 20 ms, each time at the first
 * instruction of the function `interrupted`, right behind another one. x86-64; without frame pointers.
 */
#define _GNU_SOURCE
#pragma GCC optimize("O2", "omit-frame-pointer")
#include <signal.h>
#include <time.h>
#include <ucontext.h>

__asm__(".text\n"
	".type in_front,@function\n"
	"in_front:\n"
	"	.cfi_startproc\n"
	"	nop\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size in_front,.-in_front\n"
	".globl interrupted\n"
	".type interrupted,@function\n"
	"interrupted:\n"
	"	.cfi_startproc\n"
	"	ud2\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size interrupted,.-interrupted\n");

void interrupted(void);

__attribute__((noipa)) static void handler(int number, siginfo_t *info, void *context)
{
	ucontext_t *of = context;
	struct timespec time = { 0, 20000000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	/* Behind the instruction that nobody knows. */
	of->uc_mcontext.gregs[REG_RIP] += 2;
}

__attribute__((noipa)) static int caller(int n)
{
	interrupted();
	return n + 1;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	int n = 0;

	sigaction(SIGILL, &action, NULL);
	while (n < 40)
		n = caller(n);
	return 0;
}
