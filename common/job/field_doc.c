#include <string.h>

#include "common/job/field.h"

static void add_whole_bound(const struct job_field *f, double bound, struct str *out)
{
    if (f->kind == JOB_FIELD_TIME)
        duration_show((rm_time)bound, out);
    else
        str_addf(out, "%.7g", bound);
}

static void add_values(const struct job_field *f, struct str *out)
{
    switch (f->kind) {
    case JOB_FIELD_BOOL:
        str_adds(out, "true, false");
        break;
    case JOB_FIELD_TEXT:
        str_adds(out, "text");
        break;
    case JOB_FIELD_URI:
        str_adds(out, f->file ? "file or URI" : "folder or URI");
        break;
    case JOB_FIELD_RULES:
        str_addf(out, "list of at most %d rules", JOB_RULES_MAX);
        break;
    case JOB_FIELD_LIST:
        str_addf(out, "list of %d to %d words", (int)f->lowest, (int)f->highest);
        break;
    case JOB_FIELD_CHOICE:
    case JOB_FIELD_SWITCH:
    case JOB_FIELD_FIXED:
        for (int i = 0; i < JOB_FIELD_WORDS_MAX && f->words[i]; i++)
            str_addf(out, "%s%s", i ? ", " : "", f->words[i]);
        break;
    case JOB_FIELD_SEED:
        str_adds(out, "0 to 2^63 - 1");
        break;
    default:
        add_whole_bound(f, f->lowest, out);
        str_adds(out, " to ");
        add_whole_bound(f, f->highest, out);
        str_addf(out, "%s%s", f->own_time ? ", " : "", f->own_time ? f->own_time : "");
    }
}

/* A job has one of trainer and launch; only of a program that is restarted is no checkpoint. */
static const char *required_when(const struct job_field *f)
{
    if (!strcmp(f->path, "launch.steps"))
        return "**required** in mode Elastic";
    if (!strncmp(f->path, "launch.", strlen("launch.")))
        return "**required** with launch";
    if (!strcmp(f->path, "checkpoint.uri"))
        return "**required**, but not in mode Restart";
    return "**required**";
}

void job_fields_markdown(struct str *out)
{
    str_adds(out, "| field | default | values | compared | meaning |\n|---|---|---|---|---|\n");
    for (int i = 0; i < job_fields_count; i++) {
        const struct job_field *f = &job_fields[i];
        const char *none = f->kind == JOB_FIELD_LIST ? "[]" : "see text";
        const char *fallback = f->fallback ? f->fallback : f->required ? required_when(f) : none;
        str_addf(out, "| `%s` | %s | ", f->path, strcmp(fallback, "null") ? fallback : "none");
        add_values(f, out);
        str_addf(out, " | %s | %s |\n", f->compared ? "yes" : "", f->help);
    }
}
