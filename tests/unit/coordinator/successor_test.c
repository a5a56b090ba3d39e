/* One that was told to go, and who answers to the name that agents use. */
#include "coordinator/successor.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/loop/loop.h"
#include "tests/unit/common/net/stub.h"

struct answer {
    const char *page;
    bool is;
};

Test(successor, it_is_one_of_this_job_with_a_higher_term_that_takes_agents)
{
    static const struct answer answer[] = {
        {"{\"job\":\"a\",\"term\":3,\"preparing\":false,\"state\":\"Recovering\"}", true},
        {"{\"job\":\"a\",\"term\":7,\"preparing\":false}", true},
        {"{\"job\":\"a\",\"term\":2,\"preparing\":false}", false},
        {"{\"job\":\"a\",\"term\":1,\"preparing\":false}", false},
        {"{\"job\":\"a\",\"term\":3,\"preparing\":true}", false},
        {"{\"job\":\"b\",\"term\":3,\"preparing\":false}", false},
        {"{\"term\":3,\"preparing\":false}", false},
        {"{\"job\":\"a\",\"preparing\":false}", false},
        {"{\"job\":\"a\",\"term\":\"3\",\"preparing\":false}", false},
        {"{\"job\":\"a\",\"term\":3}", false},
        {"[3]", false},
        {"{\"job\":\"a\",\"term\":3,\"prep", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof answer / sizeof *answer; i++)
        cr_assert_eq(successor_answers(answer[i].page, strlen(answer[i].page), "a", 2), answer[i].is, "%s",
                     answer[i].page);
}

/* The name leads to this program itself, to nobody, and then to a successor. */
static enum stub_then the_name(void *ctx, const struct stub_request *request, struct str *answer)
{
    static const char own[] = "{\"job\":\"a\",\"term\":2,\"preparing\":false}";
    static const char next[] = "{\"job\":\"a\",\"term\":3,\"preparing\":false}";
    (void)ctx;
    cr_assert_str_eq(request->target, "/v1/status");
    switch (request->number) {
    case 0:
        stub_say(answer, 200, "", own, strlen(own));
        return STUB_KEEP;
    case 1:
        return STUB_RESET;
    default:
        stub_say(answer, 200, "", next, strlen(next));
        return STUB_KEEP;
    }
}

static void there(void *ctx)
{
    loop_stop(ctx);
}

Test(successor, it_is_looked_for_until_it_answers_each_time_where_the_name_leads_by_then)
{
    struct loop *loop;
    struct successor *successor;
    char address[32];
    struct stub *stub = stub_open(the_name, NULL);
    snprintf(address, sizeof address, "localhost:%d", stub_port(stub));
    cr_assert_eq(loop_open(&loop, NULL), 0);
    struct successor_options options = {
        .address = address, .job = "a", .term = 2, .there = there, .ctx = loop};
    cr_assert_eq(successor_watch(&successor, loop, &options, NULL), 0);
    loop_run(loop);
    cr_assert_eq(stub_requests(stub), 3);
    cr_assert_eq(stub_connections(stub), 3, "a kept connection leads to whoever answered before");
    successor_free(successor);
    loop_free(loop);
    stub_free(stub);
}
