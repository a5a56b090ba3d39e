/* Creations at Google's XML API. */
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
