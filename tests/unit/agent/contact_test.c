/* The worker's connection to a coordinator that has a name. */
#include "agent/contact.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/os/clock.h"

#ifndef __SANITIZE_ADDRESS__
extern void __libc_free(void *memory);

/* What is freed is overwritten, so that an address that is read too late leads nowhere. */
void free(void *memory)
{
    if (memory)
        memset(memory, 0x55, malloc_usable_size(memory));
    __libc_free(memory);
}
#endif

/* A caller and whom it calls, on one loop. */
struct meeting {
    struct loop *loop;
    struct ws *coordinator, *caller;
    struct contact *contact;
    bool came;            /* somebody called the coordinator */
    char why[RM_WHY_MAX]; /* the try came to nothing */
};

static void somebody_came(void *ctx, struct ws_conn *conn)
{
    struct meeting *m = ctx;
    m->came = m->came || ws_conn_incoming(conn);
}

static void somebody_spoke(void *ctx, struct ws_conn *conn, const char *text, size_t length)
{
    (void)ctx, (void)conn, (void)text, (void)length;
}

static void somebody_left(void *ctx, struct ws_conn *conn, const char *why)
{
    (void)ctx, (void)conn, (void)why;
}

static void caller_opened(void *ctx, struct ws_conn *conn)
{
    struct meeting *m = ctx;
    contact_opened(m->contact, conn);
}

static void caller_heard(void *ctx, struct ws_conn *conn, const char *text, size_t length)
{
    struct meeting *m = ctx;
    contact_message(m->contact, conn, text, length);
}

static void caller_closed(void *ctx, struct ws_conn *conn, const char *why)
{
    struct meeting *m = ctx;
    contact_closed(m->contact, conn, why);
}

static void nothing_more(void *ctx)
{
    (void)ctx;
}

static void no_word(void *ctx, struct message *message)
{
    (void)ctx, (void)message;
}

static void came_to_nothing(void *ctx, const char *why)
{
    struct meeting *m = ctx;
    snprintf(m->why, sizeof m->why, "%s", why);
}

/* The coordinator listens at any address, as a name may be of either family. */
static void arrange(struct meeting *m, const char *host)
{
    static const uint8_t key[32];
    static char address[RM_ADDRESS_MAX];
    struct error err;
    struct ws_options there = {.address = "::",
                               .strangers_max = 4,
                               .queue_max = 1 << 16,
                               .opened = somebody_came,
                               .message = somebody_spoke,
                               .closed = somebody_left,
                               .ctx = m};
    struct ws_options here = {.queue_max = 1 << 16,
                              .opened = caller_opened,
                              .message = caller_heard,
                              .closed = caller_closed,
                              .ctx = m};
    *m = (struct meeting){0};
    cr_assert_eq(loop_open(&m->loop, &err), 0);
    cr_assert_eq(ws_open(&m->coordinator, m->loop, &there, &err), 0, "%s", err.text);
    cr_assert_eq(ws_open(&m->caller, m->loop, &here, &err), 0, "%s", err.text);
    snprintf(address, sizeof address, "%s:%d", host, ws_port(m->coordinator));
    struct contact_options contact = {.loop = m->loop,
                                      .ws = m->caller,
                                      .address = address,
                                      .job_key = key,
                                      .greeted = nothing_more,
                                      .refused = nothing_more,
                                      .heard = no_word,
                                      .gone = came_to_nothing,
                                      .ctx = m};
    cr_assert_eq(contact_open(&m->contact, &contact, &err), 0, "%s", err.text);
}

static void go_on(struct meeting *m)
{
    for (rm_time end = clock_now() + 20 * RM_S; !m->came && !*m->why && clock_now() < end;)
        loop_turn(m->loop, false);
}

static void part(struct meeting *m)
{
    contact_free(m->contact);
    ws_free(m->caller);
    ws_free(m->coordinator);
    loop_free(m->loop);
}

Test(contact, a_name_is_looked_up_and_whoever_it_stands_for_is_called)
{
    struct meeting m;
    arrange(&m, "localhost");
    contact_try(m.contact);
    cr_assert(!contact_up(m.contact), "its name is not known yet");
    go_on(&m);
    cr_assert(m.came, "%s", m.why);
    cr_assert(contact_up(m.contact));
    part(&m);
}

Test(contact, a_name_that_stands_for_nobody_is_told_with_a_sentence)
{
    struct meeting m;
    arrange(&m, "nobody.invalid");
    contact_try(m.contact);
    go_on(&m);
    cr_assert(strstr(m.why, "nobody.invalid"), "%s", m.why);
    cr_assert_not(contact_up(m.contact));
    part(&m);
}
