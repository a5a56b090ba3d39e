/* Puts the files of a folder into a store as one snapshot of processes: in pieces, then the manifest. Settles
 * it: reads it back, and has older ones go. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/fault.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/frozen_files.h"
#include "common/storage/checkpoint/keep_rule.h"
#include "common/storage/checkpoint/owner.h"
#include "common/storage/checkpoint/piece_hash.h"

/* --- what is in the folder --- */

static int add_file(struct frozen_manifest *m, int folder, const char *name, struct error *err)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(err, ERR_MACHINE, "snapshot: can't look at %.60s", name);
    if (!S_ISREG(st.st_mode) || strlen(name) >= FROZEN_FILE_MAX || *name == '.')
        return err_set(err, ERR_MACHINE, "snapshot: %.80s is no file that belongs into one", name);
    if (m->files == FROZEN_FILES_MAX)
        return err_set(err, ERR_MACHINE, "snapshot: it has more than %d files, and one may not",
                       FROZEN_FILES_MAX);
    if (st.st_size > FROZEN_BYTES_MAX - m->bytes)
        return err_set(err, ERR_MACHINE, "snapshot: it has more than %lld bytes, and one may not",
                       (long long)FROZEN_BYTES_MAX);
    struct frozen_file *file = &m->file[m->files++];
    text_copy(file->name, sizeof file->name, name);
    file->bytes = st.st_size;
    m->bytes += st.st_size;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct frozen_file *)a)->name, ((const struct frozen_file *)b)->name);
}

static int list_folder(struct frozen_manifest *m, int folder, struct error *err)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        err_errno(err, ERR_MACHINE, "snapshot: can't read its folder");
        if (copy >= 0)
            close(copy);
        return -1;
    }
    m->files = 0;
    m->bytes = 0;
    for (struct dirent *entry; result == 0 && (entry = readdir(entries));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = add_file(m, folder, entry->d_name, err);
    closedir(entries);
    if (result < 0)
        return -1;
    if (!m->bytes)
        return err_set(err, ERR_MACHINE, "snapshot: its folder holds nothing");
    qsort(m->file, (size_t)m->files, sizeof *m->file, by_name);
    return 0;
}

/* --- the files one behind the other --- */

struct frozen_source {
    const struct frozen_manifest *m;
    int folder, file, fd; /* fd: of that file; -1: it is not open */
    int64_t at;           /* in it */
};

static int open_next(struct frozen_source *s, struct error *err)
{
    while (s->fd < 0) {
        s->fd = openat(s->folder, s->m->file[s->file].name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (s->fd < 0)
            return err_errno(err, ERR_MACHINE, "snapshot: can't open %s", s->m->file[s->file].name);
        s->at = 0;
    }
    return 0;
}

static void leave_file(struct frozen_source *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    s->file++;
}

/* Exactly so many bytes: the files are as long as they were when they were listed. */
static int fill_piece(struct frozen_source *s, char *into, int64_t bytes, struct error *err)
{
    while (bytes > 0) {
        if (open_next(s, err) < 0)
            return -1;
        int64_t left = s->m->file[s->file].bytes - s->at, want = left < bytes ? left : bytes;
        ssize_t n = want ? read(s->fd, into, (size_t)want) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_MACHINE, "snapshot: can't read %s", s->m->file[s->file].name);
        if (n == 0 && want)
            return err_set(err, ERR_MACHINE, "snapshot: %s became shorter while it was read",
                           s->m->file[s->file].name);
        s->at += n;
        into += n;
        bytes -= n;
        if (s->at == s->m->file[s->file].bytes)
            leave_file(s);
    }
    return 0;
}

/* --- sending --- */

struct frozen_sending {
    const struct frozen_publication *p;
    struct frozen_manifest *m;
    struct frozen_source source;
    char object[FILES_NAME_MAX], id[OBJECT_UPLOAD_MAX];
    struct object_part *part; /* (pieces) */
    char *memory;
};

static int hash_piece(struct frozen_sending *s, int piece, const struct object_body *body, struct error *err)
{
    int64_t bytes = frozen_piece_length(s->m, piece), chunk = piece_chunk(MANIFEST_SHA256);
    uint8_t(*sums)[RM_HASH_BYTES] = calloc((size_t)piece_chunks(bytes, chunk), sizeof *sums);
    if (!sums)
        return err_set(err, ERR_MACHINE, "out of memory");
    piece_hash_body(MANIFEST_SHA256, body, bytes, sums, s->m->piece_sha256[piece]);
    free(sums);
    return 0;
}

static int prepare_piece(struct frozen_sending *s, int piece, char *memory, struct error *err)
{
    int64_t bytes = frozen_piece_length(s->m, piece);
    struct object_part *part = &s->part[piece];
    *part = (struct object_part){.number = piece + 1, .offset = piece * s->m->piece_bytes};
    part->body = (struct object_body){.runs = 1, .run = {{memory, (size_t)bytes}}};
    if (fill_piece(&s->source, memory, bytes, err) < 0 || hash_piece(s, piece, &part->body, err) < 0)
        return -1;
    if (piece_chunks(bytes, piece_chunk(MANIFEST_SHA256)) == 1)
        part->body.sha256 = s->m->piece_sha256[piece];
    else
        part->label = s->m->piece_sha256[piece];
    return 0;
}

static int send_pieces(struct frozen_sending *s, struct error *err)
{
    for (int first = 0; first < s->m->pieces;) {
        int count = s->m->pieces - first < FROZEN_AT_ONCE ? s->m->pieces - first : FROZEN_AT_ONCE;
        for (int i = 0; i < count; i++)
            if (prepare_piece(s, first + i, s->memory + i * s->m->piece_bytes, err) < 0)
                return -1;
        if (object_upload_parts(s->p->store, s->object, s->id, s->part + first, count, err) < 0)
            return -1;
        first += count;
    }
    return object_upload_complete(s->p->store, s->object, s->id, s->part, s->m->pieces, OBJECT_CREATE, err);
}

static int send_object(struct frozen_sending *s, struct error *err)
{
    if (object_upload_open(s->p->store, s->object, s->id, err) < 0)
        return -1;
    int result = send_pieces(s, err);
    if (result < 0)
        object_upload_abort(s->p->store, s->object, s->id, NULL);
    if (s->source.fd >= 0)
        close(s->source.fd);
    return result;
}

static int send_files(const struct frozen_publication *p, struct frozen_manifest *m, const char *name,
                      struct error *err)
{
    struct frozen_sending *s = calloc(1, sizeof *s);
    int result = -1;
    if (!s)
        return err_set(err, ERR_MACHINE, "out of memory");
    *s = (struct frozen_sending){.p = p, .m = m, .source = {.m = m, .folder = p->folder, .fd = -1}};
    files_object(s->object, name, m->object);
    s->part = calloc((size_t)m->pieces, sizeof *s->part);
    s->memory = frozen_files_memory(m, err);
    if (!s->part)
        err_set(err, ERR_MACHINE, "out of memory");
    if (s->part && s->memory)
        result = send_object(s, err);
    free(s->part);
    free(s->memory);
    free(s);
    return result;
}

/* --- publishing --- */

static int refuse_taken(const char *name, struct error *err)
{
    return err_set(err, ERR_EXISTS, "snapshot %s is there already: somebody else has published that number",
                   name);
}

static int put_manifest(const struct frozen_publication *p, const struct frozen_manifest *m, const char *name,
                        struct error *err)
{
    char object[FILES_NAME_MAX];
    struct error why = {0};
    struct str text = str_init(FROZEN_TEXT_MAX);
    frozen_manifest_write(m, p->key, &text);
    files_object(object, name, MANIFEST_NAME);
    int result = files_put(p->store, object, &text, OBJECT_CREATE, &why);
    str_clear(&text);
    if (result < 0 && why.code == ERR_EXISTS)
        return refuse_taken(name, err);
    return result < 0 ? err_from(err, &why, "%s", why.text) : 0;
}

/* Nothing is sent for a number that is taken. */
static int check_free(struct object_store *store, const char *name, struct error *err)
{
    char object[FILES_NAME_MAX];
    struct object_info info;
    struct error why = {0};
    files_object(object, name, MANIFEST_NAME);
    if (object_head(store, object, &info, &why) == 0)
        return refuse_taken(name, err);
    return why.code == ERR_NOT_FOUND ? 0 : err_from(err, &why, "%s", why.text);
}

int frozen_publish(const struct frozen_publication *p, struct frozen_manifest *m, struct error *err)
{
    char name[CHECKPOINT_NAME_MAX];
    frozen_name(name, m->number);
    snprintf(m->object, sizeof m->object, "image-%016llx", (unsigned long long)p->chance);
    if (list_folder(m, p->folder, err) < 0)
        return -1;
    m->piece_bytes = frozen_piece_bytes(m->bytes);
    m->pieces = frozen_pieces(m->bytes, m->piece_bytes);
    if (check_free(p->store, name, err) < 0 || send_files(p, m, name, err) < 0)
        return -1;
    FAULT("image-sent");
    if (p->run && owner_check(p->store, p->run, err) < 0)
        return -1;
    if (put_manifest(p, m, name, err) < 0)
        return -1;
    FAULT("frozen-published");
    return 0;
}

/* --- which stay --- */

/* Its job could go on from it: its manifest says so, with the right seal. */
static bool is_ours(const struct frozen_settling *s, int64_t number, struct frozen_manifest *m)
{
    char name[CHECKPOINT_NAME_MAX];
    frozen_name(name, number);
    return frozen_manifest(s->store, name, m, NULL) == 0 && frozen_is_sealed_by_one(m, &s->keys);
}

/* All numbers with the rule's answer, newest first; the caller frees. NULL: nobody knows. */
static struct keep_entry *find_standing(const struct frozen_settling *s, struct frozen_manifest *m,
                                        int *ret_count)
{
    int64_t *numbers;
    if (frozen_files_numbers(s->store, &numbers, ret_count, NULL) < 0)
        return NULL;
    struct keep_entry *entry = calloc((size_t)*ret_count + 1, sizeof *entry);
    for (int i = 0; entry && i < *ret_count; i++)
        entry[i] = (struct keep_entry){.step = numbers[i],
                                       .readable = numbers[i] <= s->number && is_ours(s, numbers[i], m)};
    if (entry)
        keep_rule(entry, *ret_count, s->number, s->keep);
    free(numbers);
    return entry;
}

/* The oldest first: what a crash leaves is the newest of them. */
static void remove_beyond(struct object_store *store, const struct keep_entry *entry, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        char name[CHECKPOINT_NAME_MAX];
        if (!entry[i].goes)
            continue;
        frozen_name(name, entry[i].step);
        FAULT("before-delete");
        frozen_files_remove(store, name, NULL);
    }
}

static int settle_entries(const struct frozen_settling *s, const struct keep_entry *entry, int count,
                          struct error *err)
{
    char name[CHECKPOINT_NAME_MAX];
    int beyond = 0;
    for (int i = 0; i < count; i++)
        beyond += entry[i].goes;
    if (!beyond)
        return 0;
    frozen_name(name, s->number);
    object_pass_caches(s->store, true);
    int result = frozen_verify(s->store, name, err);
    object_pass_caches(s->store, false);
    if (result < 0)
        return err_wrap(err, "%s, read back before an older one goes", object_uri(s->store));
    FAULT("frozen-read-back");
    if (s->run && owner_check(s->store, s->run, err) < 0)
        return -1;
    remove_beyond(s->store, entry, count);
    return 1;
}

int frozen_settle(const struct frozen_settling *s, struct error *err)
{
    int count;
    struct frozen_manifest *m = malloc(sizeof *m);
    struct keep_entry *entry = m ? find_standing(s, m, &count) : NULL;
    free(m);
    if (!entry)
        return 0; /* the next one is settled in its place */
    int result = settle_entries(s, entry, count, err);
    free(entry);
    if (result >= 0)
        frozen_files_collect(s->store, s->number);
    return result;
}
