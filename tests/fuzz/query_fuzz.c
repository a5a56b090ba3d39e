/* What a watcher's question says behind its path: workers and numbers are within their bounds, what was read
 * is read again as it was, and members that are not as they should be are as if they were absent. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/status/query.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct query *q)
{
    if (q->after < -1 || q->told < 0 || q->relief.stay < 0)
        fuzz_broken("no number is negative");
    if (q->relief.count < 0 || q->relief.count > RDZV_EASED_MAX)
        fuzz_broken("there is room for the workers");
    if (!q->relieves && (q->relief.count || q->relief.stay))
        fuzz_broken("who eases nobody names nobody");
    for (int i = 0; i < q->relief.count; i++)
        if (q->relief.one[i].worker < 0 || q->relief.one[i].attempt < 0 || q->relief.one[i].left < 0)
            fuzz_broken("workers, attempts and times are numbers from 0 on");
}

static void check_same(const struct query *a, const struct query *b, const char *sentence)
{
    bool same = a->after == b->after && a->told == b->told && a->relieves == b->relieves &&
                a->relief.stay == b->relief.stay && a->relief.count == b->relief.count;
    for (int i = 0; same && i < a->relief.count; i++)
        same = a->relief.one[i].worker == b->relief.one[i].worker &&
               a->relief.one[i].attempt == b->relief.one[i].attempt &&
               a->relief.one[i].by == b->relief.one[i].by && a->relief.one[i].left == b->relief.one[i].left;
    if (!same)
        fuzz_broken(sentence);
}

/* A member for each worker, so that they stay in order. */
static void write(const struct query *q, struct str *out)
{
    static const char *const names[] = {
        [EASED_BY_MAY] = "relieve", [EASED_BY_DELETION] = "deleted", [EASED_BY_WILL] = "will"};
    if (q->after >= 0)
        str_addf(out, "after=%" PRId64 "&", q->after);
    if (q->told)
        str_addf(out, "told=%" PRId64 "&", q->told);
    if (q->relieves)
        str_addf(out, "relieve=&stay=%d", q->relief.stay);
    for (int i = 0; i < q->relief.count; i++) {
        str_addf(out, "&%s=%d.%d", names[q->relief.one[i].by], q->relief.one[i].worker,
                 q->relief.one[i].attempt);
        if (q->relief.one[i].by == EASED_BY_WILL)
            str_addf(out, ".%" PRId64, q->relief.one[i].left / RM_S);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const bad[] = {"relieve=x", "deleted=1.", "stay=", "after=17x",
                                      "relieve=2", "told=x",     "x=1",   ""};
    struct query query, again;
    char *text = fuzz_text(data, size);
    struct str out = str_init(1 << 16);
    query_read(text, &query);
    check(&query);
    write(&query, &out);
    query_read(str_text(&out), &again);
    check_same(&query, &again, "what was read is read again as it was");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        str_reset(&out);
        str_addf(&out, "%s&%s", text, bad[i]);
        query_read(str_text(&out), &again);
        check_same(&query, &again, "a member that is not as it should be is as if it were absent");
    }
    str_clear(&out);
    free(text);
    return 0;
}
