/* The message of the benchmark, traced by whylag.h: many at once, in two stages. */
#include <stdlib.h>
#include "whylag.h"

static whylag_flow order;
static whylag_publish fill;
static whylag_trace *traces;
static __thread whylag_thread thread;
static __thread int registered;

int message_c_start(const char *folder, size_t batch)
{
	static const char *const points[] = {"journalled", "replicated"};
	whylag_options options = {0};
	options.folder = folder;
	traces = calloc(batch, sizeof *traces);
	return !traces || whylag_start(&options) || whylag_declare(&order, "order", points, 2, 1000000000) ||
	       whylag_name_publish(&order, "fill", &fill);
}

void message_c_stop(void)
{
	whylag_stop();
}

void message_c_receive(size_t batch)
{
	size_t at;
	for (at = 0; at < batch; at++) {
		whylag_begin(&traces[at], &order, at, whylag_now());
		whylag_mark(&traces[at], 0);
		whylag_mark(&traces[at], 1);
	}
}

void message_c_logic(size_t batch)
{
	size_t at;
	if (!registered)
		registered = !whylag_register(&thread);
	for (at = 0; at < batch; at++) {
		whylag_logic_start(&thread, &traces[at], 1);
		whylag_published(&thread, &traces[at], fill);
		whylag_published(&thread, &traces[at], fill);
		whylag_published(&thread, &traces[at], fill);
		whylag_end(&thread, &traces[at]);
	}
}
