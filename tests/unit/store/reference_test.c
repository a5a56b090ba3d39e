/* What others read from our checkpoints: the small scripts that share no code with us. */
#include "fixture.h"

#include <math.h>

TestSuite(reference, .init = fixture_make, .fini = fixture_remove);

static struct manifest m;

/* What a script prints, without its newline. */
static void script(char out[256], const char *name, const char *options)
{
    char command[1024];
    if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0)
        cr_skip_test("python3 with numpy is not installed");
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

Test(reference, numpy_reads_a_checkpoint_and_gives_a_loss)
{
    char printed[256], options[512], path[512];
    save(&(struct model_shape){2, 4, 16, 8, 256});
    fixture_path(path, "text");
    FILE *file = fopen(path, "w");
    fputs("some text that is longer than a sample or two of it", file);
    fclose(file);
    snprintf(options, sizeof options, "--bytes %s", path);
    script(printed, "tests/reference/gpt2_numpy.py", options);
    double loss = strtod(printed, NULL);
    cr_assert(loss > 4 && loss < 8, "%s: random weights know about as little as log(256) = 5.5", printed);
}
