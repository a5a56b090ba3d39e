/* What the fuzz targets of the three cores share: an input is a story, byte by byte, and this tells numbers
 * and whole messages from it. A message is within all bounds of its type's rows
 * (common/wire/message_fields.h), as one that message_read took: a peer's word that is well formed, and means
 * anything. */
#ifndef RM_TESTS_FUZZ_WORDS_H
#define RM_TESTS_FUZZ_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/time.h"
#include "common/wire/message.h"

struct words {
    const uint8_t *data;
    size_t size;
};

/* Of an input that is over everything is 0. */
uint8_t words_byte(struct words *words);
int words_below(struct words *words, int count);
/* Once in so many, and never at the end. */
bool words_once_in(struct words *words, int count);
/* What comes next has its length before it, so that a story stays the same where one part of it is changed.
 */
struct words words_part(struct words *words);
/* Mostly a small one, now and then the highest, or any. */
int64_t words_number(struct words *words, int64_t low, int64_t high);
/* How much time passes: between nothing and an hour. */
rm_time words_time(struct words *words);

struct msg_state words_state(struct words *words);
struct msg_generation words_generation(struct words *words);
/* A message of that type with any content. */
void words_message(struct words *words, enum msg_type type, struct message *ret);
/* Another content for one member, and everything else as it was. */
void words_change(struct words *words, struct message *message);

/* With FUZZ_TRACE in the environment: who says what, a line each. */
void words_trace(const char *who, int number, const struct message *message);
void words_trace_event(const char *what, int number, rm_time now);

/* What a core sends must be what its peer takes. */
void words_well_formed(const struct message *message);

#endif
