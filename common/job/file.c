/* Turns a job file into a spec, field by field, and says of what it refuses in which line it stands and what
 * to write instead. */
#include "common/job/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/near.h"
#include "common/job/field.h"
#include "common/job/yaml.h"
#include "common/wire/json.h"

enum { SET_LIST_MAX = 64 * 1024, PATH_TEXT = 192 };

static const char *const not_local[] = {
    "suspend",
    "managedBy",
    "workers.sizes",
    "workers.template",
    "coordinator",
    "trainer.model.initSecretRef",
    "trainer.data.secretRef",
    "checkpoint.secretRef",
    "checkpoint.processKeyRef",
    "elasticity.scaleUpCooldown",
    "cost",
    "spot",
    "failurePolicy.rules", /* of the built-in trainer: its program's exit codes have meanings of their own */
    "scheduling",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "cleanPodPolicy",
    NULL,
};

struct walk {
    struct job_spec *spec;
    const struct job_file_source *source;
    struct str *notes;
    struct error *err;
};

/* "file.yaml:14: spec.trainer.steps " or "--set spec.trainer.steps ": what a sentence follows. */
static int refuse_at(const struct walk *w, int line, const char *path, const char *sentence)
{
    if (!line)
        return err_set(w->err, ERR_USAGE, "--set %s %s", path, sentence);
    return err_set(w->err, ERR_USAGE, "%s:%d: %s %s", w->source->path, line, path, sentence);
}

/* Tries the name that follows `group` in a known path. */
static void try_below(const char *known, const char *group, struct near *near)
{
    size_t above = strlen(group);
    if (above && (strncmp(known, group, above) || known[above] != '.'))
        return;
    known += above ? above + 1 : 0;
    near_try(near, known, strcspn(known, "."));
}

/* group: "" for spec itself, "trainer.batch" for what is below it. */
static int unknown(const struct walk *w, const struct yml *node, const char *group, const char *path)
{
    char sentence[PATH_TEXT + 64];
    struct near near = near_to(node->key);
    for (int i = 0; i < job_fields_count; i++)
        if (strncmp(job_fields[i].path, "metadata.", 9) != 0)
            try_below(job_fields[i].path, group, &near);
    for (int i = 0; not_local[i]; i++)
        try_below(not_local[i], group, &near);
    snprintf(sentence, sizeof sentence, "is not a field of a TrainingJob%s",
             *near.best ? near.question : "; remove it");
    return refuse_at(w, node->line, path, sentence);
}

/* Is path the beginning of a known field's path? */
static bool is_group(const char *path)
{
    size_t length = strlen(path);
    for (int i = 0; i < job_fields_count; i++)
        if (!strncmp(job_fields[i].path, path, length) && job_fields[i].path[length] == '.')
            return true;
    return false;
}

static bool is_not_local(const char *path)
{
    for (int i = 0; not_local[i]; i++)
        if (!strcmp(not_local[i], path))
            return true;
    return false;
}

/* False where an entry is no scalar, or there is no room for all. A word stands for itself: 8 is "8". */
static bool list_of_words(const struct yml *node, struct job_list *list)
{
    *list = (struct job_list){0};
    for (const struct yml *entry = node->child; entry; entry = entry->next)
        if (entry->kind != YML_SCALAR || !job_list_add(list, entry->text))
            return false;
    return true;
}

/* As JSON has it. To be freed. */
static struct js *json_of(const struct yml *node)
{
    struct js *made = node->kind == YML_MAP ? js_object() : js_array();
    if (node->kind == YML_SCALAR) {
        struct job_value plain = value_of_plain(node->text);
        js_free(made);
        return node->plain && plain.kind == VALUE_INT ? js_new_int(plain.whole) : js_new_string(node->text);
    }
    for (const struct yml *entry = node->child; entry; entry = entry->next) {
        if (node->kind == YML_MAP)
            js_set(made, entry->key, json_of(entry));
        else
            js_push(made, json_of(entry));
    }
    return made;
}

/* list: room for the entries of one. */
static struct job_value value_of(const struct job_field *field, const struct yml *node, struct job_list *list)
{
    if (node->kind == YML_MAP)
        return (struct job_value){.kind = VALUE_MAP};
    if (node->kind == YML_LIST)
        return (struct job_value){.kind = VALUE_LIST, .list = list_of_words(node, list) ? list : NULL};
    struct job_value text = {.kind = VALUE_TEXT, .text = node->text};
    if (!node->plain)
        return text;
    struct job_value plain = value_of_plain(node->text);
    /* A shell takes the quotes away: what --set gives to a text field is text, whatever it looks like. */
    bool typed = node->line == 0 && (field->kind == JOB_FIELD_TEXT || field->kind == JOB_FIELD_URI);
    return typed && plain.kind != VALUE_NULL ? text : plain;
}

/* What is about the trainer's own checkpoints, where a program keeps its own and is not frozen: uri, endpoint
 * and region say whose the job is, and nothing is written there. */
static bool does_nothing(const struct job_field *field, const struct job_spec *spec)
{
    static const char *const works[] = {"checkpoint.uri", "checkpoint.endpoint", "checkpoint.region",
                                        "checkpoint.process", "checkpoint.processPaths"};
    if (!job_restarts(spec) || job_freezes(spec) || strncmp(field->path, "checkpoint.", 11) != 0)
        return false;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (!strcmp(field->path, works[i]))
            return false;
    return true;
}

static int take_field(const struct walk *w, const struct job_field *field, const struct yml *node,
                      const char *path)
{
    struct error why = {0};
    struct job_list list;
    struct job_value value = value_of(field, node, &list);
    struct js *json = field->kind == JOB_FIELD_RULES ? json_of(node) : NULL;
    value.json = json;
    int status = field_assign(field, w->spec, &value, &why);
    js_free(json);
    if (status == 0 && field->kind == JOB_FIELD_URI && value.kind == VALUE_TEXT) {
        const char *base = node->line ? w->source->folder : w->source->cwd;
        status = job_uri_resolve(value.text, base, (char *)w->spec + field->offset, &why);
    }
    return status < 0 ? refuse_at(w, node->line, path, why.text) : 0;
}

static int take_entry(const struct walk *w, const struct yml *node, const char *group);

/* path: of node below spec, "" for spec itself. */
static int take_group(const struct walk *w, const struct yml *node, const char *path)
{
    bool empty = node->kind == YML_SCALAR && node->plain && value_of_plain(node->text).kind == VALUE_NULL;
    if (empty)
        return 0;
    if (node->kind != YML_MAP) {
        char full[PATH_TEXT];
        snprintf(full, sizeof full, "spec%s%s", *path ? "." : "", path);
        return refuse_at(w, node->line, full, "should be a group of fields, indented below it");
    }
    for (const struct yml *entry = node->child; entry; entry = entry->next)
        if (take_entry(w, entry, path) < 0)
            return -1;
    return 0;
}

static int take_entry(const struct walk *w, const struct yml *node, const char *group)
{
    char path[PATH_TEXT], full[PATH_TEXT + 8];
    snprintf(path, sizeof path, "%s%s%.64s", group, *group ? "." : "", node->key);
    snprintf(full, sizeof full, "spec.%s", path);
    const struct job_field *field = job_field_find(path);
    if (field && (job_field_applies(field, w->spec) || !is_not_local(path)))
        return take_field(w, field, node, full);
    if (is_group(path))
        return take_group(w, node, path);
    if (!is_not_local(path))
        return unknown(w, node, group, full);
    if (node->line)
        str_addf(w->notes, "%s:%d: ", w->source->path, node->line);
    str_addf(w->notes, "%s means nothing without a cluster and is left out\n", full);
    return 0;
}

static int take_metadata(const struct walk *w, const struct yml *root)
{
    const struct yml *metadata = yml_get(root, "metadata"), *name = yml_get(metadata, "name");
    if (!name)
        return refuse_at(w, metadata ? metadata->line : root->line, "metadata.name",
                         "is missing; give the job a name");
    return take_field(w, job_field_find("metadata.name"), name, "metadata.name");
}

/* apiVersion and kind: what makes it this file and no other. */
static int take_word(const struct walk *w, const struct yml *root, const char *key, const char *wanted)
{
    char sentence[96];
    const struct yml *node = yml_get(root, key);
    if (node && node->kind == YML_SCALAR && !strcmp(node->text, wanted))
        return 0;
    bool text = node && node->kind == YML_SCALAR;
    snprintf(sentence, sizeof sentence, "is %.30s; write %s: %s",
             text   ? node->text
             : node ? "no word"
                    : "missing",
             key, wanted);
    return refuse_at(w, node ? node->line : root->line, key, sentence);
}

static int choose_mode(const struct walk *w, const struct yml *spec)
{
    const char *at;
    char full[PATH_TEXT];
    struct error why = {0};
    const struct yml *trainer = yml_get(spec, "trainer"), *launch = yml_get(spec, "launch");
    if (job_spec_choose(w->spec, trainer, launch, &at, &why) == 0)
        return 0;
    snprintf(full, sizeof full, "spec.%s", at);
    return refuse_at(w, launch->line, full, why.text);
}

static int take_top(const struct walk *w, const struct yml *root)
{
    static const char *const known[] = {"apiVersion", "kind", "metadata", "spec", "status", NULL};
    if (take_word(w, root, "apiVersion", "ringmaster.dev/v1alpha1") < 0 ||
        take_word(w, root, "kind", "TrainingJob") < 0)
        return -1;
    for (const struct yml *node = root->child; node; node = node->next) {
        char sentence[PATH_TEXT];
        struct near near = near_to(node->key);
        int i = 0;
        for (; known[i] && strcmp(known[i], node->key) != 0; i++)
            near_try(&near, known[i], strlen(known[i]));
        if (known[i])
            continue;
        snprintf(sentence, sizeof sentence,
                 "does not belong here; a TrainingJob has apiVersion, kind, metadata and spec%s",
                 near.question);
        return refuse_at(w, node->line, node->key, sentence);
    }
    if (take_metadata(w, root) < 0)
        return -1;
    const struct yml *spec = yml_get(root, "spec");
    if (!spec)
        return refuse_at(w, root->line, "spec", "is missing; it holds the job");
    return choose_mode(w, spec) < 0 ? -1 : take_group(w, spec, "");
}

/* NULL: the job says nothing of it. */
static const struct yml *said_of(const struct yml *root, const char *path)
{
    char part[PATH_TEXT];
    const struct yml *node = yml_get(root, "spec");
    while (node && *path) {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(path, "."), path);
        node = yml_get(node, part);
        path += strlen(part);
        path += *path == '.';
    }
    return node;
}

static bool present(const struct yml *root, const char *path)
{
    return said_of(root, path) != NULL;
}

static bool is_idle(const struct walk *w, const struct yml *root, const struct job_field *field)
{
    const struct yml *node = does_nothing(field, w->spec) ? said_of(root, field->path) : NULL;
    bool empty =
        node && node->kind == YML_SCALAR && node->plain && value_of_plain(node->text).kind == VALUE_NULL;
    return node && !empty;
}

/* A program needs no store, but a store needs its uri. */
static bool is_asked_for(const struct walk *w, const struct yml *root, const struct job_field *field)
{
    return field->required && strncmp(field->path, "metadata.", 9) != 0 &&
           (job_field_applies(field, w->spec) ||
            (!strncmp(field->path, "checkpoint.", 11) && present(root, "checkpoint")));
}

/* What the job says and its mode has no use for. */
static int refuse_useless(const struct walk *w, const struct yml *root)
{
    char full[PATH_TEXT];
    for (int i = 0; i < job_fields_count; i++) {
        const struct job_field *field = &job_fields[i];
        snprintf(full, sizeof full, "spec.%s", field->path);
        if (job_restarts(w->spec) && job_field_is_of_elastic(field) && present(root, field->path))
            return refuse_at(w, yml_line(root, full), full, JOB_FIELD_ELASTIC_ALONE);
        if (is_idle(w, root, field))
            return refuse_at(
                w, yml_line(root, full), full,
                "does nothing in mode Restart, where the program keeps its own checkpoints; remove it");
    }
    return 0;
}

static int check_whole(const struct walk *w, const struct yml *root)
{
    char full[PATH_TEXT], sentence[sizeof w->err->text];
    if (refuse_useless(w, root) < 0)
        return -1;
    for (int i = 0; i < job_fields_count; i++) {
        const struct job_field *field = &job_fields[i];
        snprintf(full, sizeof full, "spec.%s", field->path);
        if (!is_asked_for(w, root, field) || present(root, field->path))
            continue;
        snprintf(sentence, sizeof sentence, "is missing; set it (%s)", field->help);
        return refuse_at(w, yml_line(root, full), full, sentence);
    }
    const char *at = "";
    struct error why = {0};
    job_spec_fill(w->spec);
    if (job_spec_check(w->spec, &at, &why) == 0)
        return 0;
    snprintf(full, sizeof full, "%s%s", strncmp(at, "metadata.", 9) ? "spec." : "", at);
    snprintf(sentence, sizeof sentence, "%s", why.text);
    return refuse_at(w, yml_line(root, full), full, sentence);
}

/* A list is set as YAML has it, or JSON: ["python", "train.py"]. */
static int set_list(struct yml *root, const char *path, const char *value, struct error *err)
{
    struct yml *whole = NULL, *list = NULL;
    struct error why = {0};
    struct str text = str_init(SET_LIST_MAX);
    str_addf(&text, "list: %s", value);
    if (!text.truncated && yml_parse(&whole, str_text(&text), text.length, "--set", &why) == 0)
        list = whole->child;
    str_clear(&text);
    if (!list || list->kind != YML_LIST || list->next) {
        yml_free(whole);
        return err_set(err, ERR_USAGE,
                       "--set %.80s is a list: write --set '%.80s=[\"a\", \"b\"]', in quotes for the shell",
                       path, path);
    }
    whole->child = NULL;
    yml_free(whole);
    return yml_set_node(root, path, list, err);
}

static bool is_list(const char *path)
{
    const struct job_field *field = strncmp(path, "spec.", 5) ? NULL : job_field_find(path + 5);
    return field && (field->kind == JOB_FIELD_LIST || field->kind == JOB_FIELD_RULES);
}

static int apply_sets(struct yml *root, const struct job_file_source *source, struct error *err)
{
    for (int i = 0; i < source->sets_count; i++) {
        const char *set = source->sets[i], *equals = strchr(set, '=');
        char path[PATH_TEXT];
        if (!equals || equals == set || equals - set >= PATH_TEXT)
            return err_set(err, ERR_USAGE, "--set %.100s: write --set spec.trainer.steps=100, say", set);
        snprintf(path, sizeof path, "%.*s", (int)(equals - set), set);
        if (is_list(path) && set_list(root, path, equals + 1, err) < 0)
            return -1;
        if (!is_list(path) && yml_set(root, path, equals + 1, err) < 0)
            return err_wrap(err, "--set");
    }
    return 0;
}

int job_file_parse(struct job_spec *ret, const char *bytes, size_t length,
                   const struct job_file_source *source, struct str *notes, struct error *err)
{
    struct yml *root = NULL;
    struct job_spec spec;
    struct walk w = {.spec = &spec, .source = source, .notes = notes, .err = err};
    if (yml_parse(&root, bytes, length, source->path, err) < 0)
        return -1;
    job_spec_defaults(&spec);
    int status = apply_sets(root, source, err);
    if (status == 0)
        status = take_top(&w, root);
    if (status == 0)
        status = check_whole(&w, root);
    yml_free(root);
    if (status == 0)
        *ret = spec;
    return status;
}

static int slurp(const char *path, struct str *out, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return err_errno(err, ERR_USAGE, "%s: can't open the job file", path);
    struct stat st;
    char block[4096];
    int status = 0;
    if (fstat(fileno(file), &st) == 0 && S_ISDIR(st.st_mode))
        status = err_set(err, ERR_USAGE, "%s: is a folder, not a job file", path);
    for (size_t n; status == 0 && (n = fread(block, 1, sizeof block, file)) > 0;)
        str_add(out, block, n);
    if (status == 0 && ferror(file))
        status = err_errno(err, ERR_USAGE, "%s: can't read the job file", path);
    if (status == 0 && out->truncated)
        status = err_set(err, ERR_USAGE, "%s: larger than %d bytes, this is no job file", path, JOB_FILE_MAX);
    fclose(file);
    return status;
}

int job_file_read(struct job_spec *ret, const char *path, const char *const *sets, int sets_count,
                  struct str *notes, struct error *err)
{
    struct str bytes = str_init(JOB_FILE_MAX);
    char whole[PATH_MAX], cwd[PATH_MAX];
    int status = slurp(path, &bytes, err);
    if (status == 0 && (!realpath(path, whole) || !getcwd(cwd, sizeof cwd)))
        status = err_errno(err, ERR_MACHINE, "%s: can't find its folder", path);
    if (status == 0) {
        char *slash = strrchr(whole, '/');
        *slash = 0;
        struct job_file_source source = {
            .path = path, .folder = whole, .cwd = cwd, .sets = sets, .sets_count = sets_count};
        status = job_file_parse(ret, str_text(&bytes), bytes.length, &source, notes, err);
    }
    str_clear(&bytes);
    return status;
}
