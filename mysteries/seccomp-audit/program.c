/*
 * A sandboxed service: it asks the kernel for small things all the time (who am I, where is the file's
 * end), as programs do that keep no state of their own.
 *
 * Faulty: the sandbox has eight filters, one for each of the tools that it was put together from. Each
 * compares the call and one of its arguments with a list of 1,200 forbidden pairs, one after the other.
 * Fixed (-DFIXED): the filters first let pass what the service calls most, by its number alone, and the
 * kernel remembers that.
 *
 * What a call costs without filters is measured in the same run, before they are installed.
 */
#include "../common.h"
#include "../stalls.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#define WORKERS 2
#define FILTERS 8
#define FORBIDDEN 1200
#define CALLS 60 /* in a unit of work */
#define PERIOD_NS (4 * MILLISECOND)
#define BASELINE_UNITS 50
#define UNUSED_ARGUMENT 0x5eadbeefU

static uint64_t usual_ns; /* of a unit of work, without filters */

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SKIP_UNLESS(value, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skipped))
#define ANSWER(answer) BPF_STMT(BPF_RET | BPF_K, (answer))

/* The list; each pair that matches is refused with EPERM. */
static size_t write_filter(struct sock_filter *code)
{
	size_t n = 0;

#ifdef FIXED
	static const uint32_t frequent[] = { SYS_getppid, SYS_pread64, SYS_clock_nanosleep };

	code[n++] = (struct sock_filter)LOAD(nr);
	for (size_t i = 0; i < sizeof frequent / sizeof *frequent; i++) {
		code[n++] = (struct sock_filter)SKIP_UNLESS(frequent[i], 1);
		code[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
	}
#endif
	code[n++] = (struct sock_filter)LOAD(args[0]);
	for (uint32_t i = 0; i < FORBIDDEN; i++) {
		code[n++] = (struct sock_filter)SKIP_UNLESS(UNUSED_ARGUMENT + i, 1);
		code[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | EPERM);
	}
	code[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
	return n;
}

/* For the whole process: threads that are there are taken in. */
static void install_filters(void)
{
	static struct sock_filter code[2 * FORBIDDEN + 16];
	struct sock_fprog program = { .len = (unsigned short)write_filter(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("cannot give up privileges");
	for (int i = 0; i < FILTERS; i++)
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
			die("cannot install a filter");
}

/* What a unit of calls took, waiting for a CPU taken out. */
static uint64_t unit(void)
{
	uint64_t queued = queued_ns(), began = now_ns(), took;

	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	took = now_ns() - began;
	queued = queued_ns() - queued;
	return took > queued ? took - queued : 0;
}

static void serve(int id, struct account *mine)
{
	uint64_t next = now_ns() + PERIOD_NS;

	(void)id;
	for (; running(); next += PERIOD_NS) {
		uint64_t took;

		sleep_until(next);
		took = unit();
		count_loss(mine, took > usual_ns ? took - usual_ns : 0);
		mine->ops++;
	}
}

static void measure_usual(void)
{
	usual_ns = UINT64_MAX;
	for (int i = 0; i < BASELINE_UNITS; i++) {
		uint64_t took = unit();

		if (took < usual_ns)
			usual_ns = took;
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	measure_usual();
	install_filters();
	sum = run_workers(WORKERS, "worker", serve, seconds);
	printf("%llu units of %d calls, %.1f us each without filters, %.1f us more with them\n",
	       (unsigned long long)sum.ops, CALLS, (double)usual_ns / 1e3,
	       (double)sum.lost_ns / (double)(sum.ops ? sum.ops : 1) / 1e3);
	print_truth(&sum, " filters=%d", FILTERS);
	return 0;
}
