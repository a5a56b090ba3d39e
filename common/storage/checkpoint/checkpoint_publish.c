/* The last part of a save, by one publisher: all pieces are there, so it writes the configuration, joins the
 * model's file, reads back what nobody vouches for, and writes the manifest, which makes it a checkpoint.
 *
 * Somebody vouches for a piece where its writer left sums that come to its hash, and said that all of it has
 * arrived (sums.h). Of a file of such pieces alone only the size is looked at. final/ is read back whole,
 * from where it lies: it is what the job was for, nothing trains any more, its weightsSha256 has to be worked
 * out, and older ones go as soon as it is published. */
#include <stdlib.h>
#include <string.h>

#include "common/model/image.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/folder_texts.h"
#include "common/storage/checkpoint/owner.h"
#include "common/storage/checkpoint/piece_hash.h"
#include "common/storage/checkpoint/standing.h"
#include "common/storage/checkpoint/sums.h"
#include "common/storage/checkpoint/upload.h"
#include "common/storage/checkpoint/verify.h"

static const char model_name[] = "model.safetensors";

struct publisher {
    const struct checkpoint_publication *publication;
    struct object_store *store;
    char name[CHECKPOINT_NAME_MAX];
    struct folder_texts texts;
    struct manifest manifest;      /* being completed; in the end what stands in the store */
    bool joined;                   /* model.safetensors came into being here, from the parts that are told */
    bool made[MANIFEST_TEXTS];     /* the small files that did */
    uint8_t (*sum)[RM_HASH_BYTES]; /* of all chunks of all pieces */
    bool vouched[MANIFEST_PIECES_WRITTEN]; /* for these pieces, whose sums are there */
    bool others;                           /* the place is another run's now; the error says whose */
};

/* A run whose place was taken over while it stood still knows nothing of that: before it creates, replaces or
 * deletes what has no history in its name, it looks. */
static int still_ours(struct publisher *p, struct error *err)
{
    p->others = p->publication->run && owner_check(p->store, p->publication->run, err) < 0;
    return p->others ? -1 : 0;
}

/* The pieces of the small files at the end of the list, where it has room for them; each is one chunk. */
static int add_texts(struct manifest *m, const struct folder_texts *texts, struct error *err)
{
    _Static_assert((int)MANIFEST_TOKENIZER_MAX < 2 * (int)PIECE_CHUNK, "a text is one chunk");
    if (m->pieces + texts->count > MANIFEST_PIECES_MAX)
        return err_set(err, ERR_DATA, "%d pieces are too many", m->pieces);
    for (int i = 0; i < texts->count; i++) {
        const struct folder_text *text = &texts->text[i];
        struct manifest_piece *piece = &m->piece[m->pieces++];
        *piece = (struct manifest_piece){.bytes = (int64_t)text->text.length};
        text_copy(piece->file, sizeof piece->file, text->name);
        struct object_body body = {.runs = 1, .run = {{text->text.data, text->text.length}}};
        uint8_t sum[1][RM_HASH_BYTES];
        piece_hash_body(m->hash, &body, piece->bytes, sum, piece->sha256);
    }
    return 0;
}

/* A manifest is never replaced, so one that stands in the way of a sound one of its step gets another name.
 */
static int put_aside(const struct publisher *p, struct error *err)
{
    char manifest[FILES_NAME_MAX], damaged[FILES_NAME_MAX];
    const char *manifests = manifest;
    struct str text = str_init(2 * MANIFEST_TEXT_MAX);
    struct error why = {0};
    files_object(manifest, p->name, MANIFEST_NAME);
    files_object(damaged, p->name, DAMAGED_NAME);
    int result = object_get(p->store, manifest, 2 * MANIFEST_TEXT_MAX, &text, &why);
    bool gone = result < 0 && why.code == ERR_NOT_FOUND; /* another publisher found the damage, too */
    bool odd = result < 0 && why.code == ERR_DATA;       /* what is in it is of no use to anybody */
    if (result == 0 || odd)
        result = files_put(p->store, damaged, &text, OBJECT_REPLACE, &why);
    FAULT("damage-marked");
    if (result == 0)
        result = object_delete(p->store, &manifests, 1, &why);
    str_clear(&text);
    if (result == 0 || gone)
        return 0;
    return err_from(err, &why, "its damaged manifest can't be renamed: %s", why.text);
}

/* What is to be published lacks nothing but the small files: only then may what is damaged make way for it.
 */
static bool has_all_pieces(const struct publisher *p)
{
    struct manifest *m = malloc(sizeof *m);
    if (!m)
        return false;
    *m = *p->publication->manifest;
    bool all = add_texts(m, &p->texts, NULL) == 0 && manifest_check_pieces(m, NULL) == 0;
    free(m);
    return all;
}

/* What stands there is proven to be damaged, as this machine reads it (why). One that reads wrongly each time
 * must cost no sound checkpoint: alone it moves nothing. 0: it has made way. */
static int make_way(struct publisher *p, const struct error *why, struct error *err)
{
    if (!has_all_pieces(p))
        return err_from(err, why,
                        "what is there is damaged, and not all of it is here to be saved anew: %.300s",
                        why->text);
    if (!p->publication->replaces)
        return err_from(
            err, why,
            "what is there is damaged as this machine reads it, and nobody else has said so: %.300s",
            why->text);
    return still_ours(p, err) < 0 ? -1 : put_aside(p, err);
}

/* 1: published already with this step and lineage (then manifest is what is there), and sound where that is
 * asked for; 0: not; -1: another. */
static int published(struct publisher *p, bool sound, struct error *err)
{
    struct error why = {0};
    const struct manifest *mine = p->publication->manifest;
    struct manifest *found = malloc(sizeof *found);
    if (!found)
        return err_set(err, ERR_MACHINE, "out of memory");
    int result = files_manifest(p->store, p->name, found, &why);
    bool same =
        result == 0 && found->step == mine->step && !memcmp(found->lineage, mine->lineage, RM_HASH_BYTES);
    bool other = result == 0 && !same;
    if (same && sound)
        result = verify_all(p->store, p->name, found, NULL, &why);
    if (same && result == 0)
        p->manifest = *found;
    free(found);
    if (other)
        return err_set(err, ERR_EXISTS,
                       "a checkpoint of another history is there already; use --overwrite or another folder");
    if (result == 0 || why.code == ERR_NOT_FOUND)
        return result == 0;
    return why.code == ERR_DATA ? make_way(p, &why, err) : err_from(err, &why, "%s", why.text);
}

/* 1: it was written and has arrived; 0: there was one, or nobody knows; -1. */
static int put_text(struct publisher *p, const char *file, const struct str *text, enum object_mode mode,
                    struct error *err)
{
    char name[FILES_NAME_MAX];
    struct error why = {0};
    int64_t before = object_unproven(p->store);
    files_object(name, p->name, file);
    if (files_put(p->store, name, text, mode, &why) == 0)
        return object_unproven(p->store) == before;
    return mode == OBJECT_CREATE && why.code == ERR_EXISTS ? 0 : err_from(err, &why, "%s", why.text);
}

/* What is there stays for now: another publisher of this state may be reading it, and it is the same then. */
static int write_texts(struct publisher *p, struct error *err)
{
    if (add_texts(&p->manifest, &p->texts, err) < 0)
        return -1;
    for (int i = 0; i < p->texts.count; i++) {
        int made = put_text(p, p->texts.text[i].name, &p->texts.text[i].text, OBJECT_CREATE, err);
        if (made < 0)
            return -1;
        p->made[i] = made;
    }
    FAULT("config-written");
    return 0;
}

/* --- the model's file, whose parts came from all writers --- */

static int64_t bytes_of_model(const struct manifest *m)
{
    int64_t bytes = 0;
    for (int i = 0; i < m->pieces; i++)
        if (!strcmp(m->piece[i].file, model_name))
            bytes += m->piece[i].bytes;
    return bytes;
}

/* It may be there already, from an earlier publisher that got this far or from another history that did not
 * get further: reading it back tells which. Never over what is there: a late publisher of another history
 * must not touch what has been published. */
static int join_model(struct publisher *p, struct error *err)
{
    const struct manifest *m = &p->manifest;
    struct error why = {0};
    struct files_upload upload = {
        .checkpoint = p->name, .file = model_name, .lineage = m->lineage, .parts = manifest_parts(m)};
    int result = upload_finish(p->store, &upload, bytes_of_model(m), OBJECT_CREATE, &why);
    FAULT("model-whole");
    p->joined = result == 0;
    if (result == 0 || why.code == ERR_EXISTS || why.code == ERR_NOT_FOUND)
        return 0;
    return err_from(err, &why, "%s", why.text);
}

/* --- reading back --- */

/* What is not what its writer said stands in the way of every later try. */
static void discard(struct publisher *p, const char *file)
{
    char name[FILES_NAME_MAX];
    const char *names = name;
    files_object(name, p->name, file);
    object_delete(p->store, &names, 1, NULL);
}

/* How many chunks the pieces before this one have. */
static int64_t count_chunks(const struct manifest *m, int before)
{
    int64_t chunks = 0;
    for (int i = 0; i < before; i++)
        chunks += piece_chunks(m->piece[i].bytes, PIECE_CHUNK);
    return chunks;
}

static int check_file(struct publisher *p, int first, struct error *err)
{
    struct manifest *m = &p->manifest;
    struct verify_file file = {.store = p->store,
                               .checkpoint = p->name,
                               .manifest = m,
                               .first = first,
                               .layout = p->publication->layout,
                               .sum = p->sum + count_chunks(m, first)};
    return verify_file(&file, m->has_weights ? m->weights_sha256 : NULL, err);
}

/* --- going by what was written --- */

static uint8_t (*sums_of(const struct publisher *p, int piece))[RM_HASH_BYTES]
{
    return p->sum + count_chunks(&p->manifest, piece);
}

static void hear_text(struct publisher *p, int piece)
{
    const struct manifest_piece *one = &p->manifest.piece[piece];
    for (int i = 0; i < p->texts.count; i++) {
        const struct folder_text *text = &p->texts.text[i];
        uint8_t hash[RM_HASH_BYTES];
        struct object_body body = {.runs = 1, .run = {{text->text.data, text->text.length}}};
        if (!p->made[i] || strcmp(one->file, text->name) != 0)
            continue;
        piece_hash_body(p->manifest.hash, &body, one->bytes, sums_of(p, piece), hash);
        p->vouched[piece] = true;
    }
}

/* What one writer left says of its pieces. */
static void hear_slice(struct publisher *p, const struct str *text)
{
    const struct manifest *m = &p->manifest;
    for (int i = 0; i < m->pieces && i < MANIFEST_PIECES_WRITTEN; i++) {
        bool arrived;
        if (p->vouched[i] || !sums_find(text, m->hash, &m->piece[i], &arrived, sums_of(p, i)))
            continue;
        p->vouched[i] = arrived && (p->joined || strcmp(m->piece[i].file, model_name) != 0);
    }
}

/* One that can't be read is no trouble: its pieces are read instead. */
static void hear_writers(struct publisher *p)
{
    const struct manifest *m = &p->manifest;
    int parts = manifest_parts(m);
    memset(p->vouched, 0, sizeof p->vouched);
    for (int i = 0; i < m->pieces && i < MANIFEST_PIECES_WRITTEN; i++)
        hear_text(p, i);
    for (int part = 0; part < parts; part++) {
        char name[FILES_NAME_MAX];
        struct str text = str_init(SUMS_TEXT_MAX);
        sums_name(name, p->name, m->lineage, part, parts);
        if (object_get(p->store, name, SUMS_TEXT_MAX, &text, NULL) == 0)
            hear_slice(p, &text);
        str_clear(&text);
    }
}

/* Whether all pieces of this file are. */
static bool is_vouched(const struct publisher *p, int first)
{
    bool all = true;
    for (int i = first; i < verify_next_file(&p->manifest, first); i++)
        all = all && i < MANIFEST_PIECES_WRITTEN && p->vouched[i];
    return all;
}

static int check_size(const struct publisher *p, int first, struct error *err)
{
    const struct manifest *m = &p->manifest;
    const struct manifest_piece *last = &m->piece[verify_next_file(m, first) - 1];
    struct object_info info;
    if (files_head(p->store, p->name, last->file, &info, err) < 0)
        return -1;
    if (info.bytes == last->offset + last->bytes)
        return 0;
    return err_set(err, ERR_DATA, "%s: it has %lld bytes instead of %lld", last->file, (long long)info.bytes,
                   (long long)(last->offset + last->bytes));
}

static int settle_file(struct publisher *p, int first, struct error *err)
{
    const char *file = p->manifest.piece[first].file;
    struct error why = {0};
    if ((is_vouched(p, first) ? check_size(p, first, &why) : check_file(p, first, &why)) == 0)
        return 0;
    if (why.code != ERR_DATA)
        return err_from(err, &why, "%s", why.text);
    int stands =
        published(p, false, err); /* by somebody else meanwhile: then nothing here is ours to remove */
    if (stands)
        return stands < 0 ? -1 : err_from(err, &why, "%s", why.text);
    if (still_ours(p, err) < 0)
        return -1;
    const struct str *text = folder_texts_find(&p->texts, file);
    if (text) /* in the place of what was no such file of this model */
        return put_text(p, file, text, OBJECT_REPLACE, err) < 0 ? -1 : check_file(p, first, err);
    discard(p, file);
    if (strcmp(file, model_name) != 0)
        return err_from(err, &why, "%s", why.text);
    /* another history's leftover may have kept ours from its name */
    if (join_model(p, NULL) == 0 && check_file(p, first, NULL) == 0)
        return 0;
    discard(p, file);
    return err_from(err, &why, "%s", why.text);
}

static int settle_all(struct publisher *p, struct error *err)
{
    struct manifest *m = &p->manifest;
    free(p->sum);
    p->sum = calloc((size_t)count_chunks(m, m->pieces) + 1, RM_HASH_BYTES);
    if (!p->sum)
        return err_set(err, ERR_MACHINE, "out of memory");
    m->has_weights = p->publication->final;
    if (!p->publication->final)
        hear_writers(p);
    for (int i = 0; i < m->pieces; i = verify_next_file(m, i)) {
        if (settle_file(p, i, err) < 0)
            return -1;
        FAULT("piece-settled");
    }
    manifest_cut(&p->manifest, (const uint8_t(*)[RM_HASH_BYTES])p->sum);
    return 0;
}

/* The manifest's text is read as any reader will before it gets its name. */
static int write_manifest(struct publisher *p, struct error *err)
{
    char name[FILES_NAME_MAX];
    struct str text = str_init(MANIFEST_TEXT_MAX);
    struct manifest *again = malloc(sizeof *again);
    struct error why = {0};
    manifest_write(&p->manifest, &text);
    int result = again ? manifest_read(again, str_text(&text), text.length, MANIFEST_NAME, err)
                       : err_set(err, ERR_MACHINE, "out of memory");
    free(again);
    files_object(name, p->name, MANIFEST_NAME);
    FAULT("before-manifest");
    if (result == 0)
        result = still_ours(p, err);
    if (result == 0 && files_put(p->store, name, &text, OBJECT_CREATE, &why) < 0 && why.code != ERR_EXISTS)
        result = err_from(err, &why, "%s", why.text);
    str_clear(&text);
    return result;
}

/* Before the manifest, so that no final/ is without it. It says nothing that somebody checks, so whatever
 * stood there is written over. */
static int write_card(struct publisher *p, struct error *err)
{
    const struct checkpoint_publication *publication = p->publication;
    if (!publication->final || !publication->losses || image_bytes(&p->manifest.shape))
        return 0;
    struct str text = str_init(MODEL_CARD_MAX);
    model_card_write(&p->manifest, publication->losses, &text);
    int result = still_ours(p, err);
    if (result == 0)
        result = put_text(p, MODEL_CARD_NAME, &text, OBJECT_REPLACE, err);
    str_clear(&text);
    return result;
}

static int complete(struct publisher *p, struct error *err)
{
    if (still_ours(p, err) < 0 || write_texts(p, err) < 0 || manifest_check_pieces(&p->manifest, err) < 0 ||
        join_model(p, err) < 0 || settle_all(p, err) < 0 || write_card(p, err) < 0 ||
        write_manifest(p, err) < 0)
        return -1;
    FAULT("after-manifest");
    return 0;
}

/* Another publisher may have been quicker, and have tidied away what this one was reading. So whatever went
 * wrong here, the manifest that stands in the end decides. */
static int publish_once(struct publisher *p, struct error *err)
{
    struct error why = {0};
    int already = published(p, true, err);
    if (already)
        return already < 0 ? -1 : 0;
    int result = complete(p, &why);
    int stands = published(p, false, err);
    if (stands > 0)
        return 0;
    if (result < 0)
        return err_from(err, &why, "%s", why.text);
    return stands < 0 ? -1 : err_set(err, ERR_MACHINE, "the manifest has disappeared");
}

static int publish_all(struct publisher *p, struct error *err)
{
    const struct checkpoint_publication *publication = p->publication;
    p->manifest = *publication->manifest;
    if (!p->manifest.fingerprint[0])
        return err_set(err, ERR_PROTOCOL, "a manifest without a fingerprint is not written");
    checkpoint_name(p->name, p->manifest.step, publication->final);
    folder_texts_init(&p->texts, publication->manifest, publication->final, publication->tokenizer);
    bool past = object_passes_caches(p->store);
    object_pass_caches(p->store, past || publication->final);
    int result = publish_once(p, err);
    object_pass_caches(p->store, past);
    if (result < 0 && p->others)
        return -1; /* it names the place, and said twice that would take the room of whose it is */
    if (result < 0)
        return err_wrap(err, "checkpoint %s of %s", p->name, object_uri(p->store));
    files_remove(p->store, p->name, &p->manifest, NULL, NULL);
    return 0;
}

/* What is unfinished and older than the last one has been overtaken twice; younger pieces may be all there
 * and wait for their publisher. Behind the end of a run nothing is published, so there it goes too, and last:
 * of what another agent is deleting only the manifest may be gone. The end has been read back; of others:
 * checkpoint_settle. */
static void forget_older(const struct checkpoint_publication *publication, int64_t step)
{
    struct object_store *store = publication->store;
    if (publication->final)
        standing_remove(store, step, publication->keep);
    files_collect(store, publication->final ? step : standing_before(store, step));
}

int checkpoint_publish(const struct checkpoint_publication *publication, struct manifest *ret,
                       struct error *err)
{
    struct publisher *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    p->publication = publication;
    p->store = publication->store;
    int result = publish_all(p, err);
    if (result == 0) {
        forget_older(publication, p->manifest.step);
        *ret = p->manifest;
    }
    folder_texts_clear(&p->texts);
    free(p->sum);
    free(p);
    return result;
}
