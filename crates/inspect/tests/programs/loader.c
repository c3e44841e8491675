/* Loads the libraries named by its arguments, lazily, calls `touch` of each where there is one, then
 * has some threads wait and some run, and waits itself. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *spin(void *arg) {
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static void *wait_for_ever(void *arg) {
	for (;;)
		pause();
	return arg;
}

int main(int count, char **words) {
	pthread_t thread;
	char byte;
	int spinners = atoi(words[1]), waiters = atoi(words[2]);
	for (int n = 3; n < count; n++) {
		void *library = dlopen(words[n], RTLD_LAZY | RTLD_LOCAL);
		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		void (*touch)(void) = (void (*)(void))dlsym(library, "touch");
		if (touch)
			touch();
	}
	for (int n = 0; n < spinners + waiters; n++)
		if (pthread_create(&thread, 0, n < spinners ? spin : wait_for_ever, 0))
			return 1;
	write(1, "!", 1);
	while (read(0, &byte, 1) == 1)
		;
	return 0;
}
