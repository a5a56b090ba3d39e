#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/storage/object/s3_desk.h"

static enum stub_then nothing(void *ctx, const struct stub_request *request, struct str *answer)
{
    (void)ctx, (void)request, (void)answer;
    return STUB_CLOSE;
}

static void clean(void)
{
    struct desk d;
    desk_open_bare(&d, nothing); /* for its environment */
    desk_close(&d);
}

static struct s3_place find(const char *uri, const char *endpoint, const char *region)
{
    struct s3_place place = {0};
    struct error err = {0};
    struct object_options options = {.uri = uri, .endpoint = endpoint, .region = region};
    cr_assert_eq(s3_place_find(&place, &options, NULL, &err), 0, "%s", err.text);
    return place;
}

static const char *path_of(const struct s3_place *place, const char *key)
{
    static char text[256];
    struct str out = str_init(255);
    s3_place_path(place, key, &out);
    text_copy(text, sizeof text, str_text(&out));
    str_clear(&out);
    return text;
}

Test(s3_place, amazons_own_has_the_bucket_in_its_host_but_where_dots_forbid_it)
{
    clean();
    struct s3_place p = find("s3://my-bucket/a/b/", NULL, "eu-west-1");
    cr_assert_str_eq(p.host, "my-bucket.s3.eu-west-1.amazonaws.com");
    cr_assert_str_eq(p.prefix, "a/b");
    cr_assert_str_eq(path_of(&p, "a/b/c"), "/a/b/c");
    cr_assert_str_eq(path_of(&p, NULL), "/");
    cr_assert(p.tls && p.proxy && p.checksums && !p.region_guessed);
    p = find("s3://my.bucket", NULL, "cn-north-1");
    cr_assert_str_eq(p.host, "s3.cn-north-1.amazonaws.com.cn");
    cr_assert_str_eq(path_of(&p, "c"), "/my.bucket/c");
    cr_assert_str_eq(path_of(&p, NULL), "/my.bucket");
    p = find("s3://bucket", NULL, NULL);
    cr_assert(p.region_guessed);
    cr_assert_str_eq(p.region, "us-east-1");
}

Test(s3_place, an_endpoint_is_asked_by_path)
{
    clean();
    struct s3_place p = find("s3://bucket/x", "http://127.0.0.1:9000/", NULL);
    cr_assert_str_eq(p.host, "127.0.0.1:9000");
    cr_assert(!p.tls && !p.proxy && !p.checksums && p.path_style);
    p = find("s3://bucket", "https://storage.googleapis.com", "auto");
    cr_assert(p.tls && p.proxy && p.checksums);
    cr_assert_str_eq(path_of(&p, "k"), "/bucket/k");
}

Test(s3_place, a_token_is_for_googles_names_over_tls_alone)
{
    static const char *const sure[] = {
        "https://storage.googleapis.com", "https://storage.googleapis.com:443/",
        "HTTPS://Storage.GoogleAPIs.com", "https://storage.europe-west3.rep.googleapis.com",
        "https://storage-mine.p.googleapis.com"};
    static const char *const unsure[] = {"http://storage.googleapis.com",
                                         "https://storage.googleapis.com.example.com",
                                         "https://storagegoogleapis.com",
                                         "https://googleapis.com.example.com:443",
                                         "https://example.com:443.googleapis.com",
                                         "https://.googleapis.com",
                                         "https://127.0.0.1:9000",
                                         "http://127.0.0.1:9000"};
    clean();
    for (size_t i = 0; i < sizeof sure / sizeof sure[0]; i++) {
        struct s3_place p = find("s3://bucket", sure[i], "auto");
        cr_assert(p.google && p.googles_for_sure, "%s", sure[i]);
    }
    for (size_t i = 0; i < sizeof unsure / sizeof unsure[0]; i++)
        cr_assert(!find("s3://bucket", unsure[i], "auto").googles_for_sure, "%s", unsure[i]);
    cr_assert(!find("s3://storage.googleapis.com", NULL, NULL).googles_for_sure, "a bucket of AWS's");
}

Test(s3_place, another_endpoint_may_have_a_token_where_that_is_said_of_it)
{
    clean();
    setenv("RINGMASTER_GOOGLE_ENDPOINT", "https://store.example.com/", 1);
    struct s3_place p = find("s3://bucket", "https://store.example.com", "auto");
    cr_assert(p.google && p.googles_for_sure);
    cr_assert(!find("s3://bucket", "http://store.example.com", "auto").googles_for_sure);
    cr_assert(!find("s3://bucket", "https://store.example.com:444", "auto").googles_for_sure);
    setenv("RINGMASTER_GOOGLE_ENDPOINT", "http://127.0.0.1:9000", 1);
    p = find("s3://bucket", "http://127.0.0.1:9000/", "auto");
    cr_assert(p.googles_for_sure && p.checksums, "no signature protects what comes with a token");
    cr_assert(!find("s3://bucket", "http://127.0.0.1:9001", "auto").googles_for_sure);
    cr_assert(!find("s3://bucket", "http://localhost:9000", "auto").googles_for_sure);
}

Test(s3_place, in_clear_a_token_leaves_this_machine_for_nobodys_word)
{
    static const char *const wrong[] = {"http://store.example.com", "http://10.0.0.7:9000",
                                        "store.example.com", "ftp://127.0.0.1"};
    clean();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct s3_place place;
        struct error err = {0};
        struct object_options options = {.uri = "s3://bucket", .endpoint = "http://store.example.com"};
        setenv("RINGMASTER_GOOGLE_ENDPOINT", wrong[i], 1);
        cr_assert_eq(s3_place_find(&place, &options, NULL, &err), -1, "%s", wrong[i]);
        cr_assert_eq(err.code, ERR_USAGE);
        cr_assert(strstr(err.text, "RINGMASTER_GOOGLE_ENDPOINT"), "%s", err.text);
    }
}

static struct s3_place find_with(const char *endpoint, const char *signing)
{
    struct s3_place place = {0};
    struct error err = {0};
    struct profile profile = {0};
    struct object_options options = {.uri = "s3://bucket", .endpoint = endpoint};
    text_copy(profile.signing, sizeof profile.signing, signing);
    cr_assert_eq(s3_place_find(&place, &options, &profile, &err), 0, "%s", err.text);
    return place;
}

Test(s3_place, a_body_is_signed_or_has_a_checksum)
{
    clean();
    struct s3_place p = find_with("https://there", "");
    cr_assert(!p.signs && p.checksums);
    p = find_with("http://there", "");
    cr_assert(p.signs && !p.checksums);
    p = find_with("http://there", "false");
    cr_assert(!p.signs && p.checksums);
    p = find_with("https://there", "true");
    cr_assert(p.signs && p.checksums);
    setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required", 1);
    p = find_with("http://there", "false");
    cr_assert(p.signs && !p.checksums);
}

Test(s3_place, the_environment_fills_what_options_leave_open)
{
    clean();
    setenv("AWS_REGION", "r-1", 1);
    setenv("AWS_DEFAULT_REGION", "r-2", 1);
    setenv("AWS_ENDPOINT_URL", "https://general", 1);
    setenv("AWS_ENDPOINT_URL_S3", "https://special:1", 1);
    setenv("AWS_CA_BUNDLE", "/ca.pem", 1);
    setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "WHEN_REQUIRED", 1);
    struct s3_place p = find("s3://bucket", "", "");
    cr_assert_str_eq(p.region, "r-1");
    cr_assert_str_eq(p.host, "special:1");
    cr_assert_str_eq(p.ca_file, "/ca.pem");
    cr_assert(!p.checksums);
    p = find("s3://bucket", "https://said", "r-3");
    cr_assert_str_eq(p.region, "r-3");
    cr_assert_str_eq(p.host, "said");
    unsetenv("AWS_ENDPOINT_URL_S3");
    unsetenv("AWS_REGION");
    p = find("s3://bucket", NULL, NULL);
    cr_assert_str_eq(p.region, "r-2");
    cr_assert_str_eq(p.host, "general");
}

Test(s3_place, what_cannot_be_is_refused_in_a_sentence)
{
    static const struct {
        const char *uri, *endpoint, *region;
    } wrong[] = {
        {"s3:/bucket", NULL, NULL},
        {"s3://", NULL, NULL},
        {"s3://b", NULL, NULL},
        {"s3://bucket/../x", NULL, NULL},
        {"s3://bucket//x", NULL, NULL},
        {"s3://buc ket", NULL, NULL},
        {"s3://bucket@host", NULL, NULL},
        {"s3://bucket", "127.0.0.1:80", NULL},
        {"s3://bucket", "ftp://x", NULL},
        {"s3://bucket", "http://", NULL},
        {"s3://bucket", "http://host/path", NULL},
        {"s3://bucket", "http://user@host", NULL},
        {"s3://bucket", "http://ho st", NULL},
        {"s3://bucket", NULL, "re/gion"},
    };
    clean();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct s3_place place;
        struct error err = {0};
        struct object_options options = {
            .uri = wrong[i].uri, .endpoint = wrong[i].endpoint, .region = wrong[i].region};
        cr_assert_eq(s3_place_find(&place, &options, NULL, &err), -1, "%zu", i);
        cr_assert_eq(err.code, ERR_USAGE);
        cr_assert(err.class == CLASS_JOB && err.person, "%s", err.text); /* no waiting heals it */
    }
}
