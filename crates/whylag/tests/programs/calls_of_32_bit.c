/*
 * Sleeps 20 times for 10 ms by the calls of 32-bit programs: nanosleep is 162
 * there, which is sync for others. Ends with 0 where the kernel has them.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

int main(void)
{
	/* What a 32-bit call points to has an address of 32 bits. */
	int *time = mmap(0, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int failed = 0;

	for (int i = 0; i < 20; i++) {
		int result;

		time[0] = 0;
		time[1] = 10000000;
		__asm__ volatile("int $0x80"
				 : "=a"(result)
				 : "a"(162), "b"(time), "c"(0)
				 : "memory", "r8", "r9", "r10", "r11");
		failed |= result;
	}
	return failed ? 1 : 0;
}
