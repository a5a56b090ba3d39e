#include "common/storage/object/credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/common/storage/object/s3_desk.h"

/* --- shared files --- */

static const char shared[] = "# a comment\n"
                             "[default]\n"
                             "aws_access_key_id = DEFAULTKEY\n"
                             "aws_secret_access_key=defaultsecret\r\n"
                             "[ other ]\n"
                             "  aws_access_key_id =   OTHERKEY  \n"
                             "aws_secret_access_key = has=equals/and+plus==\n"
                             "aws_session_token = tok\n"
                             "not a line\n";
static const char config[] = "[profile other]\n"
                             "region = eu-west-9\n"
                             "aws_access_key_id = NOTTHIS\n"
                             "s3 =\n"
                             "  addressing_style = virtual\n"
                             "  region = nested\n"
                             "  payload_signing_enabled = false\n"
                             "endpoint_url = https://there:9\n"
                             "[other]\n"
                             "region = wrong\n"
                             "[default]\n"
                             "region = eu-default-1\n";

Test(profile, keys_come_from_one_file_and_settings_from_the_other)
{
    struct profile p = {0};
    cr_assert_eq(profile_parse(&p, "other", false, shared, NULL), 0);
    cr_assert_eq(profile_parse(&p, "other", true, config, NULL), 0);
    cr_assert(p.found);
    cr_assert_str_eq(p.access_key, "OTHERKEY");
    cr_assert_str_eq(p.secret_key, "has=equals/and+plus==");
    cr_assert_str_eq(p.token, "tok");
    cr_assert_str_eq(p.region, "eu-west-9");
    cr_assert_str_eq(p.style, "virtual");
    cr_assert_str_eq(p.signing, "false");
    cr_assert_str_eq(p.endpoint, "https://there:9");
}

Test(profile, default_is_called_the_same_in_both)
{
    struct profile p = {0};
    cr_assert_eq(profile_parse(&p, "default", false, shared, NULL), 0);
    cr_assert_eq(profile_parse(&p, "default", true, config, NULL), 0);
    cr_assert_str_eq(p.access_key, "DEFAULTKEY");
    cr_assert_str_eq(p.secret_key, "defaultsecret");
    cr_assert_str_eq(p.region, "eu-default-1");
    cr_assert_eq(p.style[0], 0);
    struct profile none = {0};
    cr_assert_eq(profile_parse(&none, "absent", false, shared, NULL), 0);
    cr_assert(!none.found && !none.access_key[0]);
}

Test(profile, a_value_that_does_not_fit_is_refused)
{
    struct profile p = {0};
    struct error err = {0};
    char text[1024];
    snprintf(text, sizeof text, "[default]\naws_access_key_id = %0400d\n", 1);
    cr_assert_eq(profile_parse(&p, "default", false, text, &err), -1);
    cr_assert_eq(err.code, ERR_USAGE);
}

/* --- where containers and machines keep them --- */

static int of_json(const char *text, struct credentials *ret, struct error *err)
{
    return credentials_of_json(text, strlen(text), ret, err);
}

Test(credentials, an_endpoints_answer_is_read)
{
    struct credentials c;
    struct error err = {0};
    cr_assert_eq(of_json(" {\"Code\" : \"Success\", "
                         "\"N\":12.5,\"Z\":null,\"AccessKeyId\":\"A\\/B\",\"SecretAccessKey\":\"S\",\n"
                         "\"Token\":\"T\",\"Expiration\":\"1994-11-06T08:49:37Z\",\"Other\":\"\"} ",
                         &c, &err),
                 0, "%s", err.text);
    cr_assert_str_eq(c.access_key, "A/B");
    cr_assert_str_eq(c.secret_key, "S");
    cr_assert_str_eq(c.token, "T");
    cr_assert_eq(c.ends_s, 784111777);
}

Test(credentials, an_endpoints_answer_that_gives_none_is_refused)
{
    static const char *const wrong[] = {
        "",
        "{}",
        "[]",
        "{\"AccessKeyId\":\"A\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\"",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\",\"Expiration\":\"tomorrow\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\",\"x\":{}}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\\u0041\"}",
        "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\\",
        "{\"Code\":\"AssumeRoleUnauthorizedAccess\",\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\"}",
    };
    struct credentials c;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct error err = {0};
        cr_assert_eq(of_json(wrong[i], &c, &err), -1, "%s", wrong[i]);
        cr_assert_eq(err.code, ERR_DATA);
    }
}

Test(credentials, they_are_asked_for_in_clear_only_of_known_places)
{
    static const char *const good[] = {"https://anywhere/x",       "http://127.0.0.1/x",
                                       "http://127.9.9.9:80",      "http://localhost:1234/a?b",
                                       "http://169.254.170.2/x",   "http://169.254.170.23/v1/credentials",
                                       "http://[fd00:ec2::23]/v1", "http://[::1]:80/"};
    static const char *const bad[] = {"http://elsewhere/x",     "http://127.0.0.1.evil/",
                                      "http://127.0.0.1@evil/", "http://169.254.169.254/",
                                      "ftp://127.0.0.1/",       "127.0.0.1",
                                      "http://1270.0.0.1/",     "http://localhost.evil/",
                                      "http://[::1].evil",      "http://[::1"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        cr_assert(credentials_host_allowed(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert(!credentials_host_allowed(bad[i]), "%s", bad[i]);
}

/* --- the chain, seen from what a store signs with --- */

static char token_file[64];

static void write_token(const char *text)
{
    text_copy(token_file, sizeof token_file, "/dev/shm/ringmaster-token-XXXXXX");
    int fd = mkstemp(token_file);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* STS, a container's endpoint and a machine's metadata by their paths; anything else is the bucket. The n-th
 * key that is given out is KEYn; *heard is what the bucket's requests were signed with. */
static enum stub_then sources(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    char text[1024];
    const char *path = request->target;
    const char *ends = d->text ? d->text : "2999-01-01T00:00:00Z";
    text[0] = 0;
    if (!strcmp(path, "/sts")) {
        cr_assert(strstr(request->body,
                         "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&"
                         "RoleSessionName=ringmaster&Version=2011-06-15&WebIdentityToken=a.b%2Bc"),
                  "%s", request->body);
        snprintf(text, sizeof text,
                 "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><"
                 "AccessKeyId>KEY%d</AccessKeyId>"
                 "<SecretAccessKey>a-secret-that-sts-gave</SecretAccessKey><SessionToken>sts-token</"
                 "SessionToken><Expiration>%s"
                 "</Expiration></Credentials></AssumeRoleWithWebIdentityResult></"
                 "AssumeRoleWithWebIdentityResponse>",
                 ++d->state, ends);
    } else if (!strcmp(path, "/latest/api/token")) {
        cr_assert_str_eq(request->method, "PUT");
        cr_assert_str_neq(stub_header(request, "X-aws-ec2-metadata-token-ttl-seconds"), "");
        snprintf(text, sizeof text, "imds-token");
    } else if (!strncmp(path, "/latest/meta-data/iam/security-credentials/", 43)) {
        cr_assert_str_eq(stub_header(request, "X-aws-ec2-metadata-token"), "imds-token");
        if (!path[43])
            snprintf(text, sizeof text, "the-role");
    }
    if (!strcmp(path, "/container") || !strcmp(path, "/latest/meta-data/iam/security-credentials/the-role")) {
        if (path[1] == 'c')
            cr_assert_str_eq(stub_header(request, "Authorization"), "a.b+c");
        snprintf(text, sizeof text,
                 "{\"AccessKeyId\":\"KEY%d\",\"SecretAccessKey\":\"a-secret-that-it-gave\",\"Token\":\"t\","
                 "\"Expiration\":\"%s\"}",
                 ++d->state, ends);
    }
    if (!text[0]) {
        const char *key = stub_header(request, "Authorization") + strlen("AWS4-HMAC-SHA256 Credential=");
        str_addf(&d->heard, "%.*s ", (int)strcspn(key, "/"), key);
        str_addf(&d->heard, "%s\n", stub_header(request, "x-amz-security-token"));
    }
    stub_say(answer, 200, "ETag: \"e\"\r\n", strcmp(request->method, "HEAD") ? text : "", strlen(text));
    return STUB_KEEP;
}

static int look(struct desk *d)
{
    struct object_info info;
    d->err = (struct error){0};
    return d->ops->head(d->store, "a", &info, &d->err);
}

static void set_url(const struct desk *d, const char *name, const char *path)
{
    char url[128];
    snprintf(url, sizeof url, "%s%s", d->endpoint, path);
    setenv(name, url, 1);
}

Test(credentials, none_anywhere_says_what_to_set)
{
    struct desk d;
    desk_open_bare(&d, sources);
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, look(&d), ERR_USAGE, "s3://bucket: no credentials: set AWS_ACCESS_KEY_ID");
    cr_assert_eq(stub_requests(d.stub), 0);
    desk_close(&d);
}

Test(credentials, half_a_pair_in_the_environment_is_told)
{
    struct desk d;
    desk_open_bare(&d, sources);
    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, look(&d), ERR_USAGE, "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not");
    desk_close(&d);
}

Test(credentials, a_profile_that_is_in_no_file_is_told)
{
    struct desk d;
    desk_open_bare(&d, sources);
    setenv("AWS_PROFILE", "mine", 1);
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, look(&d), ERR_USAGE, "AWS_PROFILE is mine");
    desk_close(&d);
}

Test(credentials, the_environments_session_is_signed_with)
{
    struct desk d;
    desk_open_bare(&d, sources);
    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-nobody-tells", 1);
    setenv("AWS_SESSION_TOKEN", "session", 1);
    desk_store(&d, "s3://bucket", 1, NULL);
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "A session\n");
    desk_close(&d);
}

static void with_web_identity(struct desk *d)
{
    desk_open_bare(d, sources);
    write_token("a.b+c\n");
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token_file, 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    set_url(d, "AWS_ENDPOINT_URL_STS", "/sts");
    desk_store(d, "s3://bucket", 1, NULL);
}

Test(credentials, a_web_identity_is_changed_for_a_session_once)
{
    struct desk d;
    with_web_identity(&d);
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "KEY1 sts-token\nKEY1 sts-token\n");
    unlink(token_file);
    desk_close(&d);
}

/* The chain by itself, so that time is an argument. */
struct chain {
    struct waiter waiter;
    struct credentials_store *store;
    const struct credentials *now;
};

static int ask_chain(struct chain *chain, int64_t now_s, bool anew, struct error *err)
{
    bool renewed;
    return credentials_get(chain->store, now_s, anew, &chain->now, &renewed, err);
}

Test(credentials, they_are_renewed_before_they_end_and_the_old_ones_do_while_they_hold)
{
    struct desk d;
    struct chain chain;
    struct error err = {0};
    with_web_identity(&d);
    d.text = "2030-01-01T01:00:00Z";
    const int64_t end = 1893459600;
    cr_assert_eq(waiter_init(&chain.waiter, NULL, &err), 0);
    struct credentials_options options = {.waiter = &chain.waiter, .region = "eu-test-1"};
    cr_assert_eq(credentials_open(&chain.store, &options, &err), 0);
    cr_assert_eq(ask_chain(&chain, end - 3600, false, &err), 0, "%s", err.text);
    cr_assert_eq(ask_chain(&chain, end - 301, false, &err), 0);
    cr_assert_str_eq(chain.now->access_key, "KEY1");
    cr_assert_eq(ask_chain(&chain, end - 299, false, &err), 0);
    cr_assert_str_eq(chain.now->access_key, "KEY2");
    unlink(token_file);
    cr_assert_eq(ask_chain(&chain, end - 200, false, &err), 0);
    cr_assert_str_eq(chain.now->access_key, "KEY2");
    cr_assert_eq(ask_chain(&chain, end + 1, false, &err), -1);
    cr_assert_eq(err.code, ERR_USAGE);
    cr_assert(strstr(err.text, token_file), "%s", err.text);
    credentials_free(chain.store);
    waiter_clear(&chain.waiter);
    desk_close(&d);
}

static enum stub_then expired_once(void *ctx, const struct stub_request *request, struct str *answer)
{
    if (strcmp(request->method, "GET") != 0)
        return sources(ctx, request, answer);
    return strstr(stub_header(request, "Authorization"), "KEY1") ? refuse(answer, 400, "ExpiredToken")
                                                                 : sources(ctx, request, answer);
}

Test(credentials, a_session_that_the_server_calls_expired_is_renewed)
{
    struct desk d;
    struct str out = str_init(100);
    desk_open_bare(&d, expired_once);
    write_token("a.b+c");
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token_file, 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    set_url(&d, "AWS_ENDPOINT_URL_STS", "/sts");
    desk_store(&d, "s3://bucket", 1, NULL);
    cr_assert_eq(d.ops->get(d.store, "a", 10, &out, &d.err), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "KEY2 sts-token\n");
    str_clear(&out);
    unlink(token_file);
    desk_close(&d);
}

static enum stub_then sts_refuses(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request;
    static const char text[] =
        "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not authorized</Message>"
        "</Error></ErrorResponse>";
    stub_say(answer, 403, "", text, sizeof text - 1);
    return STUB_KEEP;
}

Test(credentials, a_role_that_is_refused_says_by_whom)
{
    struct desk d;
    desk_open_bare(&d, sts_refuses);
    write_token("a.b+c");
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token_file, 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    set_url(&d, "AWS_ENDPOINT_URL_STS", "/sts");
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, look(&d), ERR_USAGE,
                 "STS refuses the role arn:aws:iam::1:role/r for this web identity: AccessDenied");
    unlink(token_file);
    desk_close(&d);
}

Test(credentials, a_containers_endpoint_gives_them_for_a_token)
{
    struct desk d;
    desk_open_bare(&d, sources);
    write_token("a.b+c\n");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token_file, 1);
    set_url(&d, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
    desk_store(&d, "s3://bucket", 1, NULL);
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "KEY1 t\n");
    unlink(token_file);
    desk_close(&d);
}

Test(credentials, a_containers_token_is_told_to_no_stranger)
{
    struct desk d;
    desk_open_bare(&d, sources);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a-secret-that-is-a-token", 1);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/x", 1);
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, look(&d), ERR_USAGE, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a-secret-that\r\nX: y", 1);
    set_url(&d, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
    expect_error(&d, look(&d), ERR_USAGE, "has a line end in it");
    cr_assert_eq(stub_requests(d.stub), 0);
    desk_close(&d);
}

Test(credentials, a_machines_role_gives_them_by_its_metadata)
{
    struct desk d;
    desk_open_bare(&d, sources);
    unsetenv("AWS_EC2_METADATA_DISABLED");
    set_url(&d, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "/");
    desk_store(&d, "s3://bucket", 1, NULL);
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    cr_assert_str_eq(str_text(&d.heard), "KEY1 t\n");
    desk_close(&d);
}

/* --- what heals --- */

/* A bucket that takes KEYright alone. */
static enum stub_then takes_the_right_key(void *ctx, const struct stub_request *request, struct str *answer)
{
    if (!strstr(stub_header(request, "Authorization"), "Credential=KEYright/"))
        return refuse(answer, 403, "InvalidAccessKeyId");
    return sources(ctx, request, answer);
}

static char folder[64];

static void write_key(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
}

static void in_a_pod(void)
{
    text_copy(folder, sizeof folder, "/dev/shm/ringmaster-secret-XXXXXX");
    cr_assert(mkdtemp(folder));
    setenv("RINGMASTER_POD_CREDENTIALS", folder, 1);
}

static void leave_pod(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

static int get_object(struct desk *d)
{
    struct str out = str_init(100);
    d->err = (struct error){0};
    int result = d->ops->get(d->store, "a", 10, &out, &d->err);
    str_clear(&out);
    return result;
}

Test(credentials, a_wrong_key_heals_when_the_secret_of_the_pod_is_mended)
{
    struct desk d;
    desk_open_bare(&d, takes_the_right_key);
    in_a_pod();
    setenv("AWS_ACCESS_KEY_ID", "KEYwrong", 1); /* the same Secret, as the pod began with it */
    setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-was-wrong", 1);
    write_key("AWS_ACCESS_KEY_ID", "KEYwrong");
    write_key("AWS_SECRET_ACCESS_KEY", "a-secret-that-was-wrong");
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, get_object(&d), ERR_USAGE,
                 "doesn't take the credentials from the Secret of checkpoint.secretRef");
    cr_assert(d.err.class == CLASS_PASSING && d.err.person);
    write_key("AWS_ACCESS_KEY_ID", "KEYright\n");
    cr_assert_eq(get_object(&d), 0, "%s", d.err.text);
    leave_pod();
    desk_close(&d);
}

Test(credentials, a_wrong_key_heals_when_the_shared_file_is_mended)
{
    struct desk d;
    desk_open_bare(&d, takes_the_right_key);
    in_a_pod();
    unsetenv("RINGMASTER_POD_CREDENTIALS");
    char path[128];
    snprintf(path, sizeof path, "%s/credentials", folder);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    write_key("credentials", "[default]\naws_access_key_id = KEYwrong\naws_secret_access_key = s\n");
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, get_object(&d), ERR_USAGE, "doesn't take the credentials from the profile");
    write_key("credentials", "[default]\naws_access_key_id = KEYright\naws_secret_access_key = s\n");
    cr_assert_eq(get_object(&d), 0, "%s", d.err.text);
    leave_pod();
    desk_close(&d);
}

Test(credentials, a_secret_without_keys_leaves_the_word_to_the_environment)
{
    struct desk d;
    desk_open_bare(&d, takes_the_right_key);
    in_a_pod();
    write_key("AWS_REGION", "eu-test-1");
    setenv("AWS_ACCESS_KEY_ID", "KEYright", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-is-right", 1);
    desk_store(&d, "s3://bucket", 1, NULL);
    cr_assert_eq(get_object(&d), 0, "%s", d.err.text);
    leave_pod();
    desk_close(&d);
}

Test(credentials, half_a_pair_in_the_secret_is_told)
{
    struct desk d;
    desk_open_bare(&d, sources);
    in_a_pod();
    write_key("AWS_SECRET_ACCESS_KEY", "a-secret-that-is-alone");
    desk_store(&d, "s3://bucket", 1, NULL);
    expect_error(&d, get_object(&d), ERR_USAGE,
                 "has AWS_SECRET_ACCESS_KEY and no AWS_ACCESS_KEY_ID: give it both");
    leave_pod();
    desk_close(&d);
}

static enum stub_then sts_throttles_once(void *ctx, const struct stub_request *request, struct str *answer)
{
    static int asked;
    return !strcmp(request->target, "/sts") && !asked++ ? refuse(answer, 400, "Throttling")
                                                        : sources(ctx, request, answer);
}

Test(credentials, an_sts_that_throttles_is_asked_again)
{
    struct desk d;
    with_web_identity(&d);
    desk_close(&d);
    desk_open_bare(&d, sts_throttles_once);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token_file, 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    set_url(&d, "AWS_ENDPOINT_URL_STS", "/sts");
    desk_store(&d, "s3://bucket", 1, NULL);
    cr_assert_eq(look(&d), 0, "%s", d.err.text);
    unlink(token_file);
    desk_close(&d);
}

/* What each source says when it has none to give, now. */
static enum stub_then says_no(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    if (!strncmp(request->target, "/latest/", 8) && !strstr(request->target, "the-role") && d->state == 200)
        return sources(ctx, request, answer);
    if (d->state == 200) {
        static const char text[] = "{\"Code\":\"Failed\",\"Message\":\"no role yet\"}";
        stub_say(answer, 200, "", text, sizeof text - 1);
        return STUB_KEEP;
    }
    return refuse(answer, d->state, "Because");
}

static void heals(struct desk *d, int status, enum error_code code, bool person)
{
    d->state = status;
    expect_error(d, look(d), code, "");
    cr_assert_eq(d->err.class, CLASS_PASSING, "%s", d->err.text);
    cr_assert_eq(d->err.person, person, "%s", d->err.text);
}

Test(credentials, what_no_source_gives_now_it_may_give_later)
{
    struct desk d;
    desk_open_bare(&d, says_no);
    desk_store(&d, "s3://bucket", 1, NULL);
    heals(&d, 0, ERR_USAGE, true); /* none is named */
    setenv("AWS_EC2_METADATA_DISABLED", "false", 1);
    set_url(&d, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "");
    heals(&d, 503, ERR_USAGE, true);
    heals(&d, 200, ERR_DATA, true);
    set_url(&d, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
    heals(&d, 503, ERR_MACHINE, false);
    heals(&d, 403, ERR_USAGE, true);
    heals(&d, 200, ERR_DATA, true);
    write_token("a.b+c");
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token_file, 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    set_url(&d, "AWS_ENDPOINT_URL_STS", "/sts");
    heals(&d, 503, ERR_MACHINE, false);
    heals(&d, 403, ERR_USAGE, true);
    unlink(token_file);
    heals(&d, 403, ERR_USAGE, true); /* the token is not there yet */
    desk_close(&d);
}
