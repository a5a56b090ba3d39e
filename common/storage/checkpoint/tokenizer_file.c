#include "common/storage/checkpoint/tokenizer_file.h"

#include <stdlib.h>
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

/* A map gives each token a number of its own: nothing could be read back else. */
static int check_numbers(const struct js *vocabulary, int64_t tokens, struct error *err)
{
    if (js_kind(vocabulary) == JS_ARRAY)
        return 0;
    bool *seen = calloc((size_t)tokens, sizeof *seen);
    int result = seen ? 0 : err_set(err, ERR_MACHINE, "out of memory");
    for (void *it = js_first(vocabulary); it && result == 0; it = js_next(vocabulary, it)) {
        int64_t id;
        if (!js_as_int(js_value(it), &id) || id < 0 || id >= tokens)
            result =
                err_set(err, ERR_DATA, "the token %.40s has no number, or none that can be one", js_key(it));
        else if (seen[id])
            result = err_set(err, ERR_DATA, "two tokens have the number %lld; the second is %.40s",
                             (long long)id, js_key(it));
        else
            seen[id] = true;
    }
    free(seen);
    return result;
}

static int check_tokens(const struct job_spec *spec, const struct js *top, struct error *err)
{
    const struct js *vocabulary = js_get(js_get(top, "model"), "vocab");
    int64_t tokens = count_tokens(vocabulary, js_get(top, "added_tokens"));
    if (!tokens)
        return err_set(err, ERR_DATA,
                       "it has no model.vocab; write the tokenizer.json of Hugging Face's tokenizers");
    if (tokens > spec->model.shape.vocabulary)
        return err_set(err, ERR_DATA, "it has %lld tokens, but spec.trainer.model.vocabulary is %d",
                       (long long)tokens, spec->model.shape.vocabulary);
    return check_numbers(vocabulary, tokens, err);
}

static int check_text(const struct job_spec *spec, const struct str *text, struct error *err)
{
    struct error why = {0};
    struct js *top = js_parse(str_text(text), text->length, "it", &why);
    if (!top)
        return err_set(err, ERR_DATA, "%s", why.text);
    int result = check_tokens(spec, top, err);
    js_free(top);
    return result;
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
