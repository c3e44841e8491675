/* A program without anything but itself. */
void _start(void) {
	for (;;)
		;
}
