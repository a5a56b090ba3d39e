#include "trainer/collective/abort_flag.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int abort_flag_init(struct abort_flag *flag, struct error *err)
{
    atomic_init(&flag->word, 0);
    flag->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return flag->event_fd < 0 ? err_errno(err, ERR_MACHINE, "make an eventfd") : 0;
}

void abort_flag_clear(struct abort_flag *flag)
{
    if (flag->event_fd >= 0)
        close(flag->event_fd);
    flag->event_fd = -1;
}

void abort_flag_set(struct abort_flag *flag)
{
    atomic_store(&flag->word, 1);
    uint64_t one = 1;
    /* It can only fail where the counter is full, and then the descriptor is readable already. */
    ssize_t written = write(flag->event_fd, &one, sizeof one);
    (void)written;
}

void abort_flag_reset(struct abort_flag *flag)
{
    uint64_t count;
    ssize_t got = read(flag->event_fd, &count, sizeof count);
    (void)got;
    atomic_store(&flag->word, 0);
}

bool abort_flag_is_set(const struct abort_flag *flag)
{
    return atomic_load_explicit(&flag->word, memory_order_acquire) != 0;
}
