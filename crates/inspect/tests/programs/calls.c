/* Imports ten functions of libten.so and calls as many of them as its argument says; then answers
 * each byte on its input by calling one more, and stays in read() in between. */
#include <stdlib.h>
#include <unistd.h>

void f0(void); void f1(void); void f2(void); void f3(void); void f4(void);
void f5(void); void f6(void); void f7(void); void f8(void); void f9(void);

static void call(int n) {
	switch (n) {
	case 0: f0(); break;
	case 1: f1(); break;
	case 2: f2(); break;
	case 3: f3(); break;
	case 4: f4(); break;
	case 5: f5(); break;
	case 6: f6(); break;
	case 7: f7(); break;
	case 8: f8(); break;
	case 9: f9(); break;
	}
}

int main(int count, char **words) {
	int next = 0, end = count > 1 ? atoi(words[1]) : 0;
	char byte;
	while (next < end)
		call(next++);
	/* Bound before anybody looks. */
	read(0, &byte, 0);
	write(1, "!", 1);
	while (read(0, &byte, 1) == 1) {
		if (byte == 'x')
			execl("/bin/sleep", "sleep", "60", (char *)0);
		call(next++);
		write(1, "!", 1);
	}
	return 0;
}
