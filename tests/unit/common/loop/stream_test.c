#include "common/loop/stream.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/clock.h"

enum { CEILING = 1 << 16 };

struct desk {
    struct loop *loop;
    struct lines *lines;
    struct stream *stream;
    int pair[2]; /* [0] is the loop's */
    char log[2048];
    size_t received;
    bool free_on_line;
};

static void note(struct desk *d, const char *what, const char *text)
{
    size_t used = strlen(d->log);
    snprintf(d->log + used, sizeof d->log - used, "%s(%.40s)", what, text);
}

static void line(void *ctx, char *text, size_t length)
{
    struct desk *d = ctx;
    cr_assert_eq(strlen(text), length);
    note(d, "line", text);
    if (d->free_on_line) {
        lines_free(d->lines);
        loop_stop(d->loop);
    }
}

static void closed(void *ctx, const char *why)
{
    struct desk *d = ctx;
    note(d, "closed", why);
    loop_stop(d->loop);
}

static size_t take(void *ctx, const char *bytes, size_t length)
{
    struct desk *d = ctx;
    (void)bytes;
    d->received += length;
    return length;
}

static void desk_open(struct desk *d)
{
    *d = (struct desk){0};
    cr_assert_eq(loop_open(&d->loop, NULL), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, d->pair), 0);
}

static void read_lines(struct desk *d)
{
    struct lines_options options = {
        .fd = d->pair[0], .ceiling = CEILING, .line = line, .closed = closed, .ctx = d};
    cr_assert_eq(lines_open(&d->lines, d->loop, &options, NULL), 0);
}

static void say(struct desk *d, const char *text)
{
    cr_assert_eq(write(d->pair[1], text, strlen(text)), (ssize_t)strlen(text));
    loop_turn(d->loop, true);
}

Test(stream, lines_come_whole_however_they_are_cut)
{
    struct desk d;
    desk_open(&d);
    read_lines(&d);
    say(&d, "one\ntw");
    say(&d, "o\n\nthr");
    say(&d, "ee");
    close(d.pair[1]);
    loop_run(d.loop);
    cr_assert_str_eq(d.log, "line(one)line(two)line()line(three)closed(closed by the other side)");
    lines_free(d.lines);
    loop_free(d.loop);
}

Test(stream, a_line_over_the_ceiling_ends_the_stream)
{
    struct desk d;
    desk_open(&d);
    read_lines(&d);
    static char much[CEILING / 2];
    memset(much, 'x', sizeof much);
    for (int i = 0; i < 8 && !*d.log; i++) {
        cr_assert_gt(send(d.pair[1], much, sizeof much, MSG_DONTWAIT), 0);
        loop_turn(d.loop, true);
    }
    cr_assert_str_eq(d.log, "closed(a message is over the limit)");
    lines_free(d.lines);
    close(d.pair[1]);
    loop_free(d.loop);
}

Test(stream, the_owner_may_free_it_in_its_own_callback)
{
    struct desk d;
    desk_open(&d);
    read_lines(&d);
    d.free_on_line = true;
    cr_assert_eq(write(d.pair[1], "one\ntwo\n", 8), 8);
    loop_run(d.loop);
    cr_assert_str_eq(d.log, "line(one)");
    close(d.pair[1]);
    loop_free(d.loop);
}

Test(stream, what_does_not_fit_waits_and_leaves_later)
{
    struct desk d;
    enum { TOTAL = 4 << 20 };
    desk_open(&d);
    struct stream *reader;
    struct stream_options to_write = {.fd = d.pair[0], .ceiling = TOTAL, .closed = closed, .ctx = &d};
    struct stream_options to_read = {
        .fd = d.pair[1], .ceiling = CEILING, .data = take, .closed = closed, .ctx = &d};
    cr_assert_eq(stream_open(&d.stream, d.loop, &to_write, NULL), 0);
    cr_assert_eq(stream_open(&reader, d.loop, &to_read, NULL), 0);
    char *much = calloc(1, TOTAL);
    cr_assert_eq(stream_send(d.stream, much, TOTAL, NULL), 0);
    cr_assert_gt(stream_queued(d.stream), 0);
    struct error err;
    cr_assert_eq(stream_send(d.stream, much, TOTAL, &err), -1);
    cr_assert_eq(err.code, ERR_PEER);
    while (d.received < TOTAL)
        loop_turn(d.loop, true);
    cr_assert_eq(d.received, TOTAL);
    cr_assert_eq(stream_queued(d.stream), 0);
    free(much);
    stream_free(d.stream);
    stream_free(reader);
    loop_free(d.loop);
}

Test(stream, a_writer_hears_that_its_reader_has_gone)
{
    struct desk d;
    int ends[2];
    desk_open(&d);
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    struct stream_options to_write = {.fd = ends[1], .ceiling = CEILING, .closed = closed, .ctx = &d};
    cr_assert_eq(stream_open(&d.stream, d.loop, &to_write, NULL), 0);
    close(ends[0]);
    loop_run(d.loop);
    cr_assert_eq(strncmp(d.log, "closed(", 7), 0, "%s", d.log);
    cr_assert_eq(stream_send(d.stream, "x", 1, NULL), -1);
    stream_free(d.stream);
    close(d.pair[0]);
    close(d.pair[1]);
    loop_free(d.loop);
}

Test(stream, draining_stops_at_its_deadline)
{
    struct desk d;
    enum { TOTAL = 4 << 20 };
    desk_open(&d);
    struct stream_options to_write = {.fd = d.pair[0], .ceiling = TOTAL, .closed = closed, .ctx = &d};
    cr_assert_eq(stream_open(&d.stream, d.loop, &to_write, NULL), 0);
    char *much = calloc(1, TOTAL);
    cr_assert_eq(stream_send(d.stream, much, TOTAL, NULL), 0);
    stream_drain(d.stream, clock_now() + 2 * RM_MS);
    cr_assert_gt(stream_queued(d.stream), 0);
    free(much);
    stream_free(d.stream);
    close(d.pair[1]);
    loop_free(d.loop);
}
