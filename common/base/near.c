#include "common/base/near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"

enum { A_BEGINNING = 3 }; /* letters from which on a beginning is one */

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

int near_distance(const char *a, const char *b)
{
    /* row[i % 3][j]: from the first i letters of a to the first j of b */
    int row[3][NEAR_LONGEST + 1], m = (int)strlen(a), n = (int)strlen(b);
    if (n > NEAR_LONGEST || m > NEAR_LONGEST)
        return NEAR_LONGEST;
    for (int i = 0; i <= m; i++) {
        int *now = row[i % 3], *one = row[(i + 2) % 3], *two = row[(i + 1) % 3];
        for (int j = 0; j <= n; j++) {
            now[j] = i ? j ? one[j - 1] + !same(a[i - 1], b[j - 1]) : i : j;
            if (!i || !j)
                continue;
            now[j] = least(now[j], least(one[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                now[j] = least(now[j], two[j - 2] + 1);
        }
    }
    RM_ASSERT(row[m % 3][n] >= 0 && row[m % 3][n] <= (m > n ? m : n), "%s is %d changes from %s", a,
              row[m % 3][n], b);
    return row[m % 3][n];
}

/* A third of a word may be wrong. */
struct near near_to(const char *word)
{
    size_t length = strlen(word);
    int distance = length > NEAR_LONGEST ? 0 : (int)(length + 1) / 3 + 1;
    struct near near = {.before = "", .distance = distance};
    text_copy(near.word, sizeof near.word, word);
    return near;
}

struct near near_to_option(const char *word)
{
    char bare[NEAR_LONGEST + 2];
    word += strspn(word, "-");
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word, "="), word);
    struct near near = near_to(bare);
    near.before = "--";
    return near;
}

static int distance_of(const char *word, char known[NEAR_LONGEST + 1])
{
    size_t typed = strlen(word);
    int distance = near_distance(word, known);
    RM_ASSERT(strlen(known) <= NEAR_LONGEST, "%s is longer than a word", known);
    if (typed < A_BEGINNING || typed >= strlen(known))
        return distance;
    char next = known[typed];
    known[typed] = 0;
    bool begins = !near_distance(word, known);
    known[typed] = next;
    return begins ? 1 : distance;
}

void near_try(struct near *near, const char *known, size_t length)
{
    char text[NEAR_LONGEST + 1];
    RM_ASSERT(strlen(near->before) <= 2, "%s is no sign before a word", near->before);
    if (length > NEAR_LONGEST)
        return;
    snprintf(text, sizeof text, "%.*s", (int)length, known);
    int distance = distance_of(near->word, text);
    if (distance >= near->distance)
        return;
    near->distance = distance;
    text_copy(near->best, sizeof near->best, text);
    snprintf(near->question, sizeof near->question, "; did you mean %s%s?", near->before, text);
}
