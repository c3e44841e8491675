/*
 * Replays a recorded session: each packet is due at its recorded distance from the one before.
 *
 * At its start the program, like some libraries and launchers that mean to save power, set its
 * timer slack to 5 ms; threads inherit it. Faulty: the kernel may then end each sleep up to 5 ms
 * after its time, and does when no other timer comes by. Fixed (-DFIXED): the thread that must be
 * in time sets its own slack to 1 ns.
 */
#include "../ticks.h"

#define SLACK_NS (5 * MILLISECOND)

static void replay(int id, struct account *mine)
{
	(void)id;
#ifdef FIXED
	prctl(PR_SET_TIMERSLACK, 1);
#endif
	for (uint64_t i = 0; running(); i++) {
		uint64_t due = now_ns() + recorded_gap_ns(i);

		sleep_until(due);
		tell_tick(mine, due, now_ns());
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	sum = run_timers("replay", replay, seconds);

	printf("%llu packets, late by %.0f us on average, %.0f us at most\n",
	       (unsigned long long)sum.ops, (double)sum.lost_ns / 1e3 / (double)sum.ops,
	       (double)sum.max_ns / 1e3);
	print_truth(&sum, " slack_ns=%llu", (unsigned long long)SLACK_NS);
	return 0;
}
