/* Models in Hugging Face's layout: config.json and model.safetensors. */
#include "fixture.h"

#include "common/storage/checkpoint/model_folder.h"
#include "common/wire/json.h"

TestSuite(model_folder, .init = fixture_make, .fini = fixture_remove);

static void put(const char *name, const char *text)
{
    char path[512];
    fixture_path(path, name);
    FILE *file = fopen(path, "wb");
    cr_assert(file);
    fputs(text, file);
    fclose(file);
}

static void add(struct js *header, const char *name, const int64_t *size, int dims, int64_t *at)
{
    struct js *tensor = js_object(), *shape = js_array(), *offsets = js_array();
    int64_t bytes = 4;
    for (int i = 0; i < dims; i++) {
        js_push_int(shape, size[i]);
        bytes *= size[i];
    }
    js_push_int(offsets, *at);
    js_push_int(offsets, *at += bytes);
    js_set_string(tensor, "dtype", "F32");
    js_set(tensor, "shape", shape);
    js_set(tensor, "data_offsets", offsets);
    js_set(header, name, tensor);
}

/* How a file made elsewhere differs from ours. */
struct foreign {
    const char *prefix;
    const char *file;      /* its name; NULL: model.safetensors */
    int residue;           /* only tensors of a place with this remainder by 3 go in, where file is set */
    const char *leave_out; /* this tensor */
    const char *reshape;   /* this tensor gets one row more */
    bool extras;           /* lm_head.weight and masks */
    const char *stranger;  /* one more tensor of this name */
};

/* The layout's tensors in reverse order, element i of the flat order being i. */
static void put_foreign(const struct model_layout *layout, const struct foreign *how)
{
    struct js *header = js_object();
    struct str text = str_init(1 << 20);
    int64_t at = 0, size[4] = {1, 1, 2, 2};
    float *data = calloc((size_t)layout->parameters + 1000, sizeof *data);
    for (int i = layout->tensors - 1; i >= 0; i--) {
        const struct model_tensor *t = &layout->tensor[i];
        char name[64];
        if ((how->leave_out && !strcmp(t->name, how->leave_out)) || (how->file && i % 3 != how->residue))
            continue;
        snprintf(name, sizeof name, "%s%s", how->prefix, t->name);
        for (int64_t e = 0; e < t->count; e++)
            data[at / 4 + e] = (float)(t->first + e);
        int64_t shape[2] = {t->size[0] + (how->reshape && !strcmp(t->name, how->reshape)), t->size[1]};
        add(header, name, shape, t->dims, &at);
    }
    if (how->extras) {
        add(header, "lm_head.weight", size, 2, &at);
        add(header, "transformer.h.0.attn.bias", size, 4, &at);
        add(header, "h.1.attn.masked_bias", size, 0, &at);
    }
    if (how->stranger)
        add(header, how->stranger, size, 1, &at);
    js_print(header, &text);
    char path[512];
    fixture_path(path, how->file ? how->file : "model.safetensors");
    FILE *file = fopen(path, "wb");
    uint64_t length = text.length;
    fwrite(&length, 8, 1, file);
    fwrite(text.data, 1, text.length, file);
    fwrite(data, 1, (size_t)at, file);
    fclose(file);
    free(data);
    js_free(header);
    str_clear(&text);
}

static void loads(const struct model_layout *layout)
{
    float *params = calloc((size_t)layout->parameters, sizeof *params);
    struct error err = {0};
    cr_assert_eq(model_folder_load(fixture_store, layout, params, &err), 0, "%s", err.text);
    for (int64_t i = 0; i < layout->parameters; i++)
        cr_assert_eq(params[i], (float)i);
    free(params);
}

static void refuses(const struct model_layout *layout, const char *part)
{
    float *params = calloc((size_t)layout->parameters, sizeof *params);
    struct error err = {0};
    cr_assert_eq(model_folder_load(fixture_store, layout, params, &err), -1, "%s", part);
    cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
    cr_assert(strstr(err.text, part) && strstr(err.text, fixture_folder()), "%s", err.text);
    free(params);
}

Test(model_folder, files_of_others_are_read_with_and_without_the_prefix)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    put_foreign(layout, &(struct foreign){.prefix = ""});
    loads(layout);
    put_foreign(layout, &(struct foreign){.prefix = "transformer.", .extras = true});
    loads(layout);
    free(layout);
}

Test(model_folder, what_does_not_fit_the_job_is_named)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    put_foreign(layout, &(struct foreign){.prefix = "", .leave_out = "ln_f.bias"});
    refuses(layout, "tensor ln_f.bias is missing");
    put_foreign(layout, &(struct foreign){.prefix = "", .reshape = "h.1.mlp.c_fc.weight"});
    refuses(layout, "tensor h.1.mlp.c_fc.weight has the shape (9, 32), but the job's model (8, 32)");
    put_foreign(layout, &(struct foreign){.prefix = "", .stranger = "h.2.ln_1.weight"});
    refuses(layout, "tensor h.2.ln_1.weight is not one of a GPT-2 of 2 layers");
    put_foreign(layout, &(struct foreign){.prefix = "", .stranger = "transformer.wte.weight"});
    refuses(layout, "tensor wte.weight is there with and without transformer.");
    free(layout);
}

Test(model_folder, several_files_with_an_index_are_one_model)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct str index = str_init(1 << 16);
    static const char *const files[] = {"model-1-of-3.safetensors", "b.safetensors", "c.safetensors"};
    for (int i = 0; i < 3; i++)
        put_foreign(layout, &(struct foreign){.prefix = "", .file = files[i], .residue = i});
    refuses(layout, "model.safetensors: No such file");
    str_adds(&index, "{\"metadata\":{},\"weight_map\":{");
    for (int i = 0; i < layout->tensors; i++)
        str_addf(&index, "%s\"%s\":\"%s\"", i ? "," : "", layout->tensor[i].name, files[i % 3]);
    str_adds(&index, "}}");
    put("model.safetensors.index.json", str_text(&index));
    loads(layout);
    put("model.safetensors.index.json", "{\"weight_map\":{\"wte.weight\":\"b.safetensors\"}}");
    refuses(layout, "is missing");
    put("model.safetensors.index.json", "{\"weight_map\":{\"wte.weight\":\"../b.safetensors\"}}");
    refuses(layout, "wte.weight has no file name");
    put("model.safetensors.index.json", "{\"weight_map\":[]}");
    refuses(layout, "there is no weight_map");
    put("model.safetensors.index.json", "{\"weight_map\":{\"wte.weight\":\"gone.safetensors\"}}");
    refuses(layout, "gone.safetensors: No such file");
    str_clear(&index);
    free(layout);
}

Test(model_folder, heads_show_only_in_the_config_and_are_checked)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct model_shape other = fixture_shape;
    struct str text = str_init(1 << 16);
    other.heads = 4;
    model_config_write(&other, &text);
    put("config.json", str_text(&text));
    put_foreign(layout, &(struct foreign){.prefix = ""});
    refuses(layout, "config.json has 4 heads, but the job's model 2");
    str_clear(&text);
    free(layout);
}

Test(model_folder, an_absent_folder_or_file_is_said)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    float *params = calloc((size_t)layout->parameters, sizeof *params);
    struct error err = {0};
    refuses(layout, "model.safetensors");
    struct object_store *nowhere;
    cr_assert_eq(object_open(&nowhere, &(struct object_options){.uri = "file:///nowhere/at/all"}, &err), 0);
    cr_assert_eq(model_folder_load(nowhere, layout, params, &err), -1);
    object_free(nowhere);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, "/nowhere/at/all"), "%s", err.text);
    free(params);
    free(layout);
}

Test(model_folder, a_checkpoint_is_such_a_folder)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    float *expected = fixture_state(layout, 4), *found = fixture_state(layout, 5);
    struct fixture_save save = {.layout = layout, .step = 1, .seed = 4, .parts = 3, .final = true};
    struct model_shape shape;
    struct error err = {0};
    static struct manifest m;
    char uri[256];
    fixture_save(&save, &m);
    snprintf(uri, sizeof uri, "%s/final", fixture_uri);
    struct object_store *final;
    cr_assert_eq(object_open(&final, &(struct object_options){.uri = uri}, &err), 0, "%s", err.text);
    cr_assert_eq(model_folder_shape(final, &shape, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(&shape, &fixture_shape, sizeof shape), 0);
    cr_assert_eq(model_folder_load(final, layout, found, &err), 0, "%s", err.text);
    object_free(final);
    cr_assert_eq(memcmp(found, expected, 4 * (size_t)layout->parameters), 0);
    free(expected);
    free(found);
    free(layout);
}

Test(model_folder, configs_of_other_models_are_refused_by_field)
{
    static const struct {
        const char *from, *to, *part;
    } table[] = {
        {"\"gpt2\"", "\"llama\"", "model_type is llama; only gpt2"},
        {"\"gelu_new\"", "\"relu\"", "activation_function is relu"},
        {"\"n_layer\": 2", "\"n_layer\": 0", "n_layer is 0, outside"},
        {"\"n_layer\": 2", "\"n_layers\": 2", "n_layer is missing"},
        {"\"n_head\": 2", "\"n_head\": 3", "n_head 3 does not divide n_embd 8"},
        {"\"n_inner\": null", "\"n_inner\": 31", "n_inner"},
        {"\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", "tie_word_embeddings is false"},
        {"{", "[{", "not valid JSON"},
    };
    struct str text = str_init(1 << 16);
    model_config_write(&fixture_shape, &text);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char changed[2048];
        struct model_shape shape;
        struct error err = {0};
        const char *at = strstr(str_text(&text), table[i].from);
        cr_assert(at, "%s", table[i].from);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text.data), text.data, table[i].to,
                 at + strlen(table[i].from));
        put("config.json", changed);
        cr_assert_eq(model_folder_shape(fixture_store, &shape, &err), -1);
        cr_assert_eq(err.code, ERR_DATA);
        cr_assert(strstr(err.text, table[i].part) && strstr(err.text, "config.json"), "%s", err.text);
    }
    str_clear(&text);
}
