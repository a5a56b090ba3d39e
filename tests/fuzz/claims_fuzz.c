/* Leases of other releases of the operator, cut at lines "%%", as a watch would tell them one second after
 * the other. Whoever goes before us is not we and says so in a sentence, and no namespace has more places
 * than it may.
 */
#include <stdlib.h>
#include <string.h>

#include "common/wire/json.h"
#include "operator/core/claims.h"
#include "tests/fuzz/fuzz.h"

enum { PARTS = 64 };

static void check_sentence(void (*say)(const struct claim *claim, char out[CLAIMS_SENTENCE]),
                           const struct claim *claim)
{
    char text[CLAIMS_SENTENCE];
    say(claim, text);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20)
            fuzz_broken("a sentence is one line");
}

static void check(struct claims *claims)
{
    struct claim news;
    bool left;
    const struct claim *before = claims_before_us(claims);
    if (before == &claims->own)
        fuzz_broken("nobody waits for himself");
    if (before)
        check_sentence(claims_say_refused, before);
    for (int told = 0; claims_next(claims, &news, &left); told++) {
        if (told > CLAIMS_MAX)
            fuzz_broken("news end");
        check_sentence(claims_say_left, &news);
    }
    for (int i = 0; i < claims->count; i++) {
        int beside = 0;
        for (int k = 0; k < claims->count; k++)
            beside += !strcmp(claims->other[i].namespace, claims->other[k].namespace);
        if (beside > CLAIMS_IN_NAMESPACE)
            fuzz_broken("a namespace has no more places than it may");
    }
}

static void hear(struct claims *claims, const struct fuzz_part *part, rm_time now)
{
    struct error err = {0};
    char *text = fuzz_text(part->data, part->size);
    struct js *lease = js_parse_foreign(text, part->size, "lease", &err);
    free(text);
    if (lease && js_get(lease, "deleted"))
        claims_forget(claims, lease, now);
    else if (lease)
        claims_see(claims, lease, now);
    js_free(lease);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_part part[PARTS];
    int parts = fuzz_split(data, size, part, PARTS);
    struct claims *claims = calloc(1, sizeof *claims);
    if (!claims)
        fuzz_broken("no memory");
    claims_init(claims, "a", "ringmaster-operator", size % 2 == 0);
    claims_listing(claims);
    for (int i = 0; i < parts; i++) {
        hear(claims, &part[i], i * RM_S);
        if (i == parts / 2)
            claims_listed(claims, i * RM_S);
        check(claims);
    }
    free(claims);
    return 0;
}
