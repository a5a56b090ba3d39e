/* Reads a model and a prompt, and draws one token after the other. */
#include "trainer/generate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/config.h"
#include "common/os/fault.h"
#include "common/os/pages.h"
#include "common/storage/checkpoint/folder_texts.h"
#include "common/storage/checkpoint/manifest.h"
#include "common/storage/checkpoint/model_folder.h"
#include "common/storage/checkpoint/place.h"
#include "common/wire/json.h"
#include "trainer/backend/cpu/backend_cpu.h"
#include "trainer/backend/cpu/model/sample.h"
#include "trainer/tokens/bpe.h"
#include "trainer/tokens/text_out.h"

enum {
    TOKENS_MAX = 1 << 20,
    BYTES = 256,        /* tokens of a model of text */
    TEXT_MAX = 1 << 16, /* bytes that one token can add to the text */
};

static const uint64_t stream = 0x67656E6572617465; /* "generate": apart from all other uses of a seed */

struct wish {
    const char *folder, *prompt;
    long tokens;
    uint64_t seed;
    double temperature;
};

struct writer {
    struct model_layout layout;
    struct backend *backend;
    struct bpe *tokenizer;
    float *params, *logits;
    int32_t *tokens; /* prompt and text so far */
    int64_t count;
    int known; /* of the first so many of them the backend was asked last; 0: of others */
    struct object_store *store;
    char folder[RM_URI_MAX];
};

static int need_number(const char *name, const char *text, double lowest, double highest, double *ret,
                       struct error *err)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno || end == text || *end || !(value >= lowest && value <= highest))
        return err_set(err, ERR_USAGE, "generate: %s is %s, but must be a number from %.0f to %.0f", name,
                       text, lowest, highest);
    *ret = value;
    return 0;
}

static int take_option(struct wish *wish, const char *name, const char *value, struct error *err)
{
    double number = 0;
    if (!strcmp(name, "--prompt")) {
        wish->prompt = value;
        return 0;
    }
    if (!strcmp(name, "--temperature"))
        return need_number(name, value, 0, 100, &wish->temperature, err);
    if (strcmp(name, "--tokens") != 0 && strcmp(name, "--seed") != 0)
        return err_set(err, ERR_USAGE, "generate: option %s is not known", name);
    bool is_seed = !strcmp(name, "--seed");
    if (need_number(name, value, is_seed ? 0 : 1, is_seed ? 0x1p53 : TOKENS_MAX, &number, err) < 0)
        return -1;
    if (number != floor(number))
        return err_set(err, ERR_USAGE, "generate: %s is %s, but must be a whole number", name, value);
    if (is_seed)
        wish->seed = (uint64_t)number;
    else
        wish->tokens = (long)number;
    return 0;
}

static int read_arguments(struct wish *wish, int argc, char **argv, struct error *err)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0 && !wish->folder) {
            wish->folder = argv[i];
            continue;
        }
        if (strncmp(argv[i], "--", 2) != 0)
            return err_set(err, ERR_USAGE, "generate: %.200s is a second folder; name one", argv[i]);
        if (i + 1 == argc)
            return err_set(err, ERR_USAGE, "generate: %.60s wants a value", argv[i]);
        if (take_option(wish, argv[i], argv[i + 1], err) < 0)
            return -1;
        i++;
    }
    if (!wish->folder)
        return err_set(err, ERR_USAGE,
                       "generate: which folder? A checkpoint with config.json and model.safetensors");
    return 0;
}

/* 1: it is there; 0: it is not; -1: nobody knows. */
static int has(struct object_store *store, const char *name, struct error *err)
{
    struct object_info info;
    struct error why = {0};
    if (object_head(store, name, &info, &why) == 0)
        return 1;
    return why.code == ERR_NOT_FOUND ? 0 : err_from(err, &why, "%s", why.text);
}

static int refuse_place(const struct writer *w, struct error *err)
{
    return err_set(
        err, ERR_DATA,
        "%.200s holds no model: there is no config.json, nor one in its final; name a checkpoint, as "
        "checkpoints/final, or a folder with config.json and model.safetensors",
        w->folder);
}

/* A job's checkpoint folder is named for its `final`, whatever else somebody put there; else it is the folder
 * itself. */
static int find_folder(struct writer *w, const char *named, struct error *err)
{
    if (place_open_uri(&w->store, named, err) < 0)
        return -1;
    text_copy(w->folder, sizeof w->folder, object_uri(w->store));
    int below = has(w->store, "final/config.json", err),
        here = below ? below : has(w->store, "config.json", err);
    if (here <= 0)
        return here < 0 ? -1 : refuse_place(w, err);
    if (!below)
        return 0;
    snprintf(w->folder, sizeof w->folder, "%s/final", object_uri(w->store));
    object_free(w->store);
    w->store = NULL;
    return place_open_uri(&w->store, w->folder, err);
}

static int open_backend(struct writer *w, struct error *err)
{
    const char *isa = config_get(CONFIG_TRAINER_ISA);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const struct backend_options options = {.layout = &w->layout,
                                            .sequences = 1,
                                            .threads = cores < 1 ? 1 : (int)cores,
                                            .isa = isa ? isa : "Auto"};
    if (backend_cpu_open(&w->backend, &options, err) < 0)
        return -1;
    return w->backend->ops->weights(w->backend, far_here(w->params), err);
}

/* 1: its manifest says that it was trained on text, though it knows more tokens than bytes; 0: it says
 * something else, or there is none. -1: nobody knows. */
static int was_text(const struct writer *w, struct error *err)
{
    struct str text = str_init(MANIFEST_TEXT_MAX);
    struct error why = {0};
    struct js *manifest = NULL;
    int result = object_get(w->store, "manifest.json", MANIFEST_TEXT_MAX, &text, &why);
    if (result == 0) {
        manifest = js_parse(str_text(&text), text.length, "manifest.json", &why);
        result = manifest ? folder_is_of_text(js_get(manifest, "compared")) : -1;
    } else if (why.code == ERR_NOT_FOUND) {
        result = 0;
    }
    js_free(manifest);
    str_clear(&text);
    return result < 0 ? err_from(err, &why, "%s: %s", w->folder, why.text) : result;
}

/* A folder without tokenizer.json is a checkpoint on the way, one of old, or a model from elsewhere. */
static int bytes_tokenizer(struct writer *w, const struct model_shape *shape, struct str *text,
                           struct error *err)
{
    int bytes = shape->vocabulary == BYTES ? 1 : shape->vocabulary < BYTES ? 0 : was_text(w, err);
    if (bytes < 0)
        return -1;
    if (!bytes)
        return err_set(err, ERR_DATA,
                       "%s: its vocabulary of %d is not one of bytes, and no tokenizer.json says what its "
                       "tokens mean; put the one that made them beside its weights",
                       w->folder, shape->vocabulary);
    folder_bytes_tokenizer(text);
    return 0;
}

static int open_tokenizer(struct writer *w, const struct model_shape *shape, struct error *err)
{
    struct str text = str_init(MANIFEST_TOKENIZER_MAX + 1);
    struct error why = {0};
    int result = object_get(w->store, "tokenizer.json", MANIFEST_TOKENIZER_MAX, &text, &why);
    if (result < 0)
        result = why.code == ERR_NOT_FOUND ? bytes_tokenizer(w, shape, &text, err)
                                           : err_from(err, &why, "%s", why.text);
    if (result == 0 && bpe_open(&w->tokenizer, str_text(&text), text.length, err) < 0)
        result = err_wrap(err, "%s", w->folder);
    str_clear(&text);
    if (result == 0 && bpe_size(w->tokenizer) > shape->vocabulary)
        return err_set(
            err, ERR_DATA,
            "%s: tokenizer.json knows token %d, but the model a vocabulary of %d: they are not of one job",
            w->folder, bpe_size(w->tokenizer) - 1, shape->vocabulary);
    return result;
}

static int load_model(struct writer *w, const struct wish *wish, struct error *err)
{
    struct model_shape shape;
    if (find_folder(w, wish->folder, err) < 0 || model_folder_shape(w->store, &shape, err) < 0 ||
        open_tokenizer(w, &shape, err) < 0)
        return -1;
    model_layout_init(&w->layout, &shape);
    w->params = pages_alloc((size_t)w->layout.parameters * sizeof *w->params);
    w->logits = malloc((size_t)shape.vocabulary * sizeof *w->logits);
    w->tokens = calloc(2 * strlen(wish->prompt) + 4 + (size_t)wish->tokens, sizeof *w->tokens);
    if (!w->params || !w->logits || !w->tokens)
        return err_set(err, ERR_MACHINE, "%s: no memory for its %lld parameters", w->folder,
                       (long long)w->layout.parameters);
    if (model_folder_load(w->store, &w->layout, w->params, err) < 0)
        return -1;
    FAULT("model-read");
    return open_backend(w, err);
}

static void writer_clear(struct writer *w)
{
    if (w->backend)
        w->backend->ops->free(w->backend);
    bpe_free(w->tokenizer);
    free(w->params);
    free(w->logits);
    free(w->tokens);
    object_free(w->store);
}

/* A text that is longer than the context begins anew with each token: all that is looked at moves by one
 * place, and what was known of it is of no use. */
static int next_logits(struct writer *w, struct error *err)
{
    int64_t context = w->layout.shape.context;
    int length = (int)(w->count < context ? w->count : context);
    const int32_t *last = w->tokens + w->count - length;
    int known = last == w->tokens ? w->known : 0;
    if (w->backend->ops->logits(w->backend, last, length, known, w->logits, err) < 0)
        return -1;
    w->known = last == w->tokens ? length : 0;
    return 0;
}

static int next_token(struct writer *w, const struct wish *wish, int32_t *ret, struct error *err)
{
    if (next_logits(w, err) < 0)
        return -1;
    struct philox_block random = philox4x32(wish->seed, (uint64_t)w->count, stream);
    *ret =
        sample_token(w->logits, bpe_size(w->tokenizer), (float)wish->temperature, random.word[0] * 0x1p-32);
    return 0;
}

/* A text that nobody got is no success. */
static int say_text(struct str *text, struct error *err)
{
    bool said = fwrite(str_text(text), 1, text->length, stdout) == text->length && fflush(stdout) == 0;
    str_reset(text);
    return said ? 0 : err_errno(err, ERR_MACHINE, "generate: the text can't be written to standard output");
}

static int say_token(struct writer *w, const struct wish *wish, struct text_out *characters, struct str *text,
                     struct error *err)
{
    int32_t token;
    size_t length;
    if (next_token(w, wish, &token, err) < 0)
        return -1;
    w->tokens[w->count++] = token;
    const char *bytes = bpe_bytes(w->tokenizer, token, &length);
    for (size_t at = 0; at < length; at++)
        text_out_add(characters, (unsigned char)bytes[at], text);
    return say_text(text, err);
}

static void write_text(struct writer *w, const struct wish *wish, struct error *err)
{
    struct str text = str_init(TEXT_MAX);
    struct text_out characters = {0};
    const char *start = *wish->prompt ? wish->prompt : "\n"; /* something must come before the first token */
    w->count = bpe_encode(w->tokenizer, start, strlen(start), w->tokens, err);
    if (w->count < 0)
        return;
    fputs(wish->prompt, stdout); /* if that fails, so does what comes behind it */
    int result = 0;
    for (long i = 0; i < wish->tokens && result == 0; i++) {
        result = say_token(w, wish, &characters, &text, err);
        FAULT("token-said");
    }
    text_out_end(&characters, &text);
    str_adds(&text, "\n");
    say_text(&text, result == 0 ? err : NULL);
    str_clear(&text);
}

int generate_main(int argc, char **argv)
{
    struct wish wish = {.prompt = "", .tokens = 200, .seed = 1, .temperature = FOLDER_TEMPERATURE};
    struct writer w = {0};
    struct error err = {0};
    if (read_arguments(&wish, argc, argv, &err) == 0 && load_model(&w, &wish, &err) == 0)
        write_text(&w, &wish, &err);
    if (err.code)
        fprintf(stderr, "ringmaster: %s\n", err.text);
    writer_clear(&w);
    return err.code ? error_exit_code(err.code) : 0;
}
