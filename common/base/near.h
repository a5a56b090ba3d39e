/* How near a misspelt word is to one that is known: for "did you mean". */
#ifndef RM_BASE_NEAR_H
#define RM_BASE_NEAR_H

enum { NEAR_LONGEST = 40 }; /* bytes of a word; longer ones are near to nothing */

/* Letters to put in, take out or change (Levenshtein) until one is the other; NEAR_LONGEST where one is
 * longer. */
int near_distance(const char *a, const char *b);

/* The farthest that is worth a question, for a word as long as this one. */
int near_enough(const char *word);

#endif
