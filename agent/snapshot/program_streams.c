#include "agent/snapshot/program_streams.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char file_name[] = "ringmaster-streams";

static void read_stream(long pid, int fd, char out[static STREAM_KEY_MAX])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", pid, fd);
    ssize_t length = readlink(path, out, STREAM_KEY_MAX - 1);
    out[length > 0 ? length : 0] = 0;
    if (strncmp(out, "pipe:[", 6) != 0)
        *out = 0;
}

void program_streams_read(long pid, struct program_streams *ret)
{
    read_stream(pid, STDOUT_FILENO, ret->out);
    read_stream(pid, STDERR_FILENO, ret->err);
}

int program_streams_save(int folder, const struct program_streams *streams, struct error *err)
{
    char text[2 * STREAM_KEY_MAX + 2];
    int length = snprintf(text, sizeof text, "%s\n%s\n", streams->out, streams->err);
    int fd = openat(folder, file_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "can't write %s", file_name);
    ssize_t written = write(fd, text, (size_t)length);
    if (close(fd) < 0 || written != length)
        return err_errno(err, ERR_MACHINE, "can't write %s", file_name);
    return 0;
}

/* One line, "" or "pipe:[N]", into out; what stands behind it, NULL where it is neither. */
static const char *take_line(const char *text, char out[static STREAM_KEY_MAX])
{
    const char *end = strchr(text, '\n');
    if (!end || end - text >= STREAM_KEY_MAX || (end > text && strncmp(text, "pipe:[", 6) != 0))
        return NULL;
    memcpy(out, text, (size_t)(end - text));
    out[end - text] = 0;
    return end + 1;
}

int program_streams_load(int folder, struct program_streams *ret, struct error *err)
{
    char text[2 * STREAM_KEY_MAX + 2];
    int fd = openat(folder, file_name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, ERR_DATA, "this folder is no snapshot: %s can't be read", file_name);
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *rest = take_line(text, ret->out);
    if (!rest || !(rest = take_line(rest, ret->err)) || *rest)
        return err_set(err, ERR_DATA, "this folder is no snapshot: %s is not what a dump writes", file_name);
    return 0;
}
