#include "common/notice/repeats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"

static const rm_time pause_first = 60 * RM_S, pause_most = 3600 * RM_S;

/* FNV-1a of all but digits; never 0. */
static uint64_t hash_of(const char *sentence)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *c = sentence; *c; c++)
        if (*c < '0' || *c > '9')
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return hash ? hash : 1;
}

/* Its own place, else a free one, or that of one which has not come for an hour; NULL: there is none. */
static struct repeats_kind *find_place(struct repeats *r, uint64_t hash, rm_time now)
{
    RM_ASSERT(hash, "a sentence with the mark of none, at %lld", (long long)now);
    struct repeats_kind *place = NULL;
    for (struct repeats_kind *k = r->kind; k < r->kind + REPEATS_KINDS; k++) {
        bool over = !k->hash || now - k->came >= pause_most;
        if (k->hash == hash && !over)
            return k;
        if (over && (!place || k->came < place->came))
            place = k;
    }
    return place;
}

bool repeats_say(struct repeats *r, const char *sentence, rm_time now, int64_t *ret_more)
{
    uint64_t hash = hash_of(sentence);
    struct repeats_kind *k = find_place(r, hash, now);
    *ret_more = 0;
    if (!k) {
        r->others++;
        return false;
    }
    RM_ASSERT(k->came <= now, "a sentence came at %lld, and it is %lld", (long long)k->came, (long long)now);
    bool known = k->hash == hash && now - k->came < pause_most;
    k->came = now;
    if (known && now - k->at < rm_backoff(pause_first, pause_most, k->said - 1)) {
        k->more++;
        return false;
    }
    *ret_more = k->more + (known ? 0 : r->others);
    if (!known)
        r->others = 0;
    *k = (struct repeats_kind){.hash = hash, .said = known ? k->said + 1 : 1, .at = now, .came = now};
    return true;
}

void repeats_thin(struct repeats *r, rm_time now, char *sentence, size_t size)
{
    int64_t more;
    size_t length = strlen(sentence);
    RM_ASSERT(length < size, "a sentence of %zu in %zu bytes", length, size);
    if (!length)
        return;
    if (!repeats_say(r, sentence, now, &more))
        sentence[0] = 0;
    else if (more)
        snprintf(sentence + length, size - length, " (%" PRId64 " more were not said)", more);
}
