#include "cli/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/console.h"
#include "cli/core/outlook.h"
#include "cli/prepare.h"
#include "cli/programs.h"
#include "common/os/pages.h"
#include "common/storage/data/feed_wire.h"

enum { OUTLOOK_MAX = 16384 };

static int fill_outlook(const struct prepared *p, struct outlook *o, struct error *err)
{
    *o = (struct outlook){.spec = &p->spec,
                          .parameters = p->parameters,
                          .data_files = p->data_files,
                          .data_bytes = p->data_bytes,
                          .data_tokens = p->data_tokens,
                          .data_samples = p->data_samples,
                          .checkpoint = p->resume.found ? p->resume.entry.name : NULL,
                          .resume_step = p->resume.found ? p->resume.entry.step : 0,
                          .complete = p->complete};
    o->machine_free = (int64_t)pages_available();
    if (job_data_is_remote(&p->spec))
        o->memory_data = FEED_BATCH_BYTES;
    struct trainer_needs needs = {0};
    if (!p->spec.launched && trainer_memory(&p->spec, &needs, err) < 0)
        return -1;
    o->memory_lane = needs.lane;
    o->memory_state = needs.state;
    o->memory_gpu = needs.gpu;
    return 0;
}

static void show_outlook(struct console *console, const struct outlook *o)
{
    struct str out = str_init(OUTLOOK_MAX);
    struct screen_facts facts = {.spec = o->spec,
                                 .parameters = o->parameters,
                                 .data_files = o->data_files,
                                 .data_bytes = o->data_bytes,
                                 .resume_step = o->complete ? 0 : o->resume_step};
    if (console->json) {
        struct js *all = outlook_json(o);
        js_print(all, &out);
        str_adds(&out, "\n");
        js_free(all);
    } else {
        screen_head(&facts, console->style, &out);
        outlook_text(o, console->style, &out);
    }
    console_print(console, &out);
    str_clear(&out);
}

int check_command(struct run_options *options, struct error *err)
{
    struct prepared *p = calloc(1, sizeof *p);
    struct console console;
    struct outlook outlook;
    if (!p)
        return err_set(err, ERR_MACHINE, "no memory for a job");
    options->look = true;
    int status = prepare(p, options, err);
    if (status == 0)
        status = fill_outlook(p, &outlook, err);
    if (status == 0) {
        console_init(&console, options->json);
        show_outlook(&console, &outlook);
    }
    prepared_clear(p);
    free(p);
    return status;
}
