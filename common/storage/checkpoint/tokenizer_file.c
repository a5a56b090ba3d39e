#include "common/storage/checkpoint/tokenizer_file.h"

#include <string.h>

#include "common/storage/checkpoint/manifest.h"
#include "common/storage/object/object.h"
#include "common/wire/json.h"

static const char field[] = "spec.trainer.data.tokenizer";

/* One more than the highest number of a token; 0: it has none. The vocabulary of BPE and WordPiece is a map,
 * that of Unigram a list. */
static int64_t count_tokens(const struct js *vocabulary, const struct js *added)
{
    if (!vocabulary)
        return 0;
    int64_t id, tokens = js_kind(vocabulary) == JS_ARRAY ? (int64_t)js_size(vocabulary) : 0;
    for (void *it = js_first(vocabulary); it; it = js_next(vocabulary, it))
        if (js_as_int(js_value(it), &id) && id >= tokens && id < INT32_MAX)
            tokens = id + 1;
    for (size_t i = 0; i < js_size(added); i++)
        if (js_as_int(js_get(js_at(added, i), "id"), &id) && id >= tokens && id < INT32_MAX)
            tokens = id + 1;
    return tokens;
}

static int check_text(const struct job_spec *spec, const struct str *text, struct error *err)
{
    struct error why = {0};
    struct js *top = js_parse(str_text(text), text->length, "it", &why);
    if (!top)
        return err_set(err, ERR_DATA, "%s", why.text);
    int64_t tokens = count_tokens(js_get(js_get(top, "model"), "vocab"), js_get(top, "added_tokens"));
    js_free(top);
    if (!tokens)
        return err_set(err, ERR_DATA,
                       "it has no model.vocab; write the tokenizer.json of Hugging Face's tokenizers");
    if (tokens > spec->model.shape.vocabulary)
        return err_set(err, ERR_DATA, "it has %lld tokens, but spec.trainer.model.vocabulary is %d",
                       (long long)tokens, spec->model.shape.vocabulary);
    return 0;
}

/* A place is a folder or a prefix; the file is what stands behind its last slash. */
static int open_folder(struct object_store **ret, const struct job_spec *spec, const char **ret_name,
                       const atomic_int *cancel, struct error *err)
{
    char folder[RM_URI_MAX];
    text_copy(folder, sizeof folder, spec->data.tokenizer);
    char *slash = strrchr(folder, '/');
    if (!slash || !slash[1])
        return err_set(err, ERR_USAGE, "it is no file");
    *slash = '\0';
    *ret_name = spec->data.tokenizer + (slash + 1 - folder);
    struct object_options options = {
        .uri = folder, .endpoint = spec->data.endpoint, .region = spec->data.region, .cancel = cancel};
    return object_open(ret, &options, err);
}

static int read_file(const struct job_spec *spec, struct str *out, const atomic_int *cancel,
                     struct error *err)
{
    struct object_store *store;
    const char *name = NULL;
    if (open_folder(&store, spec, &name, cancel, err) < 0)
        return -1;
    int result = object_get(store, name, MANIFEST_TOKENIZER_MAX, out, err);
    object_free(store);
    return result < 0 ? -1 : check_text(spec, out, err);
}

int tokenizer_file_read(const struct job_spec *spec, struct str *out, const atomic_int *cancel,
                        struct error *err)
{
    struct error why = {0};
    if (!*spec->data.tokenizer || read_file(spec, out, cancel, &why) == 0)
        return 0;
    if (why.code == ERR_NOT_FOUND)
        return err_set(err, ERR_DATA, "%s: there is no file %.300s", field, spec->data.tokenizer);
    return err_from(err, &why, "%s (%.200s): %s", field, spec->data.tokenizer, why.text);
}

int tokenizer_file_check(const struct job_spec *spec, const atomic_int *cancel, struct error *err)
{
    struct str text = str_init(MANIFEST_TOKENIZER_MAX + 1);
    int result = tokenizer_file_read(spec, &text, cancel, err);
    str_clear(&text);
    return result;
}
