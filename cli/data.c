/* Carries out `ringmaster data index`: reads a folder of training data once and leaves an index of it. */
#include "cli/data.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/core/screen.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "common/base/str.h"
#include "common/os/cores.h"
#include "common/storage/data/identify.h"
#include "common/storage/data/index_file.h"

enum { BYTES = 256 }; /* kinds of them */

static int take_none(void *ctx, int key, const char *value, struct error *err)
{
    (void)ctx, (void)key, (void)value, (void)err;
    return 0;
}

static void print_made(const struct data_index *index, int64_t bytes, const char *path)
{
    struct str size = str_init(64);
    show_bytes(bytes, &size);
    printf("%lld file%s, %s, %lld chunk%s: written to %s\n", (long long)index->count,
           index->count == 1 ? "" : "s", str_text(&size), (long long)index->chunks,
           index->chunks == 1 ? "" : "s", path);
    str_clear(&size);
}

/* One that lies in the folder, which can't be written to, goes on to be read beside the new one. */
static void warn_of_other(const struct data_index *made, const char *folder, const char *path)
{
    char within[RM_URI_MAX];
    struct data_index other = {0};
    data_index_path(folder, 0, within);
    bool there = strcmp(within, path) != 0 && data_index_load(&other, within, NULL) == 0;
    int64_t differ = there ? data_index_differences(made, &other) : 0;
    data_index_clear(&other);
    if (differ)
        fprintf(
            stderr,
            "ringmaster: %s can't be replaced, and says something else of %lld file%s of the same size and "
            "time: neither is trusted, so each start reads %s until it is deleted\n",
            within, (long long)differ, differ == 1 ? "" : "s", differ == 1 ? "it" : "them");
}

static int index_corpus(const struct corpus *corpus, struct data_index *index, struct error *err)
{
    struct progress progress = {.terminal = isatty(STDERR_FILENO)};
    struct corpus_identity identity;
    char path[RM_URI_MAX];
    const struct identify_options options = {
        .threads = cores_usable(), .anew = true, .ret = index, .moved = progress_moved, .ctx = &progress};
    progress_begin(&progress, "data index", corpus_bytes(corpus));
    int status = corpus_identify(corpus, &options, &identity, err);
    progress_end(&progress);
    if (status < 0 || data_index_save(index, corpus_folder(corpus), path, err) < 0)
        return -1;
    print_made(index, identity.bytes, path);
    warn_of_other(index, corpus_folder(corpus), path);
    return 0;
}

static int index_folder(const char *uri, struct error *err)
{
    struct data_index index = {0};
    struct corpus *corpus;
    const struct corpus_options options = {
        .uri = uri, .format = CORPUS_TEXT, .bytes_alone = true, .context = 1, .vocabulary = BYTES};
    if (!strncmp(uri, "s3://", 5))
        return err_set(err, ERR_USAGE,
                       "data index %.200s: what lies in a store has a listing instead, which a run makes by "
                       "itself; name a folder",
                       uri);
    if (corpus_open(&corpus, &options, err) < 0)
        return -1;
    int status = index_corpus(corpus, &index, err);
    data_index_clear(&index);
    corpus_free(corpus);
    return status;
}

int data_command(const struct manual_command *command, int argc, char **argv, struct error *err)
{
    const struct options_reader none = {.take = take_none};
    char **operands = options_read(command, argc, argv, &none, err);
    return operands ? index_folder(operands[0], err) : -1;
}
