/* Every field of a TrainingJob that Ringmaster obeys, as one table.
 *
 * One row gives a field's path, kind, bounds, default, place in struct job_spec, whether a resume compares
 * it, and one line of help. The YAML reader, the JSON reader and writer, the comparison, `--set` and the
 * table in docs/job-file.md all walk these rows, so they can't disagree. Pure. */
#ifndef RM_JOB_FIELD_H
#define RM_JOB_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/job/spec.h"

struct js;

enum job_field_kind {
    JOB_FIELD_INT,    /* int */
    JOB_FIELD_LONG,   /* int64_t */
    JOB_FIELD_SEED,   /* uint64_t; up to 2^63 - 1, what JSON readers agree on */
    JOB_FIELD_REAL,   /* double */
    JOB_FIELD_BOOL,   /* bool */
    JOB_FIELD_CHOICE, /* an enum: index into words */
    JOB_FIELD_SWITCH, /* bool: words[0] is false, words[1] is true */
    JOB_FIELD_FIXED,  /* one word is allowed, kept nowhere */
    JOB_FIELD_TEXT,   /* char[] of `size` bytes */
    JOB_FIELD_URI,    /* char[RM_URI_MAX]; a folder: the YAML reader makes it an absolute file:// URI */
    JOB_FIELD_TIME,   /* rm_time; written as 500ms, 10s, 5m, 1h */
    JOB_FIELD_LIST,   /* struct job_list: `lowest` to `highest` texts */
    JOB_FIELD_RULES,  /* struct job_rules: see rules.h; none, and not written, where there are none */
};

enum { JOB_FIELD_WORDS_MAX = 4 };

struct job_field {
    const char *path; /* below spec: "trainer.batch.lanes"; metadata.name is the one exception */
    enum job_field_kind kind;
    size_t offset, size;    /* of the member in struct job_spec */
    double lowest, highest; /* INT, LONG, SEED, REAL; TIME in ns */
    const char *fallback;   /* the default as one would write it; NULL: see `required` and job_spec_fill */
    const char *zero;       /* the word that stands for 0: "Auto", "null", "Never"; NULL: none */
    const char *own_time;   /* TIME: the word beside that one that stands for JOB_AUTO; NULL: none */
    const char *words[JOB_FIELD_WORDS_MAX]; /* CHOICE, SWITCH, FIXED: in the order of their values */
    const char *depends; /* INT: words separated by spaces that others take for a number of the machine's */
    bool file;           /* URI: of one file, not of a folder */
    bool required;
    bool compared; /* a resume refuses a different value (cli: exit 2) */
    const char *help;
};

extern const struct job_field job_fields[];
extern const int job_fields_count;

/* One scalar from outside. text is set for VALUE_TEXT; `shown` is what to print in a message. */
enum value_kind { VALUE_NULL, VALUE_BOOL, VALUE_INT, VALUE_REAL, VALUE_TEXT, VALUE_LIST, VALUE_MAP };

struct job_value {
    enum value_kind kind;
    bool flag;
    int64_t whole;
    double real;
    const char *text;
    const struct js *json;       /* VALUE_LIST, for JOB_FIELD_RULES */
    const struct job_list *list; /* VALUE_LIST whose entries are all texts (numbers and flags as they were
                                    written); NULL: of something else, or too long */
};

/* A plain YAML 1.2 scalar (core schema: null, true, 12, 0x1f, 6e-4, text), text is kept by reference. */
struct job_value value_of_plain(const char *text);

/* A row of `launch` that only mode Elastic has. */
bool job_field_is_of_elastic(const struct job_field *field);
#define JOB_FIELD_ELASTIC_ALONE                                                                              \
    "belongs to mode Elastic; a program in mode Restart knows best itself, so leave it out"

/* Does the row mean anything for this job? Of `trainer` and `launch` a job has one; `checkpoint` means
 * nothing to a program that has no store. */
bool job_field_applies(const struct job_field *field, const struct job_spec *spec);

/* The row of a path ("trainer.steps"), NULL where there is none. */
const struct job_field *job_field_find(const char *path);

/* Puts the value into the spec's member; ERR_USAGE with a sentence (without the path) where it does not fit.
 */
int field_assign(const struct job_field *field, struct job_spec *spec, const struct job_value *value,
                 struct error *err);

/* The member as a person would write it. */
void field_show(const struct job_field *field, const struct job_spec *spec, struct str *out);

/* "1h30m" and the like; false where it is none. At least one number with a unit; over 100 years is refused.
 */
bool duration_parse(const char *text, rm_time *ret);
void duration_show(rm_time t, struct str *out);

/* Rules over several fields; names the field at fault (*ret_path, "workers.min") and says what to do. */
int job_spec_check(const struct job_spec *spec, const char **ret_path, struct error *err);

/* Names of the presets, for messages: "gpt2-124m, ..." */
bool preset_shape(const char *name, struct model_shape *ret);
const char *preset_names(void);

/* The table as Markdown, as it stands in docs/job-file.md (a test holds the two together). */
void job_fields_markdown(struct str *out);

#endif
