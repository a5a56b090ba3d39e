/* What a metadata server says: words that are read have their texts within their room, and are about this
 * machine. */
#include <string.h>

#include "common/notice/metadata.h"
#include "tests/fuzz/fuzz.h"

static void check_words(int read, const struct metadata_words *words, const struct error *err)
{
    if (read < 0) {
        fuzz_refused(err);
        return;
    }
    if (words->count < 0 || words->count > METADATA_WORDS_MAX)
        fuzz_broken("there is room for the words");
    for (int i = 0; i < words->count; i++) {
        const struct metadata_word *word = &words->word[i];
        if (strnlen(word->id, sizeof word->id) == sizeof word->id)
            fuzz_broken("an id ends within its room");
        if (word->timed && word->certainty != NOTICE_WILL)
            fuzz_broken("what may come has no deadline");
        rm_time now = 1000 * RM_S;
        rm_time until = notice_until(NOTICE_AZURE, word->until_ms, 1800000000000, now);
        if (until < now || until > now + 3600 * RM_S)
            fuzz_broken("a deadline lies within twice what is promised");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct metadata_words words = {0};
    struct error err = {0};
    check_words(metadata_read_aws_spot(text, size, &words, &err), &words, &err);
    check_words(metadata_read_aws_rebalance(text, size, &words, &err), &words, &err);
    check_words(metadata_read_aws_maintenance(text, size, &words, &err), &words, &err);
    check_words(metadata_read_gce_preempted(text, size, &words, &err), &words, &err);
    check_words(metadata_read_gce_maintenance(text, size, &words, &err), &words, &err);
    check_words(metadata_read_azure(text, size, "gpu_3", 1800000000000, &words, &err), &words, &err);
    return 0;
}
