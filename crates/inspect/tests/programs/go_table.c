/*
 * Two functions, and of them the table that a Go program has (since 1.20; src/internal/abi/symtab.go
 * of Go). TEXT is what it says of the address of its code.
 */
__asm__(".section .gopclntab,\"a\"\n"
	"header: .long 0xfffffff1\n"
	"	.byte 0, 0, 1, 8\n"
	"	.quad 2\n"			/* functions */
	"	.quad 0\n"			/* files */
	"	.quad " TEXT "\n"			/* address of the code */
	"	.quad names - header\n"
	"	.quad 0, 0, 0\n"
	"	.quad functions - header\n"
	"names:	.asciz \"_rt0_amd64_linux\"\n"
	"second_name: .asciz \"main.(*Queue).push\"\n"
	"	.balign 4\n"
	"functions: .long 0, first_more - functions\n"
	"	.long push - _start, second_more - functions\n"
	"	.long the_end - _start\n"
	"first_more: .long 0, 0\n"
	"second_more: .long push - _start, second_name - names\n"
	".text\n"
	".globl _start, push, the_end\n"
	"_start:	call push\n"
	"	hlt\n"
	"push:	mov $60, %eax\n"
	"	xor %edi, %edi\n"
	"	syscall\n"
	"	hlt\n"
	"the_end: nop\n");
