/* Writes the README.md of `final/` from its manifest: a table of what the weights are, and for an exact
 * run the job file that makes them again. The publisher of the last checkpoint calls it
 * (checkpoint_publish.c). */
#include "common/storage/checkpoint/model_card.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/limits.h"
#include "common/job/spec.h"
#include "common/model/layout.h"
#include "common/wire/json.h"

/* Where somebody puts the data that has this hash, and the weights that the run began with: where they lay is
 * nothing to tell to whoever gets the weights. */
static const char data_path[] = "trainer.data.uri", data_folder[] = "data";
static const char init_path[] = "trainer.model.init", init_folder[] = "init";
static const char tokenizer_path[] = "trainer.data.tokenizer", tokenizer_file[] = "tokenizer.json";

/* What trainer.isa takes. Others that a fingerprint can have are those of Auto alone. */
static const char *const instruction_sets[] = {
    "SSE41", "AVX", "AVX2", "AVX512_CORE", "AVX512_CORE_BF16", "AVX512_CORE_AMX"};

static void grouped(int64_t n, struct str *out)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%" PRId64, n);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            str_adds(out, ",");
        str_add(out, &digits[i], 1);
    }
}

static void row_hash(const char *name, const uint8_t hash[RM_HASH_BYTES], struct str *out)
{
    char hex[RM_HASH_HEX];
    hex_encode(hash, RM_HASH_BYTES, hex);
    str_addf(out, "| %s | `%s` |\n", name, hex);
}

/* Unless all of its bytes are harmless to a table's cell. */
static void plain(const char *text, struct str *out)
{
    for (; *text; text++)
        str_addf(out, "%c", *text == '|' || *text == '`' || (unsigned char)*text < ' ' ? ' ' : *text);
}

static void size_rows(const struct manifest *m, struct str *out)
{
    const struct model_shape *s = &m->shape;
    struct model_layout *layout = malloc(sizeof *layout); /* large */
    str_adds(out, "| | |\n|---|---|\n");
    if (layout) {
        model_layout_init(layout, s);
        str_adds(out, "| parameters | ");
        grouped(layout->parameters, out);
        str_adds(out, " |\n");
    }
    free(layout);
    str_addf(out, "| layers, heads, width | %d, %d, %d |\n| context, vocabulary | %d, %d |\n", s->layers,
             s->heads, s->width, s->context, s->vocabulary);
}

static void training_rows(const struct manifest *m, const struct model_card_losses *losses, bool fast,
                          struct str *out)
{
    str_adds(out, "| steps | ");
    grouped(m->step, out);
    str_adds(out, " |\n");
    if (isfinite(losses->last))
        str_addf(out, "| loss of the last step | %.4f |\n", losses->last);
    if (isfinite(losses->held_out))
        str_addf(out, "| held-out loss, after step %" PRId64 " | %.4f |\n", losses->evaluated,
                 losses->held_out);
    if (m->data.files >= 0 && m->data.bytes >= 0) {
        str_adds(out, "| data | ");
        grouped(m->data.files, out);
        str_adds(out, m->data.files == 1 ? " file, " : " files, ");
        grouped(m->data.bytes, out);
        str_adds(out, " bytes |\n");
    }
    row_hash("SHA-256 of the data", m->data.sha256, out);
    row_hash("SHA-256 of the weights", m->weights_sha256, out);
    str_adds(out, "| computed by | `");
    plain(m->fingerprint, out);
    str_addf(out, "` |\n| exact | %s |\n", job_exactness(fast ? JOB_FAST : JOB_EXACT, m->exact));
}

/* --- the job --- */

/* "numerics ID, fp32, avx2, ...": the third part, as a job takes it; NULL: it takes none of that name. */
static const char *instruction_set(const char *fingerprint)
{
    char name[32];
    if (sscanf(fingerprint, "numerics %*[^,], %*[^,], %31[^,],", name) != 1)
        return NULL;
    for (size_t i = 0; i < sizeof instruction_sets / sizeof *instruction_sets; i++)
        if (!strcasecmp(instruction_sets[i], name))
            return instruction_sets[i];
    return NULL;
}

/* Tokens of text are bytes, and their tokenizer.json is made by whoever publishes: such a job names none. */
static bool was_given_tokenizer(const struct manifest *m, const struct js *fields)
{
    const char *format = js_as_string(js_get(fields, "trainer.data.format"));
    bool lies_there = false;
    for (int i = 0; i < m->pieces; i++)
        lies_there = lies_there || !strcmp(m->piece[i].file, tokenizer_file);
    return lies_there && !(format && !strcmp(format, "Text"));
}

/* Where the fields can't be read nobody knows, and exact is what a job is unless it says otherwise. */
static bool was_fast(const struct js *fields)
{
    const char *reduction = fields ? js_as_string(js_get(fields, "trainer.reduction")) : NULL;
    return reduction && !strcmp(reduction, "fast");
}

static bool began_with_weights(const struct js *fields)
{
    return js_as_string(js_get(fields, init_path)) != NULL;
}

/* What the fields that decide bits leave open, or tell of places that others have not. */
static void settle_fields(const struct manifest *m, struct js *fields)
{
    const char *isa = instruction_set(m->fingerprint);
    js_set_string(fields, data_path, data_folder);
    if (began_with_weights(fields))
        js_set_string(fields, init_path, init_folder);
    if (was_given_tokenizer(m, fields))
        js_set_string(fields, tokenizer_path, tokenizer_file);
    if (isa)
        js_set_string(fields, "trainer.isa", isa);
}

/* The fields of the job to follow, by path in order. To be freed; NULL: they can't be read. */
static struct js *fields_of(const struct manifest *m)
{
    struct str sorted = str_init(2 * MANIFEST_COMPARED_MAX);
    struct js *fields = js_parse(m->compared, strlen(m->compared), "compared", NULL);
    if (fields && js_kind(fields) == JS_OBJECT) {
        settle_fields(m, fields);
        js_print_canonical(fields, &sorted);
    }
    js_free(fields);
    fields = sorted.length ? js_parse(str_text(&sorted), sorted.length, "compared", NULL) : NULL;
    str_clear(&sorted);
    return fields;
}

/* How many characters of a path are parents that the one before has, too. */
static size_t common_parents(const char *a, const char *b)
{
    size_t common = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '.')
            common = i + 1;
    return common;
}

/* "trainer.model.layers" below "trainer.model.heads": one line; each parent that is new has a line before. */
static void field_line(const char *path, const char *before, const struct js *value, struct str *out)
{
    size_t done = common_parents(path, before);
    int depth = 1;
    for (size_t i = 0; i < done; i++)
        depth += path[i] == '.';
    for (const char *part = path + done, *dot; (dot = strchr(part, '.')); part = dot + 1, depth++)
        str_addf(out, "%*s%.*s:\n", 2 * depth, "", (int)(dot - part), part);
    const char *leaf = strrchr(path, '.');
    str_addf(out, "%*s%s: ", 2 * depth, "", leaf ? leaf + 1 : path);
    js_print(value, out);
    str_adds(out, "\n");
}

/* It stands in quotes: "true" and "null" are names, too. */
static void job_name(const struct manifest *m, struct str *out)
{
    struct js *name = js_new_string(m->job);
    js_print(name, out);
    js_free(name);
}

static void what_it_takes(const struct js *fields, struct str *out)
{
    str_addf(out, "With the data of that hash in the folder `%s`", data_folder);
    if (began_with_weights(fields))
        str_addf(out, ", the weights that the run began with in the folder `%s`", init_folder);
    if (js_get(fields, tokenizer_path))
        str_addf(out, ", the `%s` that lies here beside it", tokenizer_file);
    str_adds(out, ", this as `job.yaml`:\n\n");
}

static void job(const struct manifest *m, const struct js *fields, struct str *out)
{
    const char *before = "";
    str_adds(out, "## The same bits again\n\n");
    what_it_takes(fields, out);
    str_adds(out, "```yaml\napiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata:\n  name: ");
    job_name(m, out);
    str_adds(out, "\nspec:\n  workers:\n    target: 1\n  checkpoint:\n    uri: again\n");
    for (void *it = js_first(fields); it; it = js_next(fields, it)) {
        if (js_kind(js_value(it)) == JS_NULL)
            continue;
        field_line(js_key(it), before, js_value(it), out);
        before = js_key(it);
    }
    str_adds(out,
             "```\n\n    ringmaster run job.yaml\n\nends with that hash of the weights, with any number of "
             "workers, wherever Ringmaster computes as *computed by* says.\n");
}

void model_card_write(const struct manifest *m, const struct model_card_losses *losses, struct str *out)
{
    struct js *fields = fields_of(m);
    bool fast = was_fast(fields);
    str_addf(
        out,
        "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags: [gpt2, ringmaster]\n---\n\n"
        "# %s\n\nA GPT-2, trained by Ringmaster.\n\n",
        m->job);
    size_rows(m, out);
    training_rows(m, losses, fast, out);
    str_adds(out,
             "\n    import transformers\n    model = transformers.AutoModelForCausalLM.from_pretrained(\".\")"
             "\n\n");
    if (!m->exact)
        str_addf(out, "These bits can't be promised to anybody again: %s.\n",
                 fast ? "the run was not exact, and its sums depend on which workers there were at each step"
                      : "the run was not exact, as a part of it was computed by other arithmetic");
    else if (fields)
        job(m, fields, out);
    js_free(fields);
}
