/* Calls as many of six functions as its argument says, and one more for each byte on its input. All
 * are imported and, linked with -z lazy, bound by their first call. */
#include "six_calls.h"
#include <stdlib.h>

int main(int count, char **words) {
	int next = 0, end = count > 1 ? atoi(words[1]) : 0;
	char byte;
	while (next < end)
		call(next++);
	/* Bound before anybody looks. */
	read(0, &byte, 0);
	write(1, "!", 1);
	while (read(0, &byte, 1) == 1) {
		call(next++);
		write(1, "!", 1);
	}
	return 0;
}
