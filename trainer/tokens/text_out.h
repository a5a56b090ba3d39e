/* Bytes that a model made, as text that a terminal can take: whole UTF-8 characters go out as they are, what
 * is none becomes U+FFFD, and control characters but newline and tab are left out. */
#ifndef RM_TRAINER_TEXT_OUT_H
#define RM_TRAINER_TEXT_OUT_H

#include "common/base/str.h"

struct text_out {
    unsigned char held[4]; /* the beginning of a character */
    int count;
};

/* Adds to *out what can be said after one more byte; nothing where a character is not whole yet. */
void text_out_add(struct text_out *t, unsigned char byte, struct str *out);
/* A character that was never finished. */
void text_out_end(struct text_out *t, struct str *out);

#endif
