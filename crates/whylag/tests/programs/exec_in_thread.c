/* A thread that is not the main one executes another program. */
#include <pthread.h>
#include <unistd.h>

static void *execute(void *unused)
{
	(void)unused;
	execl("/bin/echo", "echo", "executed", (char *)NULL);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, execute, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 1;
}
