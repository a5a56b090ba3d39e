/* What others read from our checkpoints: the small scripts that share no code with us. */
#include "fixture.h"

#include <math.h>

#include "trainer/backend/cpu/model/gpt.h"

TestSuite(reference, .init = fixture_make, .fini = fixture_remove);

static struct manifest m;

/* What a script prints, without its newline. */
static void script(char out[256], const char *name, const char *options)
{
    char command[1024];
    cr_assert_eq(system("/usr/bin/python3 -c 'import numpy'"), 0,
                 "numpy is missing: tools/install-packages --test");
    snprintf(command, sizeof command, "/usr/bin/python3 " RM_SOURCE "/%s %s/final %s", name, fixture_folder(),
             options);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe && fgets(out, 256, pipe), "%s", command);
    cr_assert_eq(pclose(pipe), 0, "%s", command);
    out[strcspn(out, "\n")] = 0;
}

static void save(const struct model_shape *shape)
{
    struct model_layout *layout = fixture_layout(shape);
    struct fixture_save how = {.layout = layout, .step = 9, .seed = 2, .parts = 3, .final = true};
    fixture_save(&how, &m);
    free(layout);
}

Test(reference, the_script_of_the_docs_prints_the_manifests_weights_hash)
{
    char printed[256], expected[RM_HASH_HEX];
    save(&(struct model_shape){12, 2, 8, 5, 11}); /* h.10 sorts before h.2 */
    script(printed, "tools/weights_sha256.py", "");
    hex_encode(m.weights_sha256, RM_HASH_BYTES, expected);
    cr_assert_str_eq(printed, expected);
}

static const char text[] =
    "Elastic training goes on when a worker is lost: the others re-form the ring, and the next step runs on\n"
    "them. The weights that come out are the same bits that an undisturbed run would have produced. "
    "(\xc3\xa9!)\n";

/* Loss of each sequence of the text by the trainer's own model, after the checkpoint in final/. */
static int losses_of_trainer(const struct model_layout *layout, const float *params, float *losses)
{
    int context = layout->shape.context, n = ((int)sizeof text - 2) / context;
    struct error err = {0};
    struct pool *pool;
    struct gpt *gpt;
    struct gpt_options options = {.sequences = n, .isa = "Auto"};
    int32_t *tokens = malloc(sizeof *tokens * (size_t)n * (size_t)(context + 1));
    for (int i = 0; i < n; i++)
        for (int t = 0; t <= context; t++)
            tokens[i * (context + 1) + t] = (unsigned char)text[i * context + t];
    cr_assert_eq(pool_open(&pool, 1, &err), 0, "%s", err.text);
    cr_assert_eq(gpt_open(&gpt, layout, &options, pool, &err), 0, "%s", err.text);
    gpt_weights_changed(gpt, params);
    cr_assert_eq(gpt_losses(gpt, params, tokens, n, losses, NULL, &err), 0, "%s", err.text);
    gpt_free(gpt);
    pool_free(pool);
    free(tokens);
    return n;
}

static void agree(const struct model_shape *shape)
{
    char printed[256], options[600], path[512];
    float losses[64], mean = 0;
    struct model_layout *layout = fixture_layout(shape);
    float *state = fixture_state(layout, 2);
    save(shape);
    fixture_path(path, "text");
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    snprintf(options, sizeof options, "--bytes %s", path);
    script(printed, "tests/reference/gpt2_numpy.py", options);
    int n = losses_of_trainer(layout, state, losses);
    for (int i = 0; i < n; i++)
        mean += losses[i] / (float)n;
    double reference = strtod(printed, NULL);
    cr_assert(fabs(mean - reference) < 2e-5 * reference, "trainer %.8g, numpy %.8g", (double)mean, reference);
    cr_assert_eq(checkpoint_delete_all(fixture_store, NULL), 0);
    free(state);
    free(layout);
}

Test(reference, the_trainers_loss_of_a_checkpoint_agrees_with_numpys)
{
    agree(&(struct model_shape){2, 4, 16, 8, 256});
    agree(&(struct model_shape){3, 5, 80, 37, 256});
    agree(&(struct model_shape){11, 1, 12, 31, 300});
}
