#include "common/storage/checkpoint/folder_texts.h"

#include <string.h>

#include "common/base/byte_letters.h"
#include "common/model/image.h"
#include "common/storage/checkpoint/model_folder.h"
#include "common/wire/json.h"

enum { BYTES = 256, SMALL_MAX = 1 << 16 };

static const char *const optional[] = {"tokenizer.json", "tokenizer_config.json", "generation_config.json"};

bool folder_text_is_optional(const char *name)
{
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (!strcmp(optional[i], name))
            return true;
    return false;
}

static void end_text(struct js *top, struct str *out)
{
    js_print_pretty(top, out);
    str_adds(out, "\n");
    js_free(top);
}

/* Each byte by itself: no regular expression cuts words, no blank is put in front. */
static struct js *byte_level(void)
{
    struct js *part = js_object();
    js_set_string(part, "type", "ByteLevel");
    js_set_bool(part, "add_prefix_space", false);
    js_set_bool(part, "trim_offsets", false);
    js_set_bool(part, "use_regex", false);
    return part;
}

void folder_bytes_tokenizer(struct str *out)
{
    struct js *top = js_object(), *model = js_object(), *vocabulary = js_object();
    for (int byte = 0; byte < BYTES; byte++) {
        char letter[BYTE_LETTER_MAX];
        byte_letter((uint8_t)byte, letter);
        js_set_int(vocabulary, letter, byte);
    }
    js_set_string(model, "type", "BPE");
    js_set(model, "dropout", js_new_null());
    js_set(model, "unk_token", js_new_null());
    js_set(model, "continuing_subword_prefix", js_new_null());
    js_set(model, "end_of_word_suffix", js_new_null());
    js_set_bool(model, "fuse_unk", false);
    js_set_bool(model, "byte_fallback", false);
    js_set(model, "vocab", vocabulary);
    js_set(model, "merges", js_array());
    js_set_string(top, "version", "1.0");
    js_set(top, "truncation", js_new_null());
    js_set(top, "padding", js_new_null());
    js_set(top, "added_tokens", js_array());
    js_set(top, "normalizer", js_new_null());
    js_set(top, "pre_tokenizer", byte_level());
    js_set(top, "post_processor", js_new_null());
    js_set(top, "decoder", byte_level());
    js_set(top, "model", model);
    end_text(top, out);
}

/* Which class of transformers' reads tokenizer.json, and that it leaves the text as it comes. */
static void tokenizer_config(const struct manifest *m, struct str *out)
{
    struct js *top = js_object();
    js_set_string(top, "tokenizer_class", "PreTrainedTokenizerFast");
    js_set_int(top, "model_max_length", m->shape.context);
    js_set_bool(top, "clean_up_tokenization_spaces", false);
    end_text(top, out);
}

/* What `ringmaster generate` does where nothing else is asked for: all tokens, at its temperature. */
static void generation_config(struct str *out)
{
    struct js *top = js_object();
    js_set_bool(top, "do_sample", true);
    js_set_real(top, "temperature", FOLDER_TEMPERATURE);
    js_set_int(top, "top_k", 0);
    js_set(top, "bos_token_id", js_new_null());
    js_set(top, "eos_token_id", js_new_null());
    end_text(top, out);
}

bool folder_is_of_text(const struct js *compared)
{
    const char *format = compared ? js_as_string(js_get(compared, "trainer.data.format")) : NULL;
    return format && !strcmp(format, "Text");
}

static bool is_of_text(const struct manifest *m)
{
    struct js *compared = js_parse(m->compared, strlen(m->compared), "compared", NULL);
    bool is = folder_is_of_text(compared);
    js_free(compared);
    return is;
}

static struct str *add_text(struct folder_texts *texts, const char *name, size_t ceiling)
{
    struct folder_text *text = &texts->text[texts->count++];
    *text = (struct folder_text){name, str_init(ceiling)};
    return &text->text;
}

void folder_texts_init(struct folder_texts *ret, const struct manifest *m, bool final,
                       const struct str *tokenizer)
{
    *ret = (struct folder_texts){0};
    model_config_write(&m->shape, add_text(ret, "config.json", SMALL_MAX));
    bool text = is_of_text(m), given = !text && tokenizer && tokenizer->length;
    if (!final || image_bytes(&m->shape) || (!given && !text))
        return;
    struct str *own = add_text(ret, "tokenizer.json", MANIFEST_TOKENIZER_MAX);
    if (given)
        str_add(own, tokenizer->data, tokenizer->length);
    else
        folder_bytes_tokenizer(own);
    tokenizer_config(m, add_text(ret, "tokenizer_config.json", SMALL_MAX));
    generation_config(add_text(ret, "generation_config.json", SMALL_MAX));
}

void folder_texts_clear(struct folder_texts *texts)
{
    for (int i = 0; i < texts->count; i++)
        str_clear(&texts->text[i].text);
    texts->count = 0;
}

const struct str *folder_texts_find(const struct folder_texts *texts, const char *name)
{
    for (int i = 0; i < texts->count; i++)
        if (!strcmp(texts->text[i].name, name))
            return &texts->text[i].text;
    return NULL;
}
