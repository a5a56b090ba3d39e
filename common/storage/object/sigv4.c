/* Signature Version 4 step by step: the canonical request, its hash, the day's key, the Authorization
 * line. s3_sign.c makes requests of it, and Google's in the same form. */
#include "common/storage/object/sigv4.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/assert.h"
#include "common/os/crypto.h"

const char sigv4_unsigned[] = "UNSIGNED-PAYLOAD";
const char sigv4_empty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

void sigv4_query(struct sigv4_request *request, const char *name, const char *value)
{
    RM_ASSERT(request->queries < SIGV4_QUERIES_MAX, "%d queries of a request", request->queries);
    request->query[request->queries++] = (struct sigv4_pair){name, value};
}

void sigv4_header(struct sigv4_request *request, const char *name, const char *value)
{
    RM_ASSERT(request->headers < SIGV4_HEADERS_MAX, "%d headers of a request", request->headers);
    request->header[request->headers++] = (struct sigv4_pair){name, value};
}

/* `kept`: what stays as it is beside letters, digits and "-._~". */
static void encode(struct str *out, const char *text, const char *kept)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        char coded[3] = {'%', digits[*at >> 4], digits[*at & 15]};
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
                     strchr("-._~", *at) || strchr(kept, *at);
        str_add(out, plain ? (const char *)at : coded, plain ? 1 : 3);
    }
}

/* Order of two texts as their encodings have it, which isn't that of the texts: "%" stands before letters. */
static int compare_encoded(const char *a, const char *b)
{
    struct str x = str_init(SIGV4_TARGET_MAX), y = str_init(SIGV4_TARGET_MAX);
    encode(&x, a, "");
    encode(&y, b, "");
    int order = strcmp(str_text(&x), str_text(&y));
    str_clear(&x);
    str_clear(&y);
    return order;
}

static int compare_query(const struct sigv4_pair *a, const struct sigv4_pair *b)
{
    int order = compare_encoded(a->name, b->name);
    return order ? order : compare_encoded(a->value, b->value);
}

static int compare_header(const struct sigv4_pair *a, const struct sigv4_pair *b)
{
    return strcasecmp(a->name, b->name);
}

/* Few pairs, and equal ones keep their order. */
static void sort(struct sigv4_pair *pair, int count,
                 int (*compare)(const struct sigv4_pair *a, const struct sigv4_pair *b))
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && compare(&pair[j - 1], &pair[j]) > 0; j--) {
            struct sigv4_pair swapped = pair[j];
            pair[j] = pair[j - 1];
            pair[j - 1] = swapped;
        }
}

static void add_query(const struct sigv4_request *request, struct str *out)
{
    struct sigv4_pair sorted[SIGV4_QUERIES_MAX];
    memcpy(sorted, request->query, sizeof sorted);
    sort(sorted, request->queries, compare_query);
    for (int i = 0; i < request->queries; i++) {
        str_adds(out, i ? "&" : "");
        encode(out, sorted[i].name, "");
        str_adds(out, "=");
        encode(out, sorted[i].value, "");
    }
}

void sigv4_target(const struct sigv4_request *request, struct str *out)
{
    encode(out, request->path, "/");
    str_adds(out, request->queries ? "?" : "");
    add_query(request, out);
}

/* Without white space around it, and with one space for several. */
static void add_trimmed(struct str *out, const char *value)
{
    value += strspn(value, " \t");
    while (*value) {
        size_t word = strcspn(value, " \t"), space = strspn(value + word, " \t");
        str_add(out, value, word);
        value += word + space;
        str_adds(out, space && *value ? " " : "");
    }
}

static void add_lower(struct str *out, const char *name)
{
    for (; *name; name++)
        str_add(out, &(char){(char)tolower((unsigned char)*name)}, 1);
}

static void add_headers(const struct sigv4_request *request, struct str *out, struct str *signed_headers)
{
    struct sigv4_pair sorted[SIGV4_HEADERS_MAX];
    memcpy(sorted, request->header, sizeof sorted);
    sort(sorted, request->headers, compare_header);
    for (int i = 0; i < request->headers; i++) {
        str_adds(signed_headers, i ? ";" : "");
        add_lower(signed_headers, sorted[i].name);
        add_lower(out, sorted[i].name);
        str_adds(out, ":");
        add_trimmed(out, sorted[i].value);
        str_adds(out, "\n");
    }
}

/* The canonical request, and the list of the signed headers. */
static void print_canonical(const struct sigv4_request *request, struct str *out, struct str *signed_headers)
{
    str_addf(out, "%s\n", request->method);
    encode(out, request->path, "/");
    str_adds(out, "\n");
    add_query(request, out);
    str_adds(out, "\n");
    add_headers(request, out, signed_headers);
    str_addf(out, "\n%s\n%s", str_text(signed_headers), request->payload);
}

static void derive_key(const char *prefix, const char *secret, const char *const step[4],
                       uint8_t out[RM_HASH_BYTES])
{
    char first[5 + 512];
    snprintf(first, sizeof first, "%s%s", prefix, secret);
    hmac_sha256(first, strlen(first), step[0], strlen(step[0]), out);
    explicit_bzero(first, sizeof first);
    for (int i = 1; i < 4; i++) {
        uint8_t key[RM_HASH_BYTES];
        memcpy(key, out, sizeof key);
        hmac_sha256(key, sizeof key, step[i], strlen(step[i]), out);
        explicit_bzero(key, sizeof key);
    }
}

void sigv4_key(const char *secret, const char day[9], const char *region, const char *service,
               uint8_t out[RM_HASH_BYTES])
{
    derive_key("AWS4", secret, (const char *const[]){day, region, service, "aws4_request"}, out);
}

void sigv4_google_key(const char *secret, const char day[9], const char *region, uint8_t out[RM_HASH_BYTES])
{
    derive_key("GOOG4", secret, (const char *const[]){day, region, "storage", "goog4_request"}, out);
}

static void hash_hex(const struct str *text, char out[RM_HASH_HEX])
{
    uint8_t hash[RM_HASH_BYTES];
    sha256_once(str_text(text), text->length, hash);
    hex_encode(hash, sizeof hash, out);
}

void sigv4_authorization(const struct sigv4_request *request, const struct sigv4_signer *signer,
                         struct str *out)
{
    struct str canonical = str_init(SIGV4_CANONICAL_MAX), names = str_init(SIGV4_CANONICAL_MAX);
    struct str scope = str_init(256), to_sign = str_init(512);
    char hex[RM_HASH_HEX];
    uint8_t signature[RM_HASH_BYTES];
    print_canonical(request, &canonical, &names);
    hash_hex(&canonical, hex);
    const char *algorithm = signer->google ? "GOOG4-HMAC-SHA256" : "AWS4-HMAC-SHA256";
    str_addf(&scope, "%.8s/%s/%s/%s", signer->date, signer->region,
             signer->google ? "storage" : signer->service, signer->google ? "goog4_request" : "aws4_request");
    str_addf(&to_sign, "%s\n%s\n%s\n%s", algorithm, signer->date, str_text(&scope), hex);
    hmac_sha256(signer->key, RM_HASH_BYTES, to_sign.data, to_sign.length, signature);
    hex_encode(signature, sizeof signature, hex);
    str_addf(out, "%s Credential=%s/%s, SignedHeaders=%s, Signature=%s", algorithm, signer->access_key,
             str_text(&scope), str_text(&names), hex);
    explicit_bzero(canonical.data, canonical.length); /* a session's token is in it */
    str_clear(&canonical);
    str_clear(&names);
    str_clear(&scope);
    str_clear(&to_sign);
}
