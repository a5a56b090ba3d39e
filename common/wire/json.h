/* JSON values (jansson stays inside json.c; the prefix is js_ because jansson has json_). For data that
 * crosses a program's border only: decode into a plain struct at once, keep no trees.
 *
 * Ownership: js_parse, js_object, js_array and js_copy return a value that the caller frees with
 * js_free. js_set_* and js_push take over the child given. Getters return borrowed pointers that live
 * as long as the tree. Objects keep the order of insertion. */
#ifndef RM_WIRE_JSON_H
#define RM_WIRE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/str.h"

struct js;

enum js_kind { JS_NULL, JS_BOOL, JS_INT, JS_REAL, JS_STRING, JS_ARRAY, JS_OBJECT };

/* Refuses duplicate keys, nesting over jansson's limit, text after the value. what: "manifest.json" or the
 * like, put in front of the message with line and column. */
struct js *js_parse(const char *text, size_t length, const char *what, struct error *err);
/* The same for text that strangers could have filled: \u0000 is read as U+FFFD and of two equal keys the last
 * one counts, so that nobody makes a whole object unreadable by them. text is changed in place. */
struct js *js_parse_foreign(char *text, size_t length, const char *what, struct error *err);
void js_free(struct js *value);
struct js *js_copy(const struct js *value);

enum js_kind js_kind(const struct js *value);
const char *js_kind_name(enum js_kind kind); /* "a string" */

/* Compact, one line. Reals with 17 digits, so that they come back as they were. */
void js_print(const struct js *value, struct str *out);
/* Keys sorted: one text for one meaning, to be hashed or compared. */
void js_print_canonical(const struct js *value, struct str *out);
/* Indented by two, for files that people open. */
void js_print_pretty(const struct js *value, struct str *out);

struct js *js_object(void);
struct js *js_array(void);
void js_set(struct js *object, const char *key, struct js *child);
void js_set_int(struct js *object, const char *key, int64_t value);
void js_set_real(struct js *object, const char *key, double value); /* NaN and Inf become null */
void js_set_bool(struct js *object, const char *key, bool value);
void js_set_string(struct js *object, const char *key, const char *value);
void js_push(struct js *array, struct js *child);
void js_push_int(struct js *array, int64_t value);
void js_push_string(struct js *array, const char *value);
struct js *js_new_int(int64_t value);
struct js *js_new_real(double value);
struct js *js_new_bool(bool value);
struct js *js_new_string(const char *value);
struct js *js_new_null(void);

size_t js_size(const struct js *container); /* entries of an array or object; 0 for others */
const struct js *js_at(const struct js *array, size_t index);      /* NULL past the end */
const struct js *js_get(const struct js *object, const char *key); /* NULL where absent */

/* Visits an object in order: for (it = js_first(o); it; it = js_next(o, it)) */
void *js_first(const struct js *object);
void *js_next(const struct js *object, void *it);
const char *js_key(void *it);
const struct js *js_value(void *it);

/* They read one value: false (and *ret untouched) where it is absent (NULL) or of another kind. */
bool js_as_int(const struct js *value, int64_t *ret);
bool js_as_real(const struct js *value, double *ret); /* an integer is fine */
bool js_as_bool(const struct js *value, bool *ret);
const char *js_as_string(const struct js *value); /* NULL where it is none */

/* Of a member that must be there: -1 with a sentence that names the key and what was found instead. */
int js_need_int(const struct js *object, const char *key, int64_t lowest, int64_t highest, int64_t *ret,
                struct error *err);
int js_need_real(const struct js *object, const char *key, double *ret, struct error *err);
int js_need_bool(const struct js *object, const char *key, bool *ret, struct error *err);
/* Copies into out[size]; a longer string is refused. */
int js_need_string(const struct js *object, const char *key, char *out, size_t size, struct error *err);
int js_need(const struct js *object, const char *key, enum js_kind kind, const struct js **ret,
            struct error *err);

#endif
