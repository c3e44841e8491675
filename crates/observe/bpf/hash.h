/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* A number by which what was read is known again. */
#ifndef WHYLAG_HASH_H
#define WHYLAG_HASH_H

static __always_inline u64 mix(u64 hash, u64 with)
{
	hash = (hash ^ with) * 0xff51afd7ed558ccdULL;
	return hash ^ hash >> 32;
}

#endif
