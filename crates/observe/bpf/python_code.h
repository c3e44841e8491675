/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Python functions: what identifies a code object, and its names, which are
 * sent once.
 *
 * It is known by a hash over what identifies it, its names included, so that
 * an address used again is another function.
 */
#ifndef WHYLAG_PYTHON_CODE_H
#define WHYLAG_PYTHON_CODE_H

#include "hash.h"
#include "rings.h"

/* Bytes that are read at once, a power of two. */
#define PYTHON_ROOM	256
/* Of a text up to its state: type, length, hash. */
#define PYTHON_HEAD	40
/* Of the state: 1, 2 or 4 bytes a character, is it in one piece, is it ASCII. */
#define TEXT_WIDTH(head)	((u32)(head)[4] >> 2 & 7)
#define TEXT_IS_COMPACT(head)	((u32)(head)[4] >> 5 & 1)
#define TEXT_IS_ASCII(head)	((u32)(head)[4] >> 6 & 1)
#define PYTHON_NO_HASH	(~0ULL)	/* is not worked out yet */
#define PYTHON_TAIL	64
#define PYTHON_LONGEST	(1 << 20)

/* New functions: 1,024 a second of 2.5 KiB at most. */
#define CODES_PERIOD_NS	62500000
#define CODES_IN_PERIOD	64

u64 codes_since;	/* when the period began */
s64 codes_left;		/* in it */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, u8);
} codes_sent SEC(".maps");

/* The walk through the frames of the thread on this CPU. */
struct python_walk {
	u64 call;		/* when the system call began that it was made in, 0: none */
	u32 tid, pad2;		/* whose */
	struct python at;
	u64 interpreter, thread;	/* looked at */
	u64 frame;
	u64 met;		/* a frame before, for circles */
	u64 code;		/* of the frame taken last, 0: it is an entry from C */
	u64 hash;
	u64 name, file, lines;	/* of that code object */
	u64 entries[WORDS_ENTRIES];
	u32 entry_count, pad;
	u8 room[PYTHON_ROOM];
	u64 name_head[PYTHON_HEAD / 8], file_head[PYTHON_HEAD / 8];
	u64 tail[PYTHON_TAIL / 8];
	struct python_record record;
	struct code_record sent;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct python_walk);
} python_walks SEC(".maps");

static __always_inline struct python_walk *python_walk(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&python_walks, &zero);
}

/* A word of the process, 0 if it is not in memory. */
static __always_inline u64 word_at(u64 address)
{
	u64 word = 0;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)address))
		return 0;
	return word;
}

static __always_inline u64 long_in(struct python_walk *w, u32 offset)
{
	return *(u64 *)(w->room + (offset & (PYTHON_ROOM - 8)));
}

/* One of the functions of this period. One that has to wait is sent when it is next met. */
static __always_inline bool take_code(void)
{
	u64 now = bpf_ktime_get_ns(), since = codes_since;

	if ((s64)(now - since) >= CODES_PERIOD_NS &&
	    __sync_val_compare_and_swap(&codes_since, since, now) == since)
		codes_left = CODES_IN_PERIOD;
	return codes_left > 0 && __sync_fetch_and_add(&codes_left, -1) > 0;
}

/* Of a text with this head, its beginning or its end. */
static __always_inline void copy_text(struct python_walk *w, struct python_text *to,
				      const u64 *head, u64 at, bool is_end)
{
	u64 all, length = head[2];
	u32 bytes;

	to->width = TEXT_WIDTH(head);
	to->bytes = to->left_out = 0;
	if (!TEXT_IS_COMPACT(head) || length > PYTHON_LONGEST)
		return;
	at += TEXT_IS_ASCII(head) ? w->at.text_ascii : w->at.text_other;
	all = length * to->width;
	bytes = all < PYTHON_TEXT ? all : PYTHON_TEXT;
	if (is_end)
		at += all - bytes;
	barrier_var(bytes);
	if (bytes > PYTHON_TEXT || bpf_probe_read_user(to->text, bytes, (void *)at))
		return;
	to->bytes = bytes;
	to->left_out = all - bytes;
}

/* Sends the function whose heads were read. */
static __noinline void send_code(u64 id, u64 address)
{
	u32 zero = 0, count, was;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct python_walk *w = python_walk();
	struct code_record *r;
	u64 bytes;
	u8 one = 1;

	if (!cpu || !w || !take_code())
		return;
	r = &w->sent;
	r->type = RECORD_CODE;
	r->tgid = w->record.tgid;
	r->id = id;
	r->address = address + w->at.instructions;
	r->line = *(u32 *)(w->room + (w->at.line & (PYTHON_ROOM - 4)));
	copy_text(w, &r->name, w->name_head, w->name, false);
	copy_text(w, &r->file, w->file_head, w->file, true);
	/* bytes: length at 16, contents from 32 on. */
	bytes = word_at(w->lines + 16);
	count = bytes < PYTHON_LINES ? bytes : PYTHON_LINES;
	barrier_var(count);
	if (count > PYTHON_LINES ||
	    bpf_probe_read_user(r->lines, count, (void *)(w->lines + 32)))
		count = 0;
	r->count = count;
	barrier_var(count);
	if (count > PYTHON_LINES)
		return;
	if (output(&rare, r, __builtin_offsetof(struct code_record, lines) + count)) {
		lost(LOSS_RARE_RING);
		return;
	}
	was = hold_own(cpu);
	bpf_map_update_elem(&codes_sent, &id, &one, BPF_ANY);
	release_own(cpu, was);
}

/* What identifies a text: its hash, or its last characters. */
static __always_inline u64 id_of_text(struct python_walk *w, u64 id, const u64 *head, u64 at)
{
	u64 bytes = head[2] * TEXT_WIDTH(head);
	u32 size = bytes < PYTHON_TAIL ? bytes : PYTHON_TAIL, i;

	id = mix(mix(mix(id, at), head[2]), head[3]);
	if (head[3] != PYTHON_NO_HASH)
		return id;
	__builtin_memset(w->tail, 0, sizeof(w->tail));
	at += TEXT_IS_ASCII(head) ? w->at.text_ascii : w->at.text_other;
	barrier_var(size);
	if (size > PYTHON_TAIL ||
	    bpf_probe_read_user(w->tail, size, (void *)(at + bytes - size)))
		return id;
	for (i = 0; i < PYTHON_TAIL / 8; i++)
		id = mix(id, w->tail[i]);
	return id;
}

/* Reads the code object of the frame taken last, and sends it if it is new. False if it is none. */
static __always_inline bool take_python_code(struct python_walk *w)
{
	u32 n = w->record.count, bytes = w->at.code_bytes & (PYTHON_ROOM - 1);
	u64 id, address = w->code;

	if (bpf_probe_read_user(w->room, bytes, (void *)address) ||
	    long_in(w, 8) != w->at.code_type)
		return false;
	w->name = long_in(w, w->at.name);
	w->file = long_in(w, w->at.file);
	w->lines = long_in(w, w->at.lines);
	if (bpf_probe_read_user(w->name_head, PYTHON_HEAD, (void *)w->name) ||
	    bpf_probe_read_user(w->file_head, PYTHON_HEAD, (void *)w->file) ||
	    w->name_head[1] != w->at.text_type || w->file_head[1] != w->at.text_type)
		return false;
	id = mix(w->record.tgid, address);
	id = mix(id, *(u32 *)(w->room + (w->at.line & (PYTHON_ROOM - 4))));
	id = id_of_text(w, mix(id, w->lines), w->name_head, w->name);
	id = id_of_text(w, id, w->file_head, w->file);
	w->record.frames[n & (PYTHON_FRAMES - 1)].code = id;
	w->hash = mix(mix(w->hash, id), w->record.frames[n & (PYTHON_FRAMES - 1)].at);
	w->record.count = n + 1;
	if (!bpf_map_lookup_elem(&codes_sent, &id))
		send_code(id, address);
	return true;
}

#endif
