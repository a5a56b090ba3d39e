/* Moves one object between a file and a store, and says how fast: what tools/bench store measures and what a
 * person can look into a store with.
 *
 *   object_tool put URI NAME FILE      in parts, as a checkpoint's weights go
 *   object_tool get URI NAME FILE      in ranges, each straight to its place in the file
 *   object_tool list URI PREFIX
 *
 * Prints {"bytes":B,"seconds":S}; errors are one sentence, with the documented exit code. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "common/storage/object/object.h"

enum { PART = 16 << 20 };

struct mapped {
    char *at;
    size_t bytes;
};

static int map_file(struct mapped *ret, const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, ERR_MACHINE, "%s", path);
    ret->bytes = (size_t)st.st_size;
    ret->at = mmap(NULL, ret->bytes ? ret->bytes : 1, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return ret->at == MAP_FAILED ? err_errno(err, ERR_MACHINE, "%s", path) : 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int send_parts(struct object_store *store, const char *name, const char *id, const struct mapped *file,
                      struct object_part *part, int parts, struct error *err)
{
    for (int i = 0; i < parts; i++) {
        int64_t offset = (int64_t)i * PART;
        part[i] = (struct object_part){.number = i + 1, .offset = offset};
        part[i].body.runs = 1;
        part[i].body.run[0].bytes = file->at + offset;
        part[i].body.run[0].count = (size_t)least(PART, (int64_t)file->bytes - offset);
    }
    if (object_upload_parts(store, name, id, part, parts, err) < 0 ||
        object_upload_complete(store, name, id, part, parts, OBJECT_REPLACE, err) < 0)
        return -1;
    return 0;
}

static int put(struct object_store *store, const char *name, const char *path, int64_t *ret_bytes,
               struct error *err)
{
    struct mapped file = {0};
    char id[OBJECT_UPLOAD_MAX];
    if (map_file(&file, path, err) < 0)
        return -1;
    *ret_bytes = (int64_t)file.bytes;
    int parts = (int)((file.bytes + PART - 1) / PART);
    struct object_part *part = calloc((size_t)parts + 1, sizeof *part);
    if (!part)
        return err_set(err, ERR_MACHINE, "no memory for %d parts", parts);
    int result = object_upload_open(store, name, id, err);
    if (result == 0)
        result = send_parts(store, name, id, &file, part, parts, err);
    free(part);
    munmap(file.at, file.bytes);
    return result;
}

static int get(struct object_store *store, const char *name, const char *path, int64_t *ret_bytes,
               struct error *err)
{
    struct object_info info;
    if (object_head(store, name, &info, err) < 0)
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "%s", path);
    *ret_bytes = info.bytes;
    struct object_range range = {.name = name, .bytes = info.bytes, .file = fd, .tag = info.tag};
    int result = object_read(store, &range, 1, err);
    close(fd);
    return result;
}

static int show(void *ctx, const struct object_entry *entry, struct error *err)
{
    (void)ctx, (void)err;
    printf("%12" PRId64 " %s %s\n", entry->info.bytes, entry->info.tag, entry->name);
    return 0;
}

static int move(struct object_store *store, int argc, char **argv, struct error *err)
{
    if (argc == 4 && !strcmp(argv[1], "list"))
        return object_list(store, argv[3], show, NULL, err);
    bool putting = argc == 5 && !strcmp(argv[1], "put"), getting = argc == 5 && !strcmp(argv[1], "get");
    if (!putting && !getting)
        return err_set(err, ERR_USAGE, "object_tool put|get URI NAME FILE, or list URI PREFIX");
    int64_t bytes = 0;
    rm_time begun = clock_now();
    if ((putting ? put : get)(store, argv[3], argv[4], &bytes, err) < 0)
        return -1;
    printf("{\"bytes\":%" PRId64 ",\"seconds\":%.6f}\n", bytes, (double)(clock_now() - begun) / 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    struct error err = {.code = ERR_USAGE, .text = "object_tool put|get URI NAME FILE, or list URI PREFIX"};
    struct object_store *store = NULL;
    struct object_options options = {.uri = argc > 2 ? argv[2] : ""};
    bool ok = argc > 3 && object_open(&store, &options, &err) == 0 && move(store, argc, argv, &err) == 0;
    object_free(store);
    if (!ok)
        fprintf(stderr, "object_tool: %s\n", err.text);
    return ok ? 0 : error_exit_code(err.code);
}
