/* A folder of training data: two letters that choose format and context, then up to three shards, cut at
 * lines "%%". What opens can be read: every sample, or an error with a sentence. */
#include <stdlib.h>

#include "common/storage/data/identify.h"
#include "tests/fuzz/fuzz.h"

enum { SHARDS = 3, CONTEXT_MAX = 16, SAMPLES_READ = 64 };

static const char *const names[SHARDS] = {"a.bin", "b.bin", "c.bin"};

static void read_all(struct corpus *corpus)
{
    int32_t tokens[CONTEXT_MAX + 1];
    struct corpus_identity identity;
    struct identify_options tree = {.threads = 1}, chain = {.kind = IDENTITY_CHAIN};
    struct error err = {0};
    if (corpus_training(corpus) + corpus_held_out(corpus) != corpus_samples(corpus))
        fuzz_broken("samples are trained on or held out");
    for (int64_t i = 0; i < corpus_samples(corpus) && i < SAMPLES_READ; i++)
        if (corpus_read(corpus, i, tokens, &err) < 0)
            fuzz_refused(&err);
    if (corpus_identify(corpus, &tree, &identity, &err) != corpus_identify(corpus, &chain, &identity, &err))
        fuzz_broken("what can be hashed can be hashed both ways");
    if (identity.bytes != corpus_bytes(corpus))
        fuzz_broken("the identity counts all bytes");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct corpus_options options = {.uri = fuzz_folder(),
                                     .format = (enum corpus_format)(data[0] % 4),
                                     .context = 1 + data[1] % CONTEXT_MAX,
                                     .vocabulary = 1000,
                                     .hold_out = 0.25};
    struct fuzz_part part[SHARDS] = {0};
    struct corpus *corpus = NULL;
    struct error err = {0};
    fuzz_split(data + 2, size - 2, part, SHARDS);
    for (int i = 0; i < SHARDS; i++)
        fuzz_file(names[i], part[i].data, part[i].size);
    if (corpus_open(&corpus, &options, &err) == 0)
        read_all(corpus);
    else
        fuzz_refused(&err);
    corpus_free(corpus);
    return 0;
}
