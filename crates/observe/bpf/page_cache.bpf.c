/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Reads of what was in the page cache before. For each file it is remembered
 * how many pages each of a few put out of the cache since recording began; a
 * page that a watched thread has read into the cache of such a file is one of
 * those that were put out by whoever has most of them left.
 */
#include "threads.h"

struct file_key {
	u64 ino;
	u32 dev, pad;
};

struct evictor {
	s64 pages;		/* put out, and not read again since */
	u32 tgid;
	u16 call;
	u16 reclaim;
	char comm[16];
};

/* A fifth takes over from whoever has the fewest left, with them. */
#define EVICTORS 4

struct evicted {
	struct evictor by[EVICTORS];
};

/* A file that nobody reads again makes room for others: a tree that is deleted has many. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct file_key);
	__type(value, struct evicted);
} evicted_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct page_read_key);
	__type(value, struct page_read_sum);
} page_read_sums SEC(".maps");

/* Where a page is: in which file, and at which offset, in pages. Before 5.16 a folio was a page. */
static __always_inline struct inode *inode_of_folio(void *at, u64 *index)
{
	if (bpf_core_type_exists(struct folio)) {
		struct folio *folio = at;

		*index = BPF_CORE_READ(folio, index);
		return BPF_CORE_READ(folio, mapping, host);
	} else {
		struct page *page = at;

		*index = BPF_CORE_READ(page, index);
		return BPF_CORE_READ(page, mapping, host);
	}
}

/*
 * How many pages it is. The flags come first, in whatever they are wrapped; the order of a large one is
 * in the lowest byte of _flags_1 (folio_order, since 6.6). Before, few file systems had large ones.
 */
static __always_inline u64 pages_of_folio(struct folio *folio)
{
	unsigned long flags = 0;

	if (!bpf_core_field_exists(folio->_flags_1))
		return 1;
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 1;
	return 1ULL << (BPF_CORE_READ(folio, _flags_1) & 15);
}

static __always_inline void set_file_key(struct file_key *key, struct inode *inode)
{
	key->ino = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	key->pad = 0;
}

/*
 * Of a file that was cut, or removed and closed, the data are gone: it is not the cache that they are put
 * out of.
 */
static __always_inline bool is_gone(struct inode *inode, u64 index)
{
	return (!BPF_CORE_READ(inode, i_nlink) && !BPF_CORE_READ(inode, i_count.counter)) ||
	       (s64)(index * page_bytes) >= BPF_CORE_READ(inode, i_size);
}

/* The current task's entry among those who put out pages of a file. */
static __noinline struct evictor *evictor_here(struct evicted *evicted)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u16 call = task->flags & PF_KTHREAD ? NO_CALL : saved_call(task);
	u16 reclaim = !!(task->flags & PF_MEMALLOC);
	u32 tgid = tgid_of(task);
	struct evictor *fewest;

	if (!evicted)
		return NULL;
	fewest = &evicted->by[0];
	for (int i = 0; i < EVICTORS; i++) {
		struct evictor *by = &evicted->by[i];

		if (by->tgid == tgid && by->call == call && by->reclaim == reclaim)
			return by;
		if (by->pages < fewest->pages)
			fewest = by;
	}
	fewest->tgid = tgid;
	fewest->call = call;
	fewest->reclaim = reclaim;
	name_task(fewest->comm, task, tgid);
	return fewest;
}

SEC("tp_btf/mm_filemap_delete_from_page_cache")
int BPF_PROG(on_page_out, void *folio)
{
	struct evicted first = {}, *evicted;
	struct evictor *by;
	struct file_key key;
	struct inode *inode;
	u64 index;

	if (!this_cpu(PROG_PAGE_CACHE) || stopped)
		return 0;
	inode = inode_of_folio(folio, &index);
	if (!inode || is_gone(inode, index))
		return 0;
	set_file_key(&key, inode);
	evicted = bpf_map_lookup_elem(&evicted_files, &key);
	if (!evicted) {
		bpf_map_update_elem(&evicted_files, &key, &first, BPF_NOEXIST);
		evicted = bpf_map_lookup_elem(&evicted_files, &key);
		if (!evicted)
			return 0;
	}
	by = evictor_here(evicted);
	if (by)
		__sync_fetch_and_add(&by->pages, pages_of_folio(folio));
	return 0;
}

/* The last part of a path to it: of the name that the kernel finds first. */
static __always_inline void name_file(char *name, struct inode *inode)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *dentry = NULL;

	if (!alias || !bpf_core_field_exists(dentry->d_u.d_alias))
		return;
	dentry = (void *)alias - bpf_core_field_offset(dentry->d_u.d_alias);
	bpf_probe_read_kernel_str(name, FILE_NAME, BPF_CORE_READ(dentry, d_name.name));
}

static __noinline struct page_read_sum *page_read_sum_of(struct page_read_key *key,
							 struct evictor *by, struct inode *inode)
{
	struct page_read_sum first = {}, *sum;

	sum = bpf_map_lookup_elem(&page_read_sums, key);
	if (sum)
		return sum;
	if (by)
		__builtin_memcpy(first.evictor_comm, by->comm, sizeof(first.evictor_comm));
	name_file(first.file, inode);
	if (bpf_map_update_elem(&page_read_sums, key, &first, BPF_NOEXIST) == -7 /* E2BIG */)
		lost(LOSS_PAGE_READ);
	return bpf_map_lookup_elem(&page_read_sums, key);
}

/* Who has most pages of a file left that they put out; NULL if all were read again. */
static __always_inline struct evictor *evictor_of(struct evicted *evicted)
{
	struct evictor *most = &evicted->by[0];

	for (int i = 1; i < EVICTORS; i++)
		if (evicted->by[i].pages > most->pages)
			most = &evicted->by[i];
	return most->pages > 0 ? most : NULL;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_page_in, void *folio)
{
	struct cpu *cpu = this_cpu(PROG_PAGE_CACHE);
	struct thread *t = cpu ? this_thread(cpu) : NULL;
	struct page_read_key key = {};
	struct page_read_sum *sum;
	struct evicted *evicted;
	struct evictor *by;
	struct file_key file;
	struct inode *inode;
	u64 index, pages;

	if (!t || stopped)
		return 0;
	inode = inode_of_folio(folio, &index);
	if (!inode)
		return 0;
	set_file_key(&file, inode);
	pages = pages_of_folio(folio);
	key.tgid = t->tgid;
	key.call = call_here(t);
	key.evictor_call = NO_CALL;
	evicted = bpf_map_lookup_elem(&evicted_files, &file);
	by = evicted ? evictor_of(evicted) : NULL;
	if (by) {
		__sync_fetch_and_add(&by->pages, -pages);
		key.evictor_tgid = by->tgid;
		key.evictor_call = by->call;
		key.reclaim = by->reclaim;
	}
	sum = page_read_sum_of(&key, by, inode);
	if (sum)
		__sync_fetch_and_add(&sum->pages, pages);
	return 0;
}
