/* Which events an answer brings to one who says how far it knows them. */
#include <inttypes.h>

#include "coordinator/status/history.h"

#include "common/wire/json.h"
#include "tests/unit/coordinator/core/story.h"

static struct js *page_behind(const struct story *s, const struct history *c, int64_t told)
{
    struct error err;
    struct str out = str_init(1 << 20);
    const struct history_terms terms = {
        .wall_ms = 99, .job = "uid", .checkpoint_uri = "file:///c", .told = told};
    history_print_status(c, s->st, &terms, s->now, &out);
    struct js *page = js_parse(str_text(&out), out.length, "status", &err);
    cr_assert(page, "%s", err.text);
    str_clear(&out);
    return page;
}

Test(told_events, who_knows_events_gets_those_behind_them)
{
    enum { TOLD = 100 };
    static const struct {
        int64_t told;
        size_t come;
    } cases[] = {
        {0, HISTORY_EVENTS}, {30, HISTORY_EVENTS}, {36, HISTORY_EVENTS}, {37, HISTORY_EVENTS - 1}, {99, 1},
        {TOLD, 0},           {INT64_MAX, 0}};
    struct story s;
    struct history *c = calloc(1, sizeof *c);
    const struct rdzv_tell tell = {.kind = TELL_WAITING};
    story_begin(&s, story_settings(1));
    for (int i = 0; i < TOLD; i++)
        history_note(c, &tell, i, i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct js *page = page_behind(&s, c, cases[i].told);
        const struct js *events = js_get(page, "events");
        int64_t newest = TOLD;
        cr_expect_eq(js_size(events), cases[i].come, "of those behind %" PRId64 " %zu came", cases[i].told,
                     js_size(events));
        if (cases[i].come)
            js_as_int(js_get(js_at(events, cases[i].come - 1), "sequence"), &newest);
        cr_expect_eq(newest, TOLD);
        js_free(page);
    }
    free(c);
    story_end(&s);
}
