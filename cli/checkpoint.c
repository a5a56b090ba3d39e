#include "cli/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/core/screen.h"
#include "common/store/checkpoint.h"
#include "common/store/place.h"

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

static int list(struct checkpoint_list *found)
{
    for (int i = 0; i < found->count; i++)
        print_entry(&found->entry[i], "");
    for (int i = 0; i < found->skipped; i++)
        fprintf(stderr, "ringmaster: %s: %s\n", found->skip[i].name, found->skip[i].why);
    return 0;
}

static int verify(struct object_store *store, struct checkpoint_list *found, struct error *err)
{
    struct manifest *manifest = malloc(sizeof *manifest);
    int damaged = found->skipped;
    if (!manifest)
        return err_set(err, ERR_MACHINE, "no memory for a manifest");
    for (int i = 0; i < found->skipped; i++)
        fprintf(stderr, "ringmaster: %s: %s\n", found->skip[i].name, found->skip[i].why);
    for (int i = 0; i < found->count; i++) {
        struct error why = {0};
        if (checkpoint_verify(store, found->entry[i].name, manifest, &why) == 0)
            print_entry(&found->entry[i], "  verified");
        else {
            damaged++;
            fprintf(stderr, "ringmaster: %s: %s\n", found->entry[i].name, why.text);
        }
    }
    free(manifest);
    if (damaged)
        return err_set(err, ERR_DATA, "%d of the checkpoints in %.200s can't be used", damaged,
                       object_uri(store));
    return 0;
}

int checkpoint_command(char **arguments, struct error *err)
{
    const char *verb = arguments[0], *uri = verb ? arguments[1] : NULL;
    if (!uri || arguments[2] || (strcmp(verb, "list") != 0 && strcmp(verb, "verify") != 0))
        return err_set(err, ERR_USAGE, "write: ringmaster checkpoint list|verify FOLDER");
    struct checkpoint_list *found = malloc(sizeof *found);
    struct object_store *store;
    if (!found)
        return err_set(err, ERR_MACHINE, "no memory for a list");
    if (place_open_uri(&store, uri, err) < 0) {
        free(found);
        return -1;
    }
    int code = checkpoint_list(store, found, err);
    if (code == 0 && !found->count && !found->skipped)
        code = err_set(err, ERR_DATA, "no checkpoint in %.200s; name the folder that holds final and step-*",
                       uri);
    if (code == 0)
        code = strcmp(verb, "list") ? verify(store, found, err) : list(found);
    object_free(store);
    free(found);
    return code;
}
