/* Reads what S3 servers answer: errors, listings, uploads and their parts, sessions. */
#include "common/storage/object/s3_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/date.h"
#include "common/storage/object/xml.h"

/* The last part of a path below `parent`, or NULL: "Key" of "ListBucketResult/Contents/Key". */
static const char *below(const char *path, const char *parent)
{
    size_t length = strlen(parent);
    if (strncmp(path, parent, length) != 0 || path[length] != '/' || strchr(path + length + 1, '/'))
        return NULL;
    return path + length + 1;
}

static int take_text(char *out, size_t size, const char *text, const char *what, struct error *err)
{
    return text_copy(out, size, text) ? 0 : err_set(err, ERR_DATA, "%s of %zu bytes", what, strlen(text));
}

static int take_count(int64_t *out, int64_t most, const char *text, const char *what, struct error *err)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < 0 || value > most)
        return err_set(err, ERR_DATA, "%s is \"%.40s\"", what, text);
    *out = value;
    return 0;
}

static int take_moment(int64_t *out, const char *text, const char *what, struct error *err)
{
    return date_of_iso(text, out) ? 0 : err_set(err, ERR_DATA, "%s is \"%.40s\"", what, text);
}

/* In place, "+" for a space as S3 writes it. A NUL can't be part of a name. */
static int decode(char *text, const char *what, struct error *err)
{
    char *out = text;
    for (const char *at = text; *at; at++) {
        char pair[3] = {0};
        uint8_t byte = (uint8_t)(*at == '+' ? ' ' : *at);
        if (*at == '%') {
            memcpy(pair, at + 1, strnlen(at + 1, 2));
            if (!hex_decode(pair, &byte, 1) || !byte)
                return err_set(err, ERR_DATA, "%s is not encoded as announced", what);
            at += 2;
        }
        *out++ = (char)byte;
    }
    *out = 0;
    return 0;
}

/* --- refusals --- */

static int refusal_closed(void *ctx, const char *path, const char *text, struct error *err)
{
    (void)err;
    struct s3_refusal *ret = ctx;
    const char *name = below(path, "Error");
    if (!name)
        name = below(path, "ErrorResponse/Error"); /* as STS says it */
    if (!name)
        return 0;
    if (!strcmp(name, "Code"))
        text_copy(ret->code, sizeof ret->code, text);
    if (!strcmp(name, "Message"))
        text_copy(ret->message, sizeof ret->message, text);
    if (!strcmp(name, "Region"))
        text_copy(ret->region, sizeof ret->region, text);
    return 0;
}

void s3_answer_refusal(const void *bytes, size_t length, struct s3_refusal *ret)
{
    *ret = (struct s3_refusal){0};
    if (length && xml_read(bytes, length, refusal_closed, ret, NULL) < 0)
        *ret = (struct s3_refusal){0}; /* a page of some proxy: its status has to do */
}

int s3_answer_late(const void *bytes, size_t length, struct s3_refusal *ret)
{
    *ret = (struct s3_refusal){0};
    return xml_read(bytes, length, refusal_closed, ret, NULL);
}

/* --- listings --- */

struct page {
    const struct s3_page_reader *reader;
    char *next;
    char key[3 * S3_KEY_MAX], prefix[3 * S3_KEY_MAX]; /* encoded ones are longer */
    struct object_info info;
    bool named, more, encoded, ended;
};

/* Some servers say first what is in the list and only then how it is encoded; so the first reading is for
 * what stands beside the list. */
static int page_frame(void *ctx, const char *path, const char *text, struct error *err)
{
    struct page *page = ctx;
    const char *name = below(path, "ListBucketResult");
    if (!strcmp(path, "ListBucketResult"))
        page->ended = true;
    if (!name)
        return 0;
    if (!strcmp(name, "EncodingType"))
        page->encoded = !strcasecmp(text, "url");
    if (!strcmp(name, "IsTruncated"))
        page->more = !strcmp(text, "true");
    if (!strcmp(name, "NextContinuationToken"))
        return take_text(page->next, S3_TOKEN_MAX, text, "NextContinuationToken", err);
    return 0;
}

static int name_done(struct page *page, char *name, struct error *err)
{
    if (page->encoded && decode(name, "a key", err) < 0)
        return -1;
    if (!name[0] || strlen(name) >= S3_KEY_MAX)
        return err_set(err, ERR_DATA, "a key of %zu bytes", strlen(name));
    return 0;
}

static int object_done(struct page *page, struct error *err)
{
    if (!page->named || page->info.bytes < 0)
        return err_set(err, ERR_DATA, "an object without key or size");
    if (name_done(page, page->key, err) < 0)
        return -1;
    return page->reader->object ? page->reader->object(page->reader->ctx, page->key, &page->info, err) : 0;
}

static int object_field(struct page *page, const char *name, const char *text, struct error *err)
{
    if (!strcmp(name, "Key")) {
        page->named = true;
        return take_text(page->key, sizeof page->key, text, "Key", err);
    }
    if (!strcmp(name, "Size"))
        return take_count(&page->info.bytes, INT64_MAX, text, "Size", err);
    if (!strcmp(name, "LastModified"))
        return take_moment(&page->info.modified_s, text, "LastModified", err);
    if (!strcmp(name, "ETag"))
        return take_text(page->info.tag, sizeof page->info.tag, text, "ETag", err);
    return 0;
}

static int page_closed(void *ctx, const char *path, const char *text, struct error *err)
{
    struct page *page = ctx;
    const char *name = below(path, "ListBucketResult/Contents");
    if (name)
        return object_field(page, name, text, err);
    if (!strcmp(path, "ListBucketResult/Contents")) {
        int result = object_done(page, err);
        page->named = false;
        page->info = (struct object_info){.bytes = -1};
        return result;
    }
    if (strcmp(path, "ListBucketResult/CommonPrefixes/Prefix") != 0)
        return 0;
    if (take_text(page->prefix, sizeof page->prefix, text, "Prefix", err) < 0 ||
        name_done(page, page->prefix, err) < 0)
        return -1;
    return page->reader->folder ? page->reader->folder(page->reader->ctx, page->prefix, err) : 0;
}

int s3_answer_page(const void *bytes, size_t length, const struct s3_page_reader *reader,
                   char next[S3_TOKEN_MAX], struct error *err)
{
    struct page page = {.reader = reader, .next = next, .info.bytes = -1};
    next[0] = 0;
    if (xml_read(bytes, length, page_frame, &page, err) < 0)
        return -1;
    if (!page.ended || (page.more && !next[0]))
        return err_set(err, ERR_DATA, "%s",
                       page.ended ? "a listing cut in two without a token" : "no listing");
    if (!page.more)
        next[0] = 0;
    return xml_read(bytes, length, page_closed, &page, err);
}

/* --- uploads under way --- */

struct uploads {
    const struct s3_uploads_reader *reader;
    char *next_key, *next_id;
    char key[3 * S3_KEY_MAX], id[OBJECT_UPLOAD_MAX];
    bool more, encoded, ended;
};

static int uploads_frame(void *ctx, const char *path, const char *text, struct error *err)
{
    struct uploads *u = ctx;
    const char *name = below(path, "ListMultipartUploadsResult");
    if (!strcmp(path, "ListMultipartUploadsResult"))
        u->ended = true;
    if (!name)
        return 0;
    if (!strcmp(name, "EncodingType"))
        u->encoded = !strcasecmp(text, "url");
    if (!strcmp(name, "IsTruncated"))
        u->more = !strcmp(text, "true");
    if (!strcmp(name, "NextKeyMarker"))
        return take_text(u->key, sizeof u->key, text, "NextKeyMarker", err);
    if (!strcmp(name, "NextUploadIdMarker"))
        return take_text(u->next_id, OBJECT_UPLOAD_MAX, text, "NextUploadIdMarker", err);
    return 0;
}

static int upload_done(struct uploads *u, struct error *err)
{
    if (!u->key[0] || !u->id[0])
        return err_set(err, ERR_DATA, "an upload without key or id");
    if (u->encoded && decode(u->key, "a key", err) < 0)
        return -1;
    int result = u->reader->upload(u->reader->ctx, u->key, u->id, err);
    u->key[0] = u->id[0] = 0;
    return result;
}

static int uploads_closed(void *ctx, const char *path, const char *text, struct error *err)
{
    struct uploads *u = ctx;
    const char *name = below(path, "ListMultipartUploadsResult/Upload");
    if (!strcmp(path, "ListMultipartUploadsResult/Upload"))
        return upload_done(u, err);
    if (!name)
        return 0;
    if (!strcmp(name, "Key"))
        return take_text(u->key, sizeof u->key, text, "Key", err);
    if (!strcmp(name, "UploadId"))
        return take_text(u->id, sizeof u->id, text, "UploadId", err);
    return 0;
}

int s3_answer_uploads(const void *bytes, size_t length, const struct s3_uploads_reader *reader,
                      char next_key[S3_KEY_MAX], char next_id[OBJECT_UPLOAD_MAX], struct error *err)
{
    struct uploads u = {.reader = reader, .next_key = next_key, .next_id = next_id};
    next_key[0] = next_id[0] = 0;
    if (xml_read(bytes, length, uploads_frame, &u, err) < 0)
        return -1;
    if (!u.ended)
        return err_set(err, ERR_DATA, "no list of uploads");
    if (u.more && ((u.encoded && decode(u.key, "NextKeyMarker", err) < 0) ||
                   take_text(next_key, S3_KEY_MAX, u.key, "NextKeyMarker", err) < 0))
        return -1;
    if (u.more && !next_key[0])
        return err_set(err, ERR_DATA, "a list of uploads cut in two without a marker");
    u.key[0] = 0;
    return xml_read(bytes, length, uploads_closed, &u, err);
}

/* --- parts of an upload --- */

struct parts {
    const struct s3_parts_reader *reader;
    int64_t number, next;
    struct object_part_info part;
    char crc[16];
    bool more, ended;
};

static int part_done(struct parts *p, struct error *err)
{
    struct object_part_info part = p->part;
    size_t length = strlen(part.tag);
    if (!p->number || part.bytes < 0 || !part.tag[0])
        return err_set(err, ERR_DATA, "a part without number, size or ETag");
    if (p->crc[0] && (!text_copy(part.tag + length, sizeof part.tag - length, "|") ||
                      !text_copy(part.tag + length + 1, sizeof part.tag - length - 1, p->crc)))
        return err_set(err, ERR_DATA, "a part's ETag of %zu bytes", length);
    part.number = (int)p->number;
    p->part = (struct object_part_info){.bytes = -1};
    p->number = 0;
    p->crc[0] = 0;
    return p->reader->part(p->reader->ctx, &part, err);
}

static int part_field(struct parts *p, const char *name, const char *text, struct error *err)
{
    if (!strcmp(name, "PartNumber"))
        return take_count(&p->number, S3_PARTS_MOST, text, "PartNumber", err);
    if (!strcmp(name, "Size"))
        return take_count(&p->part.bytes, INT64_MAX, text, "Size", err);
    if (!strcmp(name, "ETag"))
        return take_text(p->part.tag, sizeof p->part.tag, text, "ETag", err);
    if (!strcmp(name, "ChecksumCRC32C"))
        return take_text(p->crc, sizeof p->crc, text, "ChecksumCRC32C", err);
    return 0;
}

static int parts_closed(void *ctx, const char *path, const char *text, struct error *err)
{
    struct parts *p = ctx;
    const char *name = below(path, "ListPartsResult/Part");
    if (name)
        return part_field(p, name, text, err);
    if (!strcmp(path, "ListPartsResult/Part"))
        return part_done(p, err);
    name = below(path, "ListPartsResult");
    if (!strcmp(path, "ListPartsResult"))
        p->ended = true;
    if (name && !strcmp(name, "IsTruncated"))
        p->more = !strcmp(text, "true");
    if (name && !strcmp(name, "NextPartNumberMarker") && text[0])
        return take_count(&p->next, S3_PARTS_MOST, text, "NextPartNumberMarker", err);
    return 0;
}

int s3_answer_parts(const void *bytes, size_t length, const struct s3_parts_reader *reader, int *next,
                    struct error *err)
{
    struct parts p = {.reader = reader, .part.bytes = -1};
    if (xml_read(bytes, length, parts_closed, &p, err) < 0)
        return -1;
    if (!p.ended || (p.more && !p.next))
        return err_set(err, ERR_DATA, "%s",
                       p.ended ? "a list of parts cut in two without a marker" : "no parts");
    *next = p.more ? (int)p.next : 0;
    return 0;
}

/* --- single values --- */

static int upload_closed(void *ctx, const char *path, const char *text, struct error *err)
{
    if (strcmp(path, "InitiateMultipartUploadResult/UploadId") != 0)
        return 0;
    return take_text(ctx, OBJECT_UPLOAD_MAX, text, "UploadId", err);
}

int s3_answer_upload(const void *bytes, size_t length, char id[OBJECT_UPLOAD_MAX], struct error *err)
{
    id[0] = 0;
    if (xml_read(bytes, length, upload_closed, id, err) < 0)
        return -1;
    return id[0] ? 0 : err_set(err, ERR_DATA, "no UploadId");
}

struct completed {
    struct s3_refusal *refusal;
    bool done;
};

static int completed_closed(void *ctx, const char *path, const char *text, struct error *err)
{
    struct completed *completed = ctx;
    if (!strcmp(path, "CompleteMultipartUploadResult"))
        completed->done = true;
    return refusal_closed(completed->refusal, path, text, err);
}

int s3_answer_completed(const void *bytes, size_t length, struct s3_refusal *refusal, struct error *err)
{
    struct completed completed = {.refusal = refusal};
    *refusal = (struct s3_refusal){0};
    if (xml_read(bytes, length, completed_closed, &completed, err) < 0)
        return -1;
    if (!completed.done && !refusal->code[0])
        return err_set(err, ERR_DATA, "neither done nor refused");
    return 0;
}

static int session_closed(void *ctx, const char *path, const char *text, struct error *err)
{
    struct s3_session *ret = ctx;
    const char *name =
        below(path, "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials");
    if (!name)
        return 0;
    if (!strcmp(name, "AccessKeyId"))
        return take_text(ret->access_key, sizeof ret->access_key, text, name, err);
    if (!strcmp(name, "SecretAccessKey"))
        return take_text(ret->secret_key, sizeof ret->secret_key, text, name, err);
    if (!strcmp(name, "SessionToken"))
        return take_text(ret->token, sizeof ret->token, text, name, err);
    if (!strcmp(name, "Expiration"))
        return take_moment(&ret->ends_s, text, name, err);
    return 0;
}

int s3_answer_session(const void *bytes, size_t length, struct s3_session *ret, struct error *err)
{
    ret->access_key[0] = ret->secret_key[0] = ret->token[0] = 0;
    ret->ends_s = 0;
    if (xml_read(bytes, length, session_closed, ret, err) < 0)
        return -1;
    if (!ret->access_key[0] || !ret->secret_key[0] || !ret->token[0] || !ret->ends_s)
        return err_set(err, ERR_DATA, "credentials without a key, a token or an end");
    return 0;
}
