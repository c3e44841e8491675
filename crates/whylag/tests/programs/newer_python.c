/* A process with an interpreter of a version that does not exist, and that lives for a moment. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* As _Py_DebugOffsets begins: a cookie and the version. */
uint64_t _PyRuntime[128] = { 0x7970677562656478, 0x036300f0 };

int main(void)
{
	usleep(300000);
	return memcmp(_PyRuntime, "xdebugpy", 8) != 0;
}
