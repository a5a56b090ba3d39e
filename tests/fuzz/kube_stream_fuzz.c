/* The API server's two long answers, a list and a watch, cut into objects while they arrive. Where the
 * network cuts them makes no difference: whole, byte by byte and in uneven pieces, the same objects come out.
 * The first byte chooses the kind of answer and the pieces. */
#include <stdlib.h>

#include "common/kube/split.h"
#include "tests/fuzz/fuzz.h"

enum { SEEN_MAX = 1 << 20 };

static void note_object(void *ctx, char *text, size_t length)
{
    struct str *seen = ctx;
    if (text[length])
        fuzz_broken("an object ends with NUL");
    str_add(seen, text, length);
    str_add(seen, "\n", 1);
}

/* What comes out of an answer that arrives in pieces of so many bytes: objects, a line each, then the rest.
 */
static int cut(bool lines, const char *bytes, size_t count, size_t piece, struct str *seen)
{
    struct split split = split_init(lines, note_object, seen);
    int ret = 0;
    for (size_t at = 0; at < count && ret == 0; at += piece)
        ret = split_add(&split, bytes + at, count - at < piece ? count - at : piece);
    if (ret == 0)
        str_add(seen, split.rest.data ? split.rest.data : "", split.rest.length);
    split_clear(&split);
    return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    bool lines = data[0] & 1;
    size_t piece = 1 + data[0] / 2;
    char *text = fuzz_text(data + 1, size - 1);
    struct str whole = str_init(SEEN_MAX), pieces = str_init(SEEN_MAX);
    int first = cut(lines, text, size - 1, size, &whole);
    int second = cut(lines, text, size - 1, piece, &pieces);
    if (first != second)
        fuzz_broken("an answer is too long or it is not, however it arrives");
    if (first == 0)
        fuzz_same(&whole, &pieces, "the pieces that an answer arrives in change nothing");
    str_clear(&whole);
    str_clear(&pieces);
    free(text);
    return 0;
}
