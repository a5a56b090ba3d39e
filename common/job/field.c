/* Walks the rows of a job's fields: reads, writes, compares and prints whatever a row says is there. */
#include "common/job/field.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/near.h"
#include "common/job/rules.h"
#include "common/wire/json.h"

static bool among(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strcmp(text, *words))
            return true;
    return false;
}

static bool looks_real(const char *text)
{
    size_t digits = 0;
    for (const char *p = text; *p; p++) {
        if (isdigit((unsigned char)*p))
            digits++;
        else if (!strchr("+-.eE", *p))
            return false;
    }
    return digits > 0;
}

struct job_value value_of_plain(const char *text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    if (among(text, nulls))
        return (struct job_value){.kind = VALUE_NULL};
    if (among(text, yes) || among(text, no))
        return (struct job_value){.kind = VALUE_BOOL, .flag = among(text, yes)};
    struct job_value value = {.kind = VALUE_TEXT, .text = text};
    char *end;
    bool hex = !strncmp(text, "0x", 2);
    if (hex || looks_real(text)) {
        errno = 0;
        value.whole = strtoll(text, &end, hex ? 16 : 10);
        if (!*end && !errno) {
            value.kind = VALUE_INT;
            return value;
        }
    }
    if (!hex && looks_real(text)) {
        value.real = strtod(text, &end);
        if (!*end)
            value.kind = VALUE_REAL;
    }
    return value;
}

bool duration_parse(const char *text, rm_time *ret)
{
    static const struct {
        const char *name;
        rm_time unit;
    } units[] = {{"ms", RM_MS}, {"s", RM_S}, {"m", 60 * RM_S}, {"h", 3600 * RM_S}};
    const rm_time ceiling = (rm_time)100 * 366 * 24 * 3600 * RM_S;
    rm_time total = 0;
    if (!*text)
        return false;
    while (*text) {
        if (!isdigit((unsigned char)*text))
            return false;
        char *end;
        errno = 0;
        long long number = strtoll(text, &end, 10);
        size_t i = 0, letters = strspn(end, "mhs");
        while (i < 4 && (strlen(units[i].name) != letters || strncmp(units[i].name, end, letters)))
            i++;
        if (errno || i == 4 || number > (ceiling - total) / units[i].unit)
            return false;
        total += number * units[i].unit;
        text = end + letters;
    }
    *ret = total;
    return true;
}

void duration_show(rm_time t, struct str *out)
{
    if (t % (3600 * RM_S) == 0 && t)
        str_addf(out, "%lldh", (long long)(t / (3600 * RM_S)));
    else if (t % (60 * RM_S) == 0 && t)
        str_addf(out, "%lldm", (long long)(t / (60 * RM_S)));
    else if (t % RM_S == 0)
        str_addf(out, "%llds", (long long)(t / RM_S));
    else
        str_addf(out, "%lldms", (long long)(t / RM_MS));
}

/* The shortest decimal that reads back as the same number. */
static void real_show(double x, struct str *out)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    str_adds(out, text);
}

static void value_show(const struct job_value *value, char *out, size_t size)
{
    struct str s = str_init(size - 1);
    switch (value->kind) {
    case VALUE_NULL:
        str_adds(&s, "empty");
        break;
    case VALUE_BOOL:
        str_adds(&s, value->flag ? "true" : "false");
        break;
    case VALUE_INT:
        str_addf(&s, "%lld", (long long)value->whole);
        break;
    case VALUE_REAL:
        real_show(value->real, &s);
        break;
    case VALUE_TEXT:
        str_addf(&s, "\"%.60s\"", value->text);
        break;
    case VALUE_LIST:
        str_adds(&s, "a list");
        break;
    case VALUE_MAP:
        str_adds(&s, "a group of fields");
        break;
    }
    text_copy(out, size, str_text(&s));
    str_clear(&s);
}

static void *member(const struct job_field *field, const struct job_spec *spec)
{
    return (char *)(uintptr_t)spec + field->offset;
}

static int refuse_value(const struct job_value *value, const char *wanted, struct error *err)
{
    char shown[80];
    value_show(value, shown, sizeof shown);
    return err_set(err, ERR_USAGE, "is %s; write %s", shown, wanted);
}

static void bound_show(const struct job_field *field, double bound, struct str *out)
{
    if (field->kind == JOB_FIELD_TIME)
        duration_show((rm_time)bound, out);
    else if (field->kind != JOB_FIELD_REAL)
        str_addf(out, "%lld", (long long)bound);
    else
        real_show(bound, out);
}

static int refuse_bounds(const struct job_field *field, const struct job_value *value, struct error *err)
{
    struct str wanted = str_init(128);
    bool whole =
        field->kind == JOB_FIELD_INT || field->kind == JOB_FIELD_LONG || field->kind == JOB_FIELD_SEED;
    str_adds(&wanted, field->kind == JOB_FIELD_TIME ? "a duration from "
                      : whole                       ? "a whole number from "
                                                    : "a number from ");
    bound_show(field, field->lowest, &wanted);
    str_adds(&wanted, " to ");
    bound_show(field, field->highest, &wanted);
    if (field->own_time)
        str_addf(&wanted, ", %s", field->own_time);
    if (field->zero)
        str_addf(&wanted, ", or %s", field->zero);
    refuse_value(value, str_text(&wanted), err);
    str_clear(&wanted);
    return -1;
}

/* Is text one of the words in the space-separated list? */
static bool listed(const char *list, const char *text)
{
    size_t length = strlen(text);
    while (list && *list && length) {
        size_t word = strcspn(list, " ");
        if (word == length && !strncmp(list, text, length))
            return true;
        list += word + (list[word] == ' ');
    }
    return false;
}

static int assign_whole(const struct job_field *field, struct job_spec *spec, const struct job_value *value,
                        struct error *err)
{
    if (value->kind == VALUE_TEXT && listed(field->depends, value->text))
        return err_set(
            err, ERR_USAGE,
            "is %s, which differs from machine to machine, and the number of ranks must not; write a whole "
            "number from %d to %d",
            value->text, (int)field->lowest, (int)field->highest);
    if (value->kind != VALUE_INT || (double)value->whole < field->lowest ||
        (double)value->whole > field->highest)
        return refuse_bounds(field, value, err);
    void *to = member(field, spec);
    if (field->kind == JOB_FIELD_INT)
        *(int *)to = (int)value->whole;
    else if (field->kind == JOB_FIELD_LONG)
        *(int64_t *)to = value->whole;
    else
        *(uint64_t *)to = (uint64_t)value->whole;
    return 0;
}

static int assign_real(const struct job_field *field, struct job_spec *spec, const struct job_value *value,
                       struct error *err)
{
    double x = value->kind == VALUE_INT ? (double)value->whole : value->real;
    bool number = value->kind == VALUE_INT || value->kind == VALUE_REAL;
    if (!number || !isfinite(x) || x < field->lowest || x > field->highest)
        return refuse_bounds(field, value, err);
    *(double *)member(field, spec) = x;
    return 0;
}

static int assign_time(const struct job_field *field, struct job_spec *spec, const struct job_value *value,
                       struct error *err)
{
    rm_time t;
    if (value->kind == VALUE_TEXT && field->own_time && !strcmp(value->text, field->own_time)) {
        *(rm_time *)member(field, spec) = JOB_AUTO;
        return 0;
    }
    if (value->kind != VALUE_TEXT || !duration_parse(value->text, &t))
        return refuse_value(value,
                            field->own_time ? "Auto, or a duration such as 500ms, 10s, 5m or 1h"
                                            : "a duration such as 500ms, 10s, 5m or 1h",
                            err);
    if ((double)t < field->lowest || (double)t > field->highest)
        return refuse_bounds(field, value, err);
    *(rm_time *)member(field, spec) = t;
    return 0;
}

static int assign_word(const struct job_field *field, struct job_spec *spec, const struct job_value *value,
                       struct error *err)
{
    struct str wanted = str_init(256);
    struct near near = near_to(value->kind == VALUE_TEXT ? value->text : "");
    int found = -1;
    for (int i = 0; i < JOB_FIELD_WORDS_MAX && field->words[i]; i++) {
        near_try(&near, field->words[i], strlen(field->words[i]));
        if (value->kind == VALUE_TEXT && !strcmp(field->words[i], value->text))
            found = i;
        str_addf(&wanted, "%s%s", i ? " or " : "", field->words[i]);
    }
    str_adds(&wanted, near.question);
    if (found < 0)
        refuse_value(value, str_text(&wanted), err);
    else if (field->kind == JOB_FIELD_CHOICE)
        *(int *)member(field, spec) = found;
    else if (field->kind == JOB_FIELD_SWITCH)
        *(bool *)member(field, spec) = found == 1;
    str_clear(&wanted);
    return found < 0 ? -1 : 0;
}

_Static_assert(sizeof(enum job_reduction) == sizeof(int), "assign_word writes enums as int");

static int assign_text(const struct job_field *field, struct job_spec *spec, const struct job_value *value,
                       struct error *err)
{
    if (value->kind != VALUE_TEXT || !*value->text)
        return refuse_value(value,
                            field->kind != JOB_FIELD_URI ? "text (in quotes)"
                            : field->file                ? "a file, as a path or file:// URI"
                                                         : "a folder, as a path or file:// URI",
                            err);
    if (strlen(value->text) >= field->size)
        return err_set(err, ERR_USAGE, "is longer than %zu characters; shorten it", field->size - 1);
    for (const unsigned char *p = (const unsigned char *)value->text; *p; p++)
        if (*p < ' ')
            return err_set(err, ERR_USAGE,
                           "holds a line break or another control character; write it in one line");
    text_copy(member(field, spec), field->size, value->text);
    return 0;
}

static int assign_list(const struct job_field *field, struct job_spec *spec, const struct job_value *value,
                       struct error *err)
{
    const struct job_list *list = value->list;
    for (const char *at = NULL; list && (at = job_list_next(list, at));)
        for (const unsigned char *p = (const unsigned char *)at; *p; p++)
            if (*p < ' ' && *p != '\t' && *p != '\n')
                return err_set(err, ERR_USAGE, "holds a control character; write plain text");
    if (value->kind == VALUE_LIST && !list)
        return err_set(
            err, ERR_USAGE,
            "has an entry that is no text, or is longer than %d entries or %d bytes; write each word in "
            "quotes",
            JOB_LIST_MAX, JOB_LIST_BYTES);
    if (value->kind != VALUE_LIST)
        return refuse_value(value, "a list of words, as [python, train.py]", err);
    if (list->count < field->lowest || list->count > field->highest)
        return err_set(err, ERR_USAGE, "has %d entries; write %d to %d", list->count, (int)field->lowest,
                       (int)field->highest);
    *(struct job_list *)member(field, spec) = *list;
    return 0;
}

static int assign_rules(const struct job_field *field, struct job_spec *spec, const struct job_value *value,
                        struct error *err)
{
    return job_rules_read(member(field, spec), value->kind == VALUE_LIST ? value->json : NULL, err);
}

static bool is_zero_word(const struct job_field *field, const struct job_value *value)
{
    if (!field->zero)
        return false;
    if (value->kind == VALUE_NULL)
        return !strcmp(field->zero, "null");
    return value->kind == VALUE_TEXT && !strcmp(field->zero, value->text);
}

int field_assign(const struct job_field *field, struct job_spec *spec, const struct job_value *value,
                 struct error *err)
{
    if (is_zero_word(field, value)) {
        memset(member(field, spec), 0, field->size);
        return 0;
    }
    switch (field->kind) {
    case JOB_FIELD_INT:
    case JOB_FIELD_LONG:
    case JOB_FIELD_SEED:
        return assign_whole(field, spec, value, err);
    case JOB_FIELD_REAL:
        return assign_real(field, spec, value, err);
    case JOB_FIELD_BOOL:
        if (value->kind != VALUE_BOOL)
            return refuse_value(value, "true or false", err);
        *(bool *)member(field, spec) = value->flag;
        return 0;
    case JOB_FIELD_TIME:
        return assign_time(field, spec, value, err);
    case JOB_FIELD_TEXT:
    case JOB_FIELD_URI:
        return assign_text(field, spec, value, err);
    case JOB_FIELD_LIST:
        return assign_list(field, spec, value, err);
    case JOB_FIELD_RULES:
        return assign_rules(field, spec, value, err);
    default:
        return assign_word(field, spec, value, err);
    }
}

static void show_rules(const struct job_rules *rules, struct str *out)
{
    struct js *json = job_rules_json(rules);
    js_print(json, out);
    js_free(json);
}

/* YAML and JSON have it so: ["python", "train.py"]. */
static void show_list(const struct job_list *list, struct str *out)
{
    str_adds(out, "[");
    for (const char *at = NULL; (at = job_list_next(list, at));)
        str_addf(out, "%s\"%s\"", at == list->text ? "" : ", ", at);
    str_adds(out, "]");
}

static void show_whole(const struct job_field *field, long long whole, struct str *out)
{
    if (!whole && field->zero)
        str_adds(out, field->zero);
    else
        str_addf(out, "%lld", whole);
}

static void show_time(const struct job_field *field, rm_time t, struct str *out)
{
    if (!t && field->zero)
        str_adds(out, field->zero);
    else if (t == JOB_AUTO && field->own_time)
        str_adds(out, field->own_time);
    else
        duration_show(t, out);
}

void field_show(const struct job_field *field, const struct job_spec *spec, struct str *out)
{
    const void *at = member(field, spec);
    switch (field->kind) {
    case JOB_FIELD_INT:
        show_whole(field, *(const int *)at, out);
        break;
    case JOB_FIELD_LONG:
    case JOB_FIELD_SEED: /* at most 2^63 - 1 by its bound */
        show_whole(field, *(const int64_t *)at, out);
        break;
    case JOB_FIELD_REAL:
        real_show(*(const double *)at, out);
        break;
    case JOB_FIELD_BOOL:
        str_adds(out, *(const bool *)at ? "true" : "false");
        break;
    case JOB_FIELD_CHOICE:
        str_adds(out, field->words[*(const int *)at]);
        break;
    case JOB_FIELD_SWITCH:
        str_adds(out, field->words[*(const bool *)at]);
        break;
    case JOB_FIELD_FIXED:
        str_adds(out, field->words[0]);
        break;
    case JOB_FIELD_TEXT:
    case JOB_FIELD_URI:
        str_adds(out, *(const char *)at || !field->zero ? (const char *)at : field->zero);
        break;
    case JOB_FIELD_TIME:
        show_time(field, *(const rm_time *)at, out);
        break;
    case JOB_FIELD_LIST:
        show_list(at, out);
        break;
    case JOB_FIELD_RULES:
        show_rules(at, out);
        break;
    }
}

const char *job_list_next(const struct job_list *list, const char *at)
{
    const char *next = at ? at + strlen(at) + 1 : list->text;
    int before = 0;
    for (const char *p = list->text; p < next; p += strlen(p) + 1)
        before++;
    return before < list->count ? next : NULL;
}

bool job_list_add(struct job_list *list, const char *text)
{
    size_t used = 0, size = strlen(text) + 1;
    for (int i = 0; i < list->count; i++)
        used += strlen(list->text + used) + 1;
    if (list->count == JOB_LIST_MAX || size > sizeof list->text - used)
        return false;
    text_copy(list->text + used, size, text);
    list->count++;
    return true;
}

static bool is_below(const struct job_field *field, const char *group)
{
    size_t length = strlen(group);
    return !strncmp(field->path, group, length) && field->path[length] == '.';
}

bool job_restarts(const struct job_spec *spec)
{
    return spec->launched && spec->launch.mode == JOB_RESTART;
}

bool job_is_elastic(const struct job_spec *spec)
{
    return spec->launched && spec->launch.mode == JOB_ELASTIC;
}

bool job_freezes(const struct job_spec *spec)
{
    return spec->checkpoint.process == JOB_PROCESS_CRIU;
}

const char *job_exactness(enum job_reduction reduction, bool exact)
{
    if (exact)
        return "yes: these bits do not depend on how many workers there were or what happened to them";
    return reduction == JOB_FAST
               ? "no: another number or history of workers gives other bits"
               : "no: its sums are exact, but a part of it was computed by other arithmetic";
}

bool job_has_store(const struct job_spec *spec)
{
    return !job_restarts(spec) || *spec->checkpoint.uri;
}

bool job_field_is_of_elastic(const struct job_field *field)
{
    return is_below(field, "launch.batch") || !strcmp(field->path, "launch.steps") ||
           !strcmp(field->path, "launch.seed");
}

bool job_field_applies(const struct job_field *field, const struct job_spec *spec)
{
    if (is_below(field, "trainer"))
        return !spec->launched;
    if (job_field_is_of_elastic(field))
        return job_is_elastic(spec);
    if (is_below(field, "launch") || field->kind == JOB_FIELD_RULES)
        return spec->launched;
    return !is_below(field, "checkpoint") || job_has_store(spec);
}
