/* Bytes in and out of one descriptor (a pipe or a stream socket) on a loop, and lines of text on top.
 *
 * Takes over fd: it is closed by stream_free. What is sent leaves at once where the descriptor takes it, and
 * waits in a queue of at most `ceiling` bytes where it does not.
 *
 * `data` gets what arrived and returns how many bytes it has used up; the rest is kept and comes again with
 * more behind it. A rest of `ceiling` bytes with nothing used ends the stream. After `closed` (the other
 * side has closed, or an error; why says which) no other callback comes; the owner then frees the stream. In
 * any callback the owner may free the stream. */
#ifndef RM_LOOP_STREAM_H
#define RM_LOOP_STREAM_H

#include <stddef.h>

#include "common/base/error.h"
#include "common/loop/loop.h"

struct stream;

struct stream_options {
    int fd;
    size_t ceiling;
    size_t (*data)(void *ctx, const char *bytes, size_t length); /* NULL: a stream to write only */
    void (*closed)(void *ctx, const char *why);
    void *ctx;
};

/* On an error fd is still the caller's. */
int stream_open(struct stream **ret, struct loop *loop, const struct stream_options *options,
                struct error *err);
/* -1 where the queue would pass its ceiling (nothing of it is sent) or the stream is closed. */
int stream_send(struct stream *stream, const void *bytes, size_t length, struct error *err);
size_t stream_queued(const struct stream *stream); /* bytes that have not left yet */
/* Writes what is queued while the other side takes it, at most until `deadline`; for the end of a program. */
void stream_drain(struct stream *stream, rm_time deadline);
void stream_free(struct stream *stream);

/* Lines of text: line(ctx, text, length) for each, NUL-terminated, without its newline; text may be changed
 * in place. A last line without a newline counts. */
struct lines;

struct lines_options {
    int fd;
    size_t ceiling; /* bytes of one line */
    void (*line)(void *ctx, char *text, size_t length);
    void (*closed)(void *ctx, const char *why);
    void *ctx;
};

int lines_open(struct lines **ret, struct loop *loop, const struct lines_options *options, struct error *err);
void lines_free(struct lines *lines);

#endif
