/* The first program of the bundle: what a container starts as `ringmaster-agent` in an image of somebody
 * else's. It puts aside what that image says to the loader (agent/launch/core/aside.h) and becomes the agent,
 * whose loader, libraries and certificates lie beside it.
 *
 * Static and without a C library: glibc's own start reads GLIBC_TUNABLES in a static program, too. */
#include <asm/unistd.h>
#include <linux/mman.h>

#include "agent/launch/core/aside.h"
#include "common/base/exit_code.h"

static const char program[] = RM_BUNDLE_PREFIX "/libexec/ringmaster-agent";
static const char said[] = "RINGMASTER_BUNDLE=" RM_BUNDLE_PREFIX;

#if defined __x86_64__
__asm__(".globl _start\n"
        "_start:\n"
        "xor %ebp, %ebp\n"
        "mov %rsp, %rdi\n"
        "and $-16, %rsp\n"
        "call first\n"
        "hlt\n");

static long call(long number, long a, long b, long c, const long rest[3])
{
    long result;
    register long d __asm__("r10") = rest[0];
    register long e __asm__("r8") = rest[1];
    register long f __asm__("r9") = rest[2];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e), "r"(f)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined __aarch64__
__asm__(".globl _start\n"
        "_start:\n"
        "mov x29, #0\n"
        "mov x0, sp\n"
        "bl first\n");

static long call(long number, long a, long b, long c, const long rest[3])
{
    register long result __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long d __asm__("x3") = rest[0];
    register long e __asm__("x4") = rest[1];
    register long f __asm__("x5") = rest[2];
    register long n __asm__("x8") = number;
    __asm__ volatile("svc 0"
                     : "+r"(result)
                     : "r"(second), "r"(third), "r"(d), "r"(e), "r"(f), "r"(n)
                     : "memory");
    return result;
}
#else
#error "the first program knows x86-64 and aarch64"
#endif

static const long none[3];

static void write_text(const char *text)
{
    long length = 0;
    while (text[length])
        length++;
    call(__NR_write, 2, (long)text, length, none);
}

static _Noreturn void give_up(const char *why)
{
    write_text("ringmaster-agent: ");
    write_text(program);
    write_text(why);
    for (;;)
        call(__NR_exit_group, EXIT_MACHINE, 0, 0, none);
}

/* stack: as the kernel left it, the number of arguments, these, and the environment. */
_Noreturn void first(char **stack);
_Noreturn void first(char **stack)
{
    char **arguments = stack + 1, **environment = arguments + (long)stack[0] + 1;
    const long anonymous[3] = {MAP_PRIVATE | MAP_ANONYMOUS, -1, 0};
    long room = call(__NR_mmap, 0, (long)aside_room(environment, said), PROT_READ | PROT_WRITE, anonymous);
    if (room < 0 && room > -4096)
        give_up(": there is no memory for its environment\n");
    environment = aside_put(environment, said, (void *)room);
    call(__NR_execve, (long)program, (long)arguments, (long)environment, none);
    give_up(" can't be run: the bundle must lie at " RM_BUNDLE_PREFIX
            ", whole, and be made for this processor\n");
}
