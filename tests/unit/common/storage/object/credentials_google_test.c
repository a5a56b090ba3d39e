/* A Google service account's token: from the metadata server's answer to the store that gets it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/storage/object/s3_desk.h"

/* --- the answer --- */

static int of_text(const char *text, struct credentials *ret, struct error *err)
{
    return credentials_google_token(text, strlen(text), 1000, ret, err);
}

Test(credentials_google, a_token_is_read_with_its_end)
{
    struct credentials c;
    struct error err = {0};
    cr_assert_eq(of_text("{\"access_token\":\"ya29.c.b0Aa-_~+/=....\",\"expires_in\":3599,"
                         "\"token_type\":\"Bearer\",\"scope\":\"a b\",\"more\":null}\n",
                         &c, &err),
                 0, "%s", err.text);
    cr_assert_str_eq(c.token, "ya29.c.b0Aa-_~+/=....");
    cr_assert_eq(c.ends_s, 4599);
    cr_assert(c.bearer);
    cr_assert_str_eq(c.access_key, "");
}

Test(credentials_google, an_answer_that_is_no_token_is_refused)
{
    static const char *const wrong[] = {
        "",
        "{}",
        "[]",
        "not found",
        "{\"access_token\":\"t\",\"expires_in\":3599}",
        "{\"access_token\":\"t\",\"token_type\":\"Bearer\"}",
        "{\"expires_in\":3599,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"\",\"expires_in\":3599,\"token_type\":\"Bearer\"}",
        "{\"access_token\":12,\"expires_in\":3599,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t\",\"expires_in\":3599,\"token_type\":\"mac\"}",
        "{\"access_token\":\"t\",\"expires_in\":0,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t\",\"expires_in\":-1,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t\",\"expires_in\":1e9,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t\",\"expires_in\":9999999999,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t\",\"expires_in\":null,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t\",\"expires_in\":{},\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t u\",\"expires_in\":3599,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t\r\nX-Mine: 1\",\"expires_in\":3599,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t\x7f\",\"expires_in\":3599,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"t\",\"expires_in\":3599,\"token_type\":\"Bearer\"",
    };
    struct credentials c;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct error err = {0};
        cr_assert_eq(of_text(wrong[i], &c, &err), -1, "%s", wrong[i]);
        cr_assert_eq(err.code, ERR_DATA);
    }
}

static int of_length(size_t length)
{
    struct credentials c;
    struct error err = {0};
    struct str text = str_init(64 << 10);
    str_adds(&text, "{\"expires_in\":3599,\"token_type\":\"Bearer\",\"access_token\":\"");
    for (size_t i = 0; i < length; i++)
        str_adds(&text, "t");
    str_adds(&text, "\"}");
    int result = credentials_google_token(str_text(&text), text.length, 0, &c, &err);
    str_clear(&text);
    return result;
}

Test(credentials_google, a_token_of_its_greatest_length_has_room_and_a_longer_one_is_refused)
{
    cr_assert_eq(of_length(12 << 10), 0, "as long as Google's may be");
    cr_assert_eq(of_length((16 << 10) - 1), 0);
    cr_assert_eq(of_length(16 << 10), -1);
}

/* --- a metadata server and a bucket behind one address --- */

static const char metadata[] = "/computeMetadata/v1/instance/service-accounts/default/token";

/* How many it gave: the n-th is a-secret-that-is-N. */
static int tokens;

/* state: the status of the metadata server, 0: 200; text: what it says of whose it is. *heard: what came with
 * the bucket's requests. */
static enum stub_then google(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    char text[256];
    const char *flavor = d->text ? d->text : "Metadata-Flavor: Google\r\n";
    if (strcmp(request->target, metadata) != 0) {
        cr_assert_str_eq(stub_header(request, "Metadata-Flavor"), "");
        str_addf(&d->heard, "%s\n", stub_header(request, "Authorization"));
        stub_say(answer, 200, "ETag: \"e\"\r\n", "", 0);
        return STUB_KEEP;
    }
    cr_assert_str_eq(stub_header(request, "Metadata-Flavor"), "Google");
    cr_assert_str_eq(stub_header(request, "Authorization"), "");
    tokens++;
    snprintf(text, sizeof text,
             "{\"access_token\":\"a-secret-that-is-%d\",\"expires_in\":3599,\"token_type\":\"Bearer\"}",
             tokens);
    if (d->state == 404)
        snprintf(text, sizeof text, "IAM returned 404 Not Found\r\nmore of it");
    if (d->state == 302)
        flavor = "Metadata-Flavor: Google\r\nLocation: /elsewhere\r\n";
    stub_say(answer, d->state ? d->state : 200, flavor, text, strlen(text));
    return STUB_KEEP;
}

static void name_places(const struct desk *d)
{
    setenv("GCE_METADATA_HOST", d->endpoint + strlen("http://"), 1);
    setenv("RINGMASTER_GOOGLE_ENDPOINT", d->endpoint, 1);
}

static void open_desk(struct desk *d)
{
    desk_open_bare(d, google);
    name_places(d);
    desk_store(d, "s3://bucket", 1, NULL);
}

static int look(struct desk *d)
{
    struct object_info info;
    d->err = (struct error){0};
    return d->ops->head(d->store, "a", &info, &d->err);
}

Test(credentials_google, a_service_accounts_token_stands_for_a_signature)
{
    struct desk d;
    open_desk(&d);
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "Bearer a-secret-that-is-1\nBearer a-secret-that-is-1\n");
    desk_close(&d);
}

Test(credentials_google, keys_go_before_it)
{
    struct desk d;
    desk_open_bare(&d, google);
    name_places(&d);
    setenv("AWS_ACCESS_KEY_ID", "GOOG1", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-nobody-tells", 1);
    desk_store(&d, "s3://bucket", 1, NULL);
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    cr_assert(strstr(str_text(&d.heard), "Credential=GOOG1/"), "%s", str_text(&d.heard));
    cr_assert_eq(tokens, 0, "nobody is asked for a token");
    desk_close(&d);
}

Test(credentials_google, a_store_that_is_not_googles_for_sure_gets_no_token_and_none_is_asked_for)
{
    struct desk d;
    desk_open_bare(&d, google);
    name_places(&d);
    unsetenv("RINGMASTER_GOOGLE_ENDPOINT");
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, look(&d), ERR_USAGE,
                 "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or");
    cr_assert_eq(stub_requests(d.stub), 0);
    desk_close(&d);
}

static void says(struct desk *d, int status, enum error_code code, bool person, const char *words)
{
    d->state = status;
    expect_error(d, look(d), code, words);
    cr_assert_eq(d->err.class, CLASS_PASSING, "%s", d->err.text);
    cr_assert_eq(d->err.person, person, "%s", d->err.text);
    cr_assert_eq(d->heard.length, 0, "the bucket is not asked: %s", str_text(&d->heard));
}

Test(credentials_google, what_the_metadata_server_does_not_give_now_it_may_give_later)
{
    struct desk d;
    open_desk(&d);
    says(&d, 404, ERR_USAGE, true, "knows no service account (status 404 IAM returned 404 Not Found): give");
    says(&d, 403, ERR_USAGE, true, "roles/iam.workloadIdentityUser");
    says(&d, 302, ERR_USAGE, true, "refuses a token (status 302)");
    int before = stub_requests(d.stub);
    says(&d, 503, ERR_MACHINE, false, "gives no token now: status 503");
    says(&d, 429, ERR_MACHINE, false, "gives no token now: status 429");
    cr_assert_eq(stub_requests(d.stub), before + 6, "three times each");
    d.state = 0;
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    desk_close(&d);
}

Test(credentials_google, who_does_not_say_that_it_is_googles_is_not_believed)
{
    struct desk d;
    open_desk(&d);
    d.text = "";
    says(&d, 0, ERR_USAGE, true, "is not Google's metadata server");
    d.text = "Metadata-Flavor: Amazon\r\n";
    says(&d, 0, ERR_USAGE, true, "is not Google's metadata server");
    desk_close(&d);
}

Test(credentials_google, where_nobody_answers_or_the_name_can_be_none_it_says_so)
{
    struct desk d;
    open_desk(&d);
    setenv("GCE_METADATA_HOST", "127.0.0.1:1", 1);
    says(&d, 0, ERR_USAGE, true,
         "an HMAC key of Google's, or give this machine or pod a Google service account");
    cr_assert(strstr(d.err.text, "at 127.0.0.1:1 does not answer"), "%s", d.err.text);
    setenv("GCE_METADATA_HOST", "http://127.0.0.1/x?", 1);
    says(&d, 0, ERR_USAGE, true, "GCE_METADATA_HOST");
    cr_assert_eq(stub_requests(d.stub), 0);
    desk_close(&d);
}

/* --- a token ends, or is refused --- */

struct token_chain {
    struct waiter waiter;
    struct credentials_store *store;
    const struct credentials *now;
};

static int ask_chain(struct token_chain *chain, int64_t now_s, struct error *err)
{
    bool renewed;
    return credentials_get(chain->store, now_s, false, &chain->now, &renewed, err);
}

Test(credentials_google, a_token_is_renewed_before_it_ends_and_does_while_it_holds)
{
    struct desk d;
    struct token_chain chain;
    struct error err = {0};
    const int64_t now = 1893456000, end = now + 3599;
    desk_open_bare(&d, google);
    name_places(&d);
    cr_assert_eq(waiter_init(&chain.waiter, NULL, &err), 0);
    struct credentials_options options = {.waiter = &chain.waiter, .region = "auto", .google = true};
    cr_assert_eq(credentials_open(&chain.store, &options, &err), 0);
    cr_assert_eq(ask_chain(&chain, now, &err), 0, "%s", err.text);
    cr_assert_eq(ask_chain(&chain, end - 301, &err), 0);
    cr_assert_str_eq(chain.now->token, "a-secret-that-is-1");
    cr_assert_eq(ask_chain(&chain, end - 299, &err), 0);
    cr_assert_str_eq(chain.now->token, "a-secret-that-is-2");
    const int64_t next_end = end - 299 + 3599;
    d.state = 503;
    cr_assert_eq(ask_chain(&chain, next_end - 200, &err), 0, "the one there is still holds");
    cr_assert_str_eq(chain.now->token, "a-secret-that-is-2");
    cr_assert_eq(ask_chain(&chain, next_end + 1, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    credentials_free(chain.store);
    waiter_clear(&chain.waiter);
    desk_close(&d);
}

/* A bucket that has the first tokens revoked. */
static int revoked;

static enum stub_then takes_a_later_one(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    char good[64];
    if (!strcmp(request->target, metadata))
        return google(ctx, request, answer);
    snprintf(good, sizeof good, "Bearer a-secret-that-is-%d", revoked + 1);
    str_addf(&d->heard, "%s\n", stub_header(request, "Authorization"));
    if (strcmp(stub_header(request, "Authorization"), good) != 0)
        return refuse(answer, 401, "AuthenticationRequired");
    stub_say(answer, 200, "ETag: \"e\"\r\n", "text", 4);
    return STUB_KEEP;
}

static int get_object(struct desk *d)
{
    struct str out = str_init(100);
    d->err = (struct error){0};
    int result = d->ops->get(d->store, "a", 10, &out, &d->err);
    str_clear(&out);
    return result;
}

Test(credentials_google, a_token_that_the_store_refuses_is_asked_for_anew_once)
{
    struct desk d;
    desk_open_bare(&d, takes_a_later_one);
    name_places(&d);
    revoked = 1;
    desk_store(&d, "s3://bucket", 1, NULL);
    cr_assert_eq(get_object(&d), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "Bearer a-secret-that-is-1\nBearer a-secret-that-is-2\n");
    cr_assert_eq(tokens, 2);
    desk_close(&d);
}

Test(credentials_google, two_tokens_that_the_store_refuses_are_for_a_person)
{
    struct desk d;
    desk_open_bare(&d, takes_a_later_one);
    name_places(&d);
    revoked = 7;
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, get_object(&d), ERR_USAGE,
                 "the token from Google's metadata server is not taken (status 401");
    cr_assert(d.err.class == CLASS_PASSING && d.err.person);
    cr_assert_eq(tokens, 2);
    desk_close(&d);
}

/* A bucket whose policy does not know the account. */
static enum stub_then denies(void *ctx, const struct stub_request *request, struct str *answer)
{
    return strcmp(request->target, metadata) ? refuse(answer, 403, "AccessDenied")
                                             : google(ctx, request, answer);
}

Test(credentials_google, an_account_that_may_not_is_told_what_it_lacks)
{
    struct desk d;
    struct object_body body = body_of("text");
    desk_open_bare(&d, denies);
    name_places(&d);
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, d.ops->put(d.store, "a", &body, OBJECT_CREATE, &d.err), ERR_USAGE,
                 "roles/storage.objectUser");
    cr_assert(d.err.class == CLASS_PASSING && d.err.person);
    cr_assert_eq(stub_requests(d.stub), 2, "it was not the words: they are not said otherwise");
    desk_close(&d);
}
