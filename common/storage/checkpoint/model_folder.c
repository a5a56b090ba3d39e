/* Finds the tensors of a model that lies as Hugging Face puts it, in one file or in several with an index. */
#include "common/storage/checkpoint/model_folder.h"
#include "common/model/image.h"

#include <stdlib.h>
#include <string.h>

#include "common/storage/checkpoint/safetensors.h"
#include "common/wire/json.h"

enum { CONFIG_MAX = 1 << 20, INDEX_MAX = 4 << 20 };

static const char config_name[] = "config.json";
static const char index_name[] = "model.safetensors.index.json";
static const char prefix[] = "transformer.";

void model_config_write(const struct model_shape *shape, struct str *out)
{
    struct js *config = js_object(), *architectures = js_array();
    if (image_bytes(shape)) { /* what it is of, the program alone knows */
        js_set_string(config, "model_type", "ringmaster-program");
        js_print_pretty(config, out);
        str_adds(out, "\n");
        js_free(config);
        js_free(architectures);
        return;
    }
    js_push_string(architectures, "GPT2LMHeadModel");
    js_set(config, "architectures", architectures);
    js_set_string(config, "model_type", "gpt2");
    js_set_int(config, "n_layer", shape->layers);
    js_set_int(config, "n_head", shape->heads);
    js_set_int(config, "n_embd", shape->width);
    js_set(config, "n_inner", js_new_null());
    js_set_int(config, "n_positions", shape->context);
    js_set_int(config, "n_ctx", shape->context);
    js_set_int(config, "vocab_size", shape->vocabulary);
    js_set_string(config, "activation_function", "gelu_new");
    js_set_real(config, "layer_norm_epsilon", 1e-5);
    js_set_real(config, "attn_pdrop", 0.0);
    js_set_real(config, "embd_pdrop", 0.0);
    js_set_real(config, "resid_pdrop", 0.0);
    js_set_real(config, "initializer_range", 0.02);
    js_set_bool(config, "tie_word_embeddings", true);
    js_set(config, "bos_token_id", js_new_null());
    js_set(config, "eos_token_id", js_new_null());
    js_set_string(config, "torch_dtype", "float32");
    js_print_pretty(config, out);
    str_adds(out, "\n");
    js_free(config);
}

/* A field that is absent has the value that transformers gives it. */
static int check_text(const struct js *config, const char *key, const char *wanted, struct error *err)
{
    const struct js *found = js_get(config, key);
    const char *text = found ? js_as_string(found) : wanted;
    if (text && !strcmp(text, wanted))
        return 0;
    return err_set(err, ERR_DATA, "%s is %s; only %s is known", key, text ? text : "not a string", wanted);
}

static int need_size(const struct js *config, const char *key, int highest, int *ret, struct error *err)
{
    int64_t value;
    if (js_need_int(config, key, 1, highest, &value, err) < 0)
        return -1;
    *ret = (int)value;
    return 0;
}

static int read_config(const struct js *config, struct model_shape *shape, struct error *err)
{
    bool tied = true;
    int inner = 0;
    if (js_kind(config) != JS_OBJECT)
        return err_set(err, ERR_DATA, "not an object");
    if (check_text(config, "model_type", "gpt2", err) < 0 ||
        check_text(config, "activation_function", "gelu_new", err) < 0 ||
        need_size(config, "n_layer", RM_LAYERS_MAX, &shape->layers, err) < 0 ||
        need_size(config, "n_head", 1 << 16, &shape->heads, err) < 0 ||
        need_size(config, "n_embd", 1 << 20, &shape->width, err) < 0 ||
        need_size(config, "n_positions", 1 << 24, &shape->context, err) < 0 ||
        need_size(config, "vocab_size", 1 << 24, &shape->vocabulary, err) < 0)
        return -1;
    if (shape->width % shape->heads)
        return err_set(err, ERR_DATA, "n_head %d does not divide n_embd %d", shape->heads, shape->width);
    if (js_get(config, "tie_word_embeddings") &&
        (js_need_bool(config, "tie_word_embeddings", &tied, err) < 0))
        return -1;
    if (!tied)
        return err_set(err, ERR_DATA, "tie_word_embeddings is false; only tied embeddings are known");
    const struct js *n_inner = js_get(config, "n_inner");
    if (n_inner && js_kind(n_inner) != JS_NULL &&
        (need_size(config, "n_inner", 1 << 24, &inner, err) < 0 || inner != 4 * shape->width))
        return err_set(err, ERR_DATA, "n_inner is not 4 * n_embd");
    return 0;
}

static int read_shape(struct object_store *store, struct model_shape *shape, struct error *err)
{
    struct str text = str_init(CONFIG_MAX + 1);
    if (object_get(store, config_name, CONFIG_MAX, &text, err) < 0) {
        str_clear(&text);
        return -1;
    }
    struct js *config = js_parse(str_text(&text), text.length, config_name, err);
    str_clear(&text);
    if (!config)
        return -1;
    int result = read_config(config, shape, err);
    js_free(config);
    return result < 0 ? err_wrap(err, "%s", config_name) : 0;
}

/* Trouble of the machine, and what a person has to set right, is told as such; all else is the model's. */
static enum error_code code_of(const struct error *why)
{
    return why->code == ERR_MACHINE || why->code == ERR_USAGE || why->code == ERR_ABORTED ? why->code
                                                                                          : ERR_DATA;
}

int model_folder_shape(struct object_store *store, struct model_shape *ret, struct error *err)
{
    struct error why = {0};
    struct model_shape shape = {0};
    if (read_shape(store, &shape, &why) < 0)
        return err_set(err, code_of(&why), "model %s: %s", object_uri(store), why.text);
    *ret = shape;
    return 0;
}

static const char *plain_name(const char *name)
{
    return strncmp(name, prefix, sizeof prefix - 1) ? name : name + sizeof prefix - 1;
}

static bool ends(const char *text, const char *with)
{
    size_t length = strlen(text), tail = strlen(with);
    return length >= tail && !strcmp(text + length - tail, with);
}

/* Tensors that hold nothing of their own: the tied head, and the causal masks of old files. */
static bool is_passed_over(const char *name)
{
    return !strcmp(name, "lm_head.weight") || ends(name, ".attn.bias") || ends(name, ".attn.masked_bias");
}

static void shape_text(struct str *out, const int64_t *size, int dims)
{
    str_adds(out, "(");
    for (int i = 0; i < dims; i++)
        str_addf(out, "%s%lld", i ? ", " : "", (long long)size[i]);
    str_adds(out, ")");
}

static int check_tensor(const struct safetensors_tensor *found, const struct model_tensor *wanted,
                        struct error *err)
{
    bool same = found->dims == wanted->dims;
    for (int i = 0; same && i < wanted->dims; i++)
        same = found->size[i] == wanted->size[i];
    if (same)
        return 0;
    struct str is = str_init(128), should = str_init(128);
    shape_text(&is, found->size, found->dims);
    shape_text(&should, wanted->size, wanted->dims);
    err_set(err, ERR_DATA, "tensor %s has the shape %s, but the job's model %s", found->name, str_text(&is),
            str_text(&should));
    str_clear(&is);
    str_clear(&should);
    return -1;
}

/* What is being put together from one file or several. */
struct loading {
    struct object_store *store;
    const struct model_layout *layout;
    float *params;
    bool have[RM_TENSORS_MAX]; /* by place in the layout */
    struct object_range range[RM_TENSORS_MAX];
    int ranges; /* of the file under way */
};

static int place_tensor(struct loading *l, const struct safetensors *file,
                        const struct safetensors_tensor *found, struct error *err)
{
    const struct model_layout *layout = l->layout;
    if (is_passed_over(plain_name(found->name)))
        return 0;
    int i = model_layout_find(layout, plain_name(found->name));
    if (i < 0)
        return err_set(err, ERR_DATA, "%s: tensor %s is not one of a GPT-2 of %d layers", file->name,
                       found->name, layout->shape.layers);
    if (l->have[i])
        return err_set(err, ERR_DATA, "%s: tensor %s is there with and without %s", file->name,
                       layout->tensor[i].name, prefix);
    if (check_tensor(found, &layout->tensor[i], err) < 0)
        return err_wrap(err, "%s", file->name);
    l->have[i] = true;
    return safetensors_range(file, found, l->params + layout->tensor[i].first, &l->range[l->ranges++], err);
}

/* All tensors of the file in one go: many connections share them. */
static int load_tensors(struct loading *l, const struct safetensors *file, struct error *err)
{
    l->ranges = 0;
    for (int i = 0; i < file->tensors; i++)
        if (place_tensor(l, file, &file->tensor[i], err) < 0)
            return -1;
    if (object_read(l->store, l->range, l->ranges, err) < 0)
        return -1;
    for (int i = 0; i < file->tensors; i++) {
        int at = model_layout_find(l->layout, plain_name(file->tensor[i].name));
        if (at >= 0 && !is_passed_over(plain_name(file->tensor[i].name)))
            safetensors_widen(&file->tensor[i], l->params + l->layout->tensor[at].first);
    }
    return 0;
}

static int load_file(struct loading *l, const char *name, struct error *err)
{
    struct safetensors *file;
    if (safetensors_open(&file, l->store, name, err) < 0)
        return -1;
    int result = load_tensors(l, file, err);
    safetensors_free(file);
    return result;
}

/* Each file that the index names, once: in the order of the tensors that name it first. */
static int load_shards(struct loading *l, const struct js *index, struct error *err)
{
    const struct js *map;
    struct error why = {0};
    if (js_kind(index) != JS_OBJECT || js_need(index, "weight_map", JS_OBJECT, &map, err) < 0)
        return err_set(err, ERR_DATA, "%s: there is no weight_map", index_name);
    for (void *it = js_first(map); it; it = js_next(map, it)) {
        const char *name = js_as_string(js_value(it));
        bool seen = false;
        if (!name || !*name || strchr(name, '/'))
            return err_set(err, ERR_DATA, "%s: %s has no file name", index_name, js_key(it));
        for (void *before = js_first(map); before != it && !seen; before = js_next(map, before))
            seen = !strcmp(js_as_string(js_value(before)), name);
        if (!seen && load_file(l, name, &why) < 0) /* an absent one is not an absent index */
            return err_set(err, why.code == ERR_NOT_FOUND ? ERR_DATA : why.code, "%s", why.text);
    }
    return 0;
}

static int load_indexed(struct loading *l, struct error *err)
{
    struct str text = str_init(INDEX_MAX + 1);
    if (object_get(l->store, index_name, INDEX_MAX, &text, err) < 0) {
        str_clear(&text);
        return -1;
    }
    struct js *index = js_parse(str_text(&text), text.length, index_name, err);
    str_clear(&text);
    if (!index)
        return -1;
    int result = load_shards(l, index, err);
    js_free(index);
    return result;
}

static int load_all(struct loading *l, struct error *err)
{
    struct error why = {0}, without = {0};
    if (load_file(l, "model.safetensors", &why) < 0) {
        if (why.code != ERR_NOT_FOUND)
            return err_from(err, &why, "%s", why.text);
        if (load_indexed(l, &without) < 0)
            return without.code == ERR_NOT_FOUND ? err_set(err, ERR_DATA, "%s", why.text)
                                                 : err_set(err, without.code, "%s", without.text);
    }
    for (int i = 0; i < l->layout->tensors; i++)
        if (!l->have[i])
            return err_set(err, ERR_DATA, "tensor %s is missing", l->layout->tensor[i].name);
    return 0;
}

/* The number of heads shows in no tensor's shape. A folder without config.json is taken as it is. */
static int check_heads(struct object_store *store, const struct model_layout *layout, struct error *err)
{
    struct model_shape shape = {0};
    struct error why = {0};
    if (read_shape(store, &shape, &why) < 0)
        return why.code == ERR_NOT_FOUND ? 0 : err_set(err, code_of(&why), "%s", why.text);
    if (shape.heads == layout->shape.heads)
        return 0;
    return err_set(err, ERR_DATA, "config.json has %d heads, but the job's model %d", shape.heads,
                   layout->shape.heads);
}

int model_folder_load(struct object_store *store, const struct model_layout *layout, float *params,
                      struct error *err)
{
    struct loading *l = calloc(1, sizeof *l);
    struct error why = {0};
    if (!l)
        return err_set(err, ERR_MACHINE, "model %s: out of memory", object_uri(store));
    *l = (struct loading){.store = store, .layout = layout, .params = params};
    int result = check_heads(store, layout, &why);
    if (result == 0)
        result = load_all(l, &why);
    free(l);
    return result < 0 ? err_set(err, code_of(&why), "model %s: %s", object_uri(store), why.text) : 0;
}
