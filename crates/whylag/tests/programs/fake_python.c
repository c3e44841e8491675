/*
 * A process that says it is CPython 3.11 and whose interpreter's memory is what it likes: at first
 * as it should be, then in all ways wrong.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_NS	3000000
#define AT(base, offset)	(*(uint64_t *)((char *)(base) + (offset)))

/* What the recorder finds by name. */
const unsigned long Py_Version = 0x030b02f0;
uint64_t _PyRuntime[64], PyCode_Type[8], PyUnicode_Type[8];

static uint64_t interpreter[16], thread[64], cframe[4];
static uint64_t frames[200][10];
static uint64_t *code[60000];

static void *text(const char *characters, size_t length)
{
	uint64_t *text = calloc(1, 48 + strlen(characters) + 16);

	AT(text, 8) = (uint64_t)PyUnicode_Type;
	AT(text, 16) = length;
	AT(text, 24) = -1;
	*(uint32_t *)((char *)text + 32) = 1 << 2 | 1 << 5 | 1 << 6;	/* kind 1, compact, ASCII */
	strcpy((char *)text + 48, characters);
	return text;
}

static uint64_t *function(const char *name, const char *file, int line)
{
	uint64_t *code = calloc(1, 256), *lines = calloc(1, 64);

	AT(code, 8) = (uint64_t)PyCode_Type;
	*(uint32_t *)((char *)code + 72) = line;
	AT(code, 112) = (uint64_t)text(file, strlen(file));
	AT(code, 128) = (uint64_t)text(name, strlen(name));
	AT(lines, 16) = 4;
	memcpy((char *)lines + 32, "\xea\x02\xf2\x02", 4);	/* one line on, then one more */
	AT(code, 136) = (uint64_t)lines;
	return code;
}

static void set_frame(int n, uint64_t *code, int previous, int entry)
{
	AT(frames[n], 32) = (uint64_t)code;
	AT(frames[n], 48) = previous < 0 ? 0 : (uint64_t)frames[previous];
	AT(frames[n], 56) = (uint64_t)code + 184;
	((char *)frames[n])[68] = entry;
}

static void as_it_should_be(void)
{
	memset(frames, 0, sizeof(frames));
	AT(_PyRuntime, 40) = (uint64_t)interpreter;
	AT(interpreter, 0) = 0;
	AT(interpreter, 16) = (uint64_t)thread;
	AT(thread, 0) = AT(thread, 8) = 0;
	AT(thread, 16) = (uint64_t)interpreter;
	AT(thread, 56) = (uint64_t)cframe;
	AT(thread, 152) = (uint64_t)pthread_self();
	AT(cframe, 8) = (uint64_t)frames[0];
	set_frame(0, code[0], 1, 0);
	set_frame(1, code[1], -1, 1);
}

/* `how` is what its memory is like. */
static void sleep_as(const char *how)
{
	struct timespec time = { 0, SLEEP_NS };
	int n;

	for (n = 0; n < 4; n++)
		nanosleep(&time, NULL);
}

static void *scribble(void *unused)
{
	unsigned seed = 1;

	for (;;) {
		int n = rand_r(&seed) % 3;

		AT(frames[n], (rand_r(&seed) % 10) * 8) = rand_r(&seed) % 4 ?
			(uint64_t)frames[rand_r(&seed) % 3] : (uint64_t)rand_r(&seed) << 20;
		usleep(10);
	}
	return NULL;
}

/* Each of these has a name that no stack may have. */
static void wrong(uint64_t *bad)
{
	int n;

	/* A circle. */
	set_frame(0, bad, 1, 0);
	set_frame(1, bad, 2, 0);
	set_frame(2, bad, 1, 0);
	sleep_as("circle");
	set_frame(0, bad, 0, 1);
	sleep_as("itself");
	for (n = 0; n < 100; n++)
		set_frame(n, bad, n < 99 ? n + 1 : 60, 0);
	sleep_as("circle at the end");
	as_it_should_be();

	/* Not a code object, not a text, not memory. */
	set_frame(0, bad, -1, 1);
	AT(bad, 8) = 0x4141414141414141;
	sleep_as("no code");
	AT(bad, 8) = (uint64_t)PyCode_Type;
	AT(AT(bad, 128), 8) = 0;
	sleep_as("no text");
	AT(AT(bad, 128), 8) = (uint64_t)PyUnicode_Type;
	set_frame(0, (uint64_t *)0x4141414141414140, -1, 1);
	sleep_as("no memory");
	set_frame(0, (uint64_t *)0xffffffff81000000, -1, 1);
	sleep_as("the kernel's memory");
	as_it_should_be();

	/* Threads in a circle, none of them this one; then nothing that is memory. */
	set_frame(0, bad, -1, 1);
	AT(thread, 152) = 1;
	AT(thread, 8) = (uint64_t)thread;
	sleep_as("threads");
	AT(interpreter, 16) = 0;
	AT(interpreter, 0) = (uint64_t)interpreter;
	sleep_as("interpreters");
	memset(_PyRuntime, 0x41, sizeof(_PyRuntime));
	sleep_as("runtime");
	as_it_should_be();
}

int main(void)
{
	struct timespec time = { 0, 400000000 };
	uint64_t *bad, *huge;
	pthread_t other;
	char name[32];
	int n, i;

	code[0] = function("inner\x1b[31m\n", "/srv/\x07.py", 10);
	code[1] = function("Outer.call", "/srv/app.py", 20);
	bad = function("never_shown", "/never.py", 1);
	as_it_should_be();
	nanosleep(&time, NULL);
	sleep_as("honest");
	wrong(bad);

	/* Lengths and kinds that cannot be. */
	huge = function("huge", "/huge.py", 1);
	set_frame(0, huge, -1, 1);
	AT(AT(huge, 128), 16) = 1ULL << 60;
	AT(AT(huge, 112), 16) = -1;
	AT(AT(huge, 136), 16) = -1;
	sleep_as("huge");
	*(uint32_t *)(AT(huge, 128) + 32) = 7 << 2 | 1 << 5;
	sleep_as("kinds");
	as_it_should_be();

	/* The same code object, with another name of the same length each time. */
	bad = function("first_name", "/names.py", 1);
	set_frame(0, bad, -1, 1);
	for (n = 0; n < 20; n++) {
		memcpy((char *)AT(bad, 128) + 48, n % 2 ? "odd_number" : "even_numbr", 10);
		memcpy((char *)AT(bad, 112) + 48, n % 2 ? "/oddly.py" : "/evens.py", 9);
		sleep_as("again");
	}
	as_it_should_be();

	/* Ever new functions, as many as a stack can have. */
	for (n = 0; n < 300; n++) {
		for (i = 0; i < 200; i++) {
			sprintf(name, "flood_%d_%d", n, i);
			code[n * 200 + i] = function(name, "/flood.py", i);
			set_frame(i, code[n * 200 + i], i < 199 ? i + 1 : -1, 0);
		}
		time.tv_nsec = 1500000;
		nanosleep(&time, NULL);
	}
	as_it_should_be();

	/* All at once, while it is read. */
	pthread_create(&other, NULL, scribble, NULL);
	for (n = 0; n < 100; n++)
		sleep_as("scribbled");
	printf("done\n");
	return 0;
}
