/* The coordinator's events as `run` reads them, and the bookkeeping that they feed. */
#include <stdlib.h>
#include <string.h>

#include "cli/core/event.h"
#include "cli/core/report.h"
#include "tests/fuzz/fuzz.h"

static struct report report; /* large */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char *rest = text;
    report_init(&report, 100, 0, 0);
    for (rm_time now = 0; rest; now += RM_S) {
        char *line = strsep(&rest, "\n");
        struct event event;
        struct error err = {0};
        if (event_read(&event, line, strlen(line), &err) < 0) {
            fuzz_refused(&err);
            continue;
        }
        if (event.kind >= EVENT_KINDS || event.members < 0 || event.members > RM_WORKERS_MAX)
            fuzz_broken("an event is of a known kind, with no more members than a ring has");
        report_take(&report, &event, now);
    }
    free(text);
    return 0;
}
