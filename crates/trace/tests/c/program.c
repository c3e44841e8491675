/* The messages of the golden file, traced by C or C++; then says where the file is, and waits. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "whylag.h"

static const char *const points[] = {"journalled", "replicated"};

static void expect(int failed)
{
	if (failed) {
		fprintf(stderr, "%s\n", whylag_why());
		exit(1);
	}
}

/* The same messages as `golden` in tests/golden.rs. */
static void messages(whylag_thread *thread)
{
	static whylag_trace trace;
	whylag_flow order, quote;
	whylag_publish fill, report, unnamed = {0, 0, 0};
	uint64_t id;
	int publish;
	expect(whylag_declare(&order, "order", points, 2, 1000000000));
	expect(whylag_declare(&quote, "quote", NULL, 0, 2000000000));
	expect(whylag_name_publish(&order, "fill", &fill));
	expect(whylag_name_publish(&order, "trade-report", &report));
	for (id = 1; id <= 5; id++) {
		whylag_begin(&trace, &order, id, whylag_now() - (id == 3 ? 1500000000 : 0));
		whylag_mark(&trace, 0);
		if (id % 2)
			whylag_mark(&trace, 1);
		whylag_logic_start(thread, &trace, (uint32_t)id * 10);
		whylag_published(thread, &trace, fill);
		whylag_published(thread, &trace, report);
		whylag_published(thread, &trace, unnamed);
		whylag_end(thread, &trace);
	}
	whylag_begin(&trace, &quote, 6, whylag_now());
	whylag_begin(&trace, &quote, 7, whylag_now());
	whylag_mark(&trace, 5);
	whylag_logic_start(thread, &trace, WHYLAG_UNKNOWN);
	for (publish = 0; publish < 20; publish++)
		whylag_published(thread, &trace, fill);
	whylag_end(thread, &trace);
	whylag_begin(&trace, &order, 8, whylag_now());
	whylag_logic_start(thread, &trace, 0);
	whylag_published(thread, &trace, report);
}

static int refusals(void)
{
	whylag_flow flow;
	whylag_thread thread;
	whylag_publish publish;
	char name[32];
	int number;
	if (!whylag_start(NULL) || !strstr(whylag_why(), "already"))
		return 10;
	if (!whylag_declare(&flow, "a\nb", NULL, 0, 1) || !strstr(whylag_why(), "control"))
		return 11;
	if (!whylag_declare(&flow, "order", NULL, 0, 1) || !strstr(whylag_why(), "already"))
		return 12;
	if (!whylag_declare(&flow, "many", points, 9, 1) || !strstr(whylag_why(), "points"))
		return 13;
	if (!whylag_register(&thread) || !strstr(whylag_why(), "handle"))
		return 14;
	if (whylag_declare(&flow, "other", NULL, 0, 1))
		return 15;
	for (number = 0; number < 9; number++) {
		snprintf(name, sizeof name, "publish %d", number);
		if (whylag_name_publish(&flow, name, &publish))
			break;
	}
	return strstr(whylag_why(), "names") ? 0 : 16;
}

static void *begin_many(void *flow)
{
	whylag_trace trace;
	uint64_t id;
	memset(&trace, 0, sizeof trace);
	for (id = 0; id < 20000; id++)
		whylag_begin(&trace, (const whylag_flow *)flow, id, whylag_now());
	return NULL;
}

static void from_three_threads(void)
{
	pthread_t threads[3];
	whylag_flow flow;
	unsigned index;
	expect(whylag_declare(&flow, "many", NULL, 0, 1000));
	for (index = 0; index < 3; index++)
		expect(pthread_create(&threads[index], NULL, begin_many, &flow));
	for (index = 0; index < 3; index++)
		pthread_join(threads[index], NULL);
}

int main(int argc, char **argv)
{
	whylag_options options;
	whylag_thread thread;
	memset(&options, 0, sizeof options);
	options.names = 16;
	options.threads = 2;
	options.recent = 4;
	options.slow = 2;
	options.blocks = 1;
	if (argc > 1 && !strcmp(argv[1], "none")) {
		/* Nowhere to write: reported, and the program goes on untraced. */
		options.folder = "/proc/no-such-folder";
		if (!whylag_start(&options))
			return 2;
		puts(whylag_why());
		expect(whylag_register(&thread));
		messages(&thread);
		return whylag_path() != NULL;
	}
	expect(whylag_start(&options));
	expect(whylag_register(&thread));
	messages(&thread);
	if (argc > 1 && !strcmp(argv[1], "refusals"))
		return refusals();
	if (argc > 1 && !strcmp(argv[1], "fork") && fork() == 0) {
		/* The tracer is off here: neither these nor a stop reach the parent's file. */
		messages(&thread);
		whylag_stop();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "threads"))
		from_three_threads();
	puts(whylag_path());
	fflush(stdout);
	getchar();
	whylag_stop();
	return 0;
}
