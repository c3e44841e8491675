/* Baselines: what an operation costs where nothing is in its way. */
#ifndef MYSTERIES_MEASURE_H
#define MYSTERIES_MEASURE_H

#include "common.h"

static inline int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorts `values`. */
static inline uint64_t median(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof *values, by_value);
	return values[count / 2];
}

/* What is above the ordinary price. */
static inline uint64_t above(uint64_t took_ns, uint64_t ordinary_ns)
{
	return took_ns > ordinary_ns ? took_ns - ordinary_ns : 0;
}

#endif
