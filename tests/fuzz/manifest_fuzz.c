/* manifest.json. A mutated one fails at the hash of itself at once; so the input is read a second time with
 * that hash made anew. What is accepted is written and read back the same. */
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/manifest.h"
#include "tests/fuzz/fuzz.h"

static struct manifest manifest, again; /* large */

static void check(const char *text, size_t length)
{
    struct str first = str_init(1 << 20), second = str_init(1 << 20);
    struct error err = {0};
    if (manifest_read(&manifest, text, length, "manifest", &err) < 0) {
        fuzz_refused(&err);
        return;
    }
    manifest_write(&manifest, &first);
    if (manifest_read(&again, str_text(&first), first.length, "manifest", &err) < 0)
        fuzz_broken(err.text);
    manifest_write(&again, &second);
    fuzz_same(&first, &second, "an accepted manifest is written and read back the same");
    if (manifest_parts(&manifest) < 1 || manifest_bytes(&manifest) < 0)
        fuzz_broken("an accepted manifest has parts");
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
    struct str sealed = str_init(2 << 20);
    sha256_once(text, body, hash);
    hex_encode(hash, sizeof hash, hex);
    str_add(&sealed, text, body);
    str_addf(&sealed, "%s%s\"\n}\n", tail, hex);
    check(str_text(&sealed), sealed.length);
    str_clear(&sealed);
    free(text);
    return 0;
}
