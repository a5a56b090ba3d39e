/* Private to the status's text: one row for each member of a TrainingJob's status, in the order in which they
 * are written. The writer and the reader (status_json.c) walk the rows, and so does the test that compares
 * them with the CRD: who adds a member adds a row, and its place in crds/trainingjob.yaml.
 *
 * A member that a coordinator's page has as well goes by the page's own name (common/wire/status.h). Pure. */
#ifndef RM_OPERATOR_CORE_STATUS_ROWS_H
#define RM_OPERATOR_CORE_STATUS_ROWS_H

#include <stddef.h>

#include "operator/core/status.h"

enum status_row_kind {
    ROW_END,
    ROW_INT,     /* int */
    ROW_LONG,    /* int64_t */
    ROW_LONGS,   /* int64_t [count], a member for each */
    ROW_TEXT,    /* char [size]; control characters are read as spaces */
    ROW_INSTANT, /* int64_t: ms since the epoch, as text; 0 is absent */
    ROW_FLAG,    /* bool */
    ROW_DENIED,  /* bool: written as false where it is true, else absent */
    ROW_NAMES,   /* struct op_names; none is absent */
    ROW_TRUTH,   /* enum op_truth, of a condition */
    ROW_STATE,   /* enum op_slot_state */
    ROW_PLACE,   /* the place of an entry in its list: its number, or that place's name */
    ROW_PUT,     /* for people: made of other members, and never read */
    ROW_OBJECT,  /* members with rows of their own */
    ROW_LIST,    /* an array of such objects */
};

/* When a member is written; always, if nothing is said. */
enum {
    ROW_SET = 1,   /* where it is not 0, false or empty */
    ROW_KNOWN = 2, /* where it is not negative; absent it is read as -1 */
    ROW_TICKS = 4, /* not into the text of what is urgent */
    ROW_TOLD = 8,  /* as else, and never read: the reader takes it from elsewhere */
};

struct status_writing {
    const struct job_status *status;
    const char *job_name;
    bool ticking; /* false: only what is urgent */
};

/* Which entries a list has. */
struct status_row_list {
    int (*count)(const struct job_status *status); /* places that are looked at */
    bool (*has)(const struct job_status *status, int place);
    int (*place)(struct job_status *ret, const struct js *entry); /* of one that is read; -1: it has none */
    const char *(*name)(int place);                               /* of ROW_PLACE; NULL: it is a number */
};

struct status_row {
    const char *key; /* NULL: that of the page's part at `like` */
    enum status_part part;
    size_t like;
    enum status_row_kind kind;
    unsigned when;
    size_t at;               /* in struct job_status, or in the entry */
    size_t size;             /* of ROW_TEXT, and of an entry of ROW_LIST */
    int count;               /* of ROW_LONGS */
    int64_t lowest, highest; /* of numbers that are read; highest 0: the most that is counted to */
    size_t known;            /* at a bool of the same struct: there where it is true; 0: always */
    bool (*there)(const struct status_writing *w);                              /* NULL: always */
    void (*put)(struct js *o, const char *key, const struct status_writing *w); /* of ROW_PUT */
    const struct status_row *rows;
    const struct status_row_list *list;
};

#define STATUS_AT(member)             .at = offsetof(struct job_status, member)
#define STATUS_TEXT_AT(member)        STATUS_AT(member), .size = sizeof((struct job_status *)0)->member
#define STATUS_LIKE(of, type, member) .part = STATUS_OF_##of, .like = offsetof(struct status_##type, member)

extern const struct status_row job_status_rows[];
extern const struct status_row status_cost_rows[]; /* status_cost.c: of `cost` */

/* How far the job is, of 100. */
int status_percent(const struct op_progress *progress);

#endif
