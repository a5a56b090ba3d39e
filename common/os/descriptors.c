#include "common/os/descriptors.h"

#include <errno.h>
#include <limits.h>
#include <sys/resource.h>

/* A failure leaves the limit as it was, which is what there is to live with. */
void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int descriptors_beside(int kept)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
        return INT_MAX;
    int most = (int)limit.rlim_cur;
    return most / 2 > kept ? most - kept : most - most / 2;
}

bool descriptors_short(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}
