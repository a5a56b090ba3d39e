/* Publishes and fetches snapshots of processes, as agents are to do, out of and into folders:
 *
 *   frozen_tool publish URI FOLDER NUMBER KEY KEEP    all files of the folder; KEY is text
 *   frozen_tool fetch URI FOLDER KEY                  the newest that is whole; prints its number, 0 for none
 *   frozen_tool hold URI KEY                          owns the place, says so, and lives until its input ends
 *
 * Ends with the documented exit code and a sentence. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/frozen.h"
#include "common/storage/checkpoint/owner.h"

static int64_t number(const char *text)
{
    return strtoll(text, NULL, 10);
}

static int hold(const char *uri, const char *key, struct error *err)
{
    struct owner *owner;
    struct object_options place = {.uri = uri};
    char run[OWNER_RUN_MAX];
    owner_run(key, strlen(key), run);
    if (owner_open(&owner, &(struct owner_options){.place = &place, .run = run, .title = "another"}, err) < 0)
        return -1;
    puts("held");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    owner_free(owner);
    return 0;
}

static int publish(struct object_store *store, int folder, char **argv, struct error *err)
{
    uint8_t key[RM_HASH_BYTES];
    char run[OWNER_RUN_MAX];
    struct frozen_manifest *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "no memory");
    frozen_key(argv[5], strlen(argv[5]), key);
    owner_run(argv[5], strlen(argv[5]), run);
    m->number = number(argv[4]);
    text_copy(m->job, sizeof m->job, "prog");
    m->ground = (struct frozen_ground){.image = "prog@sha256:ab", .machine = "x86_64", .criu = 40101};
    struct frozen_publication publication = {
        .store = store, .run = run, .key = key, .chance = crypto_seed(), .folder = folder};
    int result = frozen_publish(&publication, m, err);
    if (result == 0)
        result = frozen_settle(&(struct frozen_settling){.store = store,
                                                         .run = run,
                                                         .keys = {.own = key},
                                                         .number = m->number,
                                                         .keep = (int)number(argv[6])},
                               err);
    free(m);
    return result < 0 ? -1 : 0;
}

static void clear_folder(int folder, const struct frozen_manifest *m)
{
    for (int i = 0; i < m->files; i++)
        unlinkat(folder, m->file[i].name, 0);
}

/* 1: m is fetched; 0: there is none; -1. What is damaged makes way for the one before. */
static int fetch_some(struct object_store *store, const struct frozen_keys *keys, int folder,
                      struct frozen_manifest *m, struct error *err)
{
    struct frozen_choice choice;
    for (int64_t below = 0;; below = m->number) {
        struct error why = {0};
        if (frozen_choose(store, keys, below, m, &choice, err) < 0)
            return -1;
        for (int i = 0; i < choice.skipped; i++)
            fprintf(stderr, "skipped %s: %s\n", choice.skip[i].name, choice.skip[i].why);
        if (!choice.found)
            return 0;
        if (frozen_fetch(store, m, folder, NULL, &why) == 0)
            return 1;
        if (why.code != ERR_DATA)
            return err_from(err, &why, "%s", why.text);
        fprintf(stderr, "skipped: %s\n", why.text);
        clear_folder(folder, m);
    }
}

static int fetch(struct object_store *store, int folder, const char *key_text, struct error *err)
{
    uint8_t key[RM_HASH_BYTES];
    struct frozen_manifest *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "no memory");
    frozen_key(key_text, strlen(key_text), key);
    int found = fetch_some(store, &(struct frozen_keys){.own = key}, folder, m, err);
    if (found >= 0)
        printf("%" PRId64 "\n", found ? m->number : 0);
    free(m);
    return found < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct error err = {.code = ERR_USAGE,
                        .text = "frozen_tool publish URI FOLDER NUMBER KEY KEEP, fetch URI FOLDER KEY, or "
                                "hold URI KEY"};
    struct object_store *store = NULL;
    bool publishes = argc == 7 && !strcmp(argv[1], "publish"),
         fetches = argc == 5 && !strcmp(argv[1], "fetch");
    int result = -1;
    if (argc == 4 && !strcmp(argv[1], "hold"))
        result = hold(argv[2], argv[3], &err);
    if (publishes || fetches) {
        struct object_options options = {.uri = argv[2], .connections = 4};
        int folder = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        result =
            folder < 0 ? err_errno(&err, ERR_MACHINE, "%s", argv[3]) : object_open(&store, &options, &err);
        if (result == 0)
            result = publishes ? publish(store, folder, argv, &err) : fetch(store, folder, argv[4], &err);
    }
    object_free(store);
    if (result < 0)
        fprintf(stderr, "frozen_tool: %s\n", err.text);
    return result < 0 ? error_exit_code(err.code) : 0;
}
