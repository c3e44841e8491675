/*
 * The timers of a telephone exchange: a timer wheel that sleeps on one countdown device until its
 * nearest timer is due. A line needs a tick every 5 ms while a call is set up, every 20 ms during
 * the call, and every 200 ms after it; housekeeping runs once a second, 14.5 ms after a tick.
 *
 * The device counts 10.04 ns a tick and is driven by a timerfd. Faulty: the time to sleep is
 * divided by the nanoseconds of a tick as a whole number, 10, so every sleep is 0.4 % too long: 80
 * us of 20 ms, but 58 and 22 us of the two parts into which housekeeping cuts one sleep each
 * second. Fixed (-DFIXED): it is multiplied by ticks per 2^32 ns, exact to 3 parts in a thousand
 * million.
 */
#include "../ticks.h"
#include <sys/timerfd.h>

#define TICKS_PER_SECOND 99601594ULL

#define SLOTS 256
#define SLOT_NS MILLISECOND

struct timer {
	uint64_t due_ns;
	struct timer *next;
};

static struct timer *wheel[SLOTS];
static int device;
static uint64_t run_ns;

static struct timer **slot_of(uint64_t time_ns)
{
	return &wheel[time_ns / SLOT_NS % SLOTS];
}

static void add_timer(struct timer *timer)
{
	struct timer **slot = slot_of(timer->due_ns);

	timer->next = *slot;
	*slot = timer;
}

static void remove_timer(struct timer *timer)
{
	struct timer **at = slot_of(timer->due_ns);

	while (*at != timer)
		at = &(*at)->next;
	*at = timer->next;
}

/* The nearest timer, when none is due before `from_ns`: one turn of the wheel, and what is
 * further away than that only if nothing is nearer. */
static struct timer *nearest_timer(uint64_t from_ns)
{
	struct timer *nearest = NULL;

	for (uint64_t i = 0; i < SLOTS; i++) {
		uint64_t slot = from_ns / SLOT_NS + i;

		if (nearest && nearest->due_ns / SLOT_NS < slot)
			break;
		for (struct timer *timer = wheel[slot % SLOTS]; timer; timer = timer->next) {
			if (!nearest || timer->due_ns < nearest->due_ns)
				nearest = timer;
		}
	}
	return nearest;
}

/* Ticks of the device in `ns`, at least one. */
static uint64_t ticks_in(uint64_t ns)
{
#ifdef FIXED
	const uint64_t ticks_per_4g_ns = (TICKS_PER_SECOND << 32) / SECOND;

	return (ns * ticks_per_4g_ns >> 32) + 1;
#else
	const uint64_t ns_per_tick = SECOND / TICKS_PER_SECOND;

	return ns / ns_per_tick + 1;
#endif
}

/* Lets the device count down so many ticks, and waits for it. */
static void count_down(uint64_t ticks)
{
	uint64_t ns = ticks * SECOND / TICKS_PER_SECOND, expired;
	struct itimerspec once = { .it_value = { .tv_sec = (time_t)(ns / SECOND),
						 .tv_nsec = (long)(ns % SECOND) } };

	if (timerfd_settime(device, 0, &once, NULL))
		die("cannot arm a timer of %llu ns", (unsigned long long)ns);
	if (read(device, &expired, sizeof expired) != sizeof expired)
		die("cannot wait for a timer");
}

/* From one tick of the line to the next, `age_ns` after its first. */
static uint64_t line_period_ns(uint64_t age_ns)
{
	if (age_ns < run_ns / 8)
		return 5 * MILLISECOND;
	if (age_ns % (20 * MILLISECOND) != 0)
		return 5 * MILLISECOND; /* so that the call begins at its own ticks */
	if (age_ns < run_ns * 2 / 3)
		return 20 * MILLISECOND;
	return 200 * MILLISECOND;
}

static void turn_wheel(int id, struct account *mine)
{
	uint64_t served = now_ns(), first = served + 20 * MILLISECOND;
	struct timer line = { first, NULL };
	struct timer housekeeping = { first + 14500 * MICROSECOND, NULL };

	(void)id;
	add_timer(&line);
	add_timer(&housekeeping);
	while (running()) {
		struct timer *timer = nearest_timer(served);
		uint64_t now = now_ns();

		if (timer->due_ns > now) {
			count_down(ticks_in(timer->due_ns - now));
			continue;
		}
		served = timer->due_ns;
		remove_timer(timer);
		if (timer == &line) {
			tell_tick(mine, line.due_ns, now);
			line.due_ns += line_period_ns(line.due_ns - first);
		} else {
			timer->due_ns += SECOND;
		}
		add_timer(timer);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin(argc, argv);
	struct account sum;

	run_ns = (uint64_t)(seconds * 1e9);
	device = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (device < 0)
		die("cannot make a timer");
	sum = run_timers("wheel", turn_wheel, seconds);
	close(device);

	printf("%llu ticks, late by %.0f us on average, %.0f us at most\n",
	       (unsigned long long)sum.ops, (double)sum.lost_ns / 1e3 / (double)sum.ops,
	       (double)sum.max_ns / 1e3);
	print_truth(&sum, " ppm=%llu", (unsigned long long)
		    (ticks_in(10 * SECOND) * 1000000 / (10 * TICKS_PER_SECOND)));
	return 0;
}
