#include "cli/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/local_run.h"
#include "cli/local_run_state.h"
#include "cli/run_picture.h"
#include "common/os/clock.h"

static void show_head(struct console *console, const struct prepared *p)
{
    struct str out = str_init(16384);
    struct screen_facts facts = {.spec = &p->spec,
                                 .parameters = p->parameters,
                                 .data_files = p->data_files,
                                 .data_bytes = p->data_bytes,
                                 .resume_step = p->resume.found ? p->resume.entry.step : 0};
    if (!console->json)
        screen_head(&facts, console->style, &out);
    console_print(console, &out);
    str_clear(&out);
}

static void show_end(struct console *console, const struct prepared *p, const struct report *report)
{
    struct str out = str_init(1 << 16);
    if (!console->json)
        screen_end(report, &p->spec, console->style, clock_now(), &out);
    console_print(console, &out);
    str_clear(&out);
}

/* The run is what it is without its picture: trouble is told and goes no further. */
static void save_picture(struct console *console, const struct prepared *p, const struct report *report)
{
    struct error err = {0};
    struct str out = str_init(2 * RM_URI_MAX);
    if (!report->last_step_at)
        return;
    if (run_picture_write(p->store, p->spec.name, p->parameters, report, &err) < 0)
        console_say(console, "ringmaster: the picture of the run was not saved: %s", err.text);
    else if (!console->json)
        screen_picture(p->spec.checkpoint.uri, console->style, &out);
    console_print(console, &out);
    str_clear(&out);
}

/* The folder holds the last step already: said again, nothing is trained. */
static int complete_again(struct console *console, const struct prepared *p, struct report *report)
{
    const struct checkpoint_entry *entry = &p->resume.entry;
    if (console->json) {
        tell_complete_again(console, p);
        return 0;
    }
    report->ended = true;
    report->end = (struct event){
        .kind = EVENT_COMPLETE, .step = entry->step, .loss = NAN, .goodput = NAN, .exact = entry->exact};
    hex_encode(entry->weights_sha256, RM_HASH_BYTES, report->end.weights_sha256);
    struct str uri = str_init(RM_URI_MAX - 1);
    str_addf(&uri, "%s/%s", p->spec.checkpoint.uri, entry->name);
    text_copy(report->end.uri, sizeof report->end.uri, str_text(&uri));
    str_clear(&uri);
    show_end(console, p, report);
    return 0;
}

static int run_prepared(struct run_options *options, const struct prepared *p, struct error *err)
{
    struct console console;
    struct report *report = malloc(sizeof *report);
    if (!report)
        return err_set(err, ERR_MACHINE, "no memory for a run");
    struct local_run_options local = {.prepared = p,
                                      .drills = &options->drills,
                                      .console = &console,
                                      .report = report,
                                      .port = options->port};
    int code;
    console_init(&console, options->json);
    report_init(report, job_restarts(&p->spec) ? 0 : p->spec.steps,
                p->resume.found ? p->resume.entry.step : 0, clock_now());
    if (p->complete)
        code = complete_again(&console, p, report);
    else {
        show_head(&console, p);
        code = local_run_to_its_end(&local, err);
        show_end(&console, p, report);
        save_picture(&console, p, report);
    }
    free(report);
    return code;
}

int run_command(struct run_options *options, struct error *err)
{
    struct prepared *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ERR_MACHINE, "no memory for a run");
    int code = prepare(p, options, err);
    if (code == 0)
        code = run_prepared(options, p, err);
    prepared_clear(p);
    free(p);
    return code;
}
