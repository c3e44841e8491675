/*
 * Healthy: calls fail in each turn as those of one that waits do, and the thread sleeps between two
 * turns for reasons of its own. It makes sure of a folder (mkdir: EEXIST), looks for a file that is
 * not there (ENOENT), and for a service that it can do without (connect: ENOENT), writes its
 * figures, and sleeps.
 */
#include "shape.h"
#include <sys/stat.h>

static char folder[64];

static void look_for_service(void)
{
	struct sockaddr_un nobody = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(nobody.sun_path, sizeof nobody.sun_path, "%s/nobody", folder);
	if (!connect(fd, (void *)&nobody, sizeof nobody))
		die("somebody is there");
	close(fd);
}

static void write_figures(int id)
{
	char path[96];
	int file;

	if (mkdir(folder, 0700) && errno != EEXIST)
		die("cannot make a folder");
	snprintf(path, sizeof path, "%s/figures-%d", folder, id);
	file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (file < 0 || write(file, "0\n", 2) != 2)
		die("cannot write");
	close(file);
	unlink(path);
}

static void collect(int id)
{
	char more[96];

	snprintf(more, sizeof more, "%s/more.conf", folder);
	while (going()) {
		write_figures(id);
		if (!access(more, F_OK))
			die("no such file was expected");
		look_for_service();
		compute_ms(0.5);
		sleep_ms(20);
	}
}

int main(int argc, char **argv)
{
	double seconds = begin_shape(argc, argv);

	snprintf(folder, sizeof folder, "/tmp/whylag-shape-%d", getpid());
	start_threads("collector", 2, collect);
	run_for(seconds);
	join_crew();
	rmdir(folder);
	return HEALTHY;
}
