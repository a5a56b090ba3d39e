#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "tests/unit/common/storage/object/s3_desk.h"

/* --- retries --- */

/* Trouble of a different kind each time, then success. */
static enum stub_then trouble(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *desk = ctx;
    cr_assert_str_eq(request->body, "bytes");
    switch (desk->state++) {
    case 0:
        return refuse(answer, 503, "SlowDown");
    case 1:
        return STUB_RESET;
    case 2:
        return refuse(answer, 400, "RequestTimeout");
    case 3:
        stub_say(answer, 502, "", "<html>bad gateway<br></html>", 28);
        return STUB_CLOSE;
    case 4:
        return refuse(answer, 429, "TooManyRequests");
    default:
        stub_say(answer, 200, "ETag: \"e\"\r\n", "", 0);
        return STUB_KEEP;
    }
}

Test(s3_store, trouble_that_passes_is_waited_out)
{
    struct desk d;
    struct object_body body = body_of("bytes");
    desk_open(&d, trouble);
    cr_assert_eq(d.ops->put(d.store, "a", &body, OBJECT_REPLACE, &d.err), 0, "%s", d.err.text);
    cr_assert_geq(d.retries, 4); /* libcurl may meet the reset of a kept connection by itself */
    cr_assert(strstr(d.last_retry, "PUT base/a: status 429"), "%s", d.last_retry);
    desk_close(&d);
}

static enum stub_then always_busy(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request;
    return refuse(answer, 503, "SlowDown");
}

Test(s3_store, trouble_that_stays_is_an_error_of_the_machine)
{
    struct desk d;
    struct object_body body = body_of("bytes");
    desk_open(&d, always_busy);
    expect_error(&d, d.ops->put(d.store, "a", &body, OBJECT_REPLACE, &d.err), ERR_MACHINE,
                 "s3://bucket/base/a: PUT gets status 503");
    cr_assert_eq(stub_requests(d.stub), 6);
    desk_close(&d);
}

Test(s3_store, a_store_in_trouble_is_not_asked_without_end)
{
    struct desk d;
    desk_open(&d, always_busy);
    struct object_info info;
    for (int i = 0; i < 60; i++)
        cr_assert_eq(d.ops->head(d.store, "a", &info, NULL), -1);
    cr_assert_eq(stub_requests(d.stub), 60 + 100); /* what the purse pays for, and each call's first */
    desk_close(&d);
}

/* Of the answers that move no byte of an object, too: whoever watches sees that the store is there. */
Test(s3_store, a_good_answer_is_a_sign_of_life_and_a_refusal_is_none)
{
    struct desk d;
    struct object_body body = body_of("bytes");
    desk_open(&d, trouble);
    cr_assert_eq(d.ops->put(d.store, "a", &body, OBJECT_REPLACE, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.answers, 1);
    desk_close(&d);
    desk_open(&d, always_busy);
    expect_error(&d, d.ops->put(d.store, "a", &body, OBJECT_REPLACE, &d.err), ERR_MACHINE, "503");
    cr_assert_eq(d.answers, 0);
    desk_close(&d);
}

static enum stub_then silent_first(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    (void)request;
    if (!d->state++)
        return STUB_HANG;
    stub_say(answer, 200, "ETag: \"e\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "", 0);
    return STUB_KEEP;
}

Test(s3_store, silence_is_met_with_another_try)
{
    struct desk d;
    struct object_info info;
    desk_open(&d, silent_first);
    desk_inside(&d)->patience.silent = RM_S;
    cr_assert_eq(d.ops->head(d.store, "a", &info, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(info.modified_s, 784111777);
    cr_assert_str_eq(info.tag, "\"e\"");
    desk_close(&d);
}

Test(s3_store, nobody_there_is_an_error_of_the_machine)
{
    struct desk d;
    struct object_info info;
    desk_open(&d, always_busy);
    d.ops->free(d.store);
    text_copy(d.endpoint, sizeof d.endpoint, "http://127.0.0.1:1");
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, d.ops->head(d.store, "a", &info, &d.err), ERR_MACHINE, "127.0.0.1:1");
    desk_close(&d);
}

static enum stub_then hang(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)request, (void)answer;
    atomic_store((atomic_int *)((struct desk *)ctx)->text, 1);
    return STUB_HANG;
}

Test(s3_store, what_is_under_way_is_given_up_on_demand)
{
    struct desk d;
    static atomic_int cancel;
    struct object_info info;
    desk_open(&d, hang);
    d.ops->free(d.store);
    d.text = (const char *)&cancel;
    desk_store(&d, "s3://bucket", 1, &cancel);
    desk_inside(&d)->patience.silent = 600 * RM_S;
    expect_error(&d, d.ops->head(d.store, "a", &info, &d.err), ERR_ABORTED, "");
    desk_close(&d);
}

/* --- what we did without knowing --- */

/* The first create is done, but its answer is lost; the second finds it. */
static enum stub_then lost_answer(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    if (!strcmp(request->method, "GET")) {
        stub_say(answer, 200, "ETag: \"e\"\r\n", d->text, strlen(d->text));
        return STUB_KEEP;
    }
    cr_assert_str_eq(stub_header(request, "If-None-Match"), "*");
    return d->state++ ? refuse(answer, 412, "PreconditionFailed") : STUB_RESET;
}

Test(s3_store, a_create_that_was_done_before_its_answer_was_lost_is_done)
{
    struct desk d;
    struct object_body body = {.runs = 3, .run = {{"one", 3}, {NULL, 0}, {"two", 3}}};
    desk_open(&d, lost_answer);
    d.text = "onetwo";
    cr_assert_eq(d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), 0, "%s", d.err.text);
    static const char *const others[] = {"onetwO", "onetw", "onetwo!", ""};
    for (int i = 0; i < 4; i++) {
        d.state = 0;
        d.text = others[i];
        expect_error(&d, d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), ERR_EXISTS,
                     "exists already");
    }
    desk_close(&d);
}

/* libcurl sends again by itself what a kept connection has lost: then no try would have failed. */
Test(s3_store, a_create_is_never_sent_twice_unseen)
{
    struct desk d;
    struct object_body body = body_of("text");
    struct str out = str_init(100);
    desk_open(&d, lost_answer);
    d.text = "text";
    cr_assert_eq(d.ops->get(d.store, "a", 10, &out, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.retries, 1);
    str_clear(&out);
    desk_close(&d);
}

Test(s3_store, a_create_that_comes_second_at_once_is_refused_unasked)
{
    struct desk d;
    struct object_body body = body_of("same");
    desk_open(&d, lost_answer);
    d.state = 1;
    d.text = "same";
    expect_error(&d, d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), ERR_EXISTS, "exists already");
    cr_assert_eq(stub_requests(d.stub), 1);
    desk_close(&d);
}

#define DONE "<CompleteMultipartUploadResult/>"

/* 200 with a refusal, 200 with nothing, then what `state` says. */
static enum stub_then late(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    str_reset(&d->heard);
    if (!strcmp(request->method, "HEAD")) {
        stub_say(answer, 200, d->text, "", 0);
        return STUB_KEEP;
    }
    str_adds(&d->heard, request->body);
    if (request->number == 0)
        return refuse(answer, 200, "InternalError");
    if (request->number == 1)
        stub_say(answer, 200, "", "", 0);
    else if (d->state)
        return refuse(answer, d->state, d->state == 404 ? "NoSuchUpload" : "PreconditionFailed");
    else
        stub_say(answer, 200, "", DONE, sizeof DONE - 1);
    return STUB_KEEP;
}

static const struct object_part two_parts[] = {
    {.number = 1, .tag = "\"d41d8cd98f00b204e9800998ecf8427e\"|AAAAAA=="},
    {.number = 7, .tag = "\"0cc175b9c0f1b6a831c399e269772661\""},
};

Test(s3_store, the_end_of_an_upload_is_believed_only_when_it_is_said)
{
    struct desk d;
    desk_open(&d, late);
    cr_assert_eq(d.ops->upload_complete(d.store, "a", "id", two_parts, 2, OBJECT_REPLACE, &d.err), 0, "%s",
                 d.err.text);
    cr_assert_eq(d.retries, 2);
    cr_assert_str_eq(
        str_text(&d.heard),
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
        "<Part><PartNumber>1</PartNumber><ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag>"
        "<ChecksumCRC32C>AAAAAA==</ChecksumCRC32C></Part>"
        "<Part><PartNumber>7</PartNumber><ETag>&quot;0cc175b9c0f1b6a831c399e269772661&quot;</ETag></Part>"
        "</CompleteMultipartUpload>");
    desk_close(&d);
}

/* md5(d41d8cd98f00b204e9800998ecf8427e 0cc175b9c0f1b6a831c399e269772661), by md5sum */
#define WHOLE_TAG "ETag: \"68083ea43d0307eecfa2b4749f19df15-2\"\r\n"

static void ended_already(int status, const char *tag, bool ours)
{
    struct desk d;
    desk_open(&d, late);
    d.state = status;
    d.text = tag;
    int result = d.ops->upload_complete(d.store, "a", "id", two_parts, 2, OBJECT_CREATE, &d.err);
    if (ours)
        cr_assert_eq(result, 0, "%s", d.err.text);
    else
        expect_error(&d, result, status == 404 ? ERR_NOT_FOUND : ERR_EXISTS, "base/a");
    desk_close(&d);
}

Test(s3_store, an_upload_that_is_gone_was_ended_by_us_where_the_object_is_ours)
{
    ended_already(404, WHOLE_TAG, true);
}

Test(s3_store, an_object_that_is_there_already_is_ours_where_its_parts_are)
{
    ended_already(412, WHOLE_TAG, true);
}

Test(s3_store, an_object_of_other_parts_is_somebody_elses)
{
    ended_already(412, "ETag: \"00000000000000000000000000000000-2\"\r\n", false);
}

Test(s3_store, an_upload_that_was_aborted_is_not_found)
{
    ended_already(404, "ETag: \"00000000000000000000000000000000\"\r\n", false);
}

/* --- reading --- */

enum { WHOLE = 3 << 20 };
static char whole[WHOLE];

static void fill_whole(void)
{
    for (int i = 0; i < WHOLE; i++)
        whole[i] = (char)(i * 7 + (i >> 9));
}

/* A good server of `whole`, as far as *answer may go: `most` bytes of the body. */
static void serve_range(const struct stub_request *request, struct str *answer, const char *tag, size_t most)
{
    long from = 0, to = 0;
    cr_assert_eq(sscanf(stub_header(request, "Range"), "bytes=%ld-%ld", &from, &to), 2);
    size_t bytes = (size_t)(to - from + 1);
    str_addf(
        answer,
        "HTTP/1.1 206 Some\r\nContent-Length: %zu\r\nContent-Range: bytes %ld-%ld/%d\r\nETag: %s\r\n\r\n",
        bytes, from, to, WHOLE, tag);
    str_add(answer, whole + from, bytes < most ? bytes : most);
}

/* Each connection is cut after a third of a megabyte. */
static enum stub_then cutting(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    cr_assert_str_eq(stub_header(request, "If-Match"), d->state++ ? "\"v1\"" : "");
    serve_range(request, answer, "\"v1\"", 350000);
    return STUB_CLOSE;
}

static void gather(void *ctx, const void *bytes, size_t count)
{
    str_add(ctx, bytes, count);
}

Test(s3_store, a_range_that_is_cut_again_and_again_goes_on_where_it_stopped)
{
    struct desk d;
    struct str came = str_init(2 * WHOLE);
    char *into = malloc(WHOLE);
    struct object_range range = {
        .name = "a", .offset = 5, .bytes = 1500000, .into = into, .came = gather, .ctx = &came};
    fill_whole();
    desk_open(&d, cutting);
    cr_assert_eq(d.ops->read(d.store, &range, 1, &d.err), 0, "%s", d.err.text);
    cr_assert(!memcmp(into, whole + 5, 1500000));
    cr_assert_eq(came.length, 1500000);
    cr_assert(!memcmp(came.data, whole + 5, 1500000));
    cr_assert_eq(stub_requests(d.stub), 5);
    str_clear(&came);
    free(into);
    desk_close(&d);
}

/* All of the range, and a length that says that more will come. */
static enum stub_then too_much_promised(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request;
    str_adds(answer, "HTTP/1.1 206 Some\r\nContent-Length: 30\r\nContent-Range: bytes 1-20/100\r\n\r\n"
                     "01234567890123456789");
    return STUB_CLOSE;
}

Test(s3_store, a_range_that_is_all_there_needs_no_good_end)
{
    struct desk d;
    char into[20];
    struct object_range range = {.name = "a", .offset = 1, .bytes = 20, .into = into};
    desk_open(&d, too_much_promised);
    cr_assert_eq(d.ops->read(d.store, &range, 1, &d.err), 0, "%s", d.err.text);
    cr_assert(!memcmp(into, "01234567890123456789", 20));
    cr_assert_eq(stub_requests(d.stub), 1);
    desk_close(&d);
}

static enum stub_then changing(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    serve_range(request, answer, d->state++ ? "\"v2\"" : "\"v1\"", 350000);
    return STUB_CLOSE;
}

Test(s3_store, a_range_is_never_put_together_from_two_contents)
{
    struct desk d;
    char *into = malloc(WHOLE);
    struct object_range range = {.name = "a", .bytes = 1500000, .into = into};
    fill_whole();
    desk_open(&d, changing);
    expect_error(&d, d.ops->read(d.store, &range, 1, &d.err), ERR_DATA, "changed");
    range.tag = "\"v0\"";
    expect_error(&d, d.ops->read(d.store, &range, 1, &d.err), ERR_DATA, "changed");
    free(into);
    desk_close(&d);
}

static enum stub_then not_the_range(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)request;
    static const char *const heads[] = {
        "HTTP/1.1 206 Some\r\nContent-Length: 10\r\nContent-Range: bytes 0-9/100\r\n\r\n0123456789",
        "HTTP/1.1 206 Some\r\nContent-Length: 10\r\nContent-Range: bytes 1-10/11\r\n\r\n0123456789",
        "HTTP/1.1 206 Some\r\nContent-Length: 10\r\n\r\n0123456789",
        "HTTP/1.1 206 Some\r\nContent-Length: 10\r\nContent-Range: bytes "
        "1-99999999999999999999/5\r\n\r\n0123456789",
        "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n012345678901234567890",
        "HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 206 Some\r\nTransfer-Encoding: chunked\r\nContent-Range: bytes 1-20/100\r\n\r\n"
        "19\r\n0123456789012345678901234\r\n0\r\n\r\n",
    };
    str_adds(answer, heads[((struct desk *)ctx)->state]);
    return STUB_CLOSE;
}

Test(s3_store, an_answer_that_is_not_the_range_is_refused)
{
    struct desk d;
    char into[20 + 1] = {0};
    struct object_range range = {.name = "a", .offset = 1, .bytes = 20, .into = into};
    desk_open(&d, not_the_range);
    for (d.state = 0; d.state < 7; d.state++) {
        cr_assert_eq(d.ops->read(d.store, &range, 1, &d.err), -1);
        cr_assert_eq(d.err.code, ERR_DATA, "%d: %s", d.state, d.err.text);
        cr_assert_eq(into[20], 0);
    }
    desk_close(&d);
}

static enum stub_then too_long(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request;
    stub_say(answer, 200, "", "01234567890", 11);
    return STUB_KEEP;
}

Test(s3_store, a_small_object_longer_than_it_may_be_is_refused)
{
    struct desk d;
    struct str out = str_init(1 << 20);
    desk_open(&d, too_long);
    expect_error(&d, d.ops->get(d.store, "a", 10, &out, &d.err), ERR_DATA, "longer");
    cr_assert_eq(out.length, 0);
    cr_assert_eq(d.ops->get(d.store, "a", 11, &out, &d.err), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&out), "01234567890");
    str_clear(&out);
    desk_close(&d);
}

/* --- refusals, in words --- */

struct saying {
    int status;
    const char *code, *headers;
    enum error_code expected;
    const char *words;
    enum fault_class class; /* of what waiting may heal: a person, or time, sets it right in the store */
    bool person;
};

static const struct saying sayings[] = {
    {404, "NoSuchKey", "", ERR_NOT_FOUND, "s3://bucket/base/a: not found", CLASS_UNKNOWN, false},
    {404, "NoSuchBucket", "", ERR_USAGE, "there is no bucket bucket at 127.0.0.1", CLASS_PASSING, true},
    {401, "AccessDenied", "", ERR_USAGE, "access denied", CLASS_PASSING, true},
    {403, "AccessDenied", "", ERR_USAGE, "access denied: the credentials from the environment may not GET",
     CLASS_PASSING, true},
    {403, "InvalidAccessKeyId", "", ERR_USAGE, "doesn't take the credentials from the environment",
     CLASS_PASSING, true},
    {403, "SignatureDoesNotMatch", "", ERR_USAGE, "doesn't take the credentials", CLASS_PASSING, true},
    {400, "ExpiredToken", "", ERR_USAGE, "out of date", CLASS_PASSING, true},
    {301, "PermanentRedirect", "x-amz-bucket-region: eu-north-1\r\n", ERR_USAGE,
     "set AWS_REGION or the job's region to eu-north-1", CLASS_PASSING, true},
    {307, "TemporaryRedirect", "", ERR_USAGE, "is not at 127.0.0.1", CLASS_PASSING, true},
    {400, "AuthorizationHeaderMalformed</Code><Region>eu-south-2</Region><Code>AuthorizationHeaderMalformed",
     "", ERR_USAGE, "eu-south-2", CLASS_PASSING, true},
    {507, "XMinioStorageFull", "", ERR_MACHINE, "the store is full", CLASS_PASSING, false},
    {403, "QuotaExceeded", "", ERR_MACHINE, "the store is full", CLASS_PASSING, false},
    {400, "InvalidRequest", "", ERR_MACHINE, "status 400 InvalidRequest because", CLASS_UNKNOWN, false},
};

static enum stub_then say_one(void *ctx, const struct stub_request *request, struct str *answer)
{
    const struct saying *saying = &sayings[((struct desk *)ctx)->state];
    char body[512];
    (void)request;
    int length =
        snprintf(body, sizeof body, "<Error><Code>%s</Code><Message>because</Message></Error>", saying->code);
    stub_say(answer, saying->status, saying->headers, body, (size_t)length);
    return STUB_KEEP;
}

Test(s3_store, each_refusal_says_what_to_do_and_whether_waiting_may_heal_it)
{
    struct desk d;
    struct str out = str_init(100);
    desk_open(&d, say_one);
    for (d.state = 0; d.state < (int)(sizeof sayings / sizeof sayings[0]); d.state++) {
        const struct saying *saying = &sayings[d.state];
        expect_error(&d, d.ops->get(d.store, "a", 10, &out, &d.err), saying->expected, saying->words);
        cr_assert_eq(d.err.class, saying->class, "%s: %d", d.err.text, (int)d.err.class);
        cr_assert_eq(d.err.person, saying->person, "%s", d.err.text);
        cr_assert_eq(d.retries, 0);
    }
    str_clear(&out);
    desk_close(&d);
}

/* --- the clock --- */

static enum stub_then skewed(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    bool right = !strncmp(stub_header(request, "x-amz-date"), "19941106T08", 11);
    str_addf(
        answer,
        "HTTP/1.1 %d S\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\nETag: \"e\"\r\n\r\n",
        right ? 200 : 403);
    d->state += right;
    return STUB_KEEP;
}

Test(s3_store, a_wrong_clock_is_set_by_the_servers_date)
{
    struct desk d;
    struct object_info info;
    desk_open(&d, skewed);
    cr_assert_eq(d.ops->head(d.store, "a", &info, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.ops->head(d.store, "a", &info, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(stub_requests(d.stub), 3);
    cr_assert_eq(d.retries, 0);
    desk_close(&d);
}

Test(s3_store, requests_that_are_under_way_together_all_learn_of_a_wrong_clock)
{
    struct desk d;
    const char *names[] = {"a", "b", "c", "d"};
    desk_open(&d, skewed);
    cr_assert_eq(d.ops->delete (d.store, names, 4, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.state, 4);
    desk_close(&d);
}

/* Two servers behind one address: one lives in 1994 and is right, each third request comes to the other. */
static enum stub_then two_clocks(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    bool other = d->state++ % 3 == 0;
    bool right = !other && !strncmp(stub_header(request, "x-amz-date"), "1994", 4);
    str_addf(answer, "HTTP/1.1 %d S\r\nDate: %s 08:49:37 GMT\r\nContent-Length: 5\r\nETag: \"e\"\r\n\r\n",
             right ? 200 : 403, other ? "Tue, 06 Nov 2001" : "Sun, 06 Nov 1994");
    return STUB_KEEP;
}

Test(s3_store, a_server_that_is_wrong_about_the_time_is_not_believed_for_long)
{
    struct desk d;
    struct object_info info;
    desk_open(&d, two_clocks);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(d.ops->head(d.store, "a", &info, &d.err), 0, "%s", d.err.text);
    desk_close(&d);
}

/* --- what protects a body in clear --- */

enum { LARGE = 300 << 10, PARTS = 12 };

/* Knows no checksums, and takes nothing that is neither signed nor checked. */
static enum stub_then no_checksums(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    if (stub_header(request, "x-amz-checksum-crc32c")[0]) {
        cr_assert_str_eq(stub_header(request, "x-amz-content-sha256"), sigv4_unsigned);
        d->state++;
        return refuse(answer, 501, "NotImplemented");
    }
    uint8_t hash[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    sha256_once(request->body, request->body_length, hash);
    hex_encode(hash, sizeof hash, hex);
    cr_assert_str_eq(stub_header(request, "x-amz-content-sha256"), hex);
    stub_say(answer, 200, "ETag: \"e\"\r\n", "", 0);
    return STUB_KEEP;
}

static void send_large_parts(struct desk *d, char *bytes)
{
    struct object_part part[PARTS];
    memset(bytes, 'x', LARGE + PARTS);
    for (int i = 0; i < PARTS; i++) {
        part[i] = (struct object_part){.number = i + 1, .body.runs = 1};
        part[i].body.run[0].bytes = bytes;
        part[i].body.run[0].count = (size_t)LARGE + (size_t)i;
    }
    cr_assert_eq(d->ops->upload_parts(d->store, "a", "id", part, PARTS, &d->err), 0, "%s", d->err.text);
    for (int i = 0; i < PARTS; i++)
        cr_assert_str_eq(part[i].tag, "\"e\"");
}

Test(s3_store, large_bodies_are_signed_in_clear)
{
    struct desk d;
    static char bytes[LARGE + PARTS];
    desk_open(&d, no_checksums);
    send_large_parts(&d, bytes);
    cr_assert_eq(d.state, 0);
    desk_close(&d);
}

/* All that are under way learn of it, not only the first, and those that have been read for a checksum
 * already. */
Test(s3_store, where_a_store_knows_no_checksums_unsigned_bodies_are_signed_after_all)
{
    struct desk d;
    static char bytes[LARGE + PARTS];
    desk_open(&d, no_checksums);
    struct s3_place *place = &desk_inside(&d)->place;
    place->signs = false;
    place->checksums = true;
    send_large_parts(&d, bytes);
    cr_assert(d.state >= 1);
    desk_close(&d);
}

/* The same, and has no time for the first part until the others' answers have told of it. */
static enum stub_then no_checksums_and_busy(void *ctx, const struct stub_request *request, struct str *answer)
{
    if (strstr(request->target, "partNumber=1&") && stub_header(request, "x-amz-checksum-crc32c")[0])
        return refuse(answer, 503, "SlowDown");
    return no_checksums(ctx, request, answer);
}

/* What was read for a checksum that it was sent without is not named by it: such a store knows of none. */
Test(s3_store, a_part_that_was_sent_without_its_checksum_is_not_named_by_it)
{
    struct desk d;
    static char bytes[LARGE + PARTS];
    desk_open(&d, no_checksums_and_busy);
    struct s3_place *place = &desk_inside(&d)->place;
    place->signs = false;
    place->checksums = true;
    send_large_parts(&d, bytes);
    desk_close(&d);
}

/* --- what is sent --- */

static enum stub_then note_request(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    str_addf(&d->heard, "%s %s\n", request->method, request->target);
    if (request->body_length)
        cr_assert_str_eq(stub_header(request, "x-amz-content-sha256"),
                         "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"); /* hello */
    cr_assert(strstr(stub_header(request, "Authorization"), "/eu-test-1/s3/aws4_request, SignedHeaders="));
    stub_say(answer, 204, "", "", 0);
    return STUB_KEEP;
}

Test(s3_store, keys_are_below_the_prefix_and_encoded)
{
    struct desk d;
    struct object_body body = body_of("hello");
    const char *names[] = {"x", "y/z"};
    desk_open(&d, note_request);
    cr_assert_eq(d.ops->put(d.store, "a b/+=", &body, OBJECT_REPLACE, &d.err), 0, "%s", d.err.text);
    desk_inside(&d)->slots = 1; /* one after another, so that the order is known */
    cr_assert_eq(d.ops->delete (d.store, names, 2, &d.err), 0, "%s", d.err.text);
    cr_assert_eq(d.ops->upload_abort(d.store, "x", "i/d=", &d.err), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard),
                     "PUT /bucket/base/a%20b/%2B%3D\nDELETE /bucket/base/x\nDELETE /bucket/base/y/z\n"
                     "DELETE /bucket/base/x?uploadId=i%2Fd%3D\n");
    desk_inside(&d)->slots = 4;
    desk_close(&d);
}

/* --- listings --- */

static enum stub_then pages(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    const char *page = d->text;
    cr_assert(strstr(request->target, "list-type=2&prefix=base%2Fp"), "%s", request->target);
    if (!page)
        page =
            strstr(request->target, "continuation-token=t%2B1")
                ? "<ListBucketResult><Contents><Key>base/p3</Key><Size>3</Size></Contents></ListBucketResult>"
                : "<ListBucketResult><Contents><Key>base/p1</Key><Size>1</Size></"
                  "Contents><Contents><Key>base/p2/</Key>"
                  "<Size>0</Size></Contents><Contents><Key>base/p//2</Key><Size>0</Size></Contents>"
                  "<IsTruncated>true</IsTruncated><NextContinuationToken>t+1</NextContinuationToken></"
                  "ListBucketResult>";
    stub_say(answer, 200, "", page, strlen(page));
    return STUB_KEEP;
}

static int note_entry(void *ctx, const struct object_entry *entry, struct error *err)
{
    struct desk *d = ctx;
    str_addf(&d->heard, "%s ", entry->name);
    return d->state ? err_set(err, ERR_TRAINING, "enough") : 0;
}

Test(s3_store, a_listing_goes_over_pages_and_shows_names_that_can_be_names)
{
    struct desk d;
    desk_open(&d, pages);
    cr_assert_eq(d.ops->list(d.store, "p", note_entry, &d, &d.err), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "p1 p3 ");
    d.state = 1;
    expect_error(&d, d.ops->list(d.store, "p", note_entry, &d, &d.err), ERR_TRAINING, "enough");
    desk_close(&d);
}

Test(s3_store, a_listing_that_cannot_be_is_refused)
{
    static const char *const wrong[] = {
        "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>same</"
        "NextContinuationToken></ListBucketResult>",
        "<ListBucketResult><Contents><Key>elsewhere/p1</Key><Size>1</Size></Contents></ListBucketResult>",
        "<html/>",
    };
    struct desk d;
    desk_open(&d, pages);
    for (int i = 0; i < 3; i++) {
        d.text = wrong[i];
        expect_error(&d, d.ops->list(d.store, "p", note_entry, &d, &d.err), ERR_DATA, "s3://bucket/base");
    }
    desk_close(&d);
}

static enum stub_then cut_page(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    static const char page[] =
        "<ListBucketResult><Contents><Key>base/p1</Key><Size>1</Size></Contents></ListBucketResult>";
    (void)request;
    stub_say(answer, 200, "", page, d->retries ? sizeof page - 1 : 72);
    return STUB_KEEP;
}

Test(s3_store, a_listing_that_is_not_all_there_is_asked_for_again)
{
    struct desk d;
    desk_open(&d, cut_page);
    cr_assert_eq(d.ops->list(d.store, "p", note_entry, &d, &d.err), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "p1 ");
    cr_assert_eq(d.retries, 1);
    desk_close(&d);
}

/* S3 has said 200 by the time that it fails, until it was asked for the third time. */
static enum stub_then late_error(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    static const char page[] =
        "<ListBucketResult><Contents><Key>base/p1</Key><Size>1</Size></Contents></ListBucketResult>";
    (void)request;
    if (d->retries < 2)
        return refuse(answer, 200, d->text);
    stub_say(answer, 200, "", page, sizeof page - 1);
    return STUB_KEEP;
}

Test(s3_store, a_listing_that_fails_behind_its_good_status_is_refused_as_any_other)
{
    static const char *const passing[] = {"InternalError", "SlowDown", "SomethingNew"};
    struct desk d;
    desk_open(&d, late_error);
    for (int i = 0; i < 3; i++) {
        str_reset(&d.heard);
        d.retries = 0;
        d.text = passing[i];
        cr_assert_eq(d.ops->list(d.store, "p", note_entry, &d, &d.err), 0, "%s", d.err.text);
        cr_assert_str_eq(str_text(&d.heard), "p1 ");
        cr_assert_eq(d.retries, 2);
    }
    d.retries = -100;
    d.text = "InternalError";
    expect_error(&d, d.ops->list(d.store, "p", note_entry, &d, &d.err), ERR_MACHINE, "InternalError");
    cr_assert_eq(d.err.class, CLASS_PASSING);
    d.retries = 0;
    d.text = "AccessDenied";
    expect_error(&d, d.ops->list(d.store, "p", note_entry, &d, &d.err), ERR_USAGE, "access denied");
    cr_assert_eq(d.retries, 0);
    desk_close(&d);
}

static enum stub_then no_xml(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request;
    stub_say(answer, 200, "", "not even that", 13);
    return STUB_KEEP;
}

Test(s3_store, a_store_that_never_lists_is_an_error_of_the_machine)
{
    struct desk d;
    desk_open(&d, no_xml);
    expect_error(&d, d.ops->list(d.store, "p", note_entry, &d, &d.err), ERR_MACHINE, "no XML");
    desk_close(&d);
}
