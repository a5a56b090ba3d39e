/* The codec: walks the rows of message_fields.c. */
#include "common/wire/message.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/json.h"
#include "common/wire/message_fields.h"

static const void *place(const struct message_field *f, const void *base)
{
    return (const char *)base + f->at;
}

static int count_of(const struct message_field *f, const void *base)
{
    int n;
    memcpy(&n, (const char *)base + f->count_at, sizeof n);
    return n < 0 ? 0 : n > (int)f->high ? (int)f->high : n;
}

/* ---- writing ---- */

static struct js *hex_value(const void *bytes, size_t length)
{
    char text[2 * 64 + 1];
    hex_encode(bytes, length, text);
    return js_new_string(text);
}

static struct js *state_value(const struct msg_state *state)
{
    if (!state->held)
        return js_new_null();
    struct js *o = js_object();
    js_set_int(o, "step", state->step);
    js_set(o, "lineage", hex_value(state->lineage, RM_HASH_BYTES));
    return o;
}

static struct js *id_value(uint64_t id)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, id);
    return js_new_string(text);
}

static struct js *set_value(struct worker_set set)
{
    char text[SET_TEXT_MAX];
    set_write(set, text);
    return js_new_string(text);
}

static struct js *lanes_value(const struct lane_set *set)
{
    char text[LANE_SET_TEXT_MAX];
    lane_set_write(set, text);
    return js_new_string(text);
}

static struct js *generation_value(struct msg_generation g)
{
    struct js *a = js_array();
    js_push_int(a, g.term);
    js_push_int(a, g.n);
    return a;
}

static struct js *ints_value(const struct message_field *f, const void *base)
{
    struct js *a = js_array();
    for (int i = 0; i < count_of(f, base); i++) {
        if (f->kind == MSG_FIELD_BYTES)
            js_push_int(a, ((const int8_t *)place(f, base))[i]);
        else
            js_push_int(a, ((const int *)place(f, base))[i]);
    }
    return a;
}

/* An enum has the size of an int in every compiler that builds this. */
static struct js *field_value(const struct message_field *f, const void *base)
{
    const void *p = place(f, base);
    switch (f->kind) {
    case MSG_FIELD_INT:
        return js_new_int(*(const int *)p);
    case MSG_FIELD_INT64:
        return js_new_int(*(const int64_t *)p);
    case MSG_FIELD_BOOL:
        return js_new_bool(*(const bool *)p);
    case MSG_FIELD_REAL:
        return isfinite(*(const double *)p) ? js_new_real(*(const double *)p) : js_new_null();
    case MSG_FIELD_TEXT:
        return js_new_string(p);
    case MSG_FIELD_HEX:
        return hex_value(p, f->size);
    case MSG_FIELD_ID:
        return id_value(*(const uint64_t *)p);
    case MSG_FIELD_SET:
        return set_value(*(const struct worker_set *)p);
    case MSG_FIELD_LANES:
        return lanes_value(p);
    case MSG_FIELD_ENUM:
        return js_new_string(f->names[*(const unsigned *)p]);
    case MSG_FIELD_STATE:
        return state_value(p);
    case MSG_FIELD_GENERATION:
        return generation_value(*(const struct msg_generation *)p);
    default:
        return ints_value(f, base);
    }
}

static void write_fields(struct js *object, const struct message_field *f, const void *base)
{
    for (; f && f->name; f++) {
        if (f->kind != MSG_FIELD_ROWS) {
            js_set(object, f->name, field_value(f, base));
            continue;
        }
        struct js *rows = js_array();
        for (int i = 0; i < count_of(f, base); i++) {
            struct js *row = js_object();
            write_fields(row, f->fields, (const char *)place(f, base) + (size_t)i * f->size);
            js_push(rows, row);
        }
        js_set(object, f->name, rows);
    }
}

void message_write(const struct message *message, struct str *out)
{
    const struct message_kind *kind = &message_kinds[message->type];
    struct js *object = js_object();
    js_set_string(object, "type", kind->name);
    if (message->term)
        js_set_int(object, "term", message->term);
    if (kind->with_generation)
        js_set(object, "generation", generation_value(message->generation));
    write_fields(object, kind->fields, message);
    js_print(object, out);
    js_free(object);
}

/* ---- reading ---- */

static int read_hex(const struct js *object, const char *name, void *out, size_t length, struct error *err)
{
    const char *text = js_as_string(js_get(object, name));
    if (!text || !hex_decode(text, out, length))
        return err_set(err, ERR_PROTOCOL, "%s is not %zu hex digits", name, 2 * length);
    return 0;
}

static int read_id(const struct js *object, const char *name, uint64_t *ret, struct error *err)
{
    uint8_t bytes[8];
    if (read_hex(object, name, bytes, sizeof bytes, err) < 0)
        return -1;
    uint64_t id = 0;
    for (int i = 0; i < 8; i++)
        id = id << 8 | bytes[i];
    *ret = id;
    return 0;
}

static int read_set(const struct js *object, const char *name, struct worker_set *ret, struct error *err)
{
    const char *text = js_as_string(js_get(object, name));
    if (!text || !set_read(text, ret))
        return err_set(err, ERR_PROTOCOL, "%s is not %d hex digits%s", name, SET_DIGITS,
                       SET_WORDS > 1 ? ", nor a multiple of them" : "");
    return 0;
}

static int read_lanes(const struct js *object, const char *name, struct lane_set *ret, struct error *err)
{
    const char *text = js_as_string(js_get(object, name));
    if (!text || !lane_set_read(text, ret))
        return err_set(err, ERR_PROTOCOL, "%s is not %d hex digits, nor a multiple of them", name,
                       LANE_SET_DIGITS);
    return 0;
}

static int read_enum(const struct message_field *f, const struct js *object, unsigned *ret, struct error *err)
{
    const char *text = js_as_string(js_get(object, f->name));
    for (unsigned i = 0; text && i <= (unsigned)f->high; i++) {
        if (!strcmp(text, f->names[i])) {
            *ret = i;
            return 0;
        }
    }
    return err_set(err, ERR_PROTOCOL, "%s is none of the known names", f->name);
}

static int read_state(const struct js *object, const char *name, struct msg_state *ret, struct error *err)
{
    const struct js *value = js_get(object, name);
    memset(ret, 0, sizeof *ret);
    if (value && js_kind(value) == JS_NULL)
        return 0;
    if (js_need(object, name, JS_OBJECT, &value, err) < 0 ||
        js_need_int(value, "step", 0, MSG_NUMBER_MOST, &ret->step, err) < 0 ||
        read_hex(value, "lineage", ret->lineage, RM_HASH_BYTES, err) < 0)
        return -1;
    ret->held = true;
    return 0;
}

static int read_generation(const struct js *object, const char *name, struct msg_generation *ret,
                           struct error *err)
{
    const struct js *value = js_get(object, name);
    bool two = value && js_kind(value) == JS_ARRAY && js_size(value) == 2;
    if (!two || !js_as_int(js_at(value, 0), &ret->term) || !js_as_int(js_at(value, 1), &ret->n) ||
        ret->term < 0 || ret->term > MSG_NUMBER_MOST || ret->n < 0 || ret->n > MSG_NUMBER_MOST)
        return err_set(err, ERR_PROTOCOL, "%s is not [term, n]", name);
    return 0;
}

static int read_ints(const struct message_field *f, const struct js *array, void *base, struct error *err)
{
    void *p = (char *)base + f->at;
    for (size_t i = 0; i < js_size(array); i++) {
        int64_t v, low = f->kind == MSG_FIELD_BYTES ? -RM_EXPONENT_MOST : f->low;
        int64_t high = f->kind == MSG_FIELD_BYTES ? RM_EXPONENT_MOST : f->limit;
        if (!js_as_int(js_at(array, i), &v) || v < low || v > high)
            return err_set(err, ERR_PROTOCOL, "%s[%zu] is not a number from %" PRId64 " to %" PRId64, f->name,
                           i, low, high);
        if (f->kind == MSG_FIELD_BYTES)
            ((int8_t *)p)[i] = (int8_t)v;
        else
            ((int *)p)[i] = (int)v;
    }
    return 0;
}

static int read_real(const struct js *object, const char *name, double *ret, struct error *err)
{
    const struct js *value = js_get(object, name);
    if (value && js_kind(value) == JS_NULL) {
        *ret = NAN;
        return 0;
    }
    return js_need_real(object, name, ret, err);
}

static int read_int(const struct message_field *f, const struct js *object, void *p, struct error *err)
{
    int64_t v;
    if (js_need_int(object, f->name, f->low, f->high, &v, err) < 0)
        return -1;
    if (f->kind == MSG_FIELD_INT)
        *(int *)p = (int)v;
    else
        *(int64_t *)p = v;
    return 0;
}

static int read_scalar(const struct message_field *f, const struct js *object, void *p, struct error *err)
{
    switch (f->kind) {
    case MSG_FIELD_BOOL:
        return js_need_bool(object, f->name, p, err);
    case MSG_FIELD_REAL:
        return read_real(object, f->name, p, err);
    case MSG_FIELD_TEXT:
        return js_need_string(object, f->name, p, f->size, err);
    case MSG_FIELD_HEX:
        return read_hex(object, f->name, p, f->size, err);
    case MSG_FIELD_ID:
        return read_id(object, f->name, p, err);
    case MSG_FIELD_SET:
        return read_set(object, f->name, p, err);
    case MSG_FIELD_LANES:
        return read_lanes(object, f->name, p, err);
    case MSG_FIELD_ENUM:
        return read_enum(f, object, p, err);
    case MSG_FIELD_STATE:
        return read_state(object, f->name, p, err);
    case MSG_FIELD_GENERATION:
        return read_generation(object, f->name, p, err);
    default:
        return read_int(f, object, p, err);
    }
}

static int read_fields(const struct js *object, const struct message_field *f, void *base, struct error *err);

static int read_array(const struct message_field *f, const struct js *object, void *base, struct error *err)
{
    const struct js *array;
    if (js_need(object, f->name, JS_ARRAY, &array, err) < 0)
        return -1;
    if (js_size(array) > (size_t)f->high)
        return err_set(err, ERR_PROTOCOL, "%s has %zu entries, at most %d are allowed", f->name,
                       js_size(array), (int)f->high);
    int n = (int)js_size(array);
    memcpy((char *)base + f->count_at, &n, sizeof n);
    if (f->kind != MSG_FIELD_ROWS)
        return read_ints(f, array, base, err);
    for (int i = 0; i < n; i++) {
        const struct js *row = js_at(array, (size_t)i);
        if (js_kind(row) != JS_OBJECT)
            return err_set(err, ERR_PROTOCOL, "%s[%d] is %s, not an object", f->name, i,
                           js_kind_name(js_kind(row)));
        if (read_fields(row, f->fields, (char *)base + f->at + (size_t)i * f->size, err) < 0)
            return err_wrap(err, "%s[%d]", f->name, i);
    }
    return 0;
}

static int read_fields(const struct js *object, const struct message_field *f, void *base, struct error *err)
{
    for (; f && f->name; f++) {
        if (f->late && !js_get(object, f->name))
            continue;
        bool array = f->kind == MSG_FIELD_ROWS || f->kind == MSG_FIELD_INTS || f->kind == MSG_FIELD_BYTES;
        if (array && read_array(f, object, base, err) < 0)
            return -1;
        if (!array && read_scalar(f, object, (char *)base + f->at, err) < 0)
            return -1;
    }
    return 0;
}

static int type_find(const char *name)
{
    for (int i = 0; name && i < MSG_TYPES; i++) {
        if (!strcmp(message_kinds[i].name, name))
            return i;
    }
    return -1;
}

static int read_object(struct message *ret, const struct js *object, struct error *err)
{
    if (js_kind(object) != JS_OBJECT)
        return err_set(err, ERR_PROTOCOL, "a message is a JSON object, not %s",
                       js_kind_name(js_kind(object)));
    int type = type_find(js_as_string(js_get(object, "type")));
    if (type < 0)
        return err_set(err, ERR_PROTOCOL, "a message without a known type");
    message_init(ret, (enum msg_type)type);
    const struct message_kind *kind = &message_kinds[type];
    if (js_get(object, "term") && js_need_int(object, "term", 0, MSG_NUMBER_MOST, &ret->term, err) < 0)
        return err_wrap(err, "%s", kind->name);
    if (kind->with_generation && read_generation(object, "generation", &ret->generation, err) < 0)
        return err_wrap(err, "%s", kind->name);
    if (read_fields(object, kind->fields, ret, err) < 0)
        return err_wrap(err, "%s", kind->name);
    return 0;
}

int message_read(struct message *ret, const char *text, size_t length, struct error *err)
{
    struct js *object = js_parse(text, length, "message", err);
    if (!object)
        return -1;
    struct error inner = {0};
    int rc = read_object(ret, object, &inner);
    js_free(object);
    return rc < 0 ? err_set(err, ERR_PROTOCOL, "%s", inner.text) : 0;
}

/* ---- copies ---- */

static size_t used_bytes(enum msg_type type)
{
    return offsetof(struct message, challenge) + message_kinds[type].bytes;
}

void message_init(struct message *message, enum msg_type type)
{
    memset(message, 0, used_bytes(type));
    message->type = type;
}

void message_copy(struct message *to, const struct message *from)
{
    memcpy(to, from, used_bytes(from->type));
}

/* ---- places ---- */

size_t message_room(enum msg_type type)
{
    return arena_size(used_bytes(type));
}

struct message *message_place(struct arena *arena, enum msg_type type)
{
    struct message *message = arena_take(arena, used_bytes(type));
    message->type = type;
    return message;
}

struct message *message_place_copy(struct arena *arena, const struct message *from)
{
    struct message *message = arena_take(arena, used_bytes(from->type));
    message_copy(message, from);
    return message;
}

void message_keep(struct message *to, const struct message *from)
{
    RM_ASSERT(to->type == from->type, "%s in the place of %s", msg_type_name(from->type),
              msg_type_name(to->type));
    message_copy(to, from);
}

/* ---- names ---- */

const char *msg_type_name(enum msg_type type)
{
    return message_kinds[type].name;
}

const char *msg_role_name(enum msg_role role)
{
    return message_role_names[role];
}

const char *msg_slow_name(enum msg_slow_by by)
{
    return message_slow_names[by];
}

const char *msg_phase_name(enum msg_phase phase)
{
    return message_phase_names[phase];
}

const char *msg_fault_name(enum msg_fault_kind kind)
{
    return message_fault_names[kind];
}
