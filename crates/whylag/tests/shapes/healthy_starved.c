/*
 * Healthy: a decoder computes for 2 ms a frame and never rests, as it is meant to; three encoders, each
 * with little to do, wait at the queue for its frames.
 */
#include "shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int frames;
static bool is_done;

static __attribute__((noinline)) void frames_put(bool last)
{
	pthread_mutex_lock(&lock);
	if (last)
		is_done = true;
	else
		frames++;
	if (last)
		pthread_cond_broadcast(&not_empty);
	else
		pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
}

static __attribute__((noinline)) bool frames_get(void)
{
	pthread_mutex_lock(&lock);
	while (!frames && !is_done)
		pthread_cond_wait(&not_empty, &lock);
	bool is_frame = frames > 0;
	if (is_frame)
		frames--;
	pthread_mutex_unlock(&lock);
	return is_frame;
}

static void decode(int id)
{
	while (going()) {
		compute_ms(2);
		frames_put(false);
	}
	frames_put(true);
}

static void encode(int id)
{
	while (frames_get())
		compute_ms(0.2);
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	start_threads("encoder", 3, encode);
	until_workers_wait();
	start_threads("decoder", 1, decode);
	run_for(seconds);
	join_crew();
	return HEALTHY;
}
