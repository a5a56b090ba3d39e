#include "common/net/resolve.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/base/str.h"
#include "common/os/clock.h"

struct desk {
    struct loop *loop;
    struct resolve *resolve;
    int answers;
    char address[64], why[200];
};

static void answered(void *ctx, const char *address, const char *why)
{
    struct desk *d = ctx;
    d->answers++;
    text_copy(d->address, sizeof d->address, address ? address : "none");
    text_copy(d->why, sizeof d->why, why);
}

static void ask(struct desk *d, const char *host)
{
    struct error err;
    *d = (struct desk){0};
    cr_assert_eq(loop_open(&d->loop, &err), 0);
    cr_assert_eq(resolve_start(&d->resolve, d->loop, host, answered, d, &err), 0, "%s", err.text);
}

static void until_answered(struct desk *d)
{
    rm_time end = clock_now() + 60 * RM_S;
    while (!d->answers && clock_now() < end)
        loop_turn(d->loop, true);
    cr_assert_eq(d->answers, 1);
}

static void dismiss(struct desk *d)
{
    resolve_free(d->resolve);
    loop_free(d->loop);
}

Test(resolve, a_name_becomes_an_address)
{
    struct desk d;
    ask(&d, "localhost");
    until_answered(&d);
    cr_assert(!strcmp(d.address, "127.0.0.1") || !strcmp(d.address, "::1"), "%s (%s)", d.address, d.why);
    dismiss(&d);
}

Test(resolve, a_name_that_nobody_has_is_named)
{
    struct desk d;
    ask(&d, "no-such-host.invalid");
    until_answered(&d);
    cr_assert_str_eq(d.address, "none");
    cr_assert(strstr(d.why, "no-such-host.invalid"), "%s", d.why);
    dismiss(&d);
}

Test(resolve, who_is_forgotten_hears_nothing)
{
    struct desk d;
    ask(&d, "localhost");
    resolve_free(d.resolve);
    d.resolve = NULL;
    loop_free(d.loop); /* waits for what is under way */
    cr_assert_eq(d.answers, 0);
}

Test(resolve, an_address_is_told_from_a_name)
{
    cr_assert(resolve_is_address("127.0.0.1"));
    cr_assert(resolve_is_address("fd00::7"));
    cr_assert_not(resolve_is_address("gpt-coordinator"));
    cr_assert_not(resolve_is_address("127.0.0.1.example"));
}
