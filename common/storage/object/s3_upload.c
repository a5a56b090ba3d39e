/* Uploads of several parts to a bucket: opened, written part by part, listed, completed, and given up where
 * nobody goes on with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/storage/object/s3.h"

enum {
    NUMBER_MAX = 12,         /* text of a part's number */
    COMPLETE_MAX = 4 << 20,  /* bytes of 10,000 parts' tags */
    PARTS_AT_A_TIME = 1000,  /* whose numbers' texts are kept at once */
    COMPLETE_SILENT_S = 600, /* some stores copy all parts together before they say a word */
    TAG_AND_CRC = OBJECT_TAG_MAX + 16,
};

static int begin_upload(struct s3_store *store, const char *key, char ret_id[OBJECT_UPLOAD_MAX],
                        struct error *err)
{
    struct s3_task task = s3_task("POST", key);
    task.request.with_algorithm = true;
    task.request.xml = true;
    s3_task_query(&task, "uploads", "");
    int result = s3_once(store, &task, err);
    if (result == 0 && !s3_is_good(&task))
        result = s3_refused(store, &task, err);
    else if (result == 0 && s3_answer_upload(str_text(&task.kept), task.kept.length, ret_id, err) < 0)
        result = err_wrap(err, "%s: the answer that begins an upload", store->base.uri);
    str_clear(&task.kept);
    return result;
}

/* A try whose answer was lost leaves an upload behind that nobody knows; s3_uploads_collect finds it. */
int s3_upload_open(struct object_store *base, const char *name, char ret_id[OBJECT_UPLOAD_MAX],
                   struct error *err)
{
    struct s3_store *store = (struct s3_store *)base;
    char key[S3_KEY_MAX];
    if (s3_key(store, name, key, err) < 0)
        return -1;
    return begin_upload(store, key, ret_id, err);
}

/* --- parts --- */

struct sending {
    const char *key, *id;
    struct object_part *part;
    int count, at;
    char (*number)[NUMBER_MAX]; /* (count) */
};

static bool part_next(void *ctx, struct s3_task *task)
{
    struct sending *s = ctx;
    if (s->at == s->count)
        return false;
    const struct object_part *part = &s->part[s->at];
    struct str kept = task->kept;
    *task = s3_task("PUT", s->key);
    task->kept = kept;
    task->number = s->at;
    task->request.body = &part->body;
    snprintf(s->number[s->at], NUMBER_MAX, "%d", part->number);
    s3_task_query(task, "partNumber", s->number[s->at]);
    s3_task_query(task, "uploadId", s->id);
    s->at++;
    return true;
}

/* A part is named by its ETag, and by its checksum where one was sent with it: both are asked for at the end.
 */
static int part_done(void *ctx, struct s3_store *store, struct s3_task *task, struct error *err)
{
    struct sending *s = ctx;
    char both[TAG_AND_CRC];
    if (!s3_is_good(task))
        return s3_refused(store, task, err);
    bool sent = task->checksummed && task->crc[0]; /* not one made before the place was known to want none */
    snprintf(both, sizeof both, "%s%s%s", task->tag, sent ? "|" : "", sent ? task->crc : "");
    if (!task->tag[0] || !text_copy(s->part[task->number].tag, OBJECT_TAG_MAX, both))
        return err_set(err, ERR_DATA, "%s: a part's ETag is absent or too long", store->base.uri);
    s3_count_proof(store, task);
    return 0;
}

int s3_upload_parts(struct object_store *base, const char *name, const char *id, struct object_part *part,
                    int count, struct error *err)
{
    struct s3_store *store = (struct s3_store *)base;
    char key[S3_KEY_MAX];
    if (s3_key(store, name, key, err) < 0)
        return -1;
    struct sending s = {.key = key, .id = id, .part = part, .count = count};
    s.number = malloc((count ? (size_t)count : 1) * sizeof *s.number);
    if (!s.number)
        return err_set(err, ERR_MACHINE, "no memory to upload");
    int result = s3_run(store, &(struct s3_work){part_next, part_done, &s}, err);
    free(s.number);
    return result;
}

static int list_page(struct s3_store *store, const char *key, const char *id,
                     const struct s3_parts_reader *reader, int *next, struct error *err)
{
    struct s3_task task = s3_task("GET", key);
    char marker[NUMBER_MAX];
    snprintf(marker, sizeof marker, "%d", *next);
    task.request.most = S3_ANSWER_LIST;
    task.request.xml = true;
    s3_task_query(&task, "uploadId", id);
    if (*next)
        s3_task_query(&task, "part-number-marker", marker);
    int result = s3_once(store, &task, err);
    if (result == 0 && !s3_is_good(&task))
        result = s3_refused(store, &task, err);
    else if (result == 0)
        result = s3_answer_parts(str_text(&task.kept), task.kept.length, reader, next, err);
    str_clear(&task.kept);
    return result;
}

int s3_upload_list(struct object_store *base, const char *name, const char *id,
                   int (*visit)(void *ctx, const struct object_part_info *part, struct error *err), void *ctx,
                   struct error *err)
{
    struct s3_store *store = (struct s3_store *)base;
    struct s3_parts_reader reader = {visit, ctx};
    char key[S3_KEY_MAX];
    int next = 0, before;
    if (s3_key(store, name, key, err) < 0)
        return -1;
    do {
        before = next;
        if (list_page(store, key, id, &reader, &next, err) < 0)
            return -1;
        if (next && next <= before)
            return err_set(err, ERR_DATA, "%s: a list of parts that goes in a circle", base->uri);
    } while (next);
    return 0;
}

/* --- the end --- */

/* The ETag before the "|". */
static int tag_length(const char *tag)
{
    return (int)strcspn(tag, "|");
}

static void add_escaped(struct str *out, const char *text, int length)
{
    for (int i = 0; i < length; i++)
        switch (text[i]) {
        case '&':
            str_adds(out, "&amp;");
            break;
        case '<':
            str_adds(out, "&lt;");
            break;
        case '"':
            str_adds(out, "&quot;");
            break;
        default:
            str_add(out, &text[i], 1);
        }
}

static void describe_parts(const struct object_part *part, int count, struct str *out)
{
    str_adds(out, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (int i = 0; i < count; i++) {
        int length = tag_length(part[i].tag);
        str_addf(out, "<Part><PartNumber>%d</PartNumber><ETag>", part[i].number);
        add_escaped(out, part[i].tag, length);
        str_adds(out, "</ETag>");
        if (part[i].tag[length]) {
            str_adds(out, "<ChecksumCRC32C>");
            add_escaped(out, part[i].tag + length + 1, (int)strlen(part[i].tag + length + 1));
            str_adds(out, "</ChecksumCRC32C>");
        }
        str_adds(out, "</Part>");
    }
    str_adds(out, "</CompleteMultipartUpload>");
}

/* The ETag of an object of these parts, where ETags are MD5s: the MD5 of theirs, "-" and their number. false
 * where they are something else (objects encrypted with a customer's key). */
static bool expected_tag(const struct object_part *part, int count, char out[64])
{
    uint8_t *sums = malloc((size_t)count * MD5_BYTES + 1), sum[MD5_BYTES];
    char hex[2 * MD5_BYTES + 1];
    bool known = sums != NULL;
    for (int i = 0; i < count && known; i++) {
        const char *tag = part[i].tag;
        snprintf(hex, sizeof hex, "%.*s", (int)sizeof hex - 1, tag + (*tag == '"'));
        known = hex_decode(hex, sums + (size_t)i * MD5_BYTES, MD5_BYTES);
    }
    known = known && md5_once(sums, (size_t)count * MD5_BYTES, sum);
    free(sums);
    if (!known)
        return false;
    hex_encode(sum, sizeof sum, hex);
    snprintf(out, 64, "\"%s-%d\"", hex, count);
    return true;
}

/* Google takes no condition with the end of an upload ("Preconditions cannot be used in XML API multipart
 * uploads", 400 NotImplemented: cloud.google.com/storage/docs/request-preconditions). */
static bool takes_no_condition(const struct s3_store *store)
{
    return store->place.googles_for_sure || (store->place.google && !store->place.google_refused);
}

/* Is the object there the one that these parts make? absent: it was not, just before the first try. */
static bool is_completed(struct s3_store *store, const char *name, const struct object_part *part, int count,
                         bool tried_before, bool absent)
{
    struct object_info info;
    char expected[64], count_text[16];
    if (store->base.ops->head(&store->base, name, &info, NULL) < 0)
        return false;
    if (expected_tag(part, count, expected) && !strcmp(info.tag, expected))
        return true;
    if (absent && tried_before)
        return true; /* of Google's tags of wholes nothing is told */
    /* Tags that tell nothing: believe in our own try where the number of parts fits. */
    snprintf(count_text, sizeof count_text, "-%d\"", count);
    const char *end = strrchr(info.tag, '-');
    return tried_before && !expected_tag(part, count, expected) && end && !strcmp(end, count_text);
}

/* *absent: a look, where no condition is taken, has found nothing there. */
static int look_before(struct s3_store *store, const char *name, const struct object_part *part, int count,
                       bool *absent, struct error *err)
{
    struct object_info info;
    struct error why = {0};
    *absent = store->base.ops->head(&store->base, name, &info, &why) < 0 && why.code == ERR_NOT_FOUND;
    if (*absent || (why.code == ERR_NONE && is_completed(store, name, part, count, false, false)))
        return 0;
    if (why.code == ERR_NONE)
        return err_set(err, ERR_EXISTS, "%s/%s: exists already", store->base.uri, name);
    return err_from(err, &why, "%s", why.text);
}

static int complete_key(struct s3_store *store, const char *name, struct s3_task *task,
                        const struct object_part *part, int count, bool absent, struct error *err)
{
    int result = s3_once(store, task, err);
    if (result == 0 && !s3_is_good(task)) {
        result = s3_refused(store, task, err);
        if ((task->status == 404 || task->status == 412) &&
            is_completed(store, name, part, count, task->failures > 0, absent))
            result = 0;
    }
    str_clear(&task->kept);
    return result;
}

int s3_upload_complete(struct object_store *base, const char *name, const char *id,
                       const struct object_part *part, int count, enum object_mode mode, struct error *err)
{
    struct s3_store *store = (struct s3_store *)base;
    struct str text = str_init(COMPLETE_MAX);
    char key[S3_KEY_MAX];
    bool create = mode == OBJECT_CREATE, absent = false;
    if (s3_key(store, name, key, err) < 0)
        return -1;
    if (create && takes_no_condition(store)) {
        if (look_before(store, name, part, count, &absent, err) < 0)
            return -1;
        create = false;
    }
    describe_parts(part, count, &text);
    struct object_body body = {.runs = 1, .run = {{str_text(&text), text.length}}};
    struct s3_task task = s3_task("POST", key);
    task.request.body = &body;
    task.request.create = create;
    task.request.seen = mode == OBJECT_CREATE;
    task.request.late_refusal = true;
    task.request.silent = COMPLETE_SILENT_S * RM_S;
    s3_task_query(&task, "uploadId", id);
    int result = complete_key(store, name, &task, part, count, absent, err);
    str_clear(&text);
    return result;
}

static int abort_key(struct s3_store *store, const char *key, const char *id, struct error *err)
{
    struct s3_task task = s3_task("DELETE", key);
    s3_task_query(&task, "uploadId", id);
    int result = s3_once(store, &task, err);
    bool gone = task.status == 404 && strcmp(task.refusal.code, "NoSuchBucket") != 0;
    if (result == 0 && !s3_is_good(&task) && !gone)
        result = s3_refused(store, &task, err);
    str_clear(&task.kept);
    return result;
}

int s3_upload_abort(struct object_store *base, const char *name, const char *id, struct error *err)
{
    struct s3_store *store = (struct s3_store *)base;
    char key[S3_KEY_MAX];
    if (s3_key(store, name, key, err) < 0)
        return -1;
    return abort_key(store, key, id, err);
}

/* --- uploads that nobody ended --- */

struct collecting {
    struct s3_store *store;
    char prefix[S3_KEY_MAX], next_key[S3_KEY_MAX], next_id[OBJECT_UPLOAD_MAX];
    bool (*over)(void *ctx, const char *name);
    void *ctx;
    int aborted;
};

static int upload_found(void *ctx, const char *key, const char *id, struct error *err)
{
    struct collecting *c = ctx;
    if (strncmp(key, c->prefix, strlen(c->prefix)) != 0 ||
        (c->over && !c->over(c->ctx, s3_name(c->store, key))))
        return 0;
    if (abort_key(c->store, key, id, err) < 0)
        return -1;
    c->aborted++;
    return 0;
}

static int collect_page(struct collecting *c, struct error *err)
{
    struct s3_task task = s3_task("GET", NULL);
    struct s3_uploads_reader reader = {upload_found, c};
    char key[S3_KEY_MAX] = "", id[OBJECT_UPLOAD_MAX] = "";
    task.request.most = S3_ANSWER_LIST;
    task.request.xml = true;
    s3_task_query(&task, "uploads", "");
    s3_task_query(&task, "encoding-type", "url");
    s3_task_query(&task, "prefix", c->prefix);
    if (c->next_key[0])
        s3_task_query(&task, "key-marker", c->next_key);
    if (c->next_id[0])
        s3_task_query(&task, "upload-id-marker", c->next_id);
    int result = s3_once(c->store, &task, err);
    if (result == 0 && !s3_is_good(&task))
        result = s3_refused(c->store, &task, err);
    else if (result == 0)
        result = s3_answer_uploads(str_text(&task.kept), task.kept.length, &reader, key, id, err);
    str_clear(&task.kept);
    if (result < 0)
        return -1;
    if (key[0] && !strcmp(key, c->next_key) && !strcmp(id, c->next_id))
        return err_set(err, ERR_DATA, "%s: a list of uploads that goes in a circle", c->store->base.uri);
    text_copy(c->next_key, sizeof c->next_key, key);
    text_copy(c->next_id, sizeof c->next_id, id);
    return 0;
}

int s3_uploads_collect(struct object_store *base, const char *prefix,
                       bool (*over)(void *ctx, const char *name), void *ctx, int *ret_aborted,
                       struct error *err)
{
    struct collecting c = {.store = (struct s3_store *)base, .over = over, .ctx = ctx};
    if (s3_key(c.store, prefix, c.prefix, err) < 0)
        return -1;
    do {
        if (collect_page(&c, err) < 0)
            return -1;
    } while (c.next_key[0]);
    if (ret_aborted)
        *ret_aborted = c.aborted;
    return 0;
}
