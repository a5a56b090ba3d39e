/* Carries out `ringmaster checkpoint`: lists, verifies, exports and deletes what lies in a folder or a
 * bucket. */
#include "cli/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/core/screen.h"
#include "cli/folders.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "common/base/near.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/data_listing.h"
#include "common/storage/checkpoint/frozen.h"
#include "common/storage/checkpoint/owner.h"
#include "common/wire/json.h"

struct command {
    const char *verb, *uri, *target;
    const char *name; /* of one checkpoint; NULL: the newest, or all */
    const char *endpoint, *region;
    bool all, yes, json, wide;
    struct object_store *store;
    struct checkpoint_list *found;
    struct frozen_list *frozen; /* snapshots of processes, which lie beside them */
    struct progress progress;
};

/* --- what is there --- */

enum { SHORT_HASH = 12, LIST_TEXT_MAX = 1 << 20 };

/* When its manifest was written, by the store's clock, in seconds since the epoch; -1: the store doesn't say.
 */
static int64_t written_at(const struct command *c, const char *entry)
{
    char name[CHECKPOINT_NAME_MAX + sizeof "/manifest.json"];
    struct object_info info;
    snprintf(name, sizeof name, "%s/manifest.json", entry);
    return object_head(c->store, name, &info, NULL) == 0 ? info.modified_s : -1;
}

/* "2026-11-23T12:45:51Z"; "" where it is not known. */
static void utc_text(int64_t at, char out[32])
{
    struct tm day;
    const time_t seconds = (time_t)at;
    if (at < 0 || !gmtime_r(&seconds, &day) || !strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &day))
        *out = 0;
}

static void age_text(const struct command *c, int64_t at, struct str *out)
{
    char date[32];
    utc_text(at, date);
    if (c->wide)
        str_adds(out, date);
    else if (at >= 0)
        show_age((clock_wall_ms() / 1000 - at) * RM_S, out);
    if (!out->length)
        str_adds(out, "?");
}

static void print_header(const struct command *c)
{
    printf("%-16s %10s %10s  %-*s  %-5s  %s\n", "NAME", "STEP", "SIZE", c->wide ? 20 : 6,
           c->wide ? "WRITTEN" : "AGE", "EXACT", "WEIGHTS");
}

static void print_entry(const struct command *c, const struct checkpoint_entry *e, const char *word)
{
    char sha256[RM_HASH_HEX];
    struct str bytes = str_init(64), age = str_init(64);
    hex_encode(e->weights_sha256, RM_HASH_BYTES, sha256);
    if (!e->has_weights)
        text_copy(sha256, sizeof sha256, "-");
    show_bytes(e->bytes, &bytes);
    age_text(c, written_at(c, e->name), &age);
    printf("%-16s %10lld %10s  %-*s  %-5s  %.*s%s\n", e->name, (long long)e->step, str_text(&bytes),
           c->wide ? 20 : 6, str_text(&age), e->exact ? "yes" : "no", c->wide ? RM_HASH_HEX : SHORT_HASH,
           sha256, word);
    str_clear(&bytes);
    str_clear(&age);
}

static struct js *entry_json(const struct command *c, const struct checkpoint_entry *e)
{
    char sha256[RM_HASH_HEX], written[32];
    struct js *one = js_object();
    hex_encode(e->weights_sha256, RM_HASH_BYTES, sha256);
    utc_text(written_at(c, e->name), written);
    js_set_string(one, "name", e->name);
    js_set_int(one, "step", e->step);
    js_set_int(one, "bytes", e->bytes);
    js_set(one, "written", *written ? js_new_string(written) : js_new_null());
    js_set_bool(one, "exact", e->exact);
    js_set(one, "weightsSha256", e->has_weights ? js_new_string(sha256) : js_new_null());
    return one;
}

static void print_frozen(const struct command *c, const struct frozen_entry *e, const char *word)
{
    struct str bytes = str_init(64), age = str_init(64);
    show_bytes(e->bytes, &bytes);
    age_text(c, written_at(c, e->name), &age);
    printf("%-16s %10lld %10s  %-*s  %-5s  %s%s\n", e->name, (long long)e->number, str_text(&bytes),
           c->wide ? 20 : 6, str_text(&age), "-", "processes", word);
    str_clear(&bytes);
    str_clear(&age);
}

static struct js *frozen_json(const struct command *c, const struct frozen_entry *e)
{
    char written[32];
    struct js *one = js_object();
    utc_text(written_at(c, e->name), written);
    js_set_string(one, "name", e->name);
    js_set_int(one, "step", e->number);
    js_set_int(one, "bytes", e->bytes);
    js_set(one, "written", *written ? js_new_string(written) : js_new_null());
    js_set(one, "exact", js_new_null());
    js_set(one, "weightsSha256", js_new_null());
    return one;
}

static void print_list_skipped(const struct checkpoint_skipped *skip, int count)
{
    for (int i = 0; i < count; i++)
        fprintf(stderr, "ringmaster: %s: %s\n", skip[i].name, skip[i].why);
}

static void print_skipped(const struct command *c)
{
    print_list_skipped(c->found->skip, c->found->skipped);
    print_list_skipped(c->frozen->skip, c->frozen->skipped);
}

static bool is_named(const struct command *c, const char *entry)
{
    return !c->name || !strcmp(c->name, entry);
}

static bool is_meant(const struct command *c, const struct checkpoint_entry *entry)
{
    return is_named(c, entry->name);
}

/* Takes the list over. */
static void print_json(struct js *all)
{
    struct str text = str_init(LIST_TEXT_MAX);
    js_print(all, &text);
    js_free(all);
    puts(str_text(&text));
    str_clear(&text);
}

static int list_json(const struct command *c)
{
    struct js *all = js_array();
    for (int i = 0; i < c->found->count; i++)
        if (is_meant(c, &c->found->entry[i]))
            js_push(all, entry_json(c, &c->found->entry[i]));
    for (int i = 0; i < c->frozen->count; i++)
        if (is_named(c, c->frozen->entry[i].name))
            js_push(all, frozen_json(c, &c->frozen->entry[i]));
    print_json(all);
    print_skipped(c);
    return 0;
}

static int list(struct command *c, struct error *err)
{
    (void)err;
    if (c->json)
        return list_json(c);
    print_header(c);
    for (int i = 0; i < c->found->count; i++)
        if (is_meant(c, &c->found->entry[i]))
            print_entry(c, &c->found->entry[i], "");
    for (int i = 0; i < c->frozen->count; i++)
        if (is_named(c, c->frozen->entry[i].name))
            print_frozen(c, &c->frozen->entry[i], "");
    print_skipped(c);
    return 0;
}

/* Takes the object over. why: "" where every byte is right. */
static void add_verified(struct js *all, struct js *one, const char *why)
{
    js_set_bool(one, "verified", !*why);
    if (*why)
        js_set_string(one, "why", why);
    js_push(all, one);
}

static void add_skipped(struct js *all, const struct checkpoint_skipped *skip, int count)
{
    for (int i = 0; i < count; i++) {
        struct js *one = js_object();
        js_set_string(one, "name", skip[i].name);
        add_verified(all, one, skip[i].why);
    }
}

/* 1: damaged, which is told; 0; -1: nobody knows. all: where it is told to programs; NULL: to people. */
static int verify_entry(struct command *c, const struct checkpoint_entry *entry, struct js *all,
                        struct error *err)
{
    struct error why = {0};
    progress_begin(&c->progress, entry->name, entry->bytes);
    int result = checkpoint_verify(c->store, entry->name, NULL, &why);
    progress_end(&c->progress);
    if (result < 0 && why.code != ERR_DATA && why.code != ERR_NOT_FOUND)
        return err_set(err, why.code, "%s", why.text);
    if (all)
        add_verified(all, entry_json(c, entry), result < 0 ? why.text : "");
    else
        print_entry(c, entry, result == 0 ? "  verified" : "  DAMAGED");
    if (result < 0)
        fprintf(stderr, "ringmaster: %s: %s\n", entry->name, why.text);
    return result < 0;
}

/* Does as verify_entry. Its hashes need no key, and tell nothing of whose it is. */
static int verify_frozen(struct command *c, const struct frozen_entry *entry, struct js *all,
                         struct error *err)
{
    struct error why = {0};
    progress_begin(&c->progress, entry->name, entry->bytes);
    int result = frozen_verify(c->store, entry->name, &why);
    progress_end(&c->progress);
    if (result < 0 && why.code != ERR_DATA && why.code != ERR_NOT_FOUND)
        return err_set(err, why.code, "%s", why.text);
    if (all)
        add_verified(all, frozen_json(c, entry), result < 0 ? why.text : "");
    else
        print_frozen(c, entry, result == 0 ? "  verified, not its seal" : "  DAMAGED");
    if (result < 0)
        fprintf(stderr, "ringmaster: %s: %s\n", entry->name, why.text);
    return result < 0;
}

static int verify_all_frozen(struct command *c, struct js *all, struct error *err)
{
    int damaged = 0, looked = 0;
    for (int i = 0; i < c->frozen->count; i++) {
        const struct frozen_entry *entry = &c->frozen->entry[i];
        int bad = is_named(c, entry->name) ? verify_frozen(c, entry, all, err) : 0;
        if (bad < 0)
            return -1;
        damaged += bad;
        looked += is_named(c, entry->name);
    }
    if (looked)
        fputs("ringmaster: of snapshots of processes the hashes were looked at; whose they are only a job's "
              "key tells, when one is restored\n",
              stderr);
    return damaged;
}

/* How many are damaged, or -1. */
static int verify_all(struct command *c, struct js *all, struct error *err)
{
    int damaged = 0;
    for (int i = 0; i < c->found->count; i++) {
        const struct checkpoint_entry *entry = &c->found->entry[i];
        int bad = is_meant(c, entry) ? verify_entry(c, entry, all, err) : 0;
        if (bad < 0)
            return -1;
        damaged += bad;
    }
    int frozen = verify_all_frozen(c, all, err);
    return frozen < 0 ? -1 : damaged + frozen;
}

static int verify(struct command *c, struct error *err)
{
    struct js *all = c->json ? js_array() : NULL;
    if (!all)
        print_header(c);
    print_skipped(c);
    int damaged = verify_all(c, all, err);
    if (all && !c->name) {
        add_skipped(all, c->found->skip, c->found->skipped);
        add_skipped(all, c->frozen->skip, c->frozen->skipped);
    }
    if (all && damaged >= 0)
        print_json(all);
    else
        js_free(all);
    if (damaged < 0)
        return -1;
    damaged += c->name ? 0 : c->found->skipped + c->frozen->skipped;
    if (damaged)
        return err_set(err, ERR_DATA, "%d of the checkpoints in %.200s can't be used", damaged,
                       object_uri(c->store));
    return 0;
}

/* --- export --- */

static const struct checkpoint_entry *chosen(const struct command *c)
{
    for (int i = 0; i < c->found->count; i++)
        if (is_meant(c, &c->found->entry[i]))
            return &c->found->entry[i];
    return NULL;
}

static bool is_frozen(const struct command *c)
{
    for (int i = 0; c->name && i < c->frozen->count; i++)
        if (!strcmp(c->frozen->entry[i].name, c->name))
            return true;
    return false;
}

static int export_to(struct command *c, struct object_store *target, struct error *err)
{
    const struct checkpoint_entry *entry = chosen(c);
    struct error why = {0};
    progress_begin(&c->progress, entry->name, entry->bytes / 3);
    int result = checkpoint_export(c->store, entry->name, target, &why);
    progress_end(&c->progress);
    if (result < 0)
        return err_set(err, why.code == ERR_EXISTS ? ERR_USAGE : why.code, "export: %s", why.text);
    print_header(c);
    print_entry(c, entry, "");
    printf("written to %s\n", object_uri(target));
    return 0;
}

/* A model between the checkpoints would be one of them to whoever looks there. */
static int refuse_target(const struct object_store *target, struct error *err)
{
    return err_set(err, ERR_USAGE,
                   "export: %.200s is where the checkpoints lie, or within; name another place for the model",
                   object_uri(target));
}

static int export_one(struct command *c, struct error *err)
{
    struct object_store *target;
    struct object_options options = {.uri = c->target, .endpoint = c->endpoint, .region = c->region};
    if (is_frozen(c))
        return err_set(err, ERR_USAGE, "export: %s is a snapshot of processes, and no model", c->name);
    if (object_open(&target, &options, err) < 0)
        return -1;
    int result = folder_within(object_uri(target), object_uri(c->store)) ? refuse_target(target, err)
                                                                         : export_to(c, target, err);
    object_free(target);
    return result;
}

/* --- delete --- */

/* A run that goes on there would find its newest checkpoint gone. */
static int own(const struct command *c, struct owner **ret, struct error *err)
{
    uint8_t key[RM_HASH_BYTES];
    char run[OWNER_RUN_MAX];
    struct object_options place = {.uri = c->uri, .endpoint = c->endpoint, .region = c->region};
    crypto_random(key, sizeof key);
    owner_run(key, sizeof key, run);
    return owner_open(ret, &(struct owner_options){.place = &place, .run = run, .title = "checkpoint delete"},
                      err);
}

static int delete_owned(struct command *c, struct error *err)
{
    for (int i = c->found->count - 1; i >= 0;
         i--) { /* oldest first: what a crash leaves is still the newest */
        const struct checkpoint_entry *entry = &c->found->entry[i];
        if (!is_meant(c, entry))
            continue;
        if (checkpoint_delete(c->store, entry->name, err) < 0)
            return -1;
        printf("%s deleted\n", entry->name);
    }
    for (int i = c->frozen->count - 1; i >= 0; i--) {
        const char *name = c->frozen->entry[i].name;
        if (!is_named(c, name))
            continue;
        if (frozen_delete(c->store, name, err) < 0)
            return -1;
        printf("%s deleted\n", name);
    }
    if (!c->all || checkpoint_delete_all(c->store, err) < 0 || frozen_delete_all(c->store, err) < 0)
        return c->all ? -1 : 0;
    return data_listing_remove(c->store, NULL, err);
}

static int delete (struct command *c, struct error *err)
{
    struct owner *owner;
    if (!c->name == !c->all)
        return err_set(err, ERR_USAGE, "delete: say which one with --name NAME, or --all");
    if (!c->yes) {
        list(c, err);
        return err_set(err, ERR_USAGE,
                       "delete: nothing is deleted yet; add --yes to delete these from %.200s", c->uri);
    }
    if (own(c, &owner, err) < 0)
        return -1;
    int result = delete_owned(c, err);
    owner_free(owner);
    return result;
}

/* --- the command line --- */

static int take_option(void *ctx, int key, const char *value, struct error *err)
{
    struct command *c = ctx;
    switch (key) {
    case 'n':
        c->name = value;
        break;
    case 'e':
        c->endpoint = value;
        break;
    case 'r':
        c->region = value;
        break;
    case 'a':
        c->all = true;
        break;
    case 'W':
        c->wide = true;
        break;
    case 'o':
        return options_output(value, &c->json, err);
    default:
        c->yes = true;
    }
    return 0;
}

static int (*verb_of(const char *word))(struct command *c, struct error *err)
{
    static const struct {
        const char *word;
        int (*work)(struct command *c, struct error *err);
    } verbs[] = {{"list", list}, {"verify", verify}, {"export", export_one}, {"delete", delete}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(verbs[i].word, word))
            return verbs[i].work;
    return NULL;
}

/* "step-20" or "20" for step-00000020; NULL: it has no such number, or there is none of it. */
static const struct checkpoint_entry *of_that_step(const struct command *c)
{
    const char *digits = c->name + strcspn(c->name, "0123456789");
    char *end;
    long long step = strtoll(digits, &end, 10);
    for (int i = 0; i < c->found->count && end != digits && !*end; i++)
        if (c->found->entry[i].step == step)
            return &c->found->entry[i];
    return NULL;
}

static int refuse_name(const struct command *c, struct error *err)
{
    const struct checkpoint_entry *meant = of_that_step(c);
    struct near near = near_to(meant ? meant->name : c->name);
    for (int i = 0; i < c->found->count; i++)
        near_try(&near, c->found->entry[i].name, strlen(c->found->entry[i].name));
    for (int i = 0; i < c->frozen->count; i++)
        near_try(&near, c->frozen->entry[i].name, strlen(c->frozen->entry[i].name));
    return err_set(err, ERR_DATA, "no checkpoint %.60s in %.200s%s", c->name, c->uri, near.question);
}

static int look_at_store(struct command *c, struct error *err)
{
    if (checkpoint_list(c->store, c->found, err) < 0 || frozen_list(c->store, c->frozen, err) < 0)
        return -1;
    if (c->name && !chosen(c) && !is_frozen(c))
        return refuse_name(c, err);
    bool exports = !strcmp(c->verb, "export");
    bool nothing = !c->found->count &&
                   (exports ? !is_frozen(c) : !c->found->skipped && !c->frozen->count && !c->frozen->skipped);
    if (nothing && !c->all)
        return err_set(err, ERR_DATA, "no checkpoint in %.200s; name the folder that holds final and step-*",
                       c->uri);
    return 0;
}

static int run_verb(struct command *c, struct error *err)
{
    struct object_options options = {.uri = c->uri,
                                     .endpoint = c->endpoint,
                                     .region = c->region,
                                     .progress = progress_moved,
                                     .ctx = &c->progress};
    if (object_open(&c->store, &options, err) < 0 || look_at_store(c, err) < 0)
        return -1;
    return verb_of(c->verb)(c, err);
}

int checkpoint_command(const struct manual_command *known, int argc, char **argv, struct error *err)
{
    struct command c = {.verb = strchr(known->name, ' ') + 1, .progress.terminal = isatty(STDERR_FILENO)};
    const struct options_reader reader = {.take = take_option, .ctx = &c};
    char **operands = options_read(known, argc, argv, &reader, err);
    if (!operands)
        return -1;
    c.uri = operands[0];
    c.target = known->operands_count > 1 ? operands[1] : NULL;
    c.found = malloc(sizeof *c.found);
    c.frozen = malloc(sizeof *c.frozen);
    int code = c.found && c.frozen ? run_verb(&c, err) : err_set(err, ERR_MACHINE, "no memory for a list");
    object_free(c.store);
    free(c.found);
    free(c.frozen);
    return code;
}
