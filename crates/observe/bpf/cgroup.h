/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * Whether a task is in the cgroup that is watched, or below it. A task is in
 * one cgroup of each hierarchy, those of version 1 among them; a cgroup's id is
 * the inode number of its directory, and unique within its hierarchy.
 */
#ifndef WHYLAG_CGROUP_H
#define WHYLAG_CGROUP_H

#include "kernel.h"

const volatile u64 target_cgroup;
const volatile s32 target_hierarchy;	/* as in /proc/PID/cgroup; 0: version 2 */

#define HIERARCHIES_MAX	32
#define CGROUP_DEPTH_MAX	64

/* The task's cgroup in that hierarchy. */
static __noinline u64 cgroup_of(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	u64 head, node;
	u32 i;

	if (!set)
		return 0;
	head = (u64)set + bpf_core_field_offset(struct css_set, cgrp_links);
	node = (u64)BPF_CORE_READ(set, cgrp_links.next);
	for (i = 0; i < HIERARCHIES_MAX && node && node != head; i++) {
		struct cgrp_cset_link *link = (void *)
			(node - bpf_core_field_offset(struct cgrp_cset_link, cgrp_link));

		if (BPF_CORE_READ(link, cgrp, root, hierarchy_id) == target_hierarchy)
			return (u64)BPF_CORE_READ(link, cgrp);
		node = (u64)BPF_CORE_READ(link, cgrp_link.next);
	}
	return 0;
}

static __noinline bool in_target_cgroup(struct task_struct *task)
{
	struct cgroup *group = (void *)cgroup_of(task);
	u32 i;

	for (i = 0; i < CGROUP_DEPTH_MAX && group; i++) {
		if (BPF_CORE_READ(group, kn, id) == target_cgroup)
			return true;
		group = BPF_CORE_READ(group, self.parent, cgroup);
	}
	return false;
}

#endif
