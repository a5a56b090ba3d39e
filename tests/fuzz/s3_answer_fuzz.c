/* What an S3 server answers, given to each of its readers. What they tell is within its bounds. */
#include <string.h>

#include "common/storage/object/s3_answer.h"
#include "tests/fuzz/fuzz.h"

static int object(void *ctx, const char *key, const struct object_info *info, struct error *err)
{
    (void)ctx, (void)err;
    if (!key[0] || strlen(key) >= S3_KEY_MAX || info->bytes < 0)
        fuzz_broken("an object has a key and a size");
    return 0;
}

static int folder(void *ctx, const char *prefix, struct error *err)
{
    (void)ctx, (void)err;
    if (!prefix[0] || strlen(prefix) >= S3_KEY_MAX)
        fuzz_broken("a folder has a name");
    return 0;
}

static int upload(void *ctx, const char *key, const char *id, struct error *err)
{
    (void)ctx, (void)err;
    if (!key[0] || !id[0])
        fuzz_broken("an upload has a key and an id");
    return 0;
}

static int part(void *ctx, const struct object_part_info *info, struct error *err)
{
    (void)ctx, (void)err;
    if (info->number < 1 || info->number > OBJECT_PARTS_MAX || info->bytes < 0 || !info->tag[0])
        fuzz_broken("a part has a number, a size and a tag");
    return 0;
}

static void expect(int result, const struct error *err)
{
    if (result < 0)
        fuzz_refused(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct s3_session session;
    static char next[S3_TOKEN_MAX], key[S3_KEY_MAX], id[OBJECT_UPLOAD_MAX];
    struct s3_refusal refusal;
    int number;
    struct error err = {0};
    s3_answer_refusal(data, size, &refusal);
    expect(s3_answer_page(data, size, &(struct s3_page_reader){object, folder, NULL}, next, &err), &err);
    expect(s3_answer_uploads(data, size, &(struct s3_uploads_reader){upload, NULL}, key, id, &err), &err);
    expect(s3_answer_parts(data, size, &(struct s3_parts_reader){part, NULL}, &number, &err), &err);
    expect(s3_answer_upload(data, size, id, &err), &err);
    expect(s3_answer_completed(data, size, &refusal, &err), &err);
    expect(s3_answer_session(data, size, &session, &err), &err);
    return 0;
}
