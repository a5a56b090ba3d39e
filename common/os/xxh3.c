#include "common/os/xxh3.h"

#include <stdlib.h>
#include <string.h>

/* All of it is compiled in from its header: there is no library to load. */
#define XXH_INLINE_ALL
#include <xxhash.h>

/* What xxhash.h allocates itself is aligned as it wants. */
struct xxh3 *xxh3_open(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        abort(); /* no memory for half a KiB: nothing goes on here, as in crypto.c */
    XXH3_128bits_reset(state);
    return (struct xxh3 *)state;
}

void xxh3_add(struct xxh3 *h, const void *bytes, size_t length)
{
    if (length)
        XXH3_128bits_update((XXH3_state_t *)h, bytes, length);
}

static void write_canonical(XXH128_hash_t hash, uint8_t out[XXH3_BYTES])
{
    XXH128_canonical_t canonical;
    _Static_assert(sizeof canonical == XXH3_BYTES, "128 bits");
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(out, &canonical, sizeof canonical);
}

void xxh3_finish(struct xxh3 *h, uint8_t out[XXH3_BYTES])
{
    write_canonical(XXH3_128bits_digest((XXH3_state_t *)h), out);
    xxh3_free(h);
}

void xxh3_free(struct xxh3 *h)
{
    XXH3_freeState((XXH3_state_t *)h);
}

void xxh3_once(const void *bytes, size_t length, uint8_t out[XXH3_BYTES])
{
    write_canonical(XXH3_128bits(bytes, length), out);
}
