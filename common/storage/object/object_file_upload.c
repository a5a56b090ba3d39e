/* Objects made of parts, in a folder: one file that all writers fill, each at its own places, and a small
 * file beside it for each part that is on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err_system.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/storage/object/object_file.h"

enum {
    ID_CHARS = 16,
    HIDDEN_MAX = OBJECT_NAME_MAX + 64,
    MARK_MAX = 256, /* bytes of what a part's small file says */
    TAG_HASH = 16,  /* bytes of the hash that make a part's tag */
};

/* An id is what somebody else wrote into a file or sent: it becomes part of a path only if it is one of ours.
 */
static int check_id(const char *name, const char *id, struct error *err)
{
    if (strlen(id) == ID_CHARS && strspn(id, "0123456789abcdef") == ID_CHARS)
        return 0;
    return err_set(err, ERR_NOT_FOUND, "%s: there is no upload %.40s", name, id);
}

static void upload_name(char out[HIDDEN_MAX], const char *id, const char *last)
{
    snprintf(out, HIDDEN_MAX, ".upload-%s.%s", id, last);
}

static void part_name(char out[HIDDEN_MAX], int number, const char *id, const char *last)
{
    snprintf(out, HIDDEN_MAX, ".part-%05d-%s.%s", number, id, last);
}

/* --- opening --- */

static int open_in(void *ctx, const struct object_place *place, struct error *err)
{
    char hidden[HIDDEN_MAX];
    upload_name(hidden, ctx, place->last);
    int fd = openat(place->folder_fd, hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_system(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_MACHINE, "the file can't be made");
    close(fd);
    return object_file_sync_folder(place->folder_fd, err);
}

int object_file_upload_open(struct object_store *base, const char *name, char ret_id[OBJECT_UPLOAD_MAX],
                            struct error *err)
{
    char id[ID_CHARS + 1];
    object_file_chance(id);
    if (object_file_within(object_file_of(base), name, open_in, id, err) < 0)
        return -1;
    memcpy(ret_id, id, sizeof id);
    return 0;
}

/* Opens what an upload consists of. */
static int open_upload(struct object_file *store, const char *name, const char *id,
                       struct object_place *place, int *ret_fd, struct error *err)
{
    char hidden[HIDDEN_MAX];
    if (check_id(name, id, err) < 0 || object_file_place(store, name, false, place, err) < 0)
        return -1;
    upload_name(hidden, id, place->last);
    *ret_fd = openat(place->folder_fd, hidden, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (*ret_fd >= 0)
        return 0;
    err_system(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_MACHINE, "%s/%s: the upload %s", store->root, name,
               id);
    close(place->folder_fd);
    return -1;
}

/* --- parts --- */

struct mark {
    int number;
    int64_t offset, bytes;
    char tag[OBJECT_TAG_MAX];
};

/* A file system on a network may tell here first that what was written did not arrive. */
static int close_written(int fd)
{
    int result = close(fd);
    return result < 0 || FAULT_FAILS("mark-closed", EDQUOT) ? -1 : 0;
}

/* One line; without its end it was cut off by a crash, and the part counts as not there. */
static int write_mark(int folder_fd, const char *id, const char *last, const struct mark *mark,
                      struct error *err)
{
    char hidden[HIDDEN_MAX], text[MARK_MAX];
    part_name(hidden, mark->number, id, last);
    int length = snprintf(text, sizeof text, "%lld %lld %s\n", (long long)mark->offset,
                          (long long)mark->bytes, mark->tag);
    int fd = openat(folder_fd, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return err_system(err, ERR_MACHINE, "part %d can't be noted", mark->number);
    bool whole = write(fd, text, (size_t)length) == length;
    int number = errno;
    if (close_written(fd) == 0 && whole)
        return 0;
    errno = whole ? errno : number;
    return err_system(err, ERR_MACHINE, "part %d can't be noted", mark->number);
}

static bool parse_mark(const char *text, struct mark *mark)
{
    long long offset, bytes;
    int end = 0;
    if (sscanf(text, "%lld %lld %127[0-9a-f]%n", &offset, &bytes, mark->tag, &end) != 3 || text[end] != '\n')
        return false;
    mark->offset = offset;
    mark->bytes = bytes;
    return offset >= 0 && bytes >= 0;
}

/* 1; 0: there is none, or none that is whole; -1: nobody knows. */
static int read_mark(int folder_fd, const char *hidden, struct mark *mark, struct error *err)
{
    char text[MARK_MAX] = "";
    int fd = openat(folder_fd, hidden, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && (errno == ENOENT || errno == ELOOP))
        return 0;
    if (fd < 0)
        return err_system(err, ERR_MACHINE, "%s", hidden);
    ssize_t length = read(fd, text, sizeof text - 1);
    int status = length < 0 ? err_system(err, ERR_MACHINE, "%s", hidden) : 0;
    close(fd);
    return status == 0 && length > 0 && text[length - 1] == '\n' ? parse_mark(text, mark) : status;
}

static int64_t body_bytes(const struct object_body *body)
{
    int64_t bytes = 0;
    for (int i = 0; i < body->runs; i++)
        bytes += (int64_t)body->run[i].count;
    return bytes;
}

static int write_parts(struct object_file *store, int fd, struct object_part *part, int count,
                       struct error *err)
{
    for (int i = 0; i < count; i++) {
        uint8_t hash[RM_HASH_BYTES];
        const uint8_t *known = part[i].body.sha256 ? part[i].body.sha256 : part[i].label;
        if (object_file_write(store, fd, part[i].offset, &part[i].body, known ? NULL : hash, err) < 0)
            return -1;
        hex_encode(known ? known : hash, TAG_HASH, part[i].tag);
    }
    return object_file_sync(fd, err);
}

int object_file_upload_parts(struct object_store *base, const char *name, const char *id,
                             struct object_part *part, int count, struct error *err)
{
    struct object_file *store = object_file_of(base);
    struct object_place place;
    int fd;
    if (open_upload(store, name, id, &place, &fd, err) < 0)
        return -1;
    int result = write_parts(store, fd, part, count, err);
    FAULT("part-written");
    for (int i = 0; i < count && result == 0; i++) {
        struct mark mark = {
            .number = part[i].number, .offset = part[i].offset, .bytes = body_bytes(&part[i].body)};
        text_copy(mark.tag, sizeof mark.tag, part[i].tag);
        result = write_mark(place.folder_fd, id, place.last, &mark, err);
    }
    close(fd);
    close(place.folder_fd);
    return result < 0 ? err_wrap(err, "%s/%s", store->root, name) : 0;
}

struct visiting {
    const char *id, *name;
    int (*visit)(void *ctx, const struct object_part_info *part, struct error *err);
    void *ctx;
};

/* Does a hidden file belong to the upload? Its number, 0 for none. */
static int number_of(const char *hidden, const char *id, const char *last)
{
    char expected[HIDDEN_MAX];
    int number = !strncmp(hidden, ".part-", 6) ? (int)strtol(hidden + 6, NULL, 10) : 0;
    if (number < 1 || number > OBJECT_PARTS_MAX)
        return 0;
    part_name(expected, number, id, last);
    return strcmp(expected, hidden) ? 0 : number;
}

static const char *last_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Only files of this very folder: a walk goes deeper. */
static bool is_beside(const char *hidden, const char *name)
{
    size_t above = (size_t)(last_of(name) - name);
    return !strncmp(hidden, name, above) && !strchr(hidden + above, '/');
}

static int visit_mark(void *ctx, const struct object_file_found *found, struct error *err)
{
    const struct visiting *v = ctx;
    struct mark mark = {0};
    int number = is_beside(found->name, v->name) ? number_of(found->last, v->id, last_of(v->name)) : 0;
    int there = number ? read_mark(found->folder_fd, found->last, &mark, err) : 0;
    if (there <= 0)
        return there;
    struct object_part_info info = {.number = number, .bytes = mark.bytes};
    text_copy(info.tag, sizeof info.tag, mark.tag);
    return v->visit(v->ctx, &info, err);
}

/* Of the folder that the object is in, with "/" at its end. */
static void folder_prefix(char out[OBJECT_NAME_MAX], const char *name)
{
    text_copy(out, OBJECT_NAME_MAX, name);
    out[last_of(name) - name] = 0;
}

int object_file_upload_list(struct object_store *base, const char *name, const char *id,
                            int (*visit)(void *ctx, const struct object_part_info *part, struct error *err),
                            void *ctx, struct error *err)
{
    struct object_place place;
    char folder[OBJECT_NAME_MAX];
    int fd;
    if (open_upload(object_file_of(base), name, id, &place, &fd, err) < 0)
        return -1;
    close(fd);
    close(place.folder_fd);
    struct visiting v = {id, name, visit, ctx};
    folder_prefix(folder, name);
    return object_file_walk(object_file_of(base), folder, true, visit_mark, &v, err);
}

/* --- the end --- */

static int remove_one(void *ctx, const struct object_file_found *found, struct error *err)
{
    const struct visiting *v = ctx;
    char hidden[HIDDEN_MAX];
    upload_name(hidden, v->id, last_of(v->name));
    if (!is_beside(found->name, v->name) ||
        (strcmp(hidden, found->last) != 0 && !number_of(found->last, v->id, last_of(v->name))))
        return 0;
    if (unlinkat(found->folder_fd, found->last, 0) < 0 && errno != ENOENT)
        return err_system(err, ERR_MACHINE, "%s can't be removed", found->name);
    return 0;
}

static int remove_upload(struct object_file *store, const char *name, const char *id, struct error *err)
{
    char folder[OBJECT_NAME_MAX];
    struct visiting v = {.id = id, .name = name};
    folder_prefix(folder, name);
    return object_file_walk(store, folder, true, remove_one, &v, err);
}

/* The parts, as they were noted, must follow each other without gaps. Returns all bytes, -1 with *err. */
static int64_t check_parts(const struct object_place *place, const char *id, const struct object_part *part,
                           int count, struct error *err)
{
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        char hidden[HIDDEN_MAX];
        struct mark mark = {0};
        part_name(hidden, part[i].number, id, place->last);
        int there = read_mark(place->folder_fd, hidden, &mark, err);
        if (there < 0)
            return -1;
        if (!there || strcmp(mark.tag, part[i].tag) != 0)
            return err_set(err, ERR_DATA, "part %d is not there, or has other content", part[i].number);
        if (mark.offset != at)
            return err_set(err, ERR_DATA, "part %d begins at byte %lld instead of %lld", part[i].number,
                           (long long)mark.offset, (long long)at);
        at += mark.bytes;
    }
    return at;
}

static bool is_same_file(int folder_fd, int fd, const char *name)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && fstatat(folder_fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int finish_upload(const struct object_place *place, int fd, const char *id, int64_t bytes,
                         enum object_mode mode, struct error *err)
{
    char hidden[HIDDEN_MAX];
    struct error why = {0};
    upload_name(hidden, id, place->last);
    if (ftruncate(fd, bytes) < 0)
        return err_system(err, ERR_MACHINE, "the file can't be sized");
    if (object_file_sync(fd, err) < 0)
        return -1;
    FAULT("upload-whole");
    int result = object_file_give_name(place->folder_fd, hidden, place->last, mode, &why);
    bool done = result < 0 && is_same_file(place->folder_fd, fd, place->last); /* our own earlier try */
    if (result < 0 && !done)
        return err_from(err, &why, "%s", why.text);
    return object_file_sync_folder(place->folder_fd, err);
}

int object_file_upload_complete(struct object_store *base, const char *name, const char *id,
                                const struct object_part *part, int count, enum object_mode mode,
                                struct error *err)
{
    struct object_file *store = object_file_of(base);
    struct object_place place;
    int fd;
    if (open_upload(store, name, id, &place, &fd, err) < 0)
        return -1;
    int64_t bytes = check_parts(&place, id, part, count, err);
    int result = bytes < 0 ? -1 : finish_upload(&place, fd, id, bytes, mode, err);
    close(fd);
    close(place.folder_fd);
    if (result < 0)
        return err_wrap(err, "%s/%s", store->root, name);
    FAULT("upload-named");
    remove_upload(store, name, id, NULL); /* what stays is collected with the unfinished */
    return 0;
}

int object_file_upload_abort(struct object_store *base, const char *name, const char *id, struct error *err)
{
    struct object_file *store = object_file_of(base);
    if (check_id(name, id, NULL) < 0)
        return 0;
    if (remove_upload(store, name, id, err) < 0)
        return -1;
    object_file_tidy(store, name);
    return 0;
}

struct collecting {
    struct object_file *store;
    const char *prefix;
    bool (*over)(void *ctx, const char *name);
    void *ctx;
    int aborted;
};

/* What a hidden file will be, or is a part of: "step-00000200/model.safetensors". */
static void future_name(const struct object_file_found *found, char out[OBJECT_NAME_MAX])
{
    const char *dot = strchr(found->last + 1, '.');
    size_t above = (size_t)(last_of(found->name) - found->name);
    memcpy(out, found->name, above);
    text_copy(out + above, OBJECT_NAME_MAX - above, dot ? dot + 1 : "");
}

static int collect_one(void *ctx, const struct object_file_found *found, struct error *err)
{
    struct collecting *c = ctx;
    char name[OBJECT_NAME_MAX];
    (void)err;
    future_name(found, name);
    if (strncmp(name, c->prefix, strlen(c->prefix)) != 0 || (c->over && !c->over(c->ctx, name)))
        return 0;
    if (unlinkat(found->folder_fd, found->last, 0) < 0)
        return 0; /* somebody else collects, too */
    c->aborted += !strncmp(found->last, ".upload-", 8);
    object_file_tidy(c->store, found->name);
    return 0;
}

int object_file_uploads_collect(struct object_store *base, const char *prefix,
                                bool (*over)(void *ctx, const char *name), void *ctx, int *ret_aborted,
                                struct error *err)
{
    struct collecting c = {object_file_of(base), prefix, over, ctx, 0};
    if (object_file_walk(c.store, prefix, true, collect_one, &c, err) < 0)
        return -1;
    *ret_aborted = c.aborted;
    return 0;
}
