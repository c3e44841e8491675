/* Measures every message of a program at named points, readable from outside with whylag, also
 * after a crash. For C11 and C++17, with GCC or Clang on Linux; link whylag.c (and -pthread).
 *
 *     whylag_start(NULL);                                        // once; see whylag_why()
 *     whylag_flow order;
 *     const char *points[] = {"journalled", "replicated"};
 *     whylag_declare(&order, "order", points, 2, 100000);        // slow from 100 us on
 *     whylag_publish fill;
 *     whylag_name_publish(&order, "fill", &fill);
 *     whylag_thread thread;
 *     whylag_register(&thread);                                  // in each thread that runs logic
 *
 *     static whylag_trace trace;                                 // next to the message, zeroed
 *     whylag_begin(&trace, &order, id, received);
 *     whylag_mark(&trace, 0);                                    // by any thread
 *     whylag_logic_start(&thread, &trace, depth);
 *     whylag_published(&thread, &trace, fill);
 *     whylag_end(&thread, &trace);
 *
 * Functions of the set-up return 0, or -1 and a reason in whylag_why(). After a failed start, or
 * with WHYLAG_TRACE=off, everything is off: flows and threads are made without an error, and the
 * calls below return at once. These make no system call, take no lock and allocate nothing; they
 * are the same as those of the Rust writer, and the layout is that of docs/trace-format.md. */
#ifndef WHYLAG_H
#define WHYLAG_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#elif !defined(CLOCK_MONOTONIC)
/* Strict C11 hides it. */
extern int clock_gettime(int clock, struct timespec *time);
#endif

/* ---- the layout ---------------------------------------------------------------------------- */

#define WHYLAG_POINTS 8u
#define WHYLAG_PUBLISHES 16u
#define WHYLAG_FLOWS 16u
#define WHYLAG_METRICS 28u
#define WHYLAG_BUCKETS 1056u
#define WHYLAG_UNKNOWN UINT32_MAX

typedef struct whylag_flow_entry {
	uint32_t id, name, points, publishes;
	uint32_t point[WHYLAG_POINTS], publish[WHYLAG_PUBLISHES];
	uint64_t threshold, reserved[9];
	uint64_t begun, abandoned, undeclared, begun_by_first, reserved_2[4];
} whylag_flow_entry;

typedef struct whylag_thread_entry {
	uint32_t state, tid;
	uint64_t start, comm[2], recent, slow, reserved[2];
	/* The current message. */
	uint64_t sequence, id;
	uint32_t flow, in_logic;
	uint64_t t0, logic_start, last;
	uint32_t last_name, reserved_2[3];
	uint64_t reserved_3[16];
} whylag_thread_entry;

typedef struct whylag_cell {
	uint64_t time;
	uint32_t what, reserved;
} whylag_cell;

typedef struct whylag_record {
	uint64_t head, id;
	uint32_t flow, flags;
	uint64_t t0, logic_start, end;
	uint32_t depth, thread, publishes, reserved;
	uint64_t longest_gap;
	whylag_cell point[WHYLAG_POINTS], publish[WHYLAG_PUBLISHES];
	uint64_t reserved_2[6], tail;
} whylag_record;

typedef struct whylag_histogram {
	uint64_t count, sum, second, maximum, earlier_second, earlier_maximum, reserved[2];
	uint64_t buckets[WHYLAG_BUCKETS];
} whylag_histogram;

typedef struct whylag_block {
	uint32_t state, thread, flow, reserved[13];
	whylag_histogram metrics[WHYLAG_METRICS];
} whylag_block;

/* ---- what a program holds ------------------------------------------------------------------ */

/* A kind of message. */
typedef struct whylag_flow {
	whylag_flow_entry *entry; /* NULL when off */
	uint32_t id, points, generation;
	uint64_t threshold;
} whylag_flow;

/* A named outbound message of a flow. All zero: one without a name. */
typedef struct whylag_publish {
	uint32_t name;
	uint16_t flow, index;
} whylag_publish;

/* A publish of a message: when, and what. */
typedef struct whylag_published_cell {
	uint64_t time;
	whylag_publish publish;
} whylag_published_cell;

/* The times of one message, stored next to it. All zero before it is first used. Two threads use it, one
 * after the other: what the first writes lies together, what only the second does elsewhere. */
typedef struct whylag_trace {
	whylag_flow_entry *entry;
	uint64_t id, t0, threshold;
	uint32_t flow, points, generation, state;
	whylag_cell marks[WHYLAG_POINTS];
	uint64_t logic_start, last, longest_gap;
	uint32_t depth, publishes;
	whylag_published_cell published[WHYLAG_PUBLISHES];
} whylag_trace;

/* The calling thread. For no other thread, and not to be copied. */
typedef struct whylag_thread {
	whylag_thread_entry *entry; /* NULL when off */
	whylag_record *recent, *slow;
	uint64_t recent_mask, slow_mask, recent_written, slow_written;
	uint32_t index, generation, looked; /* looked: a bit per flow */
	whylag_block *blocks[WHYLAG_FLOWS];
} whylag_thread;

/* What there is room for; 0 for the usual. */
typedef struct whylag_options {
	const char *folder; /* NULL: WHYLAG_TRACE_DIR, or /dev/shm/whylag-UID */
	int keep;           /* keeps the file when stopped, as does WHYLAG_TRACE_KEEP */
	unsigned names;     /* 256: of flows, points and publishes */
	unsigned threads;   /* 64: threads that ever register */
	unsigned recent;    /* 64: records per thread, a power of two, 512 bytes each */
	unsigned slow;      /* 64: the same of slow messages */
	unsigned blocks;    /* 16: pairs of a thread and a flow, 233 KiB each */
} whylag_options;

/* ---- set-up: whylag.c ---------------------------------------------------------------------- */

int whylag_start(const whylag_options *options);
void whylag_stop(void);
/* Why the last call in this thread failed. */
const char *whylag_why(void);
/* The file, NULL when off. */
const char *whylag_path(void);
int whylag_declare(whylag_flow *flow, const char *name, const char *const *points, unsigned number,
		   uint64_t threshold_ns);
int whylag_name_publish(const whylag_flow *flow, const char *name, whylag_publish *publish);
int whylag_register(whylag_thread *thread);
/* Ends the use of a handle, before its thread may register again. */
void whylag_unregister(whylag_thread *thread);

/* For the calls below. */
extern __thread uint32_t whylag_lane;
extern const void *whylag_first[WHYLAG_FLOWS];
void whylag_begun_by_another(const whylag_flow *flow);
whylag_block *whylag_find_block(whylag_thread *thread, uint32_t flow);
void whylag_next_second(whylag_block *block, uint64_t second);

/* ---- hot calls ----------------------------------------------------------------------------- */

#define WHYLAG_LOAD_RELAXED(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define WHYLAG_LOAD_ACQUIRE(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define WHYLAG_STORE_RELAXED(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#define WHYLAG_STORE_RELEASE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELEASE)
#define WHYLAG_FENCE_RELEASE() __atomic_thread_fence(__ATOMIC_RELEASE)
/* For a word with one writer: no locked instruction. */
#define WHYLAG_ADD_AS_OWNER(word, more) \
	WHYLAG_STORE_RELAXED(word, WHYLAG_LOAD_RELAXED(word) + (more))
#define WHYLAG_ADD_SHARED(word, more) ((void)__atomic_fetch_add(&(word), (more), __ATOMIC_RELAXED))

enum { WHYLAG_IDLE = 0, WHYLAG_BEGUN = 1, WHYLAG_IN_LOGIC = 2 };

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t whylag_now(void)
{
	struct timespec time;
	clock_gettime(1 /* CLOCK_MONOTONIC */, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t whylag_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline unsigned whylag_bucket_of(uint64_t value)
{
	const uint64_t most = ((uint64_t)1 << 37) - 1;
	unsigned shift;
	if (value > most)
		value = most;
	shift = 58u - (unsigned)__builtin_clzll((unsigned long long)value | 32u);
	return (shift << 5) + (unsigned)(value >> shift);
}

/* The bucket alone: whylag_add follows. */
static inline void whylag_count_bucket(whylag_histogram *histogram, unsigned bucket)
{
	WHYLAG_ADD_AS_OWNER(histogram->buckets[bucket], 1);
}

/* Some values whose buckets are counted: how many, their sum and the greatest. */
static inline void whylag_add(whylag_histogram *histogram, uint64_t count, uint64_t sum,
			      uint64_t maximum)
{
	WHYLAG_ADD_AS_OWNER(histogram->count, count);
	WHYLAG_ADD_AS_OWNER(histogram->sum, sum);
	if (maximum > WHYLAG_LOAD_RELAXED(histogram->maximum))
		WHYLAG_STORE_RELAXED(histogram->maximum, maximum);
}

static inline void whylag_count(whylag_histogram *histogram, uint64_t value)
{
	whylag_count_bucket(histogram, whylag_bucket_of(value));
	whylag_add(histogram, 1, value, value);
}

/* Values measured at `now` follow. One look for all histograms: a message counts into ten. */
static inline void whylag_enter_second(whylag_block *block, uint64_t now)
{
	const uint64_t second = now / 1000000000u;
	/* Every message counts into this one. */
	if (second != WHYLAG_LOAD_RELAXED(block->metrics[0].second))
		whylag_next_second(block, second);
}

/* Where the gaps before a publish of this name are counted. */
static inline whylag_histogram *whylag_named(whylag_block *block, whylag_publish publish)
{
	if (!publish.name || publish.index >= WHYLAG_PUBLISHES)
		return NULL;
	return &block->metrics[12 + publish.index];
}

/* The thread that began the first message of a flow counts without a locked instruction, which
 * costs as much as all else that whylag_begin does. */
static inline void whylag_count_begun(const whylag_flow *flow)
{
	if (WHYLAG_LOAD_RELAXED(whylag_first[flow->id - 1]) == &whylag_lane)
		WHYLAG_ADD_AS_OWNER(flow->entry->begun_by_first, 1);
	else
		whylag_begun_by_another(flow);
}

/* A message was received at `received`: whylag_now(), or the stamp of the kernel in that clock. If
 * the message before was not ended, that one counts as abandoned. */
static inline void whylag_begin(whylag_trace *trace, const whylag_flow *flow, uint64_t id,
				uint64_t received)
{
	uint32_t point;
	if (trace->state != WHYLAG_IDLE)
		WHYLAG_ADD_SHARED(trace->entry->abandoned, 1);
	trace->state = WHYLAG_IDLE;
	trace->points = 0;
	trace->entry = flow->entry;
	if (!flow->entry)
		return;
	whylag_count_begun(flow);
	trace->state = WHYLAG_BEGUN;
	trace->generation = flow->generation;
	trace->flow = flow->id;
	trace->points = flow->points;
	trace->threshold = flow->threshold;
	trace->id = id;
	trace->t0 = received;
	for (point = 0; point < flow->points; point++)
		WHYLAG_STORE_RELAXED(trace->marks[point].time, 0);
}

/* The message has reached an infrastructure point, counted from 0. Any thread may say so, and
 * several at once if their points differ. */
static inline void whylag_mark(whylag_trace *trace, unsigned point)
{
	/* Off, not begun, and a point that was never declared: one comparison. */
	if (point < trace->points) {
		WHYLAG_STORE_RELAXED(trace->marks[point].what, whylag_lane);
		WHYLAG_STORE_RELEASE(trace->marks[point].time, whylag_now());
	} else if (trace->state != WHYLAG_IDLE) {
		WHYLAG_ADD_SHARED(trace->entry->undeclared, 1);
	}
}

static inline void whylag_change_begins(whylag_thread_entry *entry)
{
	WHYLAG_STORE_RELAXED(entry->sequence, WHYLAG_LOAD_RELAXED(entry->sequence) | 1);
	WHYLAG_FENCE_RELEASE();
}

static inline void whylag_change_ends(whylag_thread_entry *entry)
{
	WHYLAG_STORE_RELEASE(entry->sequence, WHYLAG_LOAD_RELAXED(entry->sequence) + 1);
}

/* The histograms of a thread and a flow, NULL if there was no room. */
static inline whylag_block *whylag_block_of(whylag_thread *thread, uint32_t flow)
{
	if (!(thread->looked >> (flow - 1) & 1))
		return whylag_find_block(thread, flow);
	return thread->blocks[flow - 1];
}

/* The logic of a message begins. `depth`: messages that wait behind it, or WHYLAG_UNKNOWN. Does
 * nothing with a trace that was not begun, or is in logic already. */
static inline void whylag_logic_start(whylag_thread *thread, whylag_trace *trace, uint32_t depth)
{
	whylag_thread_entry *entry = thread->entry;
	uint64_t now;
	if (!entry || trace->state != WHYLAG_BEGUN || trace->generation != thread->generation)
		return;
	now = whylag_max(whylag_now(), trace->t0);
	trace->state = WHYLAG_IN_LOGIC;
	trace->depth = depth;
	trace->logic_start = now;
	trace->last = now;
	trace->publishes = 0;
	trace->longest_gap = 0;
	whylag_change_begins(entry);
	WHYLAG_STORE_RELAXED(entry->id, trace->id);
	WHYLAG_STORE_RELAXED(entry->flow, trace->flow);
	WHYLAG_STORE_RELAXED(entry->in_logic, 1);
	WHYLAG_STORE_RELAXED(entry->t0, trace->t0);
	WHYLAG_STORE_RELAXED(entry->logic_start, now);
	WHYLAG_STORE_RELAXED(entry->last, now);
	WHYLAG_STORE_RELAXED(entry->last_name, 0);
	whylag_change_ends(entry);
}

/* How many publishes have a cell. */
static inline uint32_t whylag_kept(const whylag_trace *trace)
{
	return trace->publishes < WHYLAG_PUBLISHES ? trace->publishes : WHYLAG_PUBLISHES;
}

/* An outbound message has been sent. By the thread that started the logic. */
static inline void whylag_published(whylag_thread *thread, whylag_trace *trace,
				    whylag_publish publish)
{
	whylag_thread_entry *entry = thread->entry;
	uint64_t now, gap;
	if (!entry || trace->state != WHYLAG_IN_LOGIC)
		return;
	now = whylag_max(whylag_now(), trace->last);
	gap = now - trace->last;
	if (publish.flow != trace->flow)
		publish.name = 0;
	if (trace->publishes < WHYLAG_PUBLISHES) {
		/* Counted at the end, all at once: here the next read of the clock would wait. */
		trace->published[trace->publishes].time = now;
		trace->published[trace->publishes].publish = publish;
	} else {
		whylag_block *block = whylag_block_of(thread, trace->flow);
		if (block) {
			whylag_histogram *named = whylag_named(block, publish);
			whylag_enter_second(block, now);
			whylag_count_bucket(&block->metrics[3], whylag_bucket_of(gap));
			if (named)
				whylag_count(named, gap);
		}
	}
	trace->publishes += trace->publishes < UINT32_MAX;
	trace->longest_gap = whylag_max(trace->longest_gap, gap);
	trace->last = now;
	whylag_change_begins(entry);
	WHYLAG_STORE_RELAXED(entry->last, now);
	WHYLAG_STORE_RELAXED(entry->last_name, publish.name);
	whylag_change_ends(entry);
}

/* All gaps of a message that has ended; of publishes of one name in a row, only the buckets one by
 * one. */
static inline void whylag_count_gaps(whylag_block *block, const whylag_trace *trace)
{
	const uint32_t kept = whylag_kept(trace);
	const whylag_published_cell *cell = trace->published;
	whylag_histogram *gaps = &block->metrics[3];
	uint64_t last = trace->logic_start;
	uint32_t index = 0;
	if (!trace->publishes)
		return;
	while (index < kept) {
		const whylag_publish publish = cell[index].publish;
		whylag_histogram *named = whylag_named(block, publish);
		const uint64_t begin = last;
		const uint32_t first = index;
		uint64_t longest = 0;
		do {
			const uint64_t gap = cell[index].time - last;
			const unsigned bucket = whylag_bucket_of(gap);
			whylag_count_bucket(gaps, bucket);
			if (named)
				whylag_count_bucket(named, bucket);
			longest = whylag_max(longest, gap);
			last = cell[index].time;
		} while (++index < kept && cell[index].publish.name == publish.name);
		if (named)
			whylag_add(named, index - first, last - begin, longest);
	}
	whylag_add(gaps, trace->publishes, trace->last - trace->logic_start, trace->longest_gap);
}

/* Writes record `k` of a ring into its slot. */
static inline void whylag_write_record(whylag_record *slot, uint64_t k, const whylag_thread *thread,
				       whylag_trace *trace, uint64_t end, uint32_t flags)
{
	const uint32_t kept = whylag_kept(trace);
	uint32_t index;
	WHYLAG_STORE_RELAXED(slot->head, 0);
	WHYLAG_FENCE_RELEASE();
	WHYLAG_STORE_RELAXED(slot->id, trace->id);
	WHYLAG_STORE_RELAXED(slot->flow, trace->flow);
	WHYLAG_STORE_RELAXED(slot->flags, flags);
	WHYLAG_STORE_RELAXED(slot->t0, trace->t0);
	WHYLAG_STORE_RELAXED(slot->logic_start, trace->logic_start);
	WHYLAG_STORE_RELAXED(slot->end, end);
	WHYLAG_STORE_RELAXED(slot->depth, trace->depth);
	WHYLAG_STORE_RELAXED(slot->thread, thread->index);
	WHYLAG_STORE_RELAXED(slot->publishes, trace->publishes);
	WHYLAG_STORE_RELAXED(slot->longest_gap, trace->longest_gap);
	for (index = 0; index < trace->points; index++) {
		const uint32_t lane = WHYLAG_LOAD_RELAXED(trace->marks[index].what);
		const int is_known = lane >> 16 == thread->generation;
		WHYLAG_STORE_RELAXED(slot->point[index].time,
				     WHYLAG_LOAD_ACQUIRE(trace->marks[index].time));
		WHYLAG_STORE_RELAXED(slot->point[index].what,
				     is_known ? lane & 0xffff : WHYLAG_UNKNOWN);
	}
	for (index = 0; index < kept; index++) {
		WHYLAG_STORE_RELAXED(slot->publish[index].time, trace->published[index].time);
		WHYLAG_STORE_RELAXED(slot->publish[index].what,
				     trace->published[index].publish.name);
	}
	WHYLAG_FENCE_RELEASE();
	WHYLAG_STORE_RELAXED(slot->tail, k + 1);
	WHYLAG_STORE_RELAXED(slot->head, k + 1);
}

/* From how many nanoseconds on a message is slow, as a reader may have changed it. */
static inline uint64_t whylag_threshold(const whylag_trace *trace)
{
	const uint64_t asked = WHYLAG_LOAD_RELAXED(trace->entry->threshold);
	const uint64_t hour = 3600000000000u;
	if (!asked)
		return trace->threshold;
	return asked < 1000 ? 1000 : asked > hour ? hour : asked;
}

/* The message is done. By the thread that started the logic. */
static inline void whylag_end(whylag_thread *thread, whylag_trace *trace)
{
	whylag_thread_entry *entry = thread->entry;
	whylag_block *block;
	uint64_t now, total;
	uint32_t point, is_slow;
	if (!entry || trace->state != WHYLAG_IN_LOGIC)
		return;
	now = whylag_max(whylag_now(), trace->last);
	total = now - trace->t0;
	block = whylag_block_of(thread, trace->flow);
	if (block) {
		whylag_enter_second(block, now);
		whylag_count(&block->metrics[0], total);
		whylag_count(&block->metrics[1], trace->logic_start - trace->t0);
		whylag_count(&block->metrics[2], now - trace->logic_start);
		for (point = 0; point < trace->points; point++) {
			const uint64_t time = WHYLAG_LOAD_ACQUIRE(trace->marks[point].time);
			if (time)
				whylag_count(&block->metrics[4 + point],
					     time > trace->t0 ? time - trace->t0 : 0);
		}
		whylag_count_gaps(block, trace);
	}
	is_slow = total >= whylag_threshold(trace);
	whylag_write_record(&thread->recent[thread->recent_written & thread->recent_mask],
			    thread->recent_written, thread, trace, now, is_slow);
	WHYLAG_STORE_RELEASE(entry->recent, ++thread->recent_written);
	if (is_slow) {
		whylag_write_record(&thread->slow[thread->slow_written & thread->slow_mask],
				    thread->slow_written, thread, trace, now, is_slow);
		WHYLAG_STORE_RELEASE(entry->slow, ++thread->slow_written);
	}
	whylag_change_begins(entry);
	WHYLAG_STORE_RELAXED(entry->in_logic, 0);
	whylag_change_ends(entry);
	trace->state = WHYLAG_IDLE;
	trace->points = 0;
}

#ifdef __cplusplus
}
#endif
#endif
