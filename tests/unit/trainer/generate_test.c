#include "trainer/generate.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/storage/checkpoint/manifest.h"
#include "common/storage/checkpoint/model_folder.h"
#include "common/storage/checkpoint/safetensors.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cpu/model/sample.h"
#include "trainer/tokens/text_out.h"

enum { TEXT = 4096 };

static const struct model_shape tiny = {
    .layers = 1, .heads = 2, .width = 16, .context = 12, .vocabulary = 256};

static void write_file(const char *folder, const char *name, const struct str *head, const float *data,
                       size_t count)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fwrite(str_text(head), 1, head->length, file);
    if (count)
        fwrite(data, sizeof *data, count, file);
    fclose(file);
}

static float *make_params(const struct model_layout *layout)
{
    float *params = calloc((size_t)layout->parameters, sizeof *params);
    gpt_init_weights(layout, 5, params);
    for (int64_t i = 0; i < layout->parameters; i++)
        params[i] *= 20; /* not all bytes alike */
    return params;
}

static void make_model(const char *folder)
{
    struct model_layout layout;
    struct str config = str_init(1 << 16), header = str_init(1 << 16);
    model_layout_init(&layout, &tiny);
    float *params = make_params(&layout);
    model_config_write(&tiny, &config);
    safetensors_model_header(&layout, &header);
    write_file(folder, "config.json", &config, NULL, 0);
    write_file(folder, "model.safetensors", &header, params, (size_t)layout.parameters);
    str_clear(&config);
    str_clear(&header);
    free(params);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/generate-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* What generate prints with these arguments behind its own name. */
static int run(char *text, char **arguments)
{
    char *argv[16] = {"generate"}, path[128];
    int argc = 1;
    while (arguments[argc - 1]) {
        argv[argc] = arguments[argc - 1];
        argc++;
    }
    snprintf(path, sizeof path, "%s/out", folder);
    cr_assert_not_null(freopen(path, "w", stdout));
    int code = generate_main(argc, argv);
    fflush(stdout);
    FILE *file = fopen(path, "r");
    size_t length = fread(text, 1, TEXT - 1, file);
    text[length] = '\0';
    fclose(file);
    return code;
}

TestSuite(generate, .init = make_folder, .fini = remove_folder);

Test(generate, the_same_seed_writes_the_same_text_and_another_seed_another)
{
    char first[TEXT], second[TEXT], other[TEXT];
    make_model(folder);
    cr_assert_eq(run(first, (char *[]){folder, "--prompt", "Hello", "--tokens", "40", "--seed", "7", NULL}),
                 0);
    cr_assert_eq(run(second, (char *[]){folder, "--prompt", "Hello", "--tokens", "40", "--seed", "7", NULL}),
                 0);
    cr_assert_eq(run(other, (char *[]){folder, "--prompt", "Hello", "--tokens", "40", "--seed", "8", NULL}),
                 0);
    cr_assert_eq(strncmp(first, "Hello", 5), 0);
    cr_assert(strlen(first) > 10);
    cr_assert_str_eq(first, second);
    cr_assert_str_neq(first, other);
}

/* What the likeliest tokens are where each costs a whole pass over all that is looked at. */
static void write_slowly(char *text, const char *prompt, int tokens)
{
    struct model_layout layout;
    struct gpt *gpt;
    struct pool *pool;
    const struct gpt_options options = {.sequences = 1, .isa = "Auto"};
    int32_t all[TEXT];
    int count = (int)strlen(prompt);
    model_layout_init(&layout, &tiny);
    float *params = make_params(&layout), logits[256];
    cr_assert_eq(pool_open(&pool, 1, NULL), 0);
    cr_assert_eq(gpt_open(&gpt, &layout, &options, pool, NULL), 0);
    struct str out = str_init(TEXT);
    struct text_out characters = {0};
    str_adds(&out, prompt);
    for (int i = 0; i < count; i++)
        all[i] = (unsigned char)prompt[i];
    for (int i = 0; i < tokens; i++, count++) {
        int length = count < tiny.context ? count : tiny.context;
        gpt_next_logits(gpt, params, all + count - length, length, logits);
        all[count] = sample_token(logits, 256, 0, 0);
        text_out_add(&characters, (unsigned char)all[count], &out);
    }
    text_out_end(&characters, &out);
    snprintf(text, TEXT, "%s\n", str_text(&out));
    str_clear(&out);
    gpt_free(gpt);
    pool_free(pool);
    free(params);
}

Test(generate, the_likeliest_text_is_the_one_that_whole_passes_write)
{
    static const char *const prompts[] = {"H", "Hello", "twelve bytes", "longer than twelve bytes"};
    char wanted[TEXT], text[TEXT];
    make_model(folder);
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        write_slowly(wanted, prompts[i], 30);
        cr_assert_eq(run(text, (char *[]){folder, "--prompt", (char *)prompts[i], "--tokens", "30",
                                          "--temperature", "0", NULL}),
                     0);
        cr_assert_str_eq(text, wanted);
    }
}

Test(generate, a_prompt_longer_than_the_context_and_an_empty_one_are_fine)
{
    char text[TEXT];
    make_model(folder);
    cr_assert_eq(run(text, (char *[]){folder, "--prompt", "longer than twelve bytes", "--tokens", "3", NULL}),
                 0);
    cr_assert_eq(run(text, (char *[]){folder, "--tokens", "3", NULL}), 0);
}

Test(generate, the_final_checkpoint_of_a_job_s_folder_is_found)
{
    char text[TEXT], final[128];
    snprintf(final, sizeof final, "%s/final", folder);
    cr_assert_eq(mkdir(final, 0700), 0);
    make_model(final);
    cr_assert_eq(run(text, (char *[]){folder, "--tokens", "3", NULL}), 0);
}

Test(generate, a_folder_without_a_model_is_exit_3_and_a_wrong_word_exit_2)
{
    char text[TEXT];
    cr_assert_eq(run(text, (char *[]){folder, "--tokens", "3", NULL}), 3);
    cr_assert_eq(run(text, (char *[]){folder, "--tokens", "3x", NULL}), 2);
    cr_assert_eq(run(text, (char *[]){folder, "--tokens", NULL}), 2);
    cr_assert_eq(run(text, (char *[]){"--frobnicate", "1", NULL}), 2);
    cr_assert_eq(run(text, (char *[]){NULL}), 2);
    cr_assert_str_eq(text, "");
}

/* What it says on stderr with this folder; the code is *code. */
static void complaint(char *text, int *code)
{
    char path[128], none[TEXT];
    snprintf(path, sizeof path, "%s/err", folder);
    cr_assert_not_null(freopen(path, "w", stderr));
    *code = run(none, (char *[]){folder, "--tokens", "3", NULL});
    fflush(stderr);
    FILE *file = fopen(path, "r");
    size_t length = fread(text, 1, TEXT - 1, file);
    text[length] = '\0';
    fclose(file);
}

Test(generate, a_manifest_that_can_not_be_read_is_named_and_no_word_is_said_of_tokens)
{
    char text[TEXT];
    int code;
    struct model_shape wide = tiny;
    struct str config = str_init(1 << 16), manifest = str_init(2 * MANIFEST_TEXT_MAX);
    wide.vocabulary = 300;
    model_config_write(&wide, &config);
    write_file(folder, "config.json", &config, NULL, 0);
    complaint(text, &code);
    cr_assert_eq(code, 3);
    cr_assert(strstr(text, "its vocabulary of 300 is not one of bytes"), "there is none: %s", text);
    for (int i = 0; i <= MANIFEST_TEXT_MAX; i++) /* longer than any: no content, and not "there is none" */
        str_adds(&manifest, " ");
    write_file(folder, "manifest.json", &manifest, NULL, 0);
    complaint(text, &code);
    cr_assert_neq(code, 0);
    cr_assert(strstr(text, "manifest.json"), "%s", text);
    cr_assert_null(strstr(text, "vocabulary"), "%s", text);
    str_clear(&manifest);
    str_clear(&config);
}

Test(generate, text_that_can_not_be_written_is_exit_4)
{
    char *argv[] = {"generate", folder, "--prompt", "Hello", "--tokens", "3", NULL};
    make_model(folder);
    cr_assert_not_null(freopen("/dev/full", "w", stdout));
    cr_assert_eq(generate_main(6, argv), 4);
}
