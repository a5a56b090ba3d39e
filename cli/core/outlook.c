#include "cli/core/outlook.h"

#include <stdio.h>

#include "common/base/assert.h"
#include "common/job/field.h"
#include "common/model/arrays.h"

int64_t outlook_step_tokens(const struct outlook *o)
{
    const struct job_spec *s = o->spec;
    return (int64_t)s->batch.lanes * s->batch.lane_sequences * s->model.shape.context;
}

double outlook_passes(const struct outlook *o)
{
    RM_ASSERT(o->data_samples >= 0, "%lld samples", (long long)o->data_samples);
    const struct job_spec *s = o->spec;
    double samples = (double)s->steps * s->batch.lanes * s->batch.lane_sequences;
    return o->data_samples ? samples / (double)o->data_samples : 0;
}

int64_t outlook_checkpoint_bytes(const struct outlook *o)
{
    RM_ASSERT(o->parameters >= 0, "a model of %lld parameters", (long long)o->parameters);
    return MODEL_ARRAYS * (int64_t)sizeof(float) * o->parameters;
}

/* What agent and trainer take whatever the model is: measured, 16 MB of both. */
enum { PROCESSES_BYTES = 20 * 1000 * 1000 };

static int64_t memory_without_snapshots(const struct outlook *o)
{
    RM_ASSERT(o->memory_lane >= 0 && o->memory_state >= 0 && o->memory_data >= 0,
              "%lld bytes of lanes, %lld of state", (long long)o->memory_lane, (long long)o->memory_state);
    return PROCESSES_BYTES + o->memory_lane + o->memory_state + o->memory_data;
}

/* Where checkpoints are written on the way the memory for them is taken at the start, and kept. */
int64_t outlook_memory(const struct outlook *o)
{
    bool on_the_way = o->spec->checkpoint.every_steps || o->spec->checkpoint.every;
    return memory_without_snapshots(o) + (on_the_way ? outlook_checkpoint_bytes(o) : 0);
}

/* Beside it lies one that is loaded where another state is held, or what one that was written is read through
 * to verify it, which is less. */
int64_t outlook_memory_most(const struct outlook *o)
{
    return memory_without_snapshots(o) + 2 * outlook_checkpoint_bytes(o);
}

static void label(const char *name, struct screen_style style, struct str *out)
{
    str_addf(out, style.colour ? "\033[2m  %-10s \033[0m" : "  %-10s ", name);
}

static void memory(const struct outlook *o, struct screen_style style, struct str *out)
{
    int target = o->spec->workers.target;
    label("memory", style, out);
    show_bytes(outlook_memory(o), out);
    str_adds(out, " a worker with its agent; ");
    show_bytes(outlook_memory_most(o), out);
    str_adds(out, " for a moment, while a checkpoint is read or verified; ");
    show_bytes(target * outlook_memory_most(o), out);
    str_addf(out, " with %d\n", target);
    if (o->memory_gpu) {
        label("", style, out);
        show_bytes(o->memory_gpu, out);
        str_adds(out, " of a GPU each\n");
    }
    if (!o->machine_free || target * outlook_memory_most(o) <= o->machine_free)
        return;
    label("", style, out);
    str_adds(out, "this machine has ");
    show_bytes(o->machine_free, out);
    str_addf(out, " left: under `ringmaster run` %d of them don't fit\n", target);
}

static void resume(const struct outlook *o, struct screen_style style, struct str *out)
{
    label("resume", style, out);
    if (o->complete)
        str_addf(
            out,
            "nothing left to train: %s is of the last step; ringmaster run FILE --overwrite trains again\n",
            o->checkpoint);
    else if (o->checkpoint)
        str_addf(out, "it would go on from %s, step %lld\n", o->checkpoint, (long long)o->resume_step);
    else
        str_adds(out, "no checkpoint here: it would begin at step 0\n");
}

static void numbers(const struct outlook *o, struct screen_style style, struct str *out)
{
    const struct job_spec *s = o->spec;
    label("step", style, out);
    show_count(outlook_step_tokens(o), out);
    str_adds(out, " tokens, ");
    show_count(outlook_step_tokens(o) * s->steps, out);
    str_addf(out, " in all: %.2f passes over ", outlook_passes(o));
    show_count(o->data_samples * s->model.shape.context, out);
    str_adds(out, " tokens of training data\n");
    memory(o, style, out);
    label("checkpoint", style, out);
    show_bytes(outlook_checkpoint_bytes(o), out);
    str_addf(out, "; the newest %d and the final one are kept\n", s->checkpoint.keep);
}

static void saves(const struct job_spec *s, struct screen_style style, struct str *out)
{
    if (s->checkpoint.every != JOB_AUTO)
        return;
    label("saves", style, out);
    str_adds(out, "after a minute, and then as often as it pays: ");
    duration_show(s->checkpoint.max_loss, out);
    str_adds(out, " apart at most, by what a save costs and how often all workers are lost at once\n");
}

void outlook_text(const struct outlook *o, struct screen_style style, struct str *out)
{
    if (!o->spec->launched)
        numbers(o, style, out);
    saves(o->spec, style, out);
    if (!job_restarts(o->spec))
        resume(o, style, out);
    str_addf(out, "%sNo problem found in what `ringmaster run` looks at; nothing was started.\n",
             job_restarts(o->spec) ? "" : "\n");
}

static struct js *resume_json(const struct outlook *o)
{
    struct js *from = js_object();
    if (!o->checkpoint) {
        js_free(from);
        return js_new_null();
    }
    js_set_string(from, "checkpoint", o->checkpoint);
    js_set_int(from, "step", o->resume_step);
    js_set_bool(from, "complete", o->complete);
    return from;
}

static void numbers_json(const struct outlook *o, struct js *all)
{
    js_set_int(all, "parameters", o->parameters);
    js_set_int(all, "dataFiles", o->data_files);
    js_set_int(all, "dataBytes", o->data_bytes);
    js_set_int(all, "dataTokens", o->data_tokens);
    js_set_int(all, "tokensPerStep", outlook_step_tokens(o));
    js_set_real(all, "passes", outlook_passes(o));
    js_set_int(all, "workerBytes", outlook_memory(o));
    js_set_int(all, "workerBytesMost", outlook_memory_most(o));
    if (o->memory_gpu)
        js_set_int(all, "gpuBytes", o->memory_gpu);
    js_set_int(all, "checkpointBytes", outlook_checkpoint_bytes(o));
}

struct js *outlook_json(const struct outlook *o)
{
    struct js *all = js_object();
    js_set_string(all, "job", o->spec->name);
    js_set_int(all, "workers", o->spec->workers.target);
    if (o->spec->checkpoint.every == JOB_AUTO)
        js_set_int(all, "maxLossSeconds", o->spec->checkpoint.max_loss / RM_S);
    if (!o->spec->launched)
        numbers_json(o, all);
    if (job_restarts(o->spec))
        return all;
    js_set_int(all, "steps", o->spec->steps);
    js_set(all, "resume", resume_json(o));
    return all;
}
