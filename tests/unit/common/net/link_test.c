#include "common/net/link.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/os/clock.h"

struct desk {
    struct loop *loop;
    struct link *link;
    int other; /* the far end, raw */
    char log[1024];
    size_t biggest;
    bool free_on_message;
};

static void note(struct desk *d, const char *what, const char *text)
{
    size_t used = strlen(d->log);
    snprintf(d->log + used, sizeof d->log - used, "%s(%.40s)", what, text);
}

static void message(void *ctx, const char *text, size_t length)
{
    struct desk *d = ctx;
    cr_assert_eq(strlen(text), length);
    d->biggest = length > d->biggest ? length : d->biggest;
    note(d, "got", text);
    if (d->free_on_message) {
        link_free(d->link);
        d->link = NULL;
    }
}

static void closed(void *ctx, const char *why)
{
    struct desk *d = ctx;
    note(d, "closed", why);
}

static void desk_open(struct desk *d)
{
    int pair[2];
    *d = (struct desk){0};
    cr_assert_eq(loop_open(&d->loop, NULL), 0);
    cr_assert_eq(link_pair(pair, NULL), 0);
    struct link_options options = {.fd = pair[0], .message = message, .closed = closed, .ctx = d};
    cr_assert_eq(link_open(&d->link, d->loop, &options, NULL), 0);
    d->other = pair[1];
}

static void desk_close(struct desk *d)
{
    link_free(d->link);
    close(d->other);
    loop_free(d->loop);
}

static void put(struct desk *d, const char *bytes, size_t length)
{
    cr_assert_eq(send(d->other, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
    loop_turn(d->loop, true);
}

Test(link, frames_come_whole_however_they_are_cut)
{
    struct desk d;
    desk_open(&d);
    put(&d, "\x03", 1);
    put(&d, "\0\0\0on", 5);
    put(&d, "e\0\0\0\0\x03\0\0\0two\x05\0", 14);
    put(&d, "\0\0three", 7);
    cr_assert_str_eq(d.log, "got(one)got()got(two)got(three)");
    desk_close(&d);
}

Test(link, a_sent_frame_is_length_and_text)
{
    struct desk d;
    char bytes[16];
    desk_open(&d);
    cr_assert_eq(link_send(d.link, "hello", 5, NULL), 0);
    cr_assert_eq(recv(d.other, bytes, sizeof bytes, 0), 9);
    cr_assert_eq(memcmp(bytes, "\x05\0\0\0hello", 9), 0);
    desk_close(&d);
}

Test(link, a_frame_over_the_limit_ends_the_link)
{
    struct desk d;
    desk_open(&d);
    put(&d, "\xff\xff\xff\xff and more", 13);
    cr_assert_str_eq(d.log, "closed(the other side sent a frame over the lim)");
    put(&d, "\x03\0\0\0one", 7);
    cr_assert_str_eq(d.log, "closed(the other side sent a frame over the lim)");
    desk_close(&d);
}

Test(link, the_largest_frame_passes)
{
    struct desk d, far = {0};
    desk_open(&d);
    struct link_options options = {.fd = d.other, .message = message, .closed = closed, .ctx = &far};
    cr_assert_eq(link_open(&far.link, d.loop, &options, NULL), 0);
    char *text = malloc(RM_FRAME_MAX);
    memset(text, 'x', RM_FRAME_MAX);
    cr_assert_eq(link_send(d.link, text, RM_FRAME_MAX, NULL), 0);
    cr_assert_eq(link_send(d.link, text, (size_t)RM_FRAME_MAX + 1, NULL), -1);
    while (!far.biggest)
        loop_turn(d.loop, true);
    cr_assert_eq(far.biggest, RM_FRAME_MAX);
    free(text);
    link_free(d.link);
    link_free(far.link);
    loop_free(d.loop);
}

Test(link, what_was_said_before_closing_is_heard_first)
{
    struct desk d;
    desk_open(&d);
    cr_assert_eq(send(d.other, "\x04\0\0\0last", 8, MSG_NOSIGNAL), 8);
    shutdown(d.other, SHUT_RDWR);
    while (!strstr(d.log, "closed"))
        loop_turn(d.loop, true);
    cr_assert_str_eq(d.log, "got(last)closed(closed by the other side)");
    desk_close(&d);
}

Test(link, a_message_may_free_the_link)
{
    struct desk d;
    desk_open(&d);
    d.free_on_message = true;
    put(&d, "\x03\0\0\0one\x03\0\0\0two", 14);
    cr_assert_str_eq(d.log, "got(one)");
    desk_close(&d);
}

Test(link, one_who_never_reads_is_given_up)
{
    struct desk d;
    desk_open(&d);
    static char text[RM_FRAME_MAX];
    struct error err;
    int sent = 0;
    while (link_send(d.link, text, sizeof text, &err) == 0)
        sent++;
    cr_assert_geq(sent, 3);
    cr_assert_eq(err.code, ERR_PEER);
    link_drain(d.link, clock_now() + RM_MS);
    desk_close(&d);
}
