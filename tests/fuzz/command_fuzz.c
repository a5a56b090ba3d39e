/* The lines that `run` writes to its coordinator. What is accepted names workers that can be. */
#include <stdlib.h>

#include "coordinator/core/rdzv.h"
#include "coordinator/status/rdzv_text.h"
#include "tests/fuzz/fuzz.h"

static void check_accepted(const struct rdzv_event *event)
{
    if (event->kind == RDZV_EXPECT) {
        if (event->expect.count < 0 || event->expect.count > RM_WORKERS_MAX)
            fuzz_broken("no more workers are expected than a ring has");
        for (int i = 0; i < event->expect.count; i++)
            if (event->expect.worker[i].worker < 0 || event->expect.worker[i].worker >= RM_WORKERS_MAX)
                fuzz_broken("an expected worker has a place in the ring");
    } else if (event->kind == RDZV_ACT) {
        if (event->act.worker < 0 || event->act.worker >= RM_WORKERS_MAX || !cause_name(event->act.cause))
            fuzz_broken("a drill strikes a worker, for a cause with a name");
    } else if (event->kind != RDZV_INTERRUPT) {
        fuzz_broken("run says nothing else");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rdzv_event event;
    struct error err = {0};
    char *text = fuzz_text(data, size);
    if (rdzv_command_read(&event, text, size, &err) == 0)
        check_accepted(&event);
    else
        fuzz_refused(&err);
    free(text);
    return 0;
}
