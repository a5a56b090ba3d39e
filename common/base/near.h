/* Which known word a misspelt one was meant to be: for "did you mean". Pure.
 *
 *     struct near near = near_to(typed);
 *     for (int i = 0; known[i]; i++)
 *         near_try(&near, known[i], strlen(known[i]));
 *     err_set(err, ERR_USAGE, "%s is none of them%s", typed, near.question);
 *
 * Capital letters don't count. A word of which the beginning was written is one letter away. */
#ifndef RM_BASE_NEAR_H
#define RM_BASE_NEAR_H

#include <stddef.h>

enum {
    NEAR_LONGEST = 40,
    NEAR_QUESTION = NEAR_LONGEST + 24
}; /* bytes of a word; longer ones are near to nothing */

struct near {
    char word[NEAR_LONGEST + 2];  /* as typed; a longer one stays too long */
    const char *before;           /* what stands before each known word, as "--"; a constant, "" at first */
    int distance;                 /* of the best so far; what is farther is no guess */
    char best[NEAR_LONGEST + 1];  /* "": none is near enough */
    char question[NEAR_QUESTION]; /* "; did you mean BEST?", or "" */
};

struct near near_to(const char *word);
/* An option as it was typed, with its dashes and what stands behind =; a guess has two dashes. */
struct near near_to_option(const char *word);

/* Takes the known word, of which `length` bytes count, where it is nearer than the best so far. */
void near_try(struct near *near, const char *known, size_t length);

/* Letters to put in, take out, change, or swap with the next one until one word is the other; NEAR_LONGEST
 * where one is longer. */
int near_distance(const char *a, const char *b);

#endif
