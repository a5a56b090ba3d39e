/* Private to the codec of message.h: what each type carries, as rows that the writer and the reader walk. */
#ifndef RM_WIRE_MESSAGE_FIELDS_H
#define RM_WIRE_MESSAGE_FIELDS_H

#include "common/wire/message.h"

enum message_field_kind {
    MSG_FIELD_INT,        /* int, low..high */
    MSG_FIELD_INT64,      /* int64_t, low..high */
    MSG_FIELD_BOOL,       /* bool */
    MSG_FIELD_REAL,       /* double; NaN and Inf are null and come back as NaN */
    MSG_FIELD_TEXT,       /* char[size] */
    MSG_FIELD_HEX,        /* uint8_t[size] as 2 * size digits */
    MSG_FIELD_ID,         /* uint64_t as 16 digits */
    MSG_FIELD_SET,        /* struct worker_set: 16 digits, 32 and so on where they are needed (set.h) */
    MSG_FIELD_LANES,      /* struct lane_set: likewise (lane_set.h) */
    MSG_FIELD_ENUM,       /* an enum of high + 1 names */
    MSG_FIELD_STATE,      /* struct msg_state; null where nothing is held */
    MSG_FIELD_GENERATION, /* struct msg_generation as [term, n] */
    MSG_FIELD_INTS,       /* int[high], count at count_at; each low..limit */
    MSG_FIELD_BYTES,      /* int8_t[high] of -100..100, count at count_at */
    MSG_FIELD_ROWS,       /* array of structs of `size` bytes with their own fields; at most high */
};

struct message_field {
    const char *name;
    enum message_field_kind kind;
    size_t at;   /* offset in the struct that holds it */
    size_t size; /* see kind */
    int64_t low, high;
    int64_t limit;                      /* MSG_FIELD_INTS: highest value */
    size_t count_at;                    /* arrays: offset of the int count in the same struct */
    const char *const *names;           /* MSG_FIELD_ENUM */
    const struct message_field *fields; /* MSG_FIELD_ROWS, ends with a row without a name */
    bool late; /* who is of an older release does not say it: then it is 0, or "". No arrays */
};

struct message_kind {
    const char *name;
    bool with_generation;
    const struct message_field *fields; /* offsets in struct message; NULL: carries nothing */
    size_t bytes;                       /* of its member in the union */
};

extern const struct message_kind message_kinds[MSG_TYPES];
extern const char *const message_role_names[];
extern const char *const message_phase_names[];
extern const char *const message_fault_names[];
extern const char *const message_slow_names[]; /* by enum msg_slow_by */
enum { MESSAGE_ROLES = ROLE_INIT + 1, MESSAGE_PHASES = PHASE_TRAINING + 1, MESSAGE_FAULTS = FAULT_PROOF + 1 };

#endif
