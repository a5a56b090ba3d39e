#include "operator/core/names.h"

#include <stdio.h>

#include "common/base/assert.h"
#include "common/base/limits.h"
#include "common/base/prng.h"

/* FNV-1a: names need to differ, not to withstand anybody. */
static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u; /* "ab" "c" is not "a" "bc" */
}

static const char letters[] = "bcdfghjklmnpqrstvwxz2456789"; /* no vowels: no words */

void name_chance(const uint8_t random[OP_CHANCE_TEXT - 1], char out[OP_CHANCE_TEXT])
{
    for (int i = 0; i < OP_CHANCE_TEXT - 1; i++)
        out[i] = letters[random[i] % (sizeof letters - 1)];
    out[OP_CHANCE_TEXT - 1] = 0;
}

void name_hash(const char *uid, const char *what, int64_t a, int64_t b, char out[OP_HASH_TEXT])
{
    char numbers[48];
    snprintf(numbers, sizeof numbers, "%lld/%lld", (long long)a, (long long)b);
    uint64_t state = mix(mix(mix(0xcbf29ce484222325u, uid), what), numbers);
    uint64_t bits = splitmix64(&state);
    for (int i = 0; i < OP_HASH_TEXT - 1; i++, bits /= sizeof letters - 1)
        out[i] = letters[bits % (sizeof letters - 1)];
    out[OP_HASH_TEXT - 1] = 0;
}

void name_worker(const char *job, const char *uid, int index, int attempt, char out[OP_NAME_MAX])
{
    char hash[OP_HASH_TEXT];
    RM_ASSERT(index >= 0 && index < RM_WORKERS_MAX && attempt >= 0, "attempt %d of worker %d has a name",
              attempt, index);
    name_hash(uid, "worker", index, attempt, hash);
    snprintf(out, OP_NAME_MAX, "%s-w%d-%s", job, index, hash);
}

void name_coordinator(const char *job, const char *uid, int term, char out[OP_NAME_MAX])
{
    char hash[OP_HASH_TEXT];
    name_hash(uid, "coordinator", term, 0, hash);
    snprintf(out, OP_NAME_MAX, "%s-coordinator-%s", job, hash);
}

void name_key(const char *job, const char *chance, char out[OP_NAME_MAX])
{
    RM_ASSERT(*chance, "the key of job %s has a name that anybody could foresee", job);
    snprintf(out, OP_NAME_MAX, "%s-key-%s", job, chance);
}

void name_identity(const char *job, const char *uid, char out[OP_NAME_MAX])
{
    char hash[OP_HASH_TEXT];
    name_hash(uid, "identity", 0, 0, hash);
    snprintf(out, OP_NAME_MAX, "%s-%s", job, hash);
}

void name_key_of_old(const char *job, const char *uid, char out[OP_NAME_MAX])
{
    char hash[OP_HASH_TEXT];
    name_hash(uid, "key", 0, 0, hash);
    snprintf(out, OP_NAME_MAX, "%s-key-%s", job, hash);
}

void name_service(const char *job, char out[OP_NAME_MAX])
{
    snprintf(out, OP_NAME_MAX, "%s-coordinator", job);
}

void name_budget(const char *job, char out[OP_NAME_MAX])
{
    snprintf(out, OP_NAME_MAX, "%s-workers", job);
}

void name_policy_worker(const char *job, char out[OP_NAME_MAX])
{
    snprintf(out, OP_NAME_MAX, "%s-workers", job);
}

void name_policy_coordinator(const char *job, char out[OP_NAME_MAX])
{
    snprintf(out, OP_NAME_MAX, "%s-coordinator", job);
}

void name_selector(const char *job, char out[OP_SELECTOR_MAX])
{
    snprintf(out, OP_SELECTOR_MAX, OP_LABEL_JOB "=%s," OP_LABEL_ROLE "=worker", job);
}
