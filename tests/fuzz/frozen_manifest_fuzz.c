/* The manifest of frozen processes. A mutated one fails at its hash at once; so the input is read a second
 * time with hash and seal made anew. What is accepted is the text of what was read. */
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/frozen_manifest.h"
#include "tests/fuzz/fuzz.h"

static struct frozen_manifest manifest, again; /* large */
static const uint8_t key[RM_HASH_BYTES] = "any key";

static void check(const char *text, size_t length)
{
    struct str first = str_init(FROZEN_TEXT_MAX), second = str_init(FROZEN_TEXT_MAX);
    struct error err = {0};
    if (frozen_manifest_read(&manifest, text, length, "manifest", &err) < 0) {
        fuzz_refused(&err);
        return;
    }
    frozen_manifest_write(&manifest, key, &first);
    if (frozen_manifest_read(&again, str_text(&first), first.length, "manifest", &err) < 0)
        fuzz_broken(err.text);
    if (!frozen_is_sealed_by(&again, key))
        fuzz_broken("what is written is sealed");
    frozen_manifest_write(&again, key, &second);
    fuzz_same(&first, &second, "an accepted manifest is written and read back the same");
    if (frozen_piece_length(&manifest, manifest.pieces - 1) < 1)
        fuzz_broken("the last piece of an accepted manifest has bytes");
    frozen_refuse_ground(&manifest.ground, &again.ground, NULL);
    str_clear(&first);
    str_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char tail[] = ",\n  \"manifestSha256\": \"";
    char *text = fuzz_text(data, size);
    check(text, size);
    char *found = memmem(text, size, tail, sizeof tail - 1);
    size_t body = found ? (size_t)(found - text) : size;
    uint8_t hash[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    struct str sealed = str_init(4 << 20);
    sha256_once(text, body, hash);
    hex_encode(hash, sizeof hash, hex);
    str_add(&sealed, text, body);
    str_addf(&sealed, "%s%s\",\n  \"seal\": \"%s\"\n}\n", tail, hex, hex);
    check(str_text(&sealed), sealed.length);
    str_clear(&sealed);
    free(text);
    return 0;
}
