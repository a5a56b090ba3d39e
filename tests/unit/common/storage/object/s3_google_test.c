/* Google's XML API: creations, ends of uploads, and requests with a token. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/storage/object/s3_desk.h"

/* As Google answers: it says who it is, passes over If-None-Match, and takes no words of two kinds. */
static enum stub_then google(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    static const char here[] = "x-guploader-uploadid: 1\r\nETag: \"e\"\r\n";
    bool own = stub_header(request, "x-goog-if-generation-match")[0];
    if (own && (stub_header(request, "x-amz-date")[0] || stub_header(request, "x-amz-content-sha256")[0]))
        return refuse(answer, 400, "ExcessHeaderValues");
    if (!strcmp(request->method, "PUT"))
        str_addf(&d->heard, "%s%s\n", own ? "generation " : "", stub_header(request, "If-None-Match"));
    if (own && d->state < 0)
        return refuse(answer, 403, "SignatureDoesNotMatch");
    if (own)
        cr_assert(
            strstr(stub_header(request, "Authorization"), "GOOG4-HMAC-SHA256 Credential=AKIDEXAMPLE/") &&
                strstr(stub_header(request, "Authorization"), "/eu-test-1/storage/goog4_request"),
            "%s", stub_header(request, "Authorization"));
    if (own && d->state++ > 0)
        return refuse(answer, 412, "PreconditionFailed");
    stub_say(answer, 200, here, "", 0);
    return STUB_KEEP;
}

Test(s3_google, what_google_is_to_create_is_said_in_its_own_words)
{
    struct desk d;
    struct object_info info;
    struct object_body body = body_of("text");
    desk_open(&d, google);
    cr_assert_eq(d.ops->head(d.store, "a", &info, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), 0, "%s", d.err.text);
    expect_error(&d, d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), ERR_EXISTS, "exists already");
    cr_assert_eq(d.ops->put(d.store, "b", &body, OBJECT_REPLACE, &d.err), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "generation \ngeneration \n\n");
    desk_close(&d);
}

Test(s3_google, a_store_behind_googles_that_does_not_take_its_words_is_spoken_to_as_any_other)
{
    struct desk d;
    struct object_info info;
    struct object_body body = body_of("text");
    desk_open(&d, google);
    d.state = -1;
    cr_assert_eq(d.ops->head(d.store, "a", &info, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.ops->put(d.store, "b", &body, OBJECT_CREATE, &d.err), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "generation \n*\n*\n");
    desk_close(&d);
}

/* --- with a service account's token, of which Google's own words are all there is --- */

static const char metadata[] = "/computeMetadata/v1/instance/service-accounts/default/token";

static void note_word(struct desk *d, const struct stub_request *request, const char *name)
{
    const char *value = stub_header(request, name);
    if (value[0])
        str_addf(&d->heard, " %s: %s", name, value);
}

/* What Google takes and what it does not, by its reference of the XML API. What is there already: "there". */
static enum stub_then by_token(void *ctx, const struct stub_request *request, struct str *answer)
{
    static const char token[] = "{\"access_token\":\"a-secret-that\",\"expires_in\":3599,\"token_type\":"
                                "\"Bearer\"}";
    static const char begun[] = "<InitiateMultipartUploadResult><UploadId>id</UploadId></"
                                "InitiateMultipartUploadResult>";
    static const char done[] = "<CompleteMultipartUploadResult><ETag>\"-CKic\"</ETag></"
                               "CompleteMultipartUploadResult>";
    struct desk *d = ctx;
    char line[256];
    if (!strcmp(request->target, metadata)) {
        stub_say(answer, 200, "Metadata-Flavor: Google\r\n", token, sizeof token - 1);
        return STUB_KEEP;
    }
    cr_assert_str_eq(stub_header(request, "Authorization"), "Bearer a-secret-that");
    cr_assert(!strcasestr(request->head, "\nx-amz-"), "%s", request->head);
    str_addf(&d->heard, "%s %s", request->method, request->target);
    note_word(d, request, "x-goog-if-generation-match");
    note_word(d, request, "x-goog-hash");
    note_word(d, request, "If-None-Match");
    note_word(d, request, "If-Match");
    str_adds(&d->heard, "\n");
    bool condition = stub_header(request, "x-goog-if-generation-match")[0];
    if (condition && strstr(request->target, "uploadId"))
        return refuse(answer, 400, "NotImplemented");
    if (!strcmp(request->method, "HEAD") && !strstr(request->target, "there")) {
        stub_say(answer, 404, "", "", 0);
        return STUB_KEEP;
    }
    if (condition && strstr(request->target, "there"))
        return refuse(answer, 412, "PreconditionFailed");
    snprintf(line, sizeof line, "ETag: \"e\"\r\nx-goog-hash: %s\r\n", stub_header(request, "x-goog-hash"));
    if (strcmp(request->method, "POST") != 0)
        stub_say(answer, 200, line, "", 0);
    else if (strstr(request->target, "uploads"))
        stub_say(answer, 200, "", begun, sizeof begun - 1);
    else
        stub_say(answer, 200, "", done, sizeof done - 1);
    return STUB_KEEP;
}

static void open_by_token(struct desk *d, stub_reply reply)
{
    desk_open_bare(d, reply);
    setenv("GCE_METADATA_HOST", d->endpoint + strlen("http://"), 1);
    setenv("RINGMASTER_GOOGLE_ENDPOINT", d->endpoint, 1);
    desk_store(d, "s3://bucket", 1, NULL);
}

Test(s3_google, what_comes_with_a_token_is_said_in_googles_words_alone)
{
    struct desk d;
    struct object_body body = body_of("123456789");
    static const char *const name = "there";
    open_by_token(&d, by_token);
    cr_assert_eq(d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), 0, "%s", d.err.text);
    expect_error(&d, d.ops->put(d.store, "there", &body, OBJECT_CREATE, &d.err), ERR_EXISTS, "exists");
    cr_assert_eq(d.ops->put(d.store, "there", &body, OBJECT_REPLACE, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.ops->delete (d.store, &name, 1, &d.err), 0, "%s", d.err.text);
    /* the check value of CRC-32C, e3069283, in base64 */
    cr_assert_str_eq(str_text(&d.heard),
                     "PUT /bucket/a x-goog-if-generation-match: 0 x-goog-hash: crc32c=4waSgw==\n"
                     "PUT /bucket/there x-goog-if-generation-match: 0 x-goog-hash: crc32c=4waSgw==\n"
                     "PUT /bucket/there x-goog-hash: crc32c=4waSgw==\n"
                     "DELETE /bucket/there\n");
    cr_assert_eq(d.store->unproven, 0, "the store has named the checksum of what it got");
    desk_close(&d);
}

/* A store that names no checksum. */
static enum stub_then names_none(void *ctx, const struct stub_request *request, struct str *answer)
{
    if (!strcmp(request->target, metadata))
        return by_token(ctx, request, answer);
    stub_say(answer, 200, "", "", 0);
    return STUB_KEEP;
}

Test(s3_google, a_token_vouches_for_no_bytes)
{
    struct desk d;
    struct object_body body = body_of("123456789");
    open_by_token(&d, names_none);
    cr_assert_eq(d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.store->unproven, 1);
    desk_close(&d);
}

static void upload(struct desk *d, const char *name, int result)
{
    char id[OBJECT_UPLOAD_MAX];
    struct object_part part = {.number = 1, .body = body_of("123456789")};
    str_reset(&d->heard);
    cr_assert_eq(d->ops->upload_open(d->store, name, id, &d->err), 0, "%s", d->err.text);
    cr_assert_eq(d->ops->upload_parts(d->store, name, id, &part, 1, &d->err), 0, "%s", d->err.text);
    cr_assert_eq(d->ops->upload_complete(d->store, name, id, &part, 1, OBJECT_CREATE, &d->err), result,
                 "%s: %s", name, d->err.text);
}

Test(s3_google, the_end_of_an_upload_has_no_condition_and_a_look_before_it)
{
    struct desk d;
    open_by_token(&d, by_token);
    upload(&d, "a", 0);
    cr_assert_str_eq(str_text(&d.heard), "POST /bucket/a?uploads=\n"
                                         "PUT /bucket/a?partNumber=1&uploadId=id x-goog-hash: "
                                         "crc32c=4waSgw==\n"
                                         "HEAD /bucket/a\n"
                                         "POST /bucket/a?uploadId=id\n");
    upload(&d, "there", -1);
    cr_assert_eq(d.err.code, ERR_EXISTS, "%s", d.err.text);
    cr_assert(!strstr(str_text(&d.heard), "POST /bucket/there?uploadId"), "%s", str_text(&d.heard));
    desk_close(&d);
}

/* Of an upload's end the first answer is lost; then the upload is gone and its object is there. */
static enum stub_then loses_the_end(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    bool end = !strcmp(request->method, "POST") && strstr(request->target, "uploadId");
    if (end && d->state++ == 0)
        return STUB_RESET;
    if (end)
        return refuse(answer, 404, "NoSuchUpload");
    if (strcmp(request->method, "HEAD") != 0 || !d->state)
        return by_token(ctx, request, answer);
    stub_say(answer, 200, "ETag: \"-CKicn4fknNwCEAE=\"\r\n", "", 0);
    return STUB_KEEP;
}

Test(s3_google, an_upload_that_is_gone_was_ended_by_us_where_nothing_was_there_before)
{
    struct desk d;
    open_by_token(&d, loses_the_end);
    upload(&d, "a", 0);
    cr_assert_eq(d.retries, 1);
    desk_close(&d);
}

/* With keys: a condition where it can't be taken for a store that does not know it. */
static enum stub_then by_keys(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    static const char begun[] = "<InitiateMultipartUploadResult><UploadId>id</UploadId></"
                                "InitiateMultipartUploadResult>";
    static const char done[] = "<CompleteMultipartUploadResult><ETag>\"-CKic\"</ETag></"
                               "CompleteMultipartUploadResult>";
    const char *own = stub_header(request, "x-goog-if-generation-match");
    bool post = !strcmp(request->method, "POST"), begins = strstr(request->target, "uploads") != NULL;
    if (strstr(request->target, "uploadId") && own[0])
        return refuse(answer, 400, "NotImplemented");
    if (!strcmp(request->method, "PUT") && !strstr(request->target, "uploadId"))
        str_addf(&d->heard, "%s\n", own);
    if (!strcmp(request->method, "HEAD"))
        stub_say(answer, 404, "x-guploader-uploadid: 1\r\n", "", 0);
    else if (post)
        stub_say(answer, 200, "x-guploader-uploadid: 1\r\n", begins ? begun : done,
                 (begins ? sizeof begun : sizeof done) - 1);
    else
        stub_say(answer, 200, "x-guploader-uploadid: 1\r\nETag: \"e\"\r\n", "", 0);
    return STUB_KEEP;
}

Test(s3_google, an_upload_does_not_cost_the_creations_behind_it_their_condition)
{
    struct desk d;
    struct object_body body = body_of("text");
    desk_open(&d, by_keys);
    upload(&d, "a", 0);
    cr_assert_eq(d.ops->put(d.store, "b", &body, OBJECT_CREATE, &d.err), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "0\n", "without it Google overwrites what is there");
    desk_close(&d);
}
