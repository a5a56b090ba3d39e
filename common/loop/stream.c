/* Moves bytes of one descriptor in and out as it lets them, and cuts what came into lines. */
#include "common/loop/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/clock.h"

enum { READ_PIECE = 1 << 16 };

struct bytes {
    char *data;
    size_t start, length, capacity; /* data[start .. start + length) is in use */
};

struct stream {
    int fd;
    size_t ceiling;
    size_t (*data)(void *ctx, const char *bytes, size_t length);
    void (*closed)(void *ctx, const char *why);
    void *ctx;
    struct loop_watch *watch;
    struct bytes in, out;
    bool ended;
    bool *freed; /* set by stream_free while a callback of this stream is under way */
};

static int bytes_room(struct bytes *b, size_t more)
{
    if (b->start + b->length + more <= b->capacity)
        return 0;
    if (b->start) {
        memmove(b->data, b->data + b->start, b->length);
        b->start = 0;
    }
    if (b->length + more <= b->capacity)
        return 0;
    size_t capacity = 2 * b->capacity > b->length + more ? 2 * b->capacity : b->length + more;
    char *data = realloc(b->data, capacity);
    if (!data)
        return -1;
    b->data = data;
    b->capacity = capacity;
    return 0;
}

static void bytes_drop(struct bytes *b, size_t count)
{
    b->start += count;
    b->length -= count;
    if (!b->length)
        b->start = 0;
}

static void watch_wanted(struct stream *s)
{
    if (s->ended)
        loop_watch_set(s->watch, 0);
    else
        loop_watch_set(s->watch,
                       (s->data ? LOOP_READABLE : LOOP_CLOSED) | (s->out.length ? LOOP_WRITABLE : 0));
}

static void end_stream(struct stream *s, const char *why)
{
    if (s->ended)
        return;
    s->ended = true;
    loop_watch_set(s->watch, 0);
    s->closed(s->ctx, why);
}

/* 0: written what goes; -1: the descriptor is broken (errno says how). */
static int flush(struct stream *s)
{
    while (s->out.length) {
        ssize_t n = write(s->fd, s->out.data + s->out.start, s->out.length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        bytes_drop(&s->out, (size_t)n);
    }
    return 0;
}

/* Hands over what arrived until the owner wants more of it than there is. Returns false where the stream
 * must not be touched any more. */
static bool hand_over(struct stream *s)
{
    bool freed = false;
    s->freed = &freed;
    while (s->in.length && !s->ended) {
        size_t used = s->data(s->ctx, s->in.data + s->in.start, s->in.length);
        if (freed)
            return false;
        bytes_drop(&s->in, used);
        if (!used)
            break;
    }
    s->freed = NULL;
    if (s->ended || s->in.length < s->ceiling)
        return !s->ended;
    end_stream(s, "a message is over the limit");
    return false;
}

static bool read_piece(struct stream *s)
{
    if (bytes_room(&s->in, READ_PIECE) < 0) {
        end_stream(s, "out of memory");
        return false;
    }
    ssize_t n = read(s->fd, s->in.data + s->in.start + s->in.length, READ_PIECE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        end_stream(s, n ? strerror(errno) : "closed by the other side");
        return false;
    }
    s->in.length += (size_t)n;
    return hand_over(s) && n == READ_PIECE;
}

static void stream_ready(void *ctx, int events)
{
    struct stream *s = ctx;
    if (events & LOOP_WRITABLE && s->out.length) {
        /* A broken pipe still has its last words to be read; reading finds its end. */
        if (flush(s) < 0) {
            s->out.length = 0;
            if (!s->data) {
                end_stream(s, strerror(errno));
                return;
            }
        }
        watch_wanted(s);
    }
    if (!s->data && events & LOOP_CLOSED) {
        end_stream(s, "closed by the other side");
        return;
    }
    if (s->data && events & (LOOP_READABLE | LOOP_CLOSED))
        while (read_piece(s))
            ;
}

int stream_open(struct stream **ret, struct loop *loop, const struct stream_options *options,
                struct error *err)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, ERR_MACHINE, "no memory for a stream");
    *s = (struct stream){.fd = options->fd,
                         .ceiling = options->ceiling,
                         .data = options->data,
                         .closed = options->closed,
                         .ctx = options->ctx};
    if (loop_watch_open(&s->watch, loop, s->fd, stream_ready, s, err) < 0) {
        free(s);
        return -1;
    }
    watch_wanted(s);
    *ret = s;
    return 0;
}

int stream_send(struct stream *s, const void *bytes, size_t length, struct error *err)
{
    if (s->ended)
        return err_set(err, ERR_PEER, "the other side has closed");
    if (s->out.length + length > s->ceiling)
        return err_set(err, ERR_PEER, "the other side does not read: %zu bytes wait", s->out.length);
    if (bytes_room(&s->out, length) < 0)
        return err_set(err, ERR_MACHINE, "no memory to send %zu bytes", length);
    memcpy(s->out.data + s->out.start + s->out.length, bytes, length);
    s->out.length += length;
    if (flush(s) < 0) {
        s->out.length = 0; /* the watch finds the end and says so */
        return err_errno(err, ERR_PEER, "send");
    }
    watch_wanted(s);
    return 0;
}

size_t stream_queued(const struct stream *s)
{
    return s->out.length;
}

void stream_drain(struct stream *s, rm_time deadline)
{
    rm_time now = clock_now();
    while (!s->ended && s->out.length && now < deadline) {
        struct pollfd p = {.fd = s->fd, .events = POLLOUT};
        if (poll(&p, 1, (int)((deadline - now) / RM_MS) + 1) < 0 && errno != EINTR)
            return;
        if (p.revents & (POLLERR | POLLHUP) || flush(s) < 0)
            return;
        now = clock_now();
    }
}

void stream_free(struct stream *s)
{
    if (!s)
        return;
    if (s->freed)
        *s->freed = true;
    loop_watch_free(s->watch);
    close(s->fd);
    free(s->in.data);
    free(s->out.data);
    free(s);
}

struct lines {
    struct stream *stream;
    void (*line)(void *ctx, char *text, size_t length);
    void (*closed)(void *ctx, const char *why);
    void *ctx;
    struct str text;
    size_t ceiling;
    bool over; /* a line did not fit: what there is of it is no line */
    bool *freed;
};

/* One line at a time: its callback may free everything. */
static size_t lines_data(void *ctx, const char *bytes, size_t length)
{
    struct lines *lines = ctx;
    const char *newline = memchr(bytes, '\n', length);
    size_t taken = newline ? (size_t)(newline - bytes) : length;
    if (lines->text.length + taken > lines->ceiling) {
        lines->over = true;
        return 0; /* what is kept grows to the stream's ceiling and ends it */
    }
    str_add(&lines->text, bytes, taken);
    if (!newline)
        return taken;
    bool freed = false;
    lines->freed = &freed;
    struct str text = lines->text;
    lines->text = str_init(lines->ceiling + 1);
    char empty[1] = "";
    lines->line(lines->ctx, text.data ? text.data : empty, text.length);
    if (!freed)
        lines->freed = NULL;
    str_clear(&text);
    return taken + 1;
}

static void lines_ended(void *ctx, const char *why)
{
    struct lines *lines = ctx;
    bool freed = false;
    lines->freed = &freed;
    struct str text = lines->text;
    lines->text = str_init(lines->ceiling + 1);
    if (text.length && !lines->over)
        lines->line(lines->ctx, text.data, text.length);
    str_clear(&text);
    if (freed)
        return;
    lines->freed = NULL;
    lines->closed(lines->ctx, why);
}

int lines_open(struct lines **ret, struct loop *loop, const struct lines_options *options, struct error *err)
{
    struct lines *lines = calloc(1, sizeof *lines);
    if (!lines)
        return err_set(err, ERR_MACHINE, "no memory to read lines");
    *lines = (struct lines){.line = options->line,
                            .closed = options->closed,
                            .ctx = options->ctx,
                            .ceiling = options->ceiling,
                            .text = str_init(options->ceiling + 1)};
    struct stream_options stream = {.fd = options->fd,
                                    .ceiling = options->ceiling,
                                    .data = lines_data,
                                    .closed = lines_ended,
                                    .ctx = lines};
    if (stream_open(&lines->stream, loop, &stream, err) < 0) {
        free(lines);
        return -1;
    }
    *ret = lines;
    return 0;
}

void lines_free(struct lines *lines)
{
    if (!lines)
        return;
    if (lines->freed)
        *lines->freed = true;
    stream_free(lines->stream);
    str_clear(&lines->text);
    free(lines);
}
