#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/store/checkpoint.h"
#include "common/store/files.h"
#include "common/store/folder.h"
#include "common/store/model_folder.h"
#include "common/store/verify.h"

struct publisher {
    const struct checkpoint_publication *publication;
    char name[CHECKPOINT_NAME_MAX];
    char path[RM_URI_MAX];
    int folder_fd;
    struct manifest manifest; /* being completed; in the end what stands in the folder */
};

/* 1: published already with this step and lineage (then manifest is what is there); 0: not; -1: another. */
static int published(struct publisher *p, struct error *err)
{
    struct error why = {0};
    const struct manifest *mine = p->publication->manifest;
    struct manifest *found = malloc(sizeof *found);
    if (!found)
        return err_set(err, ERR_MACHINE, "out of memory");
    int result = files_manifest(p->folder_fd, p->name, found, &why);
    bool same =
        result == 0 && found->step == mine->step && !memcmp(found->lineage, mine->lineage, RM_HASH_BYTES);
    if (same)
        p->manifest = *found;
    free(found);
    if (same || why.code == ERR_NOT_FOUND)
        return same;
    if (result == 0)
        return err_set(err, ERR_EXISTS,
                       "a checkpoint of another history is there already; use --overwrite or another folder");
    if (why.code != ERR_DATA)
        return err_set(err, why.code, "%s", why.text);
    return renameat(p->folder_fd, MANIFEST_NAME, p->folder_fd, DAMAGED_NAME) < 0 && errno != ENOENT
               ? err_errno(err, ERR_MACHINE, "%s can't be renamed", MANIFEST_NAME)
               : 0;
}

static int write_config(struct publisher *p, struct error *err)
{
    struct manifest *m = &p->manifest;
    struct str text = str_init(1 << 16);
    if (m->pieces >= MANIFEST_PIECES_MAX)
        return err_set(err, ERR_DATA, "%d pieces are too many", m->pieces);
    struct manifest_piece *piece = &m->piece[m->pieces++];
    model_config_write(&m->shape, &text);
    *piece = (struct manifest_piece){.file = "config.json", .bytes = (int64_t)text.length};
    sha256_once(text.data, text.length, piece->sha256);
    int result = folder_write_text(p->folder_fd, piece->file, &text, true, err);
    FAULT("config-written");
    str_clear(&text);
    return result;
}

/* So that reading back reads the disk, not what the writers left in memory. */
static void forget_cached(int folder_fd, const char *name)
{
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

/* Gives one file its name, after its content has been found right. It may have its name already: an earlier
 * publisher got this far. A part file that is not right is somebody's unfinished second writing. */
static int settle(struct publisher *p, const struct model_layout *layout, int first, struct error *err)
{
    struct manifest *m = &p->manifest;
    const char *name = m->piece[first].file;
    char part[PART_NAME_MAX];
    struct verify_file file = {
        .folder_fd = p->folder_fd, .name = part, .manifest = m, .first = first, .layout = layout};
    files_part_name(part, name, m->lineage);
    forget_cached(p->folder_fd, part);
    struct error why = {0};
    int result = verify_file(&file, m->weights_sha256, &why);
    if (result == 0 && renameat(p->folder_fd, part, p->folder_fd, name) == 0)
        return 0;
    if (!folder_has(p->folder_fd, name))
        return err_set(err, why.code ? why.code : ERR_MACHINE, "%s", why.code ? why.text : "renaming failed");
    file.name = name;
    forget_cached(p->folder_fd, name);
    return verify_file(&file, m->weights_sha256, err);
}

static int settle_all(struct publisher *p, struct error *err)
{
    const struct manifest *m = &p->manifest;
    for (int i = 0; i < m->pieces; i = verify_next_file(m, i)) {
        if (settle(p, p->publication->layout, i, err) < 0)
            return -1;
        FAULT("piece-settled");
    }
    return folder_sync(p->folder_fd, err);
}

/* The manifest's text is read as any reader will before it gets its name. */
static int write_manifest(struct publisher *p, struct error *err)
{
    struct str text = str_init(MANIFEST_TEXT_MAX);
    struct manifest *again = malloc(sizeof *again);
    struct error why = {0};
    manifest_write(&p->manifest, &text);
    int result = again ? manifest_read(again, str_text(&text), text.length, MANIFEST_NAME, err)
                       : err_set(err, ERR_MACHINE, "out of memory");
    free(again);
    FAULT("before-manifest");
    if (result == 0 && folder_write_text(p->folder_fd, MANIFEST_NAME, &text, false, &why) < 0 &&
        why.code != ERR_EXISTS)
        result = err_set(err, why.code, "%s", why.text);
    str_clear(&text);
    return result;
}

/* The folder's own name must be on the disk too. */
static int sync_above(const struct publisher *p, struct error *err)
{
    int fd = openat(p->folder_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "the folder above can't be opened");
    int result = folder_sync(fd, err);
    close(fd);
    return result;
}

static int complete(struct publisher *p, struct error *err)
{
    if (write_config(p, err) < 0 || manifest_check_pieces(&p->manifest, err) < 0 || settle_all(p, err) < 0 ||
        write_manifest(p, err) < 0 || folder_sync(p->folder_fd, err) < 0 || sync_above(p, err) < 0)
        return -1;
    FAULT("after-manifest");
    return 0;
}

/* Another publisher may have been quicker, and have tidied away what this one was reading. So whatever went
 * wrong here, the manifest that stands in the folder in the end decides. */
static int publish_held(struct publisher *p, struct error *err)
{
    struct error why = {0};
    int already = published(p, err);
    if (already)
        return already < 0 ? -1 : 0;
    int result = complete(p, &why);
    int stands = published(p, err);
    if (stands > 0)
        return 0;
    if (result < 0)
        return err_set(err, why.code, "%s", why.text);
    return stands < 0 ? -1 : err_set(err, ERR_MACHINE, "the manifest has disappeared");
}

static bool readable(const char *uri, const char *name)
{
    struct manifest *m = malloc(sizeof *m);
    bool is = m && checkpoint_manifest(uri, name, m, NULL) == 0;
    free(m);
    return is;
}

/* Only checkpoints with a readable manifest count and go; the newest `keep` stay, and so does this one. */
static void keep_newest(const struct publisher *p)
{
    const struct checkpoint_publication *publication = p->publication;
    int keep = publication->keep > 1 ? publication->keep : 1;
    int64_t *steps;
    int count, kept = 0;
    if (files_steps(publication->uri, &steps, &count, NULL) < 0)
        return;
    for (int i = 0; i < count; i++) {
        char name[CHECKPOINT_NAME_MAX];
        checkpoint_name(name, steps[i], false);
        if (!readable(publication->uri, name) || kept++ < keep || !strcmp(name, p->name))
            continue;
        FAULT("before-delete");
        files_remove_folder(publication->uri, name, false, NULL);
    }
    free(steps);
}

/* The newest checkpoint before this one, 0 where there is none. What is unfinished and older than that has
 * been overtaken twice; younger pieces may be all there and wait for their publisher. */
static int64_t overtaken_before(const struct publisher *p)
{
    int64_t *steps, step = 0;
    int count;
    if (files_steps(p->publication->uri, &steps, &count, NULL) < 0)
        return 0;
    for (int i = 0; i < count && !step; i++) {
        char name[CHECKPOINT_NAME_MAX];
        checkpoint_name(name, steps[i], false);
        if (steps[i] < p->manifest.step && readable(p->publication->uri, name))
            step = steps[i];
    }
    free(steps);
    return step;
}

static int publish(struct publisher *p, struct error *err)
{
    const struct checkpoint_publication *publication = p->publication;
    p->manifest = *publication->manifest;
    if (!p->manifest.fingerprint[0])
        return err_set(err, ERR_PROTOCOL, "a manifest without a fingerprint is not written");
    checkpoint_name(p->name, p->manifest.step, publication->final);
    if (files_path(p->path, publication->uri, p->name, err) < 0 ||
        folder_hold(p->path, FOLDER_SHARED, true, &p->folder_fd, err) < 0)
        return -1;
    int result = publish_held(p, err);
    if (result == 0)
        files_remove(p->folder_fd, &p->manifest, NULL);
    close(p->folder_fd);
    return result < 0 ? err_wrap(err, "checkpoint %s", p->path) : 0;
}

int checkpoint_publish(const struct checkpoint_publication *publication, struct manifest *ret,
                       struct error *err)
{
    struct publisher *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    p->publication = publication;
    int result = publish(p, err);
    if (result == 0) {
        int64_t before = overtaken_before(p);
        keep_newest(p);
        files_collect(publication->uri, before);
        *ret = p->manifest;
    }
    free(p);
    return result;
}
