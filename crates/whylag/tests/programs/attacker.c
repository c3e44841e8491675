/*
 * attacker HOW [ARGUMENTS]: what an unprivileged user can do to whoever looks
 * at a process of his. Naps for 20 ms at a time in a function `attacked`, and
 * prints a line when everything is set up; ends when it is killed.
 *
 *   fifo PLACE [N]  its own program file is gone; FIFOs are where it was;
 *                   ends after N naps
 *   truncate COPY   runs code of COPY, a copy of its program with a large
 *                   symbol table, which is cut and restored all the time
 *   jit             naps below code made at run time; prints its address
 *   mappings FOLDER thousands of mappings with paths of 4 kB
 *   namespaces      in a user and mount namespace of its own, where a FIFO
 *                   lies over its program file
 *   mounts FOLDER STEPS  in a user and mount namespace of its own, where FOLDER
 *                   is mounted 2^STEPS times; naps below code of 200 files
 *   paths FOLDER NAME...  FOLDER is its root, where it has these files mapped
 *   storm THREADS PROCESSES  begins so many, one after the other, and ends
 *   jostle PROCESSES SECONDS  so many take turns on the CPUs, a moment each
 *   crash NAME      is called NAME and has a segfault, which the kernel logs
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void nap(void)
{
	struct timespec t = { .tv_nsec = 20000000 };

	nanosleep(&t, NULL);
}

/* Runs wherever it is copied to: it needs nothing but its argument. */
__attribute__((noinline)) void attacked(void (*call)(void))
{
	call();
	__asm__ volatile("");
}

static void ready(unsigned long what)
{
	printf("ready %lx\n", what);
	fflush(stdout);
}

static void naps(void (*below)(void (*)(void)))
{
	for (;;)
		below(nap);
}

static void fifo(const char *place, int count)
{
	char deleted[4200], own[4096];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length < 0)
		die("exe");
	own[length] = 0;
	snprintf(deleted, sizeof(deleted), "%s (deleted)", own);
	if (unlink(own))
		die("unlink");
	if (!strcmp(place, "deleted") || !strcmp(place, "both"))
		if (mkfifo(deleted, 0600))
			die("mkfifo");
	if (!strcmp(place, "same") || !strcmp(place, "both"))
		if (mkfifo(own, 0600))
			die("mkfifo");
	ready(0);
	while (count < 0 || count-- > 0)
		attacked(nap);
	exit(0);
}

/* Where an address of this program is in its file. */
static unsigned long in_file(void *address)
{
	unsigned long start, end, offset;
	char line[8192];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    start <= (unsigned long)address && (unsigned long)address < end)
			return (unsigned long)address - start + offset;
	exit(1);
}

/* Gives a program a symbol table of 48 MB, so that reading it takes long. Returns its length then. */
static off_t enlarge(int file)
{
	static const char names[] = "\0.symtab\0.strtab\0.shstrtab";
	enum { SYMBOLS = 2000000 };
	Elf64_Shdr sections[4] = { 0 };
	Elf64_Ehdr header;
	off_t end = lseek(file, 0, SEEK_END);

	if (pread(file, &header, sizeof(header), 0) != sizeof(header))
		die("header");
	header.e_shoff = (end + 63) & ~63;
	header.e_shnum = 4;
	header.e_shstrndx = 3;
	sections[1].sh_name = 1;
	sections[1].sh_type = SHT_SYMTAB;
	sections[1].sh_offset = header.e_shoff + 4096;
	sections[1].sh_size = SYMBOLS * sizeof(Elf64_Sym);
	sections[1].sh_entsize = sizeof(Elf64_Sym);
	sections[1].sh_link = 2;
	sections[2].sh_name = 9;
	sections[3].sh_name = 17;
	sections[2].sh_type = sections[3].sh_type = SHT_STRTAB;
	sections[2].sh_offset = sections[3].sh_offset = header.e_shoff + sizeof(sections);
	sections[2].sh_size = sections[3].sh_size = sizeof(names);
	if (pwrite(file, &header, sizeof(header), 0) < 0 ||
	    pwrite(file, sections, sizeof(sections), header.e_shoff) < 0 ||
	    pwrite(file, names, sizeof(names), sections[2].sh_offset) < 0 ||
	    ftruncate(file, sections[1].sh_offset + sections[1].sh_size))
		die("enlarge");
	return sections[1].sh_offset + sections[1].sh_size;
}

static void truncate_it(const char *path)
{
	void (*copied)(void (*)(void));
	int file = open(path, O_RDWR);
	off_t whole = enlarge(file);
	char *mapped;

	mapped = mmap(NULL, whole, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	if (mapped == MAP_FAILED)
		die("mmap");
	copied = (void (*)(void (*)(void)))(mapped + in_file((void *)attacked));
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			if (ftruncate(file, whole - (40 << 20)))
				die("truncate");
			usleep(3000);
			if (ftruncate(file, whole))
				die("truncate");
			usleep(20000);
		}
	}
	ready(0);
	naps(copied);
}

/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char code[] = {
	0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3,
};

static void jit(void)
{
	void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		die("mmap");
	memcpy(made, code, sizeof(code));
	ready((unsigned long)made);
	naps((void (*)(void (*)(void)))made);
}

static void mappings(const char *folder)
{
	char name[251];
	int i, file;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	if (chdir(folder))
		die(folder);
	for (i = 0; i < 15; i++)
		if (mkdir(name, 0700) || chdir(name))
			die("mkdir");
	file = open("file", O_RDWR | O_CREAT, 0600);
	if (file < 0 || ftruncate(file, 4096))
		die("file");
	for (i = 0; i < 60000; i++) {
		int protection = i % 2 ? PROT_READ | PROT_EXEC : PROT_READ;

		if (mmap(NULL, 4096, protection, MAP_PRIVATE, file, 0) == MAP_FAILED)
			break;
	}
	ready(i);
	naps(attacked);
}

static void namespaces(void)
{
	char own[4096], fifo[4200];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length < 0)
		die("exe");
	own[length] = 0;
	snprintf(fifo, sizeof(fifo), "%s.fifo", own);
	if (mkfifo(fifo, 0600))
		die("mkfifo");
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		die("unshare");
	if (mount(fifo, own, NULL, MS_BIND, NULL))
		die("mount");
	ready(0);
	naps(attacked);
}

static void short_nap(void)
{
	struct timespec t = { .tv_nsec = 6000000 };

	nanosleep(&t, NULL);
}

static void mounts(const char *folder, int steps)
{
	static void (*made[200])(void (*)(void));
	char name[32];
	int i, file;

	if (chdir(folder))
		die(folder);
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "code-%d", i);
		file = open(name, O_WRONLY | O_CREAT, 0700);
		if (file < 0 || write(file, code, sizeof(code)) < 0 ||
		    ftruncate(file, 4096))
			die(name);
		close(file);
	}
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		die("unshare");
	for (i = 0; i < steps; i++) {
		snprintf(name, sizeof(name), "%d", i);
		if (mkdir(name, 0700) ||
		    mount(".", name, NULL, MS_BIND | MS_REC, NULL))
			die("mount");
	}
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "code-%d", i);
		file = open(name, O_RDONLY);
		made[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE,
			       file, 0);
		if (made[i] == MAP_FAILED)
			die("mmap");
		close(file);
	}
	ready(200);
	for (i = 0;; i = (i + 1) % 200)
		made[i](short_nap);
}

static void paths(const char *folder, char **names)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(folder, folder, NULL, MS_BIND, NULL) || chdir(folder) ||
	    syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
		die("root");
	for (; *names; names++) {
		int file = open(*names, O_RDONLY);

		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
			die(*names);
	}
	ready(0);
	naps(attacked);
}

static void *nothing(void *unused)
{
	return unused;
}

static int storm(int threads, int processes)
{
	pthread_t thread;

	while (threads-- > 0)
		if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
			die("pthread_create");
	while (processes-- > 0) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		if (child < 0 || waitpid(child, NULL, 0) != child)
			die("fork");
	}
	return 0;
}

/* Naps and works for a moment, over and over. */
static void take_turns(int number, int seconds)
{
	time_t end = time(NULL) + seconds;

	while (time(NULL) < end) {
		struct timespec t = { .tv_nsec = 1000000 + number % 97 * 10000 };

		nanosleep(&t, NULL);
		for (volatile int i = 0; i < 20000; i++)
			;
	}
	_exit(0);
}

static int jostle(int processes, int seconds)
{
	for (int i = 0; i < processes; i++) {
		pid_t child = fork();

		if (!child)
			take_turns(i, seconds);
		if (child < 0)
			die("fork");
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

static int crash(const char *name)
{
	prctl(PR_SET_NAME, name);
	*(volatile int *)NULL = 1;
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	const char *what = argc > 2 ? argv[2] : "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(how, "fifo"))
		fifo(what, argc > 3 ? atoi(argv[3]) : -1);
	else if (!strcmp(how, "truncate"))
		truncate_it(what);
	else if (!strcmp(how, "jit"))
		jit();
	else if (!strcmp(how, "mappings"))
		mappings(what);
	else if (!strcmp(how, "namespaces"))
		namespaces();
	else if (!strcmp(how, "mounts"))
		mounts(what, argc > 3 ? atoi(argv[3]) : 0);
	else if (!strcmp(how, "paths") && argc > 2)
		paths(what, argv + 3);
	else if (!strcmp(how, "storm"))
		return storm(atoi(what), argc > 3 ? atoi(argv[3]) : 0);
	else if (!strcmp(how, "jostle"))
		return jostle(atoi(what), argc > 3 ? atoi(argv[3]) : 0);
	else if (!strcmp(how, "crash"))
		return crash(what);
	return 1;
}
