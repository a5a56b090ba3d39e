/* Makes the header lines of one request to a bucket, signed or with a token: hashes of what is sent, its
 * range or part, Amazon's names or Google's. s3_engine.c calls it for each try, as a signature ages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/sha256_many.h"
#include "common/storage/object/crc32c.h"
#include "common/storage/object/s3.h"

/* Four bytes are eight characters: "AAAAAA==". */
static void base64_of_crc(uint32_t crc, char out[12])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t bits = (uint64_t)crc << 4; /* 36 bits: six digits */
    for (int i = 0; i < 6; i++)
        out[i] = digits[bits >> (30 - 6 * i) & 63];
    memcpy(out + 6, "==", 3);
}

/* A body of several runs, as a chain. */
static void hash_runs(const struct object_body *body, uint8_t hash[RM_HASH_BYTES])
{
    struct sha256 *h = sha256_open();
    for (int i = 0; i < body->runs; i++)
        sha256_add(h, body->run[i].bytes, body->run[i].count);
    sha256_finish(h, hash);
}

static size_t bytes_of(const struct object_body *body)
{
    size_t bytes = 0;
    for (int i = 0; i < body->runs; i++)
        bytes += body->run[i].count;
    return bytes;
}

/* The bodies that are signed here; of the others nothing is known. */
static void hash_payloads(struct s3_task *const *task, int tasks, struct s3_protection how)
{
    uint8_t hash[S3_HASH_BESIDE][RM_HASH_BYTES];
    struct sha256_text text[S3_HASH_BESIDE] = {0};
    bool is_signed[S3_HASH_BESIDE];
    int texts = 0;
    for (int i = 0; i < tasks; i++) {
        const struct object_body *body = task[i]->request.body;
        is_signed[i] = body && (how.signs || (!how.tls && bytes_of(body) < S3_BODY_SMALL));
        if (!is_signed[i])
            continue;
        if (body->sha256)
            memcpy(hash[i], body->sha256, sizeof hash[i]);
        else if (body->runs == 1)
            text[texts++] = (struct sha256_text){body->run[0].bytes, body->run[0].count, hash[i]};
        else
            hash_runs(body, hash[i]);
    }
    sha256_many(text, texts);
    for (int i = 0; i < tasks; i++)
        if (is_signed[i])
            hex_encode(hash[i], sizeof hash[i], task[i]->payload);
}

void s3_task_hash(struct s3_task *const *task, int tasks, struct s3_protection how)
{
    hash_payloads(task, tasks, how);
    for (int i = 0; i < tasks && how.checksums; i++) {
        const struct object_body *body = task[i]->request.body;
        uint32_t crc = 0;
        /* Of what is stored: with the request that ends an upload it would mean the whole object's. */
        if (!body || strcmp(task[i]->request.method, "PUT") != 0)
            continue;
        for (int j = 0; j < body->runs; j++)
            crc = crc32c(crc, body->run[j].bytes, body->run[j].count);
        base64_of_crc(crc, task[i]->crc);
    }
}

static void describe_range(const struct s3_task *task, struct sigv4_request *out, char range[64])
{
    const struct s3_request *request = &task->request;
    if (request->sink != S3_INTO)
        return;
    snprintf(range, 64, "bytes=%" PRId64 "-%" PRId64, request->offset + task->got,
             request->offset + request->bytes - 1);
    sigv4_header(out, "Range", range);
    if (request->tag && request->tag[0])
        sigv4_header(out, "If-Match", request->tag);
}

static void describe_body(const struct s3_task *task, const struct s3_place *place, struct sigv4_request *out)
{
    out->payload = sigv4_empty;
    if (task->request.body)
        out->payload = task->payload[0] ? task->payload : sigv4_unsigned;
    if (task->googled)
        return;
    sigv4_header(out, "x-amz-content-sha256", out->payload);
    if (task->crc[0] && place->checksums)
        sigv4_header(out, "x-amz-checksum-crc32c", task->crc);
    if (task->request.with_algorithm && place->checksums)
        sigv4_header(out, "x-amz-checksum-algorithm", "CRC32C");
    if (task->request.create)
        sigv4_header(out, "If-None-Match", "*");
}

/* Google passes over If-None-Match where something is written, and refuses a request with words of both
 * kinds: so the whole of it is in Google's. */
static void describe_google(const struct s3_task *task, const struct s3_place *place, char hash[24],
                            struct sigv4_request *out)
{
    if (task->request.create)
        sigv4_header(out, "x-goog-if-generation-match", "0");
    if (!task->crc[0] || !place->checksums)
        return;
    snprintf(hash, 24, "crc32c=%s", task->crc);
    sigv4_header(out, "x-goog-hash", hash);
}

static void describe_googles_signature(const struct sigv4_signer *signer, struct sigv4_request *out)
{
    sigv4_header(out, "x-goog-date", signer->date);
    sigv4_header(out, "x-goog-content-sha256", out->payload);
}

static void describe_amazon(const struct s3_signing *signing, const struct sigv4_signer *signer,
                            struct sigv4_request *out)
{
    sigv4_header(out, "x-amz-date", signer->date);
    if (signing->who->token[0])
        sigv4_header(out, "x-amz-security-token", signing->who->token);
}

/* `before`: what stands before the value. */
static void add_line(struct s3_signed *out, const char *name, const char *before, const char *value)
{
    str_addf(&out->lines, "%s: %s%s", name, before, value);
    str_add(&out->lines, "", 1);
    out->headers++;
}

/* The lines' places are known only when the last is written: the string moves while it grows. */
static void point_at_lines(struct s3_signed *out)
{
    const char *at = str_text(&out->lines);
    for (int i = 0; i < out->headers; i++, at += strlen(at) + 1)
        out->header[i] = at;
}

static void write_out(struct s3_signed *ret, const struct sigv4_request *request,
                      const struct s3_place *place, const char *scheme, const char *authorization)
{
    str_reset(&ret->url);
    str_reset(&ret->lines);
    ret->headers = 0;
    str_addf(&ret->url, "%s://%s", place->tls ? "https" : "http", place->host);
    sigv4_target(request, &ret->url);
    for (int i = 0; i < request->headers; i++)
        add_line(ret, request->header[i].name, "", request->header[i].value);
    add_line(ret, "Authorization", scheme, authorization);
    point_at_lines(ret);
}

/* What both kinds of requests begin with. */
static void describe_target(const struct s3_task *task, const struct s3_place *place, struct str *path,
                            struct sigv4_request *out)
{
    s3_place_path(place, task->request.key, path);
    out->method = task->request.method;
    out->path = str_text(path);
    for (int i = 0; i < task->request.queries; i++)
        sigv4_query(out, task->request.query[i].name, task->request.query[i].value);
    sigv4_header(out, "Host", place->host);
}

/* Google's own way: TLS stands for the token and the request (cloud.google.com/storage/docs/migrating, "OAuth
 * 2.0 relies on SSL for security"), names are x-goog- throughout. */
static void bear(struct s3_signed *ret, const struct s3_task *task, const struct s3_signing *signing)
{
    struct sigv4_request request = {0};
    struct str path = str_init(SIGV4_TARGET_MAX);
    char range[64], hash[24];
    describe_target(task, signing->place, &path, &request);
    describe_google(task, signing->place, hash, &request);
    describe_range(task, &request, range);
    write_out(ret, &request, signing->place, "Bearer ", signing->who->token);
    str_clear(&path);
}

static void sign(struct s3_signed *ret, const struct s3_task *task, const struct s3_signing *signing)
{
    const struct s3_place *place = signing->place;
    uint8_t google_key[RM_HASH_BYTES];
    struct sigv4_signer signer = {.google = task->googled,
                                  .access_key = signing->who->access_key,
                                  .region = place->region,
                                  .service = "s3",
                                  .key = task->googled ? google_key : signing->key};
    struct sigv4_request request = {0};
    struct str path = str_init(SIGV4_TARGET_MAX), authorization = str_init(SIGV4_TARGET_MAX);
    char range[64], hash[24], day[9];
    date_amz(signing->now_s, signer.date);
    describe_target(task, place, &path, &request);
    if (!task->googled)
        describe_amazon(signing, &signer, &request);
    describe_body(task, place, &request);
    if (task->googled) {
        describe_googles_signature(&signer, &request);
        describe_google(task, place, hash, &request);
    }
    describe_range(task, &request, range);
    if (task->googled) {
        snprintf(day, sizeof day, "%.8s", signer.date);
        sigv4_google_key(signing->who->secret_key, day, place->region, google_key);
    }
    sigv4_authorization(&request, &signer, &authorization);
    explicit_bzero(google_key, sizeof google_key);
    write_out(ret, &request, place, "", str_text(&authorization));
    str_clear(&authorization);
    str_clear(&path);
}

void s3_sign(struct s3_signed *ret, const struct s3_task *task, const struct s3_signing *signing)
{
    if (task->borne)
        bear(ret, task, signing);
    else
        sign(ret, task, signing);
}
