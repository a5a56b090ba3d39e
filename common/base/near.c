#include "common/base/near.h"

#include <string.h>

int near_distance(const char *a, const char *b)
{
    int row[NEAR_LONGEST + 1], n = (int)strlen(b);
    if (n > NEAR_LONGEST || strlen(a) > NEAR_LONGEST)
        return NEAR_LONGEST;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

int near_enough(const char *word)
{
    return (int)(strlen(word) + 1) / 2;
}
