/* A library with one function, whose call of another library goes through a slot that the dynamic
   linker binds at the first call. */

int getpagesize(void);

int whylag_call(void)
{
	return getpagesize() + 1; /* the sum keeps it a call, not a jump */
}
