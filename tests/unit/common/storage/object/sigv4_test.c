#include "common/storage/object/sigv4.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/os/crypto.h"

/* --- the examples of "Signature Calculations for the Authorization Header: Transferring Payload in a Single
 * Chunk" in the Amazon S3 API reference: bucket examplebucket, us-east-1, 24 May 2013 --- */

static void expect_authorization(const struct sigv4_request *request, const struct sigv4_signer *signer,
                                 const char *names, const char *signature)
{
    struct str out = str_init(2048), wanted = str_init(2048);
    sigv4_authorization(request, signer, &out);
    str_addf(&wanted,
             "AWS4-HMAC-SHA256 Credential=%s/%.8s/us-east-1/%s/aws4_request, SignedHeaders=%s, Signature=%s",
             signer->access_key, signer->date, signer->service, names, signature);
    cr_assert_str_eq(str_text(&out), str_text(&wanted));
    str_clear(&out);
    str_clear(&wanted);
}

static struct sigv4_request example(const char *method, const char *path, const char *payload)
{
    struct sigv4_request request = {.method = method, .path = path, .payload = payload};
    sigv4_header(&request, "x-amz-date", "20130524T000000Z");
    sigv4_header(&request, "Host", "examplebucket.s3.amazonaws.com");
    sigv4_header(&request, "x-amz-content-sha256", payload);
    return request;
}

static void expect_example(const struct sigv4_request *request, const char *names, const char *signature)
{
    uint8_t key[RM_HASH_BYTES];
    sigv4_key("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "20130524", "us-east-1", "s3", key);
    struct sigv4_signer signer = {.access_key = "AKIAIOSFODNN7EXAMPLE",
                                  .region = "us-east-1",
                                  .service = "s3",
                                  .key = key,
                                  .date = "20130524T000000Z"};
    expect_authorization(request, &signer, names, signature);
}

Test(sigv4, the_get_of_the_s3_reference)
{
    struct sigv4_request request = example("GET", "/test.txt", sigv4_empty);
    sigv4_header(&request, "Range", "bytes=0-9");
    expect_example(&request, "host;range;x-amz-content-sha256;x-amz-date",
                   "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

Test(sigv4, the_put_of_the_s3_reference)
{
    const char *payload = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    struct sigv4_request request = example("PUT", "/test$file.text", payload);
    sigv4_header(&request, "Date", "Fri, 24 May 2013 00:00:00 GMT");
    sigv4_header(&request, "x-amz-storage-class", "REDUCED_REDUNDANCY");
    expect_example(&request, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                   "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

Test(sigv4, the_bucket_lifecycle_of_the_s3_reference)
{
    struct sigv4_request request = example("GET", "/", sigv4_empty);
    sigv4_query(&request, "lifecycle", "");
    expect_example(&request, "host;x-amz-content-sha256;x-amz-date",
                   "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

Test(sigv4, the_list_of_the_s3_reference_with_its_query_turned_around)
{
    struct sigv4_request request = example("GET", "/", sigv4_empty);
    sigv4_query(&request, "prefix", "J");
    sigv4_query(&request, "max-keys", "2");
    expect_example(&request, "host;x-amz-content-sha256;x-amz-date",
                   "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* --- the signing test suite that AWS publishes with its clients (aws-c-auth,
 * tests/aws-signing-test-suite/v4): service "service", us-east-1, 30 August 2015 --- */

static struct sigv4_request suite(const char *method, const char *path)
{
    struct sigv4_request request = {.method = method, .path = path, .payload = sigv4_empty};
    sigv4_header(&request, "Host", "example.amazonaws.com");
    sigv4_header(&request, "X-Amz-Date", "20150830T123600Z");
    return request;
}

static void expect_suite(const struct sigv4_request *request, const char *names, const char *signature)
{
    uint8_t key[RM_HASH_BYTES];
    sigv4_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830", "us-east-1", "service", key);
    struct sigv4_signer signer = {.access_key = "AKIDEXAMPLE",
                                  .region = "us-east-1",
                                  .service = "service",
                                  .key = key,
                                  .date = "20150830T123600Z"};
    expect_authorization(request, &signer, names, signature);
}

Test(sigv4, suite_get_vanilla)
{
    struct sigv4_request request = suite("GET", "/");
    expect_suite(&request, "host;x-amz-date",
                 "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

Test(sigv4, suite_get_vanilla_query_order_key_case)
{
    struct sigv4_request request = suite("GET", "/");
    sigv4_query(&request, "Param2", "value2");
    sigv4_query(&request, "Param1", "value1");
    expect_suite(&request, "host;x-amz-date",
                 "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

Test(sigv4, suite_get_vanilla_query_order_encoded)
{
    struct sigv4_request request = suite("GET", "/");
    sigv4_query(&request, "Param-3", "Value3");
    sigv4_query(&request, "Param", "Value2");
    sigv4_query(&request, "\xe1\x88\xb4", "Value1");
    expect_suite(&request, "host;x-amz-date",
                 "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac");
}

Test(sigv4, suite_get_vanilla_empty_query_key)
{
    struct sigv4_request request = suite("GET", "/");
    sigv4_query(&request, "Param1", "value1");
    expect_suite(&request, "host;x-amz-date",
                 "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb");
}

Test(sigv4, suite_get_vanilla_utf8_query)
{
    struct sigv4_request request = suite("GET", "/");
    sigv4_query(&request, "\xe1\x88\xb4", "bar");
    expect_suite(&request, "host;x-amz-date",
                 "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04");
}

Test(sigv4, suite_get_utf8)
{
    struct sigv4_request request = suite("GET", "/\xe1\x88\xb4");
    expect_suite(&request, "host;x-amz-date",
                 "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
}

Test(sigv4, suite_get_space_unnormalized)
{
    struct sigv4_request request = suite("GET", "/example space/");
    expect_suite(&request, "host;x-amz-date",
                 "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741");
}

Test(sigv4, suite_get_header_value_trim)
{
    struct sigv4_request request = suite("GET", "/");
    sigv4_header(&request, "My-Header2", " \"a   b   c\"");
    sigv4_header(&request, "My-Header1", " value1");
    expect_suite(&request, "host;my-header1;my-header2;x-amz-date",
                 "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

Test(sigv4, suite_get_vanilla_with_session_token)
{
    struct sigv4_request request = suite("GET", "/");
    sigv4_header(&request, "X-Amz-Security-Token",
                 "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267");
    expect_suite(&request, "host;x-amz-date;x-amz-security-token",
                 "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8");
}

Test(sigv4, suite_post_x_www_form_urlencoded)
{
    char hex[RM_HASH_HEX];
    uint8_t hash[RM_HASH_BYTES];
    sha256_once("Param1=value1", 13, hash);
    hex_encode(hash, sizeof hash, hex);
    struct sigv4_request request = suite("POST", "/");
    request.payload = hex;
    sigv4_header(&request, "Content-Type", "application/x-www-form-urlencoded");
    sigv4_header(&request, "Content-Length", "13");
    sigv4_header(&request, "x-amz-content-sha256", hex);
    expect_suite(&request, "content-length;content-type;host;x-amz-content-sha256;x-amz-date",
                 "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b");
}

/* --- our own: what libcurl's signing of that time got wrong --- */

Test(sigv4, what_is_sent_is_encoded_once_and_sorted)
{
    struct sigv4_request request = {.method = "GET", .path = "/bucket/a=b+c d/\xc3\xbc~%41"};
    sigv4_query(&request, "uploads", "");
    sigv4_query(&request, "prefix", "a/b c+d=e&f");
    sigv4_query(&request, "delimiter", "/");
    struct str out = str_init(1024);
    sigv4_target(&request, &out);
    cr_assert_str_eq(str_text(&out), "/bucket/a%3Db%2Bc%20d/%C3%BC~%2541"
                                     "?delimiter=%2F&prefix=a%2Fb%20c%2Bd%3De%26f&uploads=");
    str_clear(&out);
}

/* --- Google's variant: the signature was made by another program, from Google's description of it --- */

Test(sigv4, what_is_said_in_googles_words_is_signed_in_its_way)
{
    static const char payload[] = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1";
    struct sigv4_request request = {.method = "PUT", .path = "/a b", .payload = payload};
    struct str out = str_init(2048);
    uint8_t key[RM_HASH_BYTES];
    sigv4_google_key("bGoa+V7g/yqDXvKRqq+JTFn4uQZbPiQJo4pf9RzJ", "20190301", "us-central1", key);
    struct sigv4_signer signer = {.google = true,
                                  .access_key = "GOOGTS7C7FUP3AIRVJTE2BCD",
                                  .region = "us-central1",
                                  .key = key,
                                  .date = "20190301T190859Z"};
    sigv4_header(&request, "Host", "bucket.storage.googleapis.com");
    sigv4_header(&request, "x-goog-date", "20190301T190859Z");
    sigv4_header(&request, "x-goog-content-sha256", payload);
    sigv4_header(&request, "x-goog-if-generation-match", "0");
    sigv4_authorization(&request, &signer, &out);
    cr_assert_str_eq(
        str_text(&out),
        "GOOG4-HMAC-SHA256 Credential=GOOGTS7C7FUP3AIRVJTE2BCD/20190301/us-central1/storage/goog4_request, "
        "SignedHeaders=host;x-goog-content-sha256;x-goog-date;x-goog-if-generation-match, "
        "Signature=da4497d412802a6e4897887b38f5e473edea75f841fd3478aae1c804cd44694c");
    str_clear(&out);
}
