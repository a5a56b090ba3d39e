/* Words of peers, made of bytes. */
#include "tests/fuzz/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/message_fields.h"
#include "tests/fuzz/fuzz.h"

uint8_t words_byte(struct words *words)
{
    if (!words->size)
        return 0;
    words->size--;
    return *words->data++;
}

int words_below(struct words *words, int count)
{
    return words_byte(words) % count;
}

bool words_once_in(struct words *words, int count)
{
    return words->size && words_byte(words) % count == count - 1;
}

struct words words_part(struct words *words)
{
    size_t length = words_byte(words);
    struct words part = {words->data, length < words->size ? length : words->size};
    words->data += part.size;
    words->size -= part.size;
    return part;
}

static uint64_t words_any(struct words *words)
{
    uint64_t any = 0;
    for (int i = 0; i < 8; i++)
        any = any << 8 | words_byte(words);
    return any;
}

int64_t words_number(struct words *words, int64_t low, int64_t high)
{
    uint64_t range = (uint64_t)high - (uint64_t)low + 1; /* 0: all that there are */
    uint8_t kind = words_byte(words);
    uint64_t beyond = kind < 224 ? kind % 14 : kind < 240 ? range - 1 - kind % 2 : words_any(words);
    if (range)
        beyond %= range;
    return (int64_t)((uint64_t)low + beyond);
}

rm_time words_time(struct words *words)
{
    static const rm_time scales[] = {RM_US, RM_MS, 50 * RM_MS, RM_S, 10 * RM_S, 60 * RM_S, 600 * RM_S, 0};
    rm_time scale = scales[words_below(words, 8)];
    return scale * (1 + words_below(words, 6));
}

static void any_text(struct words *words, char *out, size_t size)
{
    uint8_t kind = words_byte(words);
    size_t length = kind < 16 ? size - 1 : kind % 3;
    memset(out, 'a' + kind / 16 % 3, length);
    out[length] = 0;
}

static void any_hash(struct words *words, uint8_t *out, size_t size)
{
    memset(out, words_below(words, 3), size);
}

struct msg_state words_state(struct words *words)
{
    struct msg_state state = {.held = words_below(words, 4) != 0};
    if (!state.held)
        return state;
    state.step = words_number(words, 0, MSG_NUMBER_MOST);
    any_hash(words, state.lineage, sizeof state.lineage);
    return state;
}

struct msg_generation words_generation(struct words *words)
{
    return (struct msg_generation){words_number(words, 0, MSG_NUMBER_MOST),
                                   words_number(words, 0, MSG_NUMBER_MOST)};
}

static struct worker_set any_set(struct words *words)
{
    struct worker_set set = {0};
    for (int i = words_below(words, 5); i > 0; i--)
        set_add(&set, (int)words_number(words, 0, RM_WORKERS_MAX - 1));
    return set;
}

static void any_fields(struct words *words, const struct message_field *f, void *base);

static void any_array(struct words *words, const struct message_field *f, void *base)
{
    char *p = (char *)base + f->at;
    int count = (int)words_number(words, 0, f->high);
    count = words->size ? count : 0;
    memcpy((char *)base + f->count_at, &count, sizeof count);
    for (int i = 0; i < count; i++) {
        if (f->kind == MSG_FIELD_BYTES)
            ((int8_t *)p)[i] = (int8_t)words_number(words, -RM_EXPONENT_MOST, RM_EXPONENT_MOST);
        else if (f->kind == MSG_FIELD_INTS)
            ((int *)p)[i] = (int)words_number(words, f->low, f->limit);
        else
            any_fields(words, f->fields, p + (size_t)i * f->size);
    }
}

static double any_real(struct words *words)
{
    static const double some[] = {0, 1, -1, 2.5, 1e-300, 1e300, 0.1};
    int i = words_below(words, 8);
    return i < 7 ? some[i] : NAN;
}

static void any_field(struct words *words, const struct message_field *f, void *base)
{
    void *p = (char *)base + f->at;
    switch (f->kind) {
    case MSG_FIELD_INT:
        *(int *)p = (int)words_number(words, f->low, f->high);
        break;
    case MSG_FIELD_INT64:
        *(int64_t *)p = words_number(words, f->low, f->high);
        break;
    case MSG_FIELD_BOOL:
        *(bool *)p = words_byte(words) & 1;
        break;
    case MSG_FIELD_REAL:
        *(double *)p = any_real(words);
        break;
    case MSG_FIELD_TEXT:
        any_text(words, p, f->size);
        break;
    case MSG_FIELD_HEX:
        any_hash(words, p, f->size);
        break;
    case MSG_FIELD_ID:
        *(uint64_t *)p = words_byte(words) % 3;
        break;
    case MSG_FIELD_SET:
        *(struct worker_set *)p = any_set(words);
        break;
    case MSG_FIELD_ENUM:
        *(unsigned *)p = (unsigned)words_below(words, (int)f->high + 1);
        break;
    case MSG_FIELD_STATE:
        *(struct msg_state *)p = words_state(words);
        break;
    case MSG_FIELD_GENERATION:
        *(struct msg_generation *)p = words_generation(words);
        break;
    default:
        any_array(words, f, base);
    }
}

static void any_fields(struct words *words, const struct message_field *f, void *base)
{
    for (; f && f->name; f++)
        any_field(words, f, base);
}

void words_message(struct words *words, enum msg_type type, struct message *ret)
{
    const struct message_kind *kind = &message_kinds[type];
    message_init(ret, type);
    ret->term = words_number(words, 0, MSG_NUMBER_MOST);
    if (kind->with_generation)
        ret->generation = words_generation(words);
    any_fields(words, kind->fields, ret);
}

void words_change(struct words *words, struct message *message)
{
    const struct message_kind *kind = &message_kinds[message->type];
    int fields = 0;
    while (kind->fields && kind->fields[fields].name)
        fields++;
    int which = words_below(words, fields + 2);
    if (which < fields)
        any_field(words, &kind->fields[which], message);
    else if (which == fields && kind->with_generation)
        message->generation = words_generation(words);
    else
        message->term = words_number(words, 0, MSG_NUMBER_MOST);
}

static bool is_traced(void)
{
    return getenv("FUZZ_TRACE") != NULL;
}

void words_trace(const char *who, int number, const struct message *message)
{
    char line[160];
    if (!is_traced())
        return;
    message_describe(message, line, sizeof line);
    fprintf(stderr, "%s %d: %s\n", who, number, line);
}

void words_trace_event(const char *what, int number, rm_time now)
{
    if (is_traced())
        fprintf(stderr, "%s %d at %.3f s\n", what, number, (double)now / RM_S);
}

void words_well_formed(const struct message *message)
{
    static struct message again;
    struct str text = str_init(4 << 20);
    struct error err = {0};
    message_write(message, &text);
    if (message_read(&again, str_text(&text), text.length, &err) < 0) {
        fprintf(stderr, "%.2000s\n%s\n", str_text(&text), err.text);
        fuzz_broken("what a core sends is well formed");
    }
    str_clear(&text);
}
