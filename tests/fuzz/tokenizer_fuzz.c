/* tokenizer.json, then "%%", then a text: the tokenizer is read or refused with a sentence, and a text
 * becomes tokens that there are, no more of them than there is room for, or is refused likewise. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/tokens/bpe.h"

enum { GUARD = 0x5a5a5a5a };

static void check_tokens(const struct bpe *b, const char *text, size_t length)
{
    size_t room = 2 * length + 1;
    struct error err = {0};
    int32_t *ids = malloc((room + 1) * sizeof *ids);
    if (!ids)
        abort();
    ids[room] = GUARD;
    int64_t count = bpe_encode(b, text, length, ids, &err);
    if (ids[room] != GUARD || count > (int64_t)room)
        fuzz_broken("a text has no more tokens than it says");
    if (count < 0)
        fuzz_refused(&err);
    for (int64_t i = 0; i < count; i++) {
        size_t bytes;
        if (ids[i] < 0 || ids[i] >= bpe_size(b) || !bpe_bytes(b, ids[i], &bytes))
            fuzz_broken("a token is one of the tokenizer's");
    }
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_part part[2] = {{data, size}, {NULL, 0}};
    struct error err = {0};
    struct bpe *b = NULL;
    fuzz_split(data, size, part, 2);
    char *json = fuzz_text(part[0].data, part[0].size), *text = fuzz_text(part[1].data, part[1].size);
    if (bpe_open(&b, json, part[0].size, &err) < 0) {
        fuzz_refused(&err);
        if (strncmp(err.text, "tokenizer.json: ", 16) != 0)
            fuzz_broken("a refusal names the file");
    } else {
        check_tokens(b, text, part[1].size);
        bpe_free(b);
    }
    free(json);
    free(text);
    return 0;
}
