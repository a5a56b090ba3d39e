/* The Accept header of GET /metrics, and a label's value: whatever is asked for, the page is one of two, and
 * a value stays on its line and between its quotes. */
#include <stdlib.h>
#include <string.h>

#include "common/wire/exposition.h"
#include "tests/fuzz/fuzz.h"

/* The end of a quoted value: the first quote that isn't escaped. */
static const char *end_of_value(const char *at)
{
    for (; *at && *at != '"' && *at != '\n'; at++)
        if (*at == '\\' && at[1])
            at++;
    return at;
}

static void check_value(const char *text)
{
    struct str out = str_init(1 << 20);
    struct exposition page = exposition_begin(&out, "", text);
    exposition_family(&page, EXPOSITION_GAUGE, "a", "A.");
    size_t head = out.length;
    exposition_sample(&page, "l", text, 1);
    const char *end = end_of_value(str_text(&out) + head + strlen("a{l=\""));
    if (strcmp(end, "\"} 1\n") != 0)
        fuzz_broken("a label's value ends where its sample does");
    str_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct str out = str_init(64);
    struct exposition page = exposition_begin(&out, "", text);
    if (page.openmetrics && !strcasestr(text, "openmetrics"))
        fuzz_broken("who gets OpenMetrics has asked for it");
    check_value(text);
    str_clear(&out);
    free(text);
    return 0;
}
