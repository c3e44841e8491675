/*
 * brief_sockets FILES LOOKUPS PORT: has so many files open, of which none is a socket, and asks so
 * many times a server that does not answer, with a socket for each question that it closes after
 * 250 ms. Of each it prints a line: its inode, its descriptor, its own port.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 250

static void must(int done)
{
	if (!done) {
		perror("brief_sockets");
		exit(1);
	}
}

static void ask(const struct sockaddr_in *server)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	struct sockaddr_in own;
	socklen_t length = sizeof(own);
	struct stat status;

	must(fd >= 0 && !connect(fd, (const struct sockaddr *)server, sizeof(*server)));
	must(send(fd, "?", 1, 0) == 1 && !poll(&answer, 1, PATIENCE_MS));
	must(!getsockname(fd, (struct sockaddr *)&own, &length) && !fstat(fd, &status));
	printf("%lu %d %d\n", (unsigned long)status.st_ino, fd, ntohs(own.sin_port));
	close(fd);
}

int main(int argc, char **argv)
{
	int files = argc > 1 ? atoi(argv[1]) : 0, lookups = argc > 2 ? atoi(argv[2]) : 1;
	int null = open("/dev/null", O_RDONLY);
	struct rlimit limit;
	struct sockaddr_in server = { .sin_family = AF_INET,
				      .sin_port = htons(argc > 3 ? (uint16_t)atoi(argv[3]) : 53),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	must(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	must(!setrlimit(RLIMIT_NOFILE, &limit));
	for (int i = 0; i < files; i++)
		must(dup(null) >= 0);
	for (int i = 0; i < lookups; i++)
		ask(&server);
	return 0;
}
