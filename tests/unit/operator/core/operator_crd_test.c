/* The CRD and the table of fields that a job file has say the same: names, kinds, bounds, defaults, words.
 * And a status has its place in it, member by member. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/field.h"
#include "common/job/yaml.h"
#include "common/os/file.h"
#include "operator/core/status.h"

enum { CRD_BYTES_MAX = 200 * 1024 };

static struct yml *crd;
static struct str text;

static void read_crd(void)
{
    struct error err = {0};
    text = str_init(1 << 20);
    cr_assert_eq(file_read(RM_SOURCE "/crds/trainingjob.yaml", &text, &err), 0, "%s", err.text);
    cr_assert_eq(yml_parse(&crd, str_text(&text), text.length, "trainingjob.yaml", &err), 0, "%s", err.text);
}

static void forget_crd(void)
{
    yml_free(crd);
    str_clear(&text);
}

TestSuite(operator_crd, .init = read_crd, .fini = forget_crd);

static const struct yml *schema_root(void)
{
    const struct yml *version = yml_get(yml_get(crd, "spec"), "versions")->child;
    return yml_get(yml_get(version, "schema"), "openAPIV3Schema");
}

/* The schema of "trainer.steps"; *ret_parent: of the group that it is in. */
static const struct yml *schema_of(const char *path, const struct yml **ret_parent)
{
    char part[64];
    const struct yml *node = yml_get(yml_get(schema_root(), "properties"), "spec");
    while (node && *path) {
        size_t length = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        if (ret_parent)
            *ret_parent = node;
        node = yml_get(yml_get(node, "properties"), part);
        path += length + (path[length] == '.');
    }
    return node;
}

static const char *word(const struct yml *schema, const char *key)
{
    const struct yml *node = yml_get(schema, key);
    return node && node->text ? node->text : "";
}

static bool listed(const struct yml *list, const char *text_of)
{
    for (const struct yml *item = list ? list->child : NULL; item; item = item->next)
        if (item->text && !strcmp(item->text, text_of))
            return true;
    return false;
}

static const char *type_of(const struct job_field *field)
{
    switch (field->kind) {
    case JOB_FIELD_INT:
    case JOB_FIELD_LONG:
    case JOB_FIELD_SEED:
        /* a number or a word has no type, but an extension */
        return field->zero || field->depends ? "" : "integer";
    case JOB_FIELD_REAL:
        return "number";
    case JOB_FIELD_BOOL:
        return "boolean";
    case JOB_FIELD_LIST:
    case JOB_FIELD_RULES:
        return "array";
    default:
        return "string";
    }
}

static bool is_absent_by_design(const struct job_field *field)
{
    return !strncmp(field->path, "metadata.", 9);
}

/* An API server cuts a maximum to a whole number where the value is one (beta1: 1), so a rule holds the
 * bound. */
static void check_fraction(const struct job_field *field, const struct yml *schema)
{
    char wanted[64];
    const struct yml *rules = yml_get(schema, "x-kubernetes-validations");
    snprintf(wanted, sizeof wanted, "self <= %.10g", field->highest);
    cr_assert_str_eq(word(schema, "maximum"), "", "%s", field->path);
    cr_assert(rules && !strcmp(word(rules->child, "rule"), wanted), "%s: the rule should be %s", field->path,
              wanted);
}

/* Where words are refused that Kubeflow takes, a rule holds the bounds, and says why. */
static void check_number_alone(const struct job_field *field, const struct yml *schema)
{
    char wanted[96];
    const struct yml *rules = yml_get(schema, "x-kubernetes-validations");
    snprintf(wanted, sizeof wanted, "type(self) == int && self >= %d && self <= %d", (int)field->lowest,
             (int)field->highest);
    cr_assert(rules && !strcmp(word(rules->child, "rule"), wanted), "%s: the rule should be %s", field->path,
              wanted);
    cr_assert(strstr(word(rules->child, "message"), "differs from machine to machine"));
}

static void check_entries(const struct job_field *field, const struct yml *schema)
{
    cr_assert_eq(strtod(word(schema, "minItems"), NULL), field->lowest, "%s: minItems", field->path);
    cr_assert_eq(strtod(word(schema, "maxItems"), NULL), field->highest, "%s: maxItems", field->path);
    cr_assert_eq(strtod(word(yml_get(schema, "items"), "maxLength"), NULL), JOB_LIST_BYTES - 1, "%s",
                 field->path);
}

static void check_bounds(const struct job_field *field, const struct yml *schema)
{
    if (field->depends)
        check_number_alone(field, schema);
    if (field->kind == JOB_FIELD_LIST)
        check_entries(field, schema);
    bool counts =
        field->kind == JOB_FIELD_INT || field->kind == JOB_FIELD_LONG || field->kind == JOB_FIELD_REAL;
    if (!counts || field->zero || field->depends)
        return;
    cr_assert_eq(strtod(word(schema, "minimum"), NULL), field->lowest, "%s: minimum", field->path);
    if (field->kind == JOB_FIELD_REAL && field->highest > 1e15)
        cr_assert_str_eq(word(schema, "maximum"), "", "%s: an API server can't compare with 1e30",
                         field->path);
    else if (field->kind == JOB_FIELD_REAL && field->highest != floor(field->highest))
        check_fraction(field, schema);
    else
        cr_assert_float_eq(strtod(word(schema, "maximum"), NULL), field->highest, 1e-12, "%s: maximum",
                           field->path);
}

static void check_default(const struct job_field *field, const struct yml *schema)
{
    /* of a group that is not there in mode Restart; what is left out the operator fills in */
    bool filled = job_field_is_of_elastic(field) && !strchr(field->path + strlen("launch."), '.');
    bool none = !field->fallback || !strcmp(field->fallback, "null") || field->required || filled;
    const char *said = word(schema, "default");
    if (none) {
        cr_assert_str_eq(said, "", "%s: default", field->path);
        return;
    }
    struct job_value a = value_of_plain(field->fallback), b = value_of_plain(said);
    double x = a.kind == VALUE_INT ? (double)a.whole : a.real,
           y = b.kind == VALUE_INT ? (double)b.whole : b.real;
    if (a.kind == VALUE_INT || a.kind == VALUE_REAL)
        cr_assert_eq(x, y, "%s: default %s, not %s", field->path, said, field->fallback);
    else
        cr_assert_str_eq(said, field->fallback, "%s: default", field->path);
}

static void check_words(const struct job_field *field, const struct yml *schema)
{
    bool choice =
        field->kind == JOB_FIELD_CHOICE || field->kind == JOB_FIELD_SWITCH || field->kind == JOB_FIELD_FIXED;
    for (int i = 0; choice && i < JOB_FIELD_WORDS_MAX && field->words[i]; i++)
        cr_assert(listed(yml_get(schema, "enum"), field->words[i]), "%s: %s is not in enum", field->path,
                  field->words[i]);
}

/* "9h" of a duration's bounds, as the rule writes them, is within the table's. */
static void check_times(const struct job_field *field, const struct yml *schema)
{
    struct str low = str_init(64), high = str_init(64), wanted = str_init(256);
    const struct yml *rules = yml_get(schema, "x-kubernetes-validations");
    if (field->kind != JOB_FIELD_TIME)
        return;
    duration_show((rm_time)field->lowest, &low);
    duration_show((rm_time)field->highest, &high);
    str_addf(&wanted, "duration(self) >= duration('%s') && duration(self) <= duration('%s')", str_text(&low),
             str_text(&high));
    cr_assert(rules && strstr(word(rules->child, "rule"), str_text(&wanted)), "%s: the rule should hold %s",
              field->path, str_text(&wanted));
    str_clear(&low);
    str_clear(&high);
    str_clear(&wanted);
}

Test(operator_crd, every_field_of_a_job_file_is_in_the_crd_with_its_kind_bounds_default_and_words)
{
    for (int i = 0; i < job_fields_count; i++) {
        const struct job_field *field = &job_fields[i];
        const struct yml *parent = NULL, *schema = schema_of(field->path, &parent);
        if (is_absent_by_design(field)) {
            cr_assert_null(schema, "%s", field->path);
            continue;
        }
        cr_assert(schema, "%s is not in the CRD", field->path);
        cr_assert_str_eq(word(schema, "type"), type_of(field), "%s: type", field->path);
        const char *name = strrchr(field->path, '.') ? strrchr(field->path, '.') + 1 : field->path;
        bool required = field->required && !job_field_is_of_elastic(field); /* there a rule asks for it */
        cr_assert_eq(listed(yml_get(parent, "required"), name), required, "%s: required", field->path);
        check_bounds(field, schema);
        check_default(field, schema);
        check_words(field, schema);
        check_times(field, schema);
    }
}

static int count_leaves(const struct yml *schema, char *path, size_t length, int depth)
{
    int unknown = 0;
    const struct yml *properties = yml_get(schema, "properties");
    if (!properties)
        return !job_field_find(path);
    for (const struct yml *node = properties->child; node; node = node->next) {
        snprintf(path + length, 200 - length, "%s%s", length ? "." : "", node->key);
        unknown += count_leaves(node, path, strlen(path), depth + 1);
        if (unknown && depth)
            return unknown;
    }
    return unknown;
}

Test(operator_crd, trainer_and_launch_have_no_field_in_the_crd_that_a_job_file_lacks)
{
    static const char *const groups[] = {"trainer", "launch"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        char path[200];
        text_copy(path, sizeof path, groups[i]);
        int unknown = count_leaves(schema_of(groups[i], NULL), path, strlen(path), 1);
        cr_assert_eq(unknown, 0, "spec.%s is not in the field table", path);
    }
}

static void check_descriptions(const struct yml *properties, const char *above)
{
    for (const struct yml *node = properties->child; node; node = node->next) {
        if (!strcmp(node->key, "metadata") && !strcmp(above, ""))
            continue; /* the API server's own */
        cr_assert(strlen(word(node, "description")) > 5, "%s.%s has no description", above, node->key);
        const struct yml *below = yml_get(node, "properties");
        const struct yml *items = yml_get(yml_get(node, "items"), "properties");
        if (below)
            check_descriptions(below, node->key);
        if (items)
            check_descriptions(items, node->key);
    }
}

Test(operator_crd, every_field_has_a_description_for_kubectl_explain)
{
    check_descriptions(yml_get(schema_root(), "properties"), "");
}

Test(operator_crd, it_is_small_enough_for_kubectl_apply)
{
    cr_assert_lt(text.length, CRD_BYTES_MAX);
}

static const struct yml *spec_rules(void)
{
    const struct yml *spec = yml_get(yml_get(schema_root(), "properties"), "spec");
    return yml_get(spec, "x-kubernetes-validations");
}

/* A rule that fails to find what it asks for refuses the job with the API server's words, and not with ours.
 */
Test(operator_crd, no_rule_takes_it_that_a_group_is_there_which_a_job_may_lack)
{
    static const char *const groups[] = {"trainer", "launch", "checkpoint"};
    for (const struct yml *rule = spec_rules()->child; rule; rule = rule->next)
        for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
            char used[40], asked[40];
            snprintf(used, sizeof used, "self.%s.", groups[i]);
            snprintf(asked, sizeof asked, "has(self.%s)", groups[i]);
            cr_assert(!strstr(word(rule, "rule"), used) || strstr(word(rule, "rule"), asked), "%s",
                      word(rule, "rule"));
        }
}

/* The rule of `spec` whose message begins like this. */
static const char *rule_that_says(const char *message)
{
    for (const struct yml *rule = spec_rules()->child; rule; rule = rule->next)
        if (!strncmp(word(rule, "message"), message, strlen(message)))
            return word(rule, "rule");
    cr_assert(false, "no rule says \"%s\"", message);
    return "";
}

Test(operator_crd, what_of_the_trainer_can_change_while_suspended_is_what_no_checkpoint_was_made_with)
{
    static const char *const changeable[] = {"trainer.threads",
                                             "trainer.ringStreams",
                                             "trainer.isa",
                                             "trainer.allowMixedHardware",
                                             "trainer.device",
                                             "trainer.data.trust",
                                             "trainer.data.hash",
                                             "trainer.data.endpoint",
                                             "trainer.data.region",
                                             "trainer.data.cache",
                                             "trainer.data.cacheBytes",
                                             "trainer.data.tokenizer"};
    const char *never = rule_that_says("spec.trainer can't change");
    cr_assert(strstr(rule_that_says("of spec.trainer only threads"), "oldSelf.suspend ||"));
    for (int i = 0; i < job_fields_count; i++) {
        const struct job_field *field = &job_fields[i];
        char group[64], whole[64];
        bool changes = false;
        if (strncmp(field->path, "trainer.", 8) != 0 || is_absent_by_design(field))
            continue;
        for (size_t k = 0; k < sizeof changeable / sizeof *changeable; k++)
            changes |= strcmp(field->path, changeable[k]) == 0;
        snprintf(whole, sizeof whole, "self.%s ==", field->path);
        snprintf(group, sizeof group, "self.trainer.%.*s ==", (int)strcspn(field->path + 8, "."),
                 field->path + 8);
        bool held = strstr(never, whole) || strstr(never, group);
        cr_assert_neq(held, changes, "%s", field->path);
        cr_assert_not(changes && field->compared, "%s is compared with the checkpoint", field->path);
    }
}

Test(operator_crd, a_price_of_a_job_is_more_than_a_currency)
{
    const struct yml *rules = yml_get(schema_of("spot.price", NULL), "x-kubernetes-validations");
    cr_assert(rules && !strcmp(word(rules->child, "rule"), "has(self.spot) || has(self.onDemand)"));
    cr_assert(strstr(word(rules->child, "message"), "spot, onDemand or both"));
}

enum { STATUS_MEMBERS_MAX = 256 };

struct members {
    int count;
    struct job_status_listed one[STATUS_MEMBERS_MAX];
};

static void list_members(struct members *ret)
{
    ret->count = job_status_list(ret->one, STATUS_MEMBERS_MAX);
    cr_assert(ret->count > 100 && ret->count <= STATUS_MEMBERS_MAX, "%d members", ret->count);
}

static bool has_own(const struct members *m, int i)
{
    return i + 1 < m->count && m->one[i + 1].depth > m->one[i].depth;
}

/* What the schema knows and nobody writes, from member `first` on: each is told with what is above it. */
static int count_unwritten(const struct yml *properties, const struct members *m, int first, int depth)
{
    int unwritten = 0;
    for (const struct yml *node = properties ? properties->child : NULL; node; node = node->next) {
        bool written = false;
        for (int i = first; i < m->count && m->one[i].depth >= depth; i++)
            written |= m->one[i].depth == depth && !strcmp(m->one[i].key, node->key);
        if (!written)
            cr_log_info("nobody writes %s", node->key);
        unwritten += !written;
    }
    return unwritten;
}

/* What is written and has no place there, or is there for nothing. */
static int count_strays(const struct yml *schema, const struct members *m, int first, int depth)
{
    const struct yml *properties = yml_get(schema, "properties");
    int strays = count_unwritten(properties, m, first, depth);
    for (int i = first; i < m->count && m->one[i].depth >= depth; i++) {
        if (m->one[i].depth > depth)
            continue;
        const struct yml *node = yml_get(properties, m->one[i].key), *inner = node;
        if (!node)
            cr_log_info("%s has no place", m->one[i].key);
        if (m->one[i].list)
            inner = yml_get(node, "items");
        if (!node || has_own(m, i) != (yml_get(inner, "properties") != NULL))
            strays++;
        else if (has_own(m, i))
            strays += count_strays(inner, m, i + 1, depth + 1);
    }
    return strays;
}

static const struct yml *schema_of_status(void)
{
    return yml_get(yml_get(schema_root(), "properties"), "status");
}

/* Pruning would lose silently what has no place in it. */
Test(operator_crd, a_status_survives_the_schema_and_no_place_is_there_for_nothing)
{
    struct members m;
    list_members(&m);
    cr_assert_eq(count_strays(schema_of_status(), &m, 0, 0), 0);
}

Test(operator_crd, a_member_that_is_written_at_another_place_is_found)
{
    static const struct {
        const char *right, *wrong;
    } renamed[] = {
        {"term", "misfit"}, {"index", "number"}, {"spentRest", "spentLeft"}, {"goodput", "lastGoodput"}};
    for (size_t r = 0; r < sizeof renamed / sizeof *renamed; r++) {
        struct members m;
        int found = 0;
        list_members(&m);
        for (int i = 0; i < m.count; i++) {
            if (strcmp(m.one[i].key, renamed[r].right) != 0 || found)
                continue;
            found = 1;
            m.one[i].key = renamed[r].wrong;
        }
        cr_assert(found && count_strays(schema_of_status(), &m, 0, 0) >= 2, "%s", renamed[r].wrong);
    }
}
