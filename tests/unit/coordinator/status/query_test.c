#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/status/query.h"

static void print(const struct query *q, char *out, size_t size)
{
    int n = snprintf(out, size, "%" PRId64, q->after);
    if (q->told)
        n += snprintf(out + n, size - (size_t)n, " told %" PRId64, q->told);
    if (q->relieves)
        n += snprintf(out + n, size - (size_t)n, " stay %d:", q->relief.stay);
    for (int i = 0; i < q->relief.count; i++) {
        n += snprintf(out + n, size - (size_t)n, " %d.%d%s", q->relief.one[i].worker,
                      q->relief.one[i].attempt, q->relief.one[i].by == EASED_BY_DELETION ? " deleted" : "");
        if (q->relief.one[i].by == EASED_BY_WILL)
            n += snprintf(out + n, size - (size_t)n, " will %" PRId64, q->relief.one[i].left / RM_S);
    }
}

Test(query, what_is_not_as_it_should_be_is_as_if_it_were_absent)
{
    static const struct {
        const char *text, *is;
    } cases[] = {
        {"", "-1"},
        {"after=17", "17"},
        {"after=", "-1"},
        {"after=x", "-1"},
        {"after=17x", "-1"},
        {"before=17", "-1"},
        {"after=17&x", "17"},
        {"x=1&after=17", "17"},
        {"after=99999999999999999999", "-1"},
        {"after=17&told=41", "17 told 41"},
        {"told=41&told=x&relieve=2.1&stay=3", "-1 told 41 stay 3: 2.1"},
        {"told=-1", "-1"},
        {"told=41x&after=17", "17"},
        {"told=99999999999999999999", "-1"},
        {"relieve=2.1&stay=3", "-1 stay 3: 2.1"},
        {"after=17&relieve=2.1,4.3&stay=3", "17 stay 3: 2.1 4.3"},
        {"after=17&stay=3&relieve=2.1", "17 stay 3: 2.1"},
        {"after=17&relieve=", "17 stay 0:"},
        {"relieve=&deleted=5.1&stay=3", "-1 stay 3: 5.1 deleted"},
        {"relieve=2.1&deleted=4.1,5.2&stay=3", "-1 stay 3: 2.1 4.1 deleted 5.2 deleted"},
        {"relieve=2.1&deleted=4.1,5&stay=3", "-1 stay 3: 2.1"},
        {"relieve=2.1&will=2.1.110&stay=3", "-1 stay 3: 2.1 2.1 will 110"},
        {"will=2.1.110,3.2.0&relieve=2.1,3.2", "-1 stay 0: 2.1 will 110 3.2 will 0 2.1 3.2"},
        {"relieve=2.1&will=2.1&stay=3", "-1 stay 3: 2.1"},
        {"relieve=2.1&will=2.1.&stay=3", "-1 stay 3: 2.1"},
        {"relieve=2.1&will=2.1.110.4&stay=3", "-1 stay 3: 2.1"},
        {"relieve=2.1&will=2.1.110,&stay=3", "-1 stay 3: 2.1"},
        {"relieve=2.1&will=2.1.100000&stay=3", "-1 stay 3: 2.1"},
        {"will=2.1.110&stay=3", "-1"},
        {"deleted=5.1&stay=3", "-1"},
        {"after=17&stay=3", "17"},
        {"relieve=2", "-1"},
        {"relieve=2.", "-1"},
        {"relieve=2.1,", "-1"},
        {"relieve=2.1;3.1", "-1"},
        {"relieve=2.1,x&after=17", "17"},
        {"relieve=2.1&relieve=x&stay=3", "-1 stay 3: 2.1"},
        {"after=17&after=x&relieve=2.1&stay=3&stay=x", "17 stay 3: 2.1"},
        {"relieve=9999999999.1", "-1"},
        {"&&=&after", "-1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct query q;
        char text[200];
        query_read(cases[i].text, &q);
        print(&q, text, sizeof text);
        cr_expect_str_eq(text, cases[i].is, "%s: %s", cases[i].text, text);
    }
}

Test(query, more_workers_than_there_can_be_are_no_word)
{
    char text[RDZV_EASED_MAX * 8 + 32] = "relieve=0.1";
    struct query q;
    for (int i = 1; i <= RDZV_EASED_MAX; i++) {
        query_read(text, &q);
        cr_assert_eq(q.relief.count, i);
        snprintf(text + strlen(text), 8, ",%d.1", i);
    }
    query_read(text, &q);
    cr_assert(!q.relieves && !q.relief.count);
}
