/* What whoever answers at a machine's port tells of its end: notices that are read are among those that there
 * are, within their room and the time that is believed, and are read again as they were when written. */
#include <string.h>

#include "common/notice/page.h"
#include "tests/fuzz/fuzz.h"

static void check(const struct notice *n, rm_time now)
{
    if ((unsigned)n->source >= NOTICE_SOURCES || (unsigned)n->cause >= NOTICE_CAUSES)
        fuzz_broken("a notice has a source and a cause");
    if (strnlen(n->id, sizeof n->id) == sizeof n->id)
        fuzz_broken("an id ends within its room");
    if (n->until != RM_NEVER && (n->until < now || n->until > now + 7200 * RM_S))
        fuzz_broken("a deadline lies within twice what is promised");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rm_time now = 1000 * RM_S;
    struct notice_page page, again;
    struct error err = {0};
    struct watch watch;
    struct str text = str_init(NOTICE_PAGE_MAX);
    if (notice_page_read((const char *)data, size, now, &page, &err) < 0) {
        fuzz_refused(&err);
        return 0;
    }
    for (int i = 0; i < page.notices.count; i++)
        check(&page.notices.at[i], now);
    watch_init(&watch, page.revision, now);
    watch.notices = page.notices;
    watch.complete = page.complete;
    notice_page_write(&watch, now, &text);
    if (notice_page_read(str_text(&text), text.length, now, &again, &err) < 0 ||
        again.notices.count != page.notices.count || again.complete != page.complete)
        fuzz_broken("what is written is read as it was");
    str_clear(&text);
    return 0;
}
