/* A library that calls others, for the tests: rate_timer calls sched_yield last but one, and
 * helper is its own. Built without a C library, so that it is small. */
int sched_yield(void);
int getpid(void);
int open_books(int n);

static __attribute__((noinline)) int helper(int n) {
	__asm__ volatile("" : "+r"(n));
	return n * 3;
}

int rate_timer(int n) {
	int sum = helper(n);
	if (n > 0)
		sum += getpid();
	if (n > 1)
		sum += sched_yield();
	return sum + open_books(n) + 1;
}
