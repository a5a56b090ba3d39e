/* Reads the status of a TrainingJob from JSON and writes it back, member by member along its rows; what it
 * does not know, or what is out of bounds, is as if it were not there. Pure. */
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/json.h"
#include "operator/core/instant.h"
#include "operator/core/read.h"
#include "operator/core/status_rows.h"

static const char *const truths[] = {
    [OP_UNSET] = "", [OP_FALSE] = "False", [OP_TRUE] = "True", [OP_UNKNOWN] = "Unknown"};

static const char *key_of(const struct status_row *r)
{
    return r->key ? r->key : status_key_at(r->part, r->like);
}

static const char *key_of_one(const struct status_row *r, int which)
{
    RM_ASSERT(which >= 0 && which < r->count, "number %d of %d", which, r->count);
    return status_key_at(r->part, r->like + (size_t)which * sizeof(double)); /* a page has them as doubles */
}

/* ---- reading ---- */

static enum op_truth truth_of(const struct js *from)
{
    const char *text = js_as_string(from) ? js_as_string(from) : "";
    int truth = OP_FALSE;
    while (truth < OP_UNKNOWN && strcmp(text, truths[truth]) != 0)
        truth++;
    return (enum op_truth)truth;
}

static enum op_slot_state slot_state_of(const struct js *from)
{
    const char *text = js_as_string(from) ? js_as_string(from) : "";
    for (int i = OP_SLOT_FREE; i <= OP_SLOT_SKIPPED; i++)
        if (!strcmp(text, slot_state_name((enum op_slot_state)i)))
            return (enum op_slot_state)i;
    return OP_SLOT_FREE;
}

static void read_names(const struct js *list, struct op_names *ret)
{
    for (size_t i = 0; i < js_size(list) && ret->count < OP_AVOIDED_MAX; i++) {
        const char *name = js_as_string(js_at(list, i));
        if (name && *name && text_copy(ret->name[ret->count], OP_NODE_MAX, name))
            ret->count++;
    }
    RM_ASSERT(ret->count <= OP_AVOIDED_MAX, "%d names", ret->count);
}

static int64_t most_of(const struct status_row *r)
{
    RM_ASSERT(r->kind == ROW_INT || r->kind == ROW_LONG || r->kind == ROW_LONGS, "a number of kind %d",
              (int)r->kind);
    int64_t most = r->kind == ROW_INT ? OP_COUNT_MAX : INT64_MAX;
    return r->highest ? r->highest : most;
}

static void read_number(void *at, const struct status_row *r, const struct js *o, const char *key)
{
    RM_ASSERT(r->lowest <= most_of(r), "%s is from %lld to %lld", key, (long long)r->lowest,
              (long long)most_of(r));
    if (r->kind == ROW_INT) {
        *(int *)at = r->when & ROW_KNOWN ? -1 : *(int *)at;
        read_small(o, key, (int)r->lowest, (int)most_of(r), at);
    } else {
        int64_t *ret = at;
        *ret = r->when & ROW_KNOWN ? -1 : *ret;
        read_int(o, key, r->lowest, most_of(r), ret);
    }
}

static void read_denied(const struct js *o, const char *key, bool *ret)
{
    bool granted = true;
    read_flag(o, key, &granted);
    *ret = !granted;
}

static void read_rows(void *to, const struct status_row *rows, const struct js *o, struct job_status *whole);

static void read_list(char *first, const struct status_row *r, const struct js *list,
                      struct job_status *whole)
{
    RM_ASSERT(r->list && r->rows && r->size, "%s is a list of nothing", key_of(r));
    for (size_t i = 0; list && js_kind(list) == JS_ARRAY && i < js_size(list); i++) {
        const struct js *entry = js_at(list, i);
        int place = r->list->place(whole, entry);
        if (place >= 0)
            read_rows(first + (size_t)place * r->size, r->rows, entry, whole);
    }
}

static void read_row(void *to, const struct status_row *r, const struct js *o, struct job_status *whole)
{
    void *at = (char *)to + r->at;
    const char *key = r->kind == ROW_LONGS ? "" : key_of(r);
    const struct js *from = js_get(o, key);
    switch (r->kind) {
    case ROW_INT:
    case ROW_LONG:
        read_number(at, r, o, key);
        break;
    case ROW_LONGS:
        for (int i = 0; i < r->count; i++)
            read_number((int64_t *)at + i, r, o, key_of_one(r, i));
        break;
    case ROW_TEXT:
        read_text(o, key, at, r->size);
        break;
    case ROW_INSTANT:
        read_instant(o, key, at);
        break;
    case ROW_FLAG:
        read_flag(o, key, at);
        break;
    case ROW_DENIED:
        read_denied(o, key, at);
        break;
    case ROW_NAMES:
        read_names(from, at);
        break;
    case ROW_TRUTH:
        *(enum op_truth *)at = truth_of(from);
        break;
    case ROW_STATE:
        *(enum op_slot_state *)at = slot_state_of(from);
        break;
    case ROW_OBJECT:
        if (from && js_kind(from) == JS_OBJECT)
            read_rows(whole, r->rows, from, whole);
        break;
    case ROW_LIST:
        read_list(at, r, from, whole);
        break;
    case ROW_END:
    case ROW_PLACE:
    case ROW_PUT:
        break;
    }
}

/* Whether the member is one: a number, or an object. */
static bool is_one(const struct status_row *r, const struct js *o)
{
    int64_t number;
    const struct js *from = js_get(o, key_of(r));
    return r->kind == ROW_OBJECT ? from && js_kind(from) == JS_OBJECT : js_as_int(from, &number);
}

static void read_rows(void *to, const struct status_row *rows, const struct js *o, struct job_status *whole)
{
    for (const struct status_row *r = rows; r->kind != ROW_END; r++) {
        if (r->when & ROW_TOLD)
            continue;
        if (r->known)
            *(bool *)((char *)to + r->known) = is_one(r, o);
        read_row(to, r, o, whole);
    }
}

/* Attempts and terms count from 1. A state without one is nobody's: somebody wrote it by hand, and a pod
 * can't be made of it. */
static void forget_unnumbered(struct op_slot *slot)
{
    if (slot->attempt < 1)
        slot->state = OP_SLOT_FREE;
}

void status_read(const struct js *object, struct job_status *ret)
{
    *ret = (struct job_status){0};
    if (object && js_kind(object) == JS_OBJECT)
        read_rows(ret, job_status_rows, object, ret);
    forget_unnumbered(&ret->ring.coordinator);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        forget_unnumbered(&ret->workers.slot[i]);
}

/* ---- writing ---- */

/* That a wanted pod is there is news that can wait: until it is written the pod would at worst be made again
 * under its own name. */
static enum op_slot_state decided(enum op_slot_state state)
{
    return state == OP_SLOT_PRESENT ? OP_SLOT_WANTED : state;
}

static void put_number(struct js *o, const char *key, int64_t number, unsigned when)
{
    bool absent = (when & ROW_SET && !number) || (when & ROW_KNOWN && number < 0);
    if (!absent)
        js_set_int(o, key, number);
}

static void put_text(struct js *o, const char *key, const char *text, unsigned when)
{
    if (*text || !(when & ROW_SET))
        js_set_string(o, key, text);
}

static void put_instant(struct js *o, const char *key, int64_t ms)
{
    char text[OP_INSTANT_TEXT];
    if (!ms)
        return;
    instant_text(ms, text);
    js_set_string(o, key, text);
}

static void put_names(struct js *o, const char *key, const struct op_names *names)
{
    if (!names->count)
        return;
    struct js *list = js_array();
    for (int i = 0; i < names->count; i++)
        js_push_string(list, names->name[i]);
    js_set(o, key, list);
}

static void put_place(struct js *o, const char *key, const struct status_row_list *list, int place)
{
    RM_ASSERT(list && place >= 0, "%s of what stands in no list", key);
    if (list->name)
        js_set_string(o, key, list->name(place));
    else
        js_set_int(o, key, place);
}

/* Where an entry of a list stands. */
struct stand {
    const struct status_row_list *list;
    int place;
};

static struct js *object_of(const void *from, const struct status_row *rows, const struct status_writing *w,
                            struct stand stand);

static void put_list(struct js *o, const struct status_row *r, const char *first,
                     const struct status_writing *w)
{
    struct js *array = js_array();
    int count = r->list->count(w->status);
    RM_ASSERT(count >= 0 && r->size, "%d entries of %zu bytes", count, r->size);
    for (int i = 0; i < count; i++) {
        struct stand stand = {r->list, i};
        if (r->list->has(w->status, i))
            js_push(array, object_of(first + (size_t)i * r->size, r->rows, w, stand));
    }
    js_set(o, key_of(r), array);
}

/* A member that is the same whoever asks, and whatever for. */
static void put_value(struct js *o, const char *key, const void *at, const struct status_row *r)
{
    switch (r->kind) {
    case ROW_INT:
        put_number(o, key, *(const int *)at, r->when);
        break;
    case ROW_LONG:
        put_number(o, key, *(const int64_t *)at, r->when);
        break;
    case ROW_TEXT:
        put_text(o, key, at, r->when);
        break;
    case ROW_INSTANT:
        put_instant(o, key, *(const int64_t *)at);
        break;
    case ROW_FLAG:
        if (*(const bool *)at || !(r->when & ROW_SET))
            js_set_bool(o, key, *(const bool *)at);
        break;
    case ROW_DENIED:
        if (*(const bool *)at)
            js_set_bool(o, key, false);
        break;
    case ROW_NAMES:
        put_names(o, key, at);
        break;
    case ROW_TRUTH:
        js_set_string(o, key, truths[*(const enum op_truth *)at]);
        break;
    default:
        RM_ASSERT(false, "%s is a member of kind %d", key, (int)r->kind);
    }
}

static void put_longs(struct js *o, const struct status_row *r, const int64_t *numbers)
{
    RM_ASSERT(r->kind == ROW_LONGS, "%d numbers of kind %d", r->count, (int)r->kind);
    for (int i = 0; i < r->count; i++)
        put_number(o, key_of_one(r, i), numbers[i], r->when);
}

static void put_state(struct js *o, const char *key, enum op_slot_state state, const struct status_writing *w)
{
    js_set_string(o, key, slot_state_name(w->ticking ? state : decided(state)));
}

static void put_row(struct js *o, const void *from, const struct status_row *r,
                    const struct status_writing *w, struct stand stand)
{
    const void *at = (const char *)from + r->at;
    switch (r->kind) {
    case ROW_LONGS:
        put_longs(o, r, at);
        break;
    case ROW_STATE:
        put_state(o, key_of(r), *(const enum op_slot_state *)at, w);
        break;
    case ROW_PLACE:
        put_place(o, key_of(r), stand.list, stand.place);
        break;
    case ROW_PUT:
        r->put(o, key_of(r), w);
        break;
    case ROW_OBJECT:
        js_set(o, key_of(r), object_of(w->status, r->rows, w, stand));
        break;
    case ROW_LIST:
        put_list(o, r, at, w);
        break;
    default:
        put_value(o, key_of(r), at, r);
    }
}

static bool is_written(const void *from, const struct status_row *r, const struct status_writing *w)
{
    bool known = !r->known || *(const bool *)((const char *)from + r->known);
    return known && (w->ticking || !(r->when & ROW_TICKS)) && (!r->there || r->there(w));
}

static struct js *object_of(const void *from, const struct status_row *rows, const struct status_writing *w,
                            struct stand stand)
{
    struct js *o = js_object();
    for (const struct status_row *r = rows; r->kind != ROW_END; r++)
        if (is_written(from, r, w))
            put_row(o, from, r, w, stand);
    return o;
}

static struct js *whole_of(const struct status_row *rows, const struct status_writing *w)
{
    return object_of(w->status, rows, w, (struct stand){NULL, -1});
}

void status_write(const struct job_status *status, const char *job_name, struct str *out)
{
    const struct status_writing w = {status, job_name, true};
    struct js *o = whole_of(job_status_rows, &w);
    js_print(o, out);
    js_free(o);
}

void status_write_urgent(const struct job_status *status, const char *job_name, struct str *out)
{
    const struct status_writing w = {status, job_name, false};
    struct js *o = whole_of(job_status_rows, &w);
    if (*status->progress.loss)
        js_set_bool(o, "trains", true); /* the first loss is news, all others are numbers that move */
    js_print(o, out);
    js_free(o);
}

struct js *status_cost_json(const struct job_status *status)
{
    const struct status_writing w = {status, "", true};
    return whole_of(status_cost_rows, &w);
}

/* ---- listing ---- */

static void list_one(struct job_status_listed *ret, int most, int *count, const char *key, int depth,
                     bool list)
{
    RM_ASSERT(*count >= 0 && depth >= 0, "member %d is %d deep", *count, depth);
    if (*count < most)
        ret[*count] = (struct job_status_listed){.key = key, .depth = depth, .list = list};
    ++*count;
}

static void list_rows(struct job_status_listed *ret, int most, int *count, const struct status_row *rows,
                      int depth)
{
    RM_ASSERT(depth >= 0 && depth < 8, "members are %d deep", depth);
    for (const struct status_row *r = rows; r->kind != ROW_END; r++) {
        for (int i = 0; r->kind == ROW_LONGS && i < r->count; i++)
            list_one(ret, most, count, key_of_one(r, i), depth, false);
        if (r->kind != ROW_LONGS)
            list_one(ret, most, count, key_of(r), depth, r->kind == ROW_LIST);
        if (r->rows)
            list_rows(ret, most, count, r->rows, depth + 1);
    }
}

int job_status_list(struct job_status_listed *ret, int most)
{
    int count = 0;
    list_rows(ret, most, &count, job_status_rows, 0);
    return count;
}
