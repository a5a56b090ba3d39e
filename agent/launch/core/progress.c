#include "agent/launch/core/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"

static const int64_t most = ((int64_t)1 << 53) - 1; /* what a JSON number holds exactly everywhere */

static int read_whole(const char *name, const char *value, int64_t *ret, struct error *err)
{
    size_t digits = strspn(value, "0123456789");
    int64_t number = 0;
    for (size_t i = 0; i < digits && number <= most; i++)
        number = number * 10 + (value[i] - '0');
    if (!digits || value[digits] || number > most)
        return err_set(err, ERR_USAGE, "%s=%.40s: %s wants a whole number from 0 to 2^53 - 1", name, value,
                       name);
    RM_ASSERT(number >= 0 && number <= most, "%s is %lld", name, (long long)number);
    *ret = number;
    return 0;
}

/* A loss that is no number is news of the training, not an error of who says it. */
static int read_loss(const char *value, double *ret, struct error *err)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end)
        return err_set(err, ERR_USAGE, "loss=%.40s: loss wants a number", value);
    *ret = isfinite(number) ? number : NAN;
    return 0;
}

static int read_word(struct launch_progress *ret, char *word, struct error *err)
{
    RM_ASSERT(*word, "a word of nothing, behind step %lld", (long long)ret->step);
    char *value = strchr(word, '=');
    if (!value)
        return err_set(err, ERR_USAGE, "%.40s is not NAME=VALUE", word);
    *value++ = 0;
    if (!strcmp(word, "step"))
        return read_whole(word, value, &ret->step, err);
    if (!strcmp(word, "steps"))
        return read_whole(word, value, &ret->steps, err);
    if (!strcmp(word, "rank"))
        return read_whole(word, value, &ret->rank, err);
    if (!strcmp(word, "loss"))
        return read_loss(value, &ret->loss, err);
    return 0;
}

int launch_progress_read(struct launch_progress *ret, const char *bytes, size_t length, struct error *err)
{
    static const char between[] = " \r\n";
    char text[LAUNCH_PROGRESS_MAX + 1], *word = text;
    *ret = (struct launch_progress){.rank = -1, .step = -1, .loss = NAN};
    if (length > LAUNCH_PROGRESS_MAX)
        return err_set(err, ERR_USAGE, "it is longer than %d bytes", LAUNCH_PROGRESS_MAX);
    for (size_t i = 0; i < length; i++) {
        bool plain = (bytes[i] >= ' ' && bytes[i] <= '~') || bytes[i] == '\n' || bytes[i] == '\r';
        if (!plain)
            return err_set(err, ERR_USAGE, "byte %zu of it is no plain character", i);
    }
    memcpy(text, bytes, length);
    text[length] = 0;
    while (*(word += strspn(word, between))) {
        char *end = word + strcspn(word, between), *next = end + (*end != 0);
        *end = 0;
        if (read_word(ret, word, err) < 0)
            return -1;
        word = next;
    }
    if (ret->step < 0)
        return err_set(err, ERR_USAGE, "it says no step");
    RM_ASSERT(ret->steps >= 0 && ret->rank >= -1, "rank %lld is at step %lld of %lld", (long long)ret->rank,
              (long long)ret->step, (long long)ret->steps);
    return 0;
}
