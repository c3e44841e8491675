/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Frames of Python functions, read from the interpreter's own structures in
 * the memory of the process: its threads, the frames of the current one, and
 * the code object of each frame.
 *
 * That memory is the process's, and says what it likes: all is read by copy,
 * in bounded steps, and what has not the type of a code object or a text is
 * none.
 */
#ifndef WHYLAG_PYTHON_H
#define WHYLAG_PYTHON_H

#include "python_code.h"

/* Entries between C and Python are frames, too. */
#define PYTHON_STEPS	(PYTHON_FRAMES + 64)
#define PYTHON_STEPS_AT_ONCE	16	/* a divisor of those */
/* From 3.12 on frames of these owners, and those after it, are entries. */
#define PYTHON_ENTRY	3
/* Threads of a process that are looked through, and how soon again in vain. */
#define PYTHON_THREADS	512
#define PYTHON_AGAIN_NS	10000000
u32 pythons;		/* there are processes with an interpreter, as the loader found */
u64 python_circles;	/* walks that went in one */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct python);
} python_processes SEC(".maps");

/* True if `thread` is the state of the thread that is `self`, and in the interpreter's list. */
static __always_inline bool is_python_thread(struct python_walk *w, u64 thread, u64 self)
{
	u64 before;

	if (word_at(thread + w->at.thread_self) != self)
		return false;
	before = word_at(thread + w->at.previous_thread);
	if (before)
		return word_at(before + w->at.next_thread) == thread;
	return word_at(word_at(thread + w->at.interpreter) + w->at.threads) == thread;
}

/*
 * One step through the threads of all interpreters of the process: w->thread,
 * and behind the last of an interpreter the next interpreter. True at the end,
 * and when w->thread is that of `self`. Global, as hold_class: the verifier
 * looks at a step once, however many there are.
 */
__noinline int look_at_python_thread(u64 self)
{
	struct python_walk *w = python_walk();

	if (!w)
		return 1;
	if (w->thread) {
		if (word_at(w->thread + w->at.thread_self) == self)
			return 1;
		w->thread = word_at(w->thread + w->at.next_thread);
		return 0;
	}
	w->interpreter = word_at(w->interpreter + w->at.next_interpreter);
	if (!w->interpreter)
		return 1;
	w->thread = word_at(w->interpreter + w->at.threads);
	return 0;
}

/* So many of those steps. True as there. Global, as steps_python. */
__noinline int look_at_python_threads(u64 self)
{
	u32 i;

	for (i = 0; i < PYTHON_STEPS_AT_ONCE; i++) {
		if (look_at_python_thread(self))
			return 1;
	}
	return 0;
}

static __always_inline u64 find_python_thread(struct python_walk *w, u64 self)
{
	u32 i;

	w->interpreter = word_at(w->at.runtime + w->at.interpreters);
	if (!w->interpreter)
		return 0;
	w->thread = word_at(w->interpreter + w->at.threads);
	for (i = 0; i < PYTHON_THREADS; i += PYTHON_STEPS_AT_ONCE) {
		if (look_at_python_threads(self))
			return w->thread;
	}
	return 0;
}

/* The state of the current thread in an interpreter, 0 if it has none. */
static __always_inline u64 python_thread(struct python_walk *w, struct thread *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 self = THREAD_SELF(task), now;

	if (!self)
		return 0;
	if (t->python && is_python_thread(w, t->python, self))
		return t->python;
	now = bpf_ktime_get_ns();
	if (!t->python && now - t->python_missed < PYTHON_AGAIN_NS)
		return 0;
	t->python = find_python_thread(w, self);
	t->python_missed = now;
	return t->python;
}

/*
 * C called the function `f`, by a frame of its own at `entry`: it is a variable
 * of the interpreter's loop, and so shows where that is on the stack.
 */
static __always_inline void take_entry(struct python_walk *w, struct python_frame *f, u64 entry)
{
	if (f->at & 1)
		return;
	f->at |= 1;
	if (w->entry_count < WORDS_ENTRIES)
		w->entries[w->entry_count++ & (WORDS_ENTRIES - 1)] = entry;
}

/*
 * Takes the frame that w->frame points to, and goes on to the one before: its
 * code object is w->code, 0 of an entry from C. False if it is none, or one
 * too many.
 */
static __always_inline bool take_python_frame(struct python_walk *w)
{
	u32 n = w->record.count, bytes = w->at.frame_bytes & (PYTHON_ROOM - 1);
	struct python_frame *f;
	u64 frame;
	u8 owner;

	w->record.end = PYTHON_UNREADABLE;
	if (bpf_probe_read_user(w->room, bytes, (void *)w->frame))
		return false;
	frame = w->frame;
	w->frame = long_in(w, w->at.previous);
	owner = w->room[w->at.owner & (PYTHON_ROOM - 1)];
	if (!w->at.entry && owner >= PYTHON_ENTRY) {
		w->code = 0;
		if (n && n <= PYTHON_FRAMES)
			take_entry(w, &w->record.frames[(n - 1) & (PYTHON_FRAMES - 1)], frame);
		w->hash = mix(w->hash, owner);
		return true;
	}
	if (n >= PYTHON_FRAMES) {
		w->record.end = PYTHON_DEEPER;
		return false;
	}
	/* From 3.14 on the lowest bits of a reference say how it is counted. */
	w->code = long_in(w, w->at.code) & ~7ULL;
	f = &w->record.frames[n & (PYTHON_FRAMES - 1)];
	f->at = long_in(w, w->at.instruction) & ~1ULL;
	if (w->at.entry && w->room[w->at.entry & (PYTHON_ROOM - 1)])
		f->at |= 1;
	return w->code;
}

/* One step of walk_python(). 0 at the end. Global, as hold_class. */
__noinline int step_python(u32 steps)
{
	struct python_walk *w = python_walk();

	if (!w)
		return 0;
	w->record.end = PYTHON_WHOLE;
	if (!w->frame)
		return 0;
	/* Each is remembered until twice as many have come: a circle meets one of them. */
	if (w->frame == w->met) {
		/* There nothing is a call chain. */
		w->record.count = 0;
		w->hash = 0;
		w->entry_count = 0;
		__sync_fetch_and_add(&python_circles, 1);
		return 0;
	}
	if (!(steps & (steps - 1)))
		w->met = w->frame;
	if (!take_python_frame(w) || (w->code && !take_python_code(w)))
		return 0;
	w->record.end = PYTHON_DEEPER;
	return 1;
}

/*
 * So many of them, with the first of which the number is `first`; 0 at the end. Global, as hold_class: a
 * loop is gone through to its end by the verifier, so a long one is two short ones.
 */
__noinline int steps_python(u32 first)
{
	u32 i;

	for (i = 0; i < PYTHON_STEPS_AT_ONCE; i++) {
		if (!step_python(first + i))
			return 0;
	}
	return 1;
}

/* When the current system call began, 0 if the thread is in none. */
static __always_inline u64 call_since(struct thread *t)
{
	return t->call != NO_CALL && !calls_off ? t->call_start : 0;
}

/* In a system call a thread's frames stay as they are: they are walked once. */
static __always_inline bool is_walked(struct python_walk *w, struct thread *t)
{
	return t && w->call && w->tid == t->tid && w->call == call_since(t);
}

/* The stack that is sent next has no Python frames. */
static __always_inline void forget_python(struct python_walk *w)
{
	w->tid = 0;
	w->record.count = 0;
	w->hash = 0;
	w->entry_count = 0;
}

/*
 * Walks the Python frames of the current thread, for the stack that is sent
 * next. Global, as hold_class.
 */
__noinline int walk_python(u32 tgid)
{
	struct python_walk *w = python_walk();
	struct thread *t = current_thread();
	struct python *at;
	u32 i;

	if (!w || is_walked(w, t))
		return 0;
	forget_python(w);
	at = t ? bpf_map_lookup_elem(&python_processes, &tgid) : NULL;
	if (!at)
		return 0;
	w->at = *at;
	w->tid = t->tid;
	w->call = call_since(t);
	w->record.tgid = tgid;
	w->record.end = PYTHON_WHOLE;
	w->frame = python_thread(w, t);
	if (!w->frame)
		return 0;
	w->frame = word_at(w->frame + w->at.frames);
	if (w->at.innermost != PYTHON_DIRECT)
		w->frame = word_at(w->frame + w->at.innermost);
	w->met = 0;
	for (i = 0; i < PYTHON_STEPS; i += PYTHON_STEPS_AT_ONCE) {
		if (!steps_python(i))
			break;
	}
	return 0;
}

/* A child has the interpreter of its parent where that has it. */
static __always_inline void python_forked(u32 parent, u32 child)
{
	struct python *at = pythons ? bpf_map_lookup_elem(&python_processes, &parent) : NULL;

	if (at)
		bpf_map_update_elem(&python_processes, &child, at, BPF_ANY);
}

/* Its memory is given up. */
static __always_inline void python_gone(u32 tgid)
{
	if (pythons)
		bpf_map_delete_elem(&python_processes, &tgid);
}

/* Where the walk found that C calls Python. Global, as hold_class. */
__noinline u64 python_entry(u32 number)
{
	struct python_walk *w = python_walk();

	return w && number < w->entry_count ? w->entries[number & (WORDS_ENTRIES - 1)] : 0;
}

static __always_inline u64 hash_of_python(void)
{
	struct python_walk *w = python_walk();

	return w ? w->hash : 0;
}

/* Sends what was walked last as a part of a stack, ahead of it. */
static __always_inline void send_python(u32 tgid, u64 stack)
{
	struct python_walk *w = python_walk();
	u32 count;

	if (!w || !w->record.count)
		return;
	count = w->record.count;
	w->record.type = RECORD_PYTHON;
	w->record.stack = stack;
	barrier_var(count);
	if (count > PYTHON_FRAMES)
		return;
	if (output(&rare, &w->record, __builtin_offsetof(struct python_record, frames) +
				      count * sizeof(struct python_frame)))
		lost(LOSS_RARE_RING);
}

#endif
