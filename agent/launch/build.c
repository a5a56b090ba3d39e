#include "agent/launch/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "common/os/config.h"
#include "common/os/crypto.h"

enum { PIECE = 1 << 16, DIGITS = 16 };

int launch_build(char out[LAUNCH_BUILD_MAX], struct error *err)
{
    char piece[PIECE];
    uint8_t hash[RM_HASH_BYTES];
    ssize_t n;
    *out = 0;
    if (!config_get(CONFIG_BUNDLE))
        return 0;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "cannot read this program's own file");
    struct sha256 *running = sha256_open();
    while ((n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            sha256_add(running, piece, (size_t)n);
    int why = errno;
    close(fd);
    sha256_finish(running, hash);
    errno = why;
    if (n < 0)
        return err_errno(err, ERR_MACHINE, "cannot read this program's own file");
    for (int i = 0; i < DIGITS / 2; i++)
        snprintf(out + (ptrdiff_t)2 * i, 3, "%02x", hash[i]);
    return 0;
}
