/* AWS Signature Version 4 in header form, as S3 wants it: the path is encoded once and not normalised. Pure:
 * time, keys and hashes are arguments.
 *
 * Names and values come as they are; they are encoded here, once, both for what is sent (sigv4_target) and
 * for what is signed, so that the two can't differ. */
#ifndef RM_OBJECT_SIGV4_H
#define RM_OBJECT_SIGV4_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/date.h"
#include "common/base/limits.h"
#include "common/base/str.h"

enum {
    SIGV4_QUERIES_MAX = 12,
    SIGV4_HEADERS_MAX = 16,
    SIGV4_TARGET_MAX = 16 << 10, /* the ceiling of a target */
    SIGV4_CANONICAL_MAX = 64 << 10,
};

struct sigv4_pair {
    const char *name, *value;
};

struct sigv4_request {
    const char *method;
    const char *path; /* "/bucket/a key": not encoded, "/" between its parts */
    struct sigv4_pair query[SIGV4_QUERIES_MAX];
    int queries;
    struct sigv4_pair header[SIGV4_HEADERS_MAX]; /* all that is signed, Host and X-Amz-Date too; any order */
    int headers;
    const char *payload; /* the body's SHA-256 in hex, or UNSIGNED-PAYLOAD */
};

extern const char sigv4_unsigned[]; /* "UNSIGNED-PAYLOAD" */
extern const char sigv4_empty[];    /* the SHA-256 of nothing */

/* Adds a pair, borrowed; the arrays are large enough for all that is asked here. */
void sigv4_query(struct sigv4_request *request, const char *name, const char *value);
void sigv4_header(struct sigv4_request *request, const char *name, const char *value);

/* What stands behind the host in the URL: the encoded path, and "?" with the query sorted where there is one.
 */
void sigv4_target(const struct sigv4_request *request, struct str *out);

/* A day's key. It may be kept for the day, and is a secret. */
void sigv4_key(const char *secret, const char day[9], const char *region, const char *service,
               uint8_t out[RM_HASH_BYTES]);

/* The same for Google's words: prefix, service and end of the scope are its own. */
void sigv4_google_key(const char *secret, const char day[9], const char *region, uint8_t out[RM_HASH_BYTES]);

struct sigv4_signer {
    bool google; /* GOOG4-HMAC-SHA256, with sigv4_google_key; service is not asked for */
    const char *access_key, *region, *service;
    const uint8_t *key; /* (RM_HASH_BYTES) of this day */
    char date[DATE_AMZ];
};
/* The value of the Authorization header. */
void sigv4_authorization(const struct sigv4_request *request, const struct sigv4_signer *signer,
                         struct str *out);

#endif
