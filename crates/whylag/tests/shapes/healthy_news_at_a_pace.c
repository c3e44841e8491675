/*
 * Healthy: ten clients wait for news, which a thread of the server has every 30 ms, for all of them.
 * Their requests are held open by an event loop meanwhile.
 */
#include "loop_and_threads.h"

static void bring_news(int id)
{
	int fd;

	do {
		sleep_ms(30);
		for (fd = take(); fd >= 0 && line_length; fd = take())
			give_back(fd);
		if (fd >= 0)
			give_back(fd);
	} while (fd >= 0);
}

int main(int argc, char **argv)
{
	run_server(begin_shape(argc, argv), "news", 1, bring_news);
	return HEALTHY;
}
