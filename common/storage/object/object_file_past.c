/* Reading a file from where it lies, not from the memory that the system keeps of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/storage/object/object_file.h"

/* What direct reads have to be aligned to, on any disk of today. */
enum { UNIT = 4096, ROOM = 1 << 20 };

/* Pages that are clean are let go of; those that are not yet written are written by a direct read itself, and
 * have to be before where the file system knows none: what is read then comes anew into memory. */
void object_file_let_go(int fd, int64_t offset, int64_t bytes)
{
    if (object_file_lies_in_memory(fd))
        return;
    int flags = fcntl(fd, F_GETFL);
    bool direct = flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
    if (!direct)
        fdatasync(fd);
    posix_fadvise(fd, offset, bytes, POSIX_FADV_DONTNEED);
}

static int64_t read_whole_units(int fd, char *room, size_t count, int64_t at)
{
    ssize_t n;
    do
        n = pread(fd, room, count, at);
    while (n < 0 && errno == EINTR);
    if (n >= 0 || errno != EINVAL)
        return n;
    int flags = fcntl(fd, F_GETFL); /* it took the flag, and not the read */
    if (flags < 0 || !(flags & O_DIRECT) || fcntl(fd, F_SETFL, flags & ~O_DIRECT) < 0) {
        errno = EINVAL;
        return -1;
    }
    return pread(fd, room, count, at);
}

/* Straight to where they are wanted, where that lies well. */
static bool lies_well(const char *out, int64_t count, int64_t offset)
{
    return count >= UNIT && offset % UNIT == 0 && (uintptr_t)out % UNIT == 0;
}

/* As much of [offset, offset + count) as one read brings, 0 at the file's end. */
static int64_t read_some(int fd, char **room, char *out, int64_t count, int64_t offset)
{
    if (lies_well(out, count, offset))
        return read_whole_units(fd, out, (size_t)(count / UNIT * UNIT), offset);
    if (!*room && !(*room = aligned_alloc(UNIT, ROOM)))
        return -1;
    int64_t lead = offset % UNIT, n = read_whole_units(fd, *room, ROOM, offset - lead);
    if (n <= lead)
        return n < 0 ? -1 : 0;
    int64_t here = n - lead < count ? n - lead : count;
    memcpy(out, *room + lead, (size_t)here);
    return here;
}

int64_t object_file_read_past(int fd, void *out, int64_t count, int64_t offset)
{
    int64_t had = 0, n = 1;
    char *room = NULL;
    while (had < count && n > 0) {
        n = read_some(fd, &room, (char *)out + had, count - had, offset + had);
        had += n > 0 ? n : 0;
    }
    int number = errno;
    free(room);
    errno = number;
    return n < 0 ? -1 : had;
}
