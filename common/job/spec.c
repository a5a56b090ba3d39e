/* Reads and writes the effective spec, and answers questions about it that several programs ask. */
#include "common/job/spec.h"

#include <stdio.h>
#include <string.h>

#include "common/job/field.h"
#include "common/job/file.h"
#include "common/job/rules.h"
#include "common/wire/json.h"

enum { PATH_MAX_TEXT = 128 };

void job_spec_defaults(struct job_spec *ret)
{
    *ret = (struct job_spec){0};
    for (int i = 0; i < job_fields_count; i++) {
        if (!job_fields[i].fallback)
            continue;
        struct job_value value = value_of_plain(job_fields[i].fallback);
        field_assign(&job_fields[i], ret, &value, NULL); /* a test holds that every default fits */
    }
}

static struct js *list_json(const struct job_list *list)
{
    struct js *made = js_array();
    for (const char *at = NULL; (at = job_list_next(list, at));)
        js_push_string(made, at);
    return made;
}

/* The field as a JSON value: what field_show prints, with its type kept. */
static struct js *field_json(const struct job_field *field, const struct job_spec *spec)
{
    if (field->kind == JOB_FIELD_LIST)
        return list_json((const void *)((const char *)spec + field->offset));
    if (field->kind == JOB_FIELD_RULES)
        return job_rules_json((const void *)((const char *)spec + field->offset));
    if (field->kind == JOB_FIELD_REAL)
        return js_new_real(*(const double *)((const char *)spec + field->offset));
    struct str shown = str_init(RM_URI_MAX);
    field_show(field, spec, &shown);
    const char *text = str_text(&shown);
    struct job_value plain = value_of_plain(text);
    bool word = field->kind == JOB_FIELD_TEXT || field->kind == JOB_FIELD_URI;
    struct js *made;
    if (word && !(field->zero && !strcmp(field->zero, text)))
        made = js_new_string(text);
    else if (plain.kind == VALUE_INT)
        made = js_new_int(plain.whole);
    else if (plain.kind == VALUE_BOOL)
        made = js_new_bool(plain.flag);
    else
        made = plain.kind == VALUE_NULL ? js_new_null() : js_new_string(text);
    str_clear(&shown);
    return made;
}

/* "spec.trainer.steps" for "trainer.steps"; metadata.name stays. */
static void full_path(const struct job_field *field, char *out, size_t size)
{
    bool metadata = !strncmp(field->path, "metadata.", 9);
    snprintf(out, size, "%s%s", metadata ? "" : "spec.", field->path);
}

/* Sets object.a.b.c for "a.b.c", with the objects between made as needed. */
static void put_at_path(struct js *root, const char *path, struct js *value)
{
    char part[PATH_MAX_TEXT];
    struct js *object = root;
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(dot - path), path);
        if (!js_get(object, part))
            js_set(object, part, js_object());
        object = (struct js *)(uintptr_t)js_get(object, part);
    }
    js_set(object, path, value);
}

static const struct js *look_up(const struct js *object, const char *path)
{
    char part[PATH_MAX_TEXT];
    for (const char *dot; object && (dot = strchr(path, '.')); path = dot + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(dot - path), path);
        object = js_get(object, part);
    }
    return object ? js_get(object, path) : NULL;
}

/* Came later than the other fields. Where they say nothing they are not written, and not missed: the spec of
 * a job without them is the same as before there were any. */
static bool is_of_loss(const struct job_field *field)
{
    return field->offset == offsetof(struct job_spec, checkpoint.max_loss);
}

static bool is_of_paths(const struct job_field *field)
{
    return field->offset == offsetof(struct job_spec, checkpoint.process_paths);
}

static bool may_be_absent(const struct job_field *field)
{
    return field->kind == JOB_FIELD_RULES || is_of_loss(field) || is_of_paths(field);
}

static bool is_written(const struct job_field *field, const struct job_spec *spec)
{
    bool says = is_of_loss(field)                ? spec->checkpoint.every == JOB_AUTO
                : is_of_paths(field)             ? spec->checkpoint.process_paths.count > 0
                : field->kind == JOB_FIELD_RULES ? spec->failure_policy.rules.count > 0
                                                 : true;
    return job_field_applies(field, spec) && says;
}

void job_spec_write(const struct job_spec *spec, struct str *out)
{
    struct js *root = js_object();
    char path[PATH_MAX_TEXT];
    for (int i = 0; i < job_fields_count; i++) {
        if (!is_written(&job_fields[i], spec))
            continue;
        full_path(&job_fields[i], path, sizeof path);
        put_at_path(root, path, field_json(&job_fields[i], spec));
    }
    js_print_canonical(root, out);
    js_free(root);
}

/* False where an entry is no text, or there is no room for all. */
static bool list_of_json(const struct js *from, struct job_list *list)
{
    *list = (struct job_list){0};
    for (size_t i = 0; i < js_size(from); i++) {
        const char *text = js_as_string(js_at(from, i));
        if (!text || !job_list_add(list, text))
            return false;
    }
    return true;
}

/* list: room for the entries of one. */
static struct job_value value_of_json(const struct js *from, struct job_list *list)
{
    struct job_value value = {.kind = VALUE_NULL};
    switch (js_kind(from)) {
    case JS_NULL:
        break;
    case JS_BOOL:
        value.kind = VALUE_BOOL;
        js_as_bool(from, &value.flag);
        break;
    case JS_INT:
        value.kind = VALUE_INT;
        js_as_int(from, &value.whole);
        break;
    case JS_REAL:
        value.kind = VALUE_REAL;
        js_as_real(from, &value.real);
        break;
    case JS_STRING:
        value.kind = VALUE_TEXT;
        value.text = js_as_string(from);
        break;
    case JS_ARRAY:
        value.kind = VALUE_LIST;
        value.json = from;
        value.list = list_of_json(from, list) ? list : NULL;
        break;
    case JS_OBJECT:
        value.kind = VALUE_MAP;
        break;
    }
    return value;
}

/* The path in front of a sentence that begins with "is". */
static int err_place(struct error *err, const char *path)
{
    struct error why = *err;
    return err_set(err, why.code, "%s %s", path, why.text);
}

/* Is the group, "trainer", say, in the object's spec? */
static bool has_group(const struct js *object, const char *group)
{
    const struct js *found = js_get(js_get(object, "spec"), group);
    return found && js_kind(found) != JS_NULL;
}

static int choose_mode(struct job_spec *spec, const struct js *object, struct error *err)
{
    const char *at;
    bool trainer = has_group(object, "trainer"), launch = has_group(object, "launch");
    return job_spec_choose(spec, trainer, launch, &at, err) < 0 ? err_place(err, at) : 0;
}

/* A program without a store has no fields of checkpoints, or all that must be there. */
static bool is_asked_for(const struct job_field *field, const struct job_spec *spec, const struct js *object)
{
    return job_field_applies(field, spec) ||
           (!strncmp(field->path, "checkpoint.", 11) && has_group(object, "checkpoint"));
}

static int read_fields(struct job_spec *spec, const struct js *root, struct error *err)
{
    char path[PATH_MAX_TEXT];
    struct job_list list;
    if (choose_mode(spec, root, err) < 0)
        return -1;
    for (int i = 0; i < job_fields_count; i++) {
        if (!is_asked_for(&job_fields[i], spec, root))
            continue;
        full_path(&job_fields[i], path, sizeof path);
        const struct js *found = look_up(root, path);
        if (!found && may_be_absent(&job_fields[i]))
            continue;
        if (!found)
            return err_set(err, ERR_PROTOCOL, "%s is missing", path);
        struct job_value value = value_of_json(found, &list);
        if (field_assign(&job_fields[i], spec, &value, err) < 0)
            return err_place(err, path);
    }
    const char *at;
    if (job_spec_check(spec, &at, err) == 0)
        return 0;
    snprintf(path, sizeof path, "spec.%s", at);
    return err_place(err, path);
}

int job_spec_read(struct job_spec *ret, const char *json, size_t length, struct error *err)
{
    struct error ignored;
    err = err ? err : &ignored;
    struct js *root = js_parse(json, length, "job", err);
    if (!root)
        return -1;
    struct job_spec spec;
    job_spec_defaults(&spec); /* what belongs to the group that it has not */
    int status = read_fields(&spec, root, err);
    js_free(root);
    if (status == 0)
        *ret = spec;
    return status;
}

/* A plain path means a folder beside a job file; an object in a cluster lies beside nothing. */
static int take_uri(const char *uri, char *out, struct error *err)
{
    if (!strstr(uri, "://"))
        return err_set(err, ERR_USAGE,
                       "is %.200s; write s3://bucket/prefix, or file:///path with a volume mounted there",
                       uri);
    return job_uri_resolve(uri, "", out, err);
}

static int take_field(struct job_spec *spec, const struct job_field *field, const struct js *found,
                      struct error *err)
{
    struct job_list list;
    if (!found || js_kind(found) == JS_NULL) {
        if (field->required)
            return err_set(err, ERR_USAGE, "is missing; set it (%s)", field->help);
        return 0;
    }
    struct job_value value = value_of_json(found, &list);
    if (field_assign(field, spec, &value, err) < 0)
        return -1;
    if (field->kind == JOB_FIELD_URI && value.kind == VALUE_TEXT)
        return take_uri(value.text, (char *)spec + field->offset, err);
    return 0;
}

int job_spec_from_object(struct job_spec *ret, const struct js *object, struct error *err)
{
    char path[PATH_MAX_TEXT];
    struct error ignored;
    struct job_spec spec;
    err = err ? err : &ignored;
    job_spec_defaults(&spec);
    if (choose_mode(&spec, object, err) < 0)
        return -1;
    for (int i = 0; i < job_fields_count; i++) {
        full_path(&job_fields[i], path, sizeof path);
        if (job_restarts(&spec) && job_field_is_of_elastic(&job_fields[i]) && look_up(object, path))
            return err_set(err, ERR_USAGE, "%s " JOB_FIELD_ELASTIC_ALONE, path);
        if (!is_asked_for(&job_fields[i], &spec, object))
            continue;
        if (take_field(&spec, &job_fields[i], look_up(object, path), err) < 0)
            return err_place(err, path);
    }
    const char *at = "";
    job_spec_fill(&spec);
    if (job_spec_check(&spec, &at, err) < 0) {
        snprintf(path, sizeof path, "%s%s", strncmp(at, "metadata.", 9) ? "spec." : "", at);
        return err_place(err, path);
    }
    *ret = spec;
    return 0;
}

void job_spec_write_compared(const struct job_spec *spec, struct str *out)
{
    struct js *root = js_object();
    for (int i = 0; i < job_fields_count; i++)
        if (job_fields[i].compared && job_field_applies(&job_fields[i], spec))
            js_set(root, job_fields[i].path, field_json(&job_fields[i], spec));
    js_print_canonical(root, out);
    js_free(root);
}

static int differs(const struct job_field *field, const struct js *here, const struct js *there,
                   struct error *err)
{
    struct str a = str_init(RM_URI_MAX), b = str_init(RM_URI_MAX);
    js_print(here, &a);
    if (there)
        js_print(there, &b);
    int status = 0;
    if (!there)
        status = err_set(err, ERR_USAGE, "spec.%s is not in the checkpoint", field->path);
    else if (strcmp(str_text(&a), str_text(&b)) != 0)
        status = err_set(err, ERR_USAGE, "spec.%s is %s here and %s in the checkpoint", field->path,
                         str_text(&a), str_text(&b));
    str_clear(&a);
    str_clear(&b);
    return status;
}

static int compare(const struct job_spec *spec, const struct js *there, struct error *err)
{
    size_t known = 0;
    for (int i = 0; i < job_fields_count; i++) {
        if (!job_fields[i].compared || !job_field_applies(&job_fields[i], spec))
            continue;
        known++;
        struct js *here = field_json(&job_fields[i], spec);
        int status = differs(&job_fields[i], here, js_get(there, job_fields[i].path), err);
        js_free(here);
        if (status < 0)
            return -1;
    }
    for (void *it = js_first(there); it && js_size(there) > known; it = js_next(there, it)) {
        const struct job_field *field = job_field_find(js_key(it));
        if (!field || !field->compared)
            return err_set(err, ERR_USAGE,
                           "the checkpoint was made with spec.%s, which this program does not know",
                           js_key(it));
    }
    return 0;
}

int job_spec_compare(const struct job_spec *spec, const char *compared_json, size_t length, struct error *err)
{
    struct js *there = js_parse(compared_json, length, "the checkpoint's job fields", err);
    if (!there)
        return -1;
    int status = compare(spec, there, err);
    js_free(there);
    return status;
}
