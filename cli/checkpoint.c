#include "cli/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/screen.h"
#include "cli/options.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/data_listing.h"
#include "common/storage/checkpoint/owner.h"

/* What stands on the last line of a terminal while bytes move. */
struct progress {
    bool terminal;
    const char *what; /* "verify final" */
    int64_t moved, all;
    rm_time begin, drawn;
};

struct command {
    const char *verb, *uri, *target;
    const char *name; /* of one checkpoint; NULL: the newest, or all */
    const char *endpoint, *region;
    bool all, yes;
    struct object_store *store;
    struct checkpoint_list *found;
    struct progress progress;
};

/* --- progress --- */

static void moved(void *ctx, int64_t bytes)
{
    struct progress *p = ctx;
    rm_time now = clock_now();
    p->moved += bytes;
    if (!p->terminal || !p->what || now - p->drawn < 100 * RM_MS)
        return;
    p->drawn = now;
    double seconds = (double)(now - p->begin) / RM_S,
           percent = p->all ? 100.0 * (double)p->moved / (double)p->all : 0;
    fprintf(stderr, "\r\033[K%s  %3.0f %%  %.0f MB/s", p->what, percent < 100 ? percent : 100,
            seconds > 0 ? (double)p->moved / 1e6 / seconds : 0);
}

static void progress_begin(struct progress *p, const char *what, int64_t all)
{
    *p = (struct progress){.terminal = p->terminal, .what = what, .all = all, .begin = clock_now()};
}

static void progress_end(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->what = NULL;
}

/* --- what is there --- */

static void print_entry(const struct checkpoint_entry *e, const char *word)
{
    char sha256[RM_HASH_HEX];
    struct str bytes = str_init(64);
    hex_encode(e->weights_sha256, RM_HASH_BYTES, sha256);
    show_bytes(e->bytes, &bytes);
    printf("%-16s step %-10lld %10s  %s%s%s\n", e->name, (long long)e->step, str_text(&bytes), sha256,
           e->exact ? "" : "  (not exact)", word);
    str_clear(&bytes);
}

static void print_skipped(const struct checkpoint_list *found)
{
    for (int i = 0; i < found->skipped; i++)
        fprintf(stderr, "ringmaster: %s: %s\n", found->skip[i].name, found->skip[i].why);
}

static bool is_meant(const struct command *c, const struct checkpoint_entry *entry)
{
    return !c->name || !strcmp(c->name, entry->name);
}

static int list(struct command *c, struct error *err)
{
    (void)err;
    for (int i = 0; i < c->found->count; i++)
        if (is_meant(c, &c->found->entry[i]))
            print_entry(&c->found->entry[i], "");
    print_skipped(c->found);
    return 0;
}

static int verify(struct command *c, struct error *err)
{
    int damaged = c->name ? 0 : c->found->skipped;
    print_skipped(c->found);
    for (int i = 0; i < c->found->count; i++) {
        const struct checkpoint_entry *entry = &c->found->entry[i];
        struct error why = {0};
        if (!is_meant(c, entry))
            continue;
        progress_begin(&c->progress, entry->name, entry->bytes);
        int result = checkpoint_verify(c->store, entry->name, NULL, &why);
        progress_end(&c->progress);
        if (result == 0) {
            print_entry(entry, "  verified");
            continue;
        }
        if (why.code != ERR_DATA && why.code != ERR_NOT_FOUND)
            return err_set(err, why.code, "%s", why.text);
        damaged++;
        fprintf(stderr, "ringmaster: %s: %s\n", entry->name, why.text);
    }
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

static int export_to(struct command *c, struct object_store *target, struct error *err)
{
    const struct checkpoint_entry *entry = chosen(c);
    struct error why = {0};
    progress_begin(&c->progress, entry->name, entry->bytes / 3);
    int result = checkpoint_export(c->store, entry->name, target, &why);
    progress_end(&c->progress);
    if (result < 0)
        return err_set(err, why.code == ERR_EXISTS ? ERR_USAGE : why.code, "export: %s", why.text);
    print_entry(entry, "");
    printf("%s\n", object_uri(target));
    return 0;
}

static int export_one(struct command *c, struct error *err)
{
    struct object_store *target;
    struct object_options options = {.uri = c->target, .endpoint = c->endpoint, .region = c->region};
    if (object_open(&target, &options, err) < 0)
        return -1;
    int result = export_to(c, target, err);
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
    return owner_open(ret, &(struct owner_options){.place = &place, .run = run}, err);
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
    if (!c->all || checkpoint_delete_all(c->store, err) < 0)
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
                       "delete: this is what would be deleted from %.200s; nothing is, without --yes",
                       c->uri);
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
    (void)err;
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

static int look(struct command *c, struct error *err)
{
    if (checkpoint_list(c->store, c->found, err) < 0)
        return -1;
    if (c->name && !chosen(c))
        return err_set(err, ERR_DATA, "no checkpoint %.60s in %.200s", c->name, c->uri);
    bool nothing = !c->found->count && (!c->found->skipped || !strcmp(c->verb, "export"));
    if (nothing && !c->all)
        return err_set(err, ERR_DATA, "no checkpoint in %.200s; name the folder that holds final and step-*",
                       c->uri);
    return 0;
}

static int work(struct command *c, struct error *err)
{
    struct object_options options = {
        .uri = c->uri, .endpoint = c->endpoint, .region = c->region, .progress = moved, .ctx = &c->progress};
    if (object_open(&c->store, &options, err) < 0 || look(c, err) < 0)
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
    if (!c.found)
        return err_set(err, ERR_MACHINE, "no memory for a list");
    int code = work(&c, err);
    object_free(c.store);
    free(c.found);
    return code;
}
