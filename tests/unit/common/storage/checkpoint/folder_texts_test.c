/* The small files beside the weights: made, published, named in the manifest, held against it. */
#include "common/storage/checkpoint/folder_texts.h"

#include "common/storage/checkpoint/verify.h"
#include "common/wire/json.h"
#include "fixture.h"

TestSuite(folder_texts, .init = fixture_make, .fini = fixture_remove);

static const char of_text[] = "{\"trainer.data.format\":\"Text\"}";
static const char of_tokens[] = "{\"trainer.data.format\":\"Tokens16\"}";
static const char *const named[] = {"generation_config.json", "tokenizer.json", "tokenizer_config.json"};

static struct manifest m; /* large; what the last save left */

struct wanted {
    const char *compared, *tokenizer, *left_over; /* left_over: stands as tokenizer.json already */
    bool final;
};

static void put(const char *name, const char *text)
{
    char path[512];
    fixture_path(path, name);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void save(const struct wanted *w)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2, .final = w->final};
    float *state = fixture_state(layout, 3);
    struct str tokenizer = str_init(1000);
    struct error err = {0};
    fixture_manifest(&save, &m);
    text_copy(m.compared, sizeof m.compared, w->compared);
    for (int part = 0; part < 2; part++)
        cr_assert_eq(fixture_write(&save, state, part, &m, NULL), 0);
    if (w->left_over)
        put("final/tokenizer.json", w->left_over);
    str_adds(&tokenizer, w->tokenizer ? w->tokenizer : "");
    struct checkpoint_publication publication = {.store = fixture_store,
                                                 .final = w->final,
                                                 .keep = 2,
                                                 .layout = layout,
                                                 .manifest = &m,
                                                 .tokenizer = &tokenizer};
    cr_assert_eq(checkpoint_publish(&publication, &m, &err), 0, "%s", err.text);
    str_clear(&tokenizer);
    free(state);
    free(layout);
}

/* How many of them the manifest names; all that it does are there. */
static int named_in_manifest(const char *checkpoint)
{
    int found = 0;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        bool in = false;
        char name[128];
        for (int p = 0; p < m.pieces; p++)
            in = in || !strcmp(m.piece[p].file, named[i]);
        snprintf(name, sizeof name, "%s/%s", checkpoint, named[i]);
        cr_assert_eq(fixture_has(name), in, "%s", name);
        found += in;
    }
    return found;
}

static void holds(const char *name, const char *text)
{
    struct str found = str_init(1 << 20);
    cr_assert_eq(object_get(fixture_store, name, 1 << 20, &found, NULL), 0);
    cr_assert_str_eq(str_text(&found), text);
    str_clear(&found);
}

static int sound(void)
{
    struct error err = {0};
    return verify_all(fixture_store, "final", &m, NULL, &err);
}

Test(folder_texts, a_models_last_weights_say_what_its_bytes_mean)
{
    struct str bytes = str_init(1 << 16);
    save(&(struct wanted){.compared = of_text, .final = true});
    cr_assert_eq(named_in_manifest("final"), 3);
    folder_bytes_tokenizer(&bytes);
    holds("final/tokenizer.json", str_text(&bytes));
    cr_assert_eq(sound(), 0);
    put("final/tokenizer_config.json", "{}");
    cr_assert_eq(sound(), -1, "what is in the manifest is held against it");
    str_clear(&bytes);
}

Test(folder_texts, the_jobs_own_tokenizer_is_copied_as_it_is)
{
    save(&(struct wanted){
        .compared = of_tokens, .final = true, .tokenizer = "{\"model\": {\"type\": \"BPE\"}}\n"});
    cr_assert_eq(named_in_manifest("final"), 3);
    holds("final/tokenizer.json", "{\"model\": {\"type\": \"BPE\"}}\n");
    cr_assert_eq(sound(), 0);
}

Test(folder_texts, another_ones_that_was_left_behind_is_replaced)
{
    save(&(struct wanted){.compared = of_tokens, .final = true, .tokenizer = "{}", .left_over = "[1]"});
    holds("final/tokenizer.json", "{}");
    cr_assert_eq(sound(), 0);
}

Test(folder_texts, numbers_without_a_tokenizer_and_steps_on_the_way_have_none)
{
    save(&(struct wanted){.compared = of_tokens, .final = true});
    cr_assert_eq(named_in_manifest("final"), 0);
    save(&(struct wanted){.compared = of_text});
    cr_assert_eq(named_in_manifest("step-00000005"), 0);
}

/* A program of before must take neither them nor the other hash for damage: it is told of a version that it
 * does not know. */
Test(folder_texts, a_manifest_has_the_newest_version_whether_it_names_them_or_not)
{
    struct str text = str_init(MANIFEST_TEXT_MAX);
    save(&(struct wanted){.compared = of_text, .final = true});
    manifest_write(&m, &text);
    cr_assert(strstr(str_text(&text), "\"version\": 4,"));
    save(&(struct wanted){.compared = of_text});
    str_reset(&text);
    manifest_write(&m, &text);
    cr_assert(strstr(str_text(&text), "\"version\": 4,"));
    str_clear(&text);
}

Test(folder_texts, the_tokenizer_of_bytes_has_each_byte_once)
{
    struct str text = str_init(1 << 16);
    folder_bytes_tokenizer(&text);
    struct js *top = js_parse(str_text(&text), text.length, "tokenizer.json", NULL);
    const struct js *vocabulary = js_get(js_get(top, "model"), "vocab");
    bool seen[256] = {false};
    cr_assert_eq(js_size(vocabulary), 256);
    for (void *it = js_first(vocabulary); it; it = js_next(vocabulary, it)) {
        int64_t id = -1;
        cr_assert(js_as_int(js_value(it), &id) && id >= 0 && id < 256 && !seen[id], "%s", js_key(it));
        seen[id] = true;
    }
    js_free(top);
    str_clear(&text);
}
