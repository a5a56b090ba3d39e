/* README.md of final/: what it says, when it is written, and what becomes of it. */
#include "common/storage/checkpoint/model_card.h"

#include <ctype.h>
#include <math.h>

#include "common/job/spec.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/verify.h"
#include "fixture.h"

TestSuite(model_card, .init = fixture_make, .fini = fixture_remove);

static const struct model_card_losses known = {2.06111, 2.25, 4}, unknown = {NAN, NAN, -1};

static struct manifest m; /* large */

static const char of_job[] = "{\"trainer.batch.lanes\":8,\"trainer.batch.laneSequences\":2,"
                             "\"trainer.data.format\":\"Text\",\"trainer.model.init\":null,"
                             "\"trainer.model.layers\":2,\"trainer.optimizer.learningRate\":0.003,"
                             "\"trainer.steps\":5}";

static void describe(bool exact, const struct model_card_losses *losses, struct str *out)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 12345, .seed = 3, .parts = 1, .final = true};
    fixture_manifest(&save, &m);
    m.exact = exact;
    m.weights_sha256[0] = 0xcd;
    text_copy(m.compared, sizeof m.compared, of_job);
    text_copy(m.fingerprint, sizeof m.fingerprint, "cpu | `0123`");
    str_reset(out);
    model_card_write(&m, losses, out);
    free(layout);
}

static void says(const struct str *out, const char *text, bool does)
{
    cr_assert_eq(strstr(str_text(out), text) != NULL, does, "%s: %s", text, str_text(out));
}

Test(model_card, it_says_what_the_weights_are_and_what_makes_them_again)
{
    struct str out = str_init(1 << 16);
    describe(true, &known, &out);
    says(&out, "# tiny\n", true);
    says(&out, "| steps | 12,345 |\n", true);
    says(&out, "| loss of the last step | 2.0611 |\n| held-out loss, after step 4 | 2.2500 |\n", true);
    says(&out, "| data | 12 files, 3,456 bytes |\n| SHA-256 of the data | `abab", true);
    says(&out, "| SHA-256 of the weights | `cd00", true);
    says(&out, "| computed by | `cpu    0123 ` |\n", true);
    says(&out, "| exact | yes: ", true);
    says(&out,
         "  checkpoint:\n    uri: again\n  trainer:\n    batch:\n      laneSequences: 2\n      lanes: 8\n    "
         "data:\n"
         "      format: \"Text\"\n      uri: \"data\"\n    model:\n      layers: 2\n    optimizer:\n"
         "      learningRate: 0.0030000000000000001\n    steps: 5\n```\n\n    ringmaster run job.yaml\n",
         true);
    says(&out, "with any number of workers, ", true);
    says(&out, "init", false);
    str_clear(&out);
}

Test(model_card, what_nobody_knows_is_not_said_and_no_0)
{
    struct str out = str_init(1 << 16);
    describe(false, &unknown, &out);
    says(&out, "loss", false);
    says(&out, "| exact | no: ", true);
    m.exact = true;
    m.data.files = m.data.bytes = -1;
    text_copy(m.compared, sizeof m.compared, "[");
    str_reset(&out);
    model_card_write(&m, &unknown, &out);
    says(&out, "| data |", false);
    says(&out, "ringmaster run", false);
    str_clear(&out);
}

Test(model_card, a_run_that_was_not_exact_promises_no_bits)
{
    struct str out = str_init(1 << 16);
    describe(false, &known, &out);
    says(&out, "| exact | no: its sums are exact, but a part of it was computed by other arithmetic |", true);
    says(&out,
         "These bits can't be promised to anybody again: the run was not exact, as a part of it was computed "
         "by other arithmetic.\n",
         true);
    says(&out, "The same bits again", false);
    says(&out, "ringmaster run", false);
    str_clear(&out);
}

Test(model_card, sums_that_were_not_exact_say_so)
{
    struct str out = str_init(1 << 16);
    describe(false, &known, &out);
    text_copy(m.compared, sizeof m.compared, "{\"trainer.reduction\":\"fast\"}");
    str_reset(&out);
    model_card_write(&m, &known, &out);
    says(&out, "| exact | no: another number or history of workers gives other bits |", true);
    says(&out, "its sums depend on which workers there were at each step.\n", true);
    str_clear(&out);
}

Test(model_card, the_instruction_set_is_the_one_that_computed)
{
    static const struct {
        const char *fingerprint, *line;
    } rows[] = {
        {"numerics 0123, fp32, avx2, a CPU, caches 32K 1024K 16384K, oneDNN 2.6.3", "    isa: \"AVX2\"\n"},
        {"numerics 0123, bf16, avx512_core_bf16, a CPU", "    isa: \"AVX512_CORE_BF16\"\n"},
        {"numerics 0123, fp32, avx2_vnni, a CPU", NULL}, /* no word for it but Auto */
        {"cuda, avx2, avx2, a CPU", NULL},
    };
    struct str out = str_init(1 << 16);
    describe(true, &known, &out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_copy(m.fingerprint, sizeof m.fingerprint, rows[i].fingerprint);
        str_reset(&out);
        model_card_write(&m, &known, &out);
        says(&out, rows[i].line ? rows[i].line : "isa:", rows[i].line != NULL);
    }
    str_clear(&out);
}

Test(model_card, each_instruction_set_that_a_job_can_name_is_named)
{
    char words[] = JOB_ISA_WORDS;
    int named = 0;
    struct str out = str_init(1 << 16);
    describe(true, &known, &out);
    char *rest = NULL;
    for (char *word = strtok_r(words, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
        if (!strcmp(word, "or") || !strcmp(word, "Auto"))
            continue;
        char lower[32], line[64];
        size_t length = strlen(word);
        for (size_t i = 0; i <= length; i++)
            lower[i] = (char)tolower((unsigned char)word[i]);
        snprintf(m.fingerprint, sizeof m.fingerprint, "numerics 0123, fp32, %s, a CPU", lower);
        snprintf(line, sizeof line, "    isa: \"%s\"\n", word);
        str_reset(&out);
        model_card_write(&m, &known, &out);
        says(&out, line, true);
        named++;
    }
    cr_assert_eq(named, 6);
    str_clear(&out);
}

Test(model_card, it_tells_no_place_of_whoever_trained_it)
{
    struct str out = str_init(1 << 16);
    describe(true, &known, &out);
    text_copy(m.compared, sizeof m.compared,
              "{\"trainer.model.init\":\"file:///home/somebody/first\",\"trainer.steps\":5}");
    str_reset(&out);
    model_card_write(&m, &known, &out);
    says(&out, "somebody", false);
    says(&out, "    model:\n      init: \"init\"\n", true);
    says(&out, "the weights that the run began with in the folder `init`", true);
    str_clear(&out);
}

Test(model_card, a_name_that_yaml_has_another_meaning_for_stays_a_name)
{
    struct str out = str_init(1 << 16);
    describe(true, &known, &out);
    text_copy(m.job, sizeof m.job, "null");
    str_reset(&out);
    model_card_write(&m, &known, &out);
    says(&out, "  name: \"null\"\n", true);
    str_clear(&out);
}

Test(model_card, a_tokenizer_that_was_given_is_given_again_and_none_to_text)
{
    struct str out = str_init(1 << 16);
    describe(true, &known, &out);
    text_copy(m.piece[m.pieces++].file, MANIFEST_FILE_MAX, "tokenizer.json");
    str_reset(&out);
    model_card_write(&m, &known, &out);
    says(&out, "tokenizer:", false);
    text_copy(m.compared, sizeof m.compared, "{\"trainer.data.format\":\"Tokens16\",\"trainer.steps\":5}");
    str_reset(&out);
    model_card_write(&m, &known, &out);
    says(&out, "      tokenizer: \"tokenizer.json\"\n", true);
    m.pieces--;
    str_reset(&out);
    model_card_write(&m, &known, &out);
    says(&out, "tokenizer:", false);
    str_clear(&out);
}

static void save_one(bool final, const struct model_card_losses *losses)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 5, .seed = 3, .parts = 2, .final = final};
    float *state = fixture_state(layout, 3);
    struct error err = {0};
    fixture_manifest(&save, &m);
    text_copy(m.compared, sizeof m.compared, of_job);
    for (int part = 0; part < 2; part++)
        cr_assert_eq(fixture_write(&save, state, part, &m, NULL), 0);
    const struct checkpoint_publication publication = {.store = fixture_store,
                                                       .final = final,
                                                       .keep = 2,
                                                       .layout = layout,
                                                       .manifest = &m,
                                                       .losses = losses};
    cr_assert_eq(checkpoint_publish(&publication, &m, &err), 0, "%s", err.text);
    free(state);
    free(layout);
}

Test(model_card, it_lies_beside_the_last_weights_and_nothing_rests_on_it)
{
    char path[512];
    struct error err = {0};
    save_one(false, &known);
    cr_assert_not(fixture_has("step-00000005/README.md"), "of the last weights alone");
    save_one(true, &known);
    cr_assert(fixture_has("final/README.md"), "it outlives the tidying after the manifest");
    for (int i = 0; i < m.pieces; i++)
        cr_assert_str_neq(m.piece[i].file, MODEL_CARD_NAME);
    fixture_path(path, "final/README.md");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(verify_all(fixture_store, "final", &m, NULL, &err), 0, "%s", err.text);
    save_one(true, &known); /* once more: it is there already, and stays as it is */
    cr_assert_not(fixture_has("final/README.md"));
}

Test(model_card, it_goes_with_its_folder)
{
    save_one(true, &known);
    cr_assert_eq(files_remove(fixture_store, "final", NULL, NULL, NULL), 0);
    cr_assert_not(fixture_has("final/README.md"));
}

Test(model_card, who_knows_no_losses_writes_none)
{
    save_one(true, NULL);
    cr_assert_not(fixture_has("final/README.md"));
}

/* Opens a place below the fixture's folder. */
static struct object_store *place(const char *name)
{
    char uri[RM_URI_MAX];
    struct error err = {0};
    struct object_store *store;
    snprintf(uri, sizeof uri, "%s/%s", fixture_uri, name);
    cr_assert_eq(object_open(&store, &(struct object_options){.uri = uri}, &err), 0, "%s", err.text);
    return store;
}

static void card_is(const char *exported, const char *text)
{
    struct str found = str_init(1 << 16);
    char name[64];
    snprintf(name, sizeof name, "%s/README.md", exported);
    cr_assert_eq(object_get(fixture_store, name, 1 << 16, &found, NULL), 0);
    cr_assert_eq(strncmp(str_text(&found), text, strlen(text)), 0, "%s", str_text(&found));
    str_clear(&found);
}

Test(model_card, an_export_takes_it_along_and_writes_over_nobodys)
{
    struct str own = str_init(100);
    struct error err = {0};
    struct object_store *bare = place("bare"), *kept = place("kept");
    save_one(true, &known);
    cr_assert_eq(checkpoint_export(fixture_store, "final", bare, &err), 0, "%s", err.text);
    card_is("bare", "---\nlibrary_name: transformers\n");
    str_adds(&own, "mine");
    cr_assert_eq(files_put(kept, "README.md", &own, OBJECT_CREATE, NULL), 0);
    cr_assert_eq(checkpoint_export(fixture_store, "final", kept, &err), 0, "%s", err.text);
    card_is("kept", "mine");
    str_clear(&own);
    object_free(bare);
    object_free(kept);
}

static void put(struct object_store *target, const char *name, const struct str *text)
{
    struct error err = {0};
    cr_assert_eq(files_put(target, name, text, OBJECT_REPLACE, &err), 0, "%s", err.text);
}

Test(model_card, an_export_refuses_a_place_with_another_file_of_such_a_name_and_writes_nothing)
{
    struct str mine = str_init(100), config = str_init(1 << 16);
    struct error err = {0};
    struct object_info info;
    struct object_store *target = place("target");
    save_one(true, &known);
    cr_assert(fixture_has("final/generation_config.json"));
    str_adds(&mine, "mine");
    put(target, "generation_config.json", &mine);
    cr_assert_eq(checkpoint_export(fixture_store, "final", target, &err), -1);
    cr_assert_eq(err.code, ERR_EXISTS);
    cr_assert(strstr(err.text, "holds another generation_config.json already"), "%s", err.text);
    cr_assert_eq(object_head(target, "config.json", &info, NULL), -1, "before anything is written");
    str_reset(&mine);
    cr_assert_eq(object_get(target, "generation_config.json", 100, &mine, NULL), 0);
    cr_assert_str_eq(str_text(&mine), "mine");
    cr_assert_eq(object_get(fixture_store, "final/generation_config.json", 1 << 16, &config, NULL), 0);
    put(target, "generation_config.json", &config);
    cr_assert_eq(checkpoint_export(fixture_store, "final", target, &err), 0, "the same content: %s",
                 err.text);
    str_clear(&config);
    str_clear(&mine);
    object_free(target);
}
