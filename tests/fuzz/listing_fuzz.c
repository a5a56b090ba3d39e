/* The listing of training data, as it is kept beside the checkpoints. What is accepted is written and read
 * back the same, and has its files in order, each with a name that a folder's file could have. */
#include <stdlib.h>
#include <string.h>

#include "common/storage/data/listing.h"
#include "tests/fuzz/fuzz.h"

static void check_files(const struct listing *l)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < l->count; i++) {
        const struct listing_file *file = &l->file[i];
        if (file->bytes < 0 || file->skip < 0 || file->skip > file->bytes)
            fuzz_broken("a file begins within itself");
        if (i && strcmp(l->file[i - 1].name, file->name) >= 0)
            fuzz_broken("files are in order, each once");
        if (file->name[0] == '.' || strstr(file->name, "/."))
            fuzz_broken("hidden files are never listed");
        bytes += file->bytes;
    }
    if (bytes != listing_bytes(l))
        fuzz_broken("the bytes are those of all files");
}

static void check_again(const struct listing *l)
{
    struct listing again;
    struct str first = str_init(LISTING_TEXT_MAX), second = str_init(LISTING_TEXT_MAX);
    struct error err = {0};
    if (listing_write(l, &first, &err) < 0)
        fuzz_broken(err.text);
    if (listing_read(&again, str_text(&first), first.length, "again", &err) < 0 ||
        listing_write(&again, &second, &err) < 0 || listing_compare(l, &again, &err) < 0)
        fuzz_broken(err.text);
    fuzz_same(&first, &second, "an accepted listing is written and read back the same");
    listing_clear(&again);
    str_clear(&first);
    str_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct listing listing;
    struct error err = {0};
    char *text = fuzz_text(data, size);
    if (listing_read(&listing, text, size, "listing", &err) == 0) {
        check_files(&listing);
        check_again(&listing);
    } else
        fuzz_refused(&err);
    listing_clear(&listing);
    free(text);
    return 0;
}
