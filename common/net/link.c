#include "common/net/link.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/loop/stream.h"

enum { HEADER = 4, WAITING_MAX = 4 * RM_FRAME_MAX };

struct link {
    struct stream *stream;
    void (*message)(void *ctx, const char *text, size_t length);
    void (*closed)(void *ctx, const char *why);
    void *ctx;
    struct str text; /* of the message being handed over, NUL-terminated */
    bool broken;
    bool *freed;
};

static size_t frame_length(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
}

static void refuse_frame(struct link *link)
{
    if (link->broken)
        return;
    link->broken = true;
    link->closed(link->ctx, "the other side sent a frame over the limit");
}

static size_t link_data(void *ctx, const char *bytes, size_t length)
{
    struct link *link = ctx;
    if (link->broken)
        return length;
    if (length < HEADER)
        return 0;
    size_t size = frame_length(bytes);
    if (size > RM_FRAME_MAX) {
        refuse_frame(link);
        return length; /* read by nobody where the owner has freed the link */
    }
    if (length < HEADER + size)
        return 0;
    str_reset(&link->text);
    str_add(&link->text, bytes + HEADER, size);
    struct str text = link->text; /* the callback may free the link */
    bool freed = false;
    link->freed = &freed;
    link->text = str_init(RM_FRAME_MAX + 1);
    link->message(link->ctx, str_text(&text), text.length);
    if (!freed) {
        link->freed = NULL;
        link->text = text;
        return HEADER + size;
    }
    str_clear(&text);
    return HEADER + size;
}

static void link_ended(void *ctx, const char *why)
{
    struct link *link = ctx;
    if (!link->broken)
        link->closed(link->ctx, why);
}

int link_open(struct link **ret, struct loop *loop, const struct link_options *options, struct error *err)
{
    struct link *link = calloc(1, sizeof *link);
    if (!link)
        return err_set(err, ERR_MACHINE, "no memory for a link");
    *link = (struct link){.message = options->message,
                          .closed = options->closed,
                          .ctx = options->ctx,
                          .text = str_init(RM_FRAME_MAX + 1)};
    struct stream_options stream = {
        .fd = options->fd, .ceiling = WAITING_MAX, .data = link_data, .closed = link_ended, .ctx = link};
    if (stream_open(&link->stream, loop, &stream, err) < 0) {
        free(link);
        return -1;
    }
    *ret = link;
    return 0;
}

int link_send(struct link *link, const char *text, size_t length, struct error *err)
{
    if (length > RM_FRAME_MAX)
        return err_set(err, ERR_PROTOCOL, "a message of %zu bytes is over the limit", length);
    /* One write for both, so that the other side wakes once. */
    char small[4096];
    char *frame = length + HEADER <= sizeof small ? small : malloc(length + HEADER);
    if (!frame)
        return err_set(err, ERR_MACHINE, "no memory to send %zu bytes", length);
    for (int i = 0; i < HEADER; i++)
        frame[i] = (char)(length >> 8 * i);
    memcpy(frame + HEADER, text, length);
    int result = stream_send(link->stream, frame, length + HEADER, err);
    if (frame != small)
        free(frame);
    return result;
}

void link_drain(struct link *link, rm_time deadline)
{
    stream_drain(link->stream, deadline);
}

void link_free(struct link *link)
{
    if (!link)
        return;
    if (link->freed)
        *link->freed = true;
    stream_free(link->stream);
    str_clear(&link->text);
    free(link);
}

int link_pair(int ret_fds[2], struct error *err)
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_fds) < 0)
        return err_errno(err, ERR_MACHINE, "cannot make a pair of sockets");
    return 0;
}
