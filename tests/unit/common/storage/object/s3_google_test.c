/* Google's XML API: creations, and ends of uploads. */
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
