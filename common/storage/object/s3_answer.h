/* What an S3 server's XML says, as plain values. Answers come from outside: sizes are bounded, numbers are
 * checked, and what can't be is ERR_DATA with what was wrong (the caller says where it came from). */
#ifndef RM_OBJECT_S3_ANSWER_H
#define RM_OBJECT_S3_ANSWER_H

#include "common/storage/object/object.h"

enum {
    S3_TOKEN_MAX = 4096,   /* where a listing goes on, with its NUL */
    S3_KEY_MAX = 1024 + 1, /* a key in a bucket, with its NUL */
    S3_PARTS_MOST = 10000,
};

/* A refusal: <Error><Code>... Fields stay "" where the bytes are none. */
struct s3_refusal {
    char code[64], message[256], region[64];
};
void s3_answer_refusal(const void *bytes, size_t length, struct s3_refusal *ret);
/* The same of an answer that came as a good one, but is XML that may be a refusal all the same. -1: it is no
 * XML, or not all of it. */
int s3_answer_late(const void *bytes, size_t length, struct s3_refusal *ret);

/* One page of a listing (ListObjectsV2). next: "" at the end. */
struct s3_page_reader {
    int (*object)(void *ctx, const char *key, const struct object_info *info, struct error *err);
    int (*folder)(void *ctx, const char *prefix, struct error *err); /* of CommonPrefixes */
    void *ctx;
};
int s3_answer_page(const void *bytes, size_t length, const struct s3_page_reader *reader,
                   char next[S3_TOKEN_MAX], struct error *err);

/* One page of the uploads under way (ListMultipartUploads). next_key: "" at the end. */
struct s3_uploads_reader {
    int (*upload)(void *ctx, const char *key, const char *id, struct error *err);
    void *ctx;
};
int s3_answer_uploads(const void *bytes, size_t length, const struct s3_uploads_reader *reader,
                      char next_key[S3_KEY_MAX], char next_id[OBJECT_UPLOAD_MAX], struct error *err);

/* One page of an upload's parts (ListParts). next: 0 at the end. A part's tag is its ETag, and behind a "|"
 * its CRC-32C where the store keeps one. */
struct s3_parts_reader {
    int (*part)(void *ctx, const struct object_part_info *part, struct error *err);
    void *ctx;
};
int s3_answer_parts(const void *bytes, size_t length, const struct s3_parts_reader *reader, int *next,
                    struct error *err);

/* The id of an upload that was just begun (CreateMultipartUpload). */
int s3_answer_upload(const void *bytes, size_t length, char id[OBJECT_UPLOAD_MAX], struct error *err);

/* The end of an upload (CompleteMultipartUpload), whose 200 may hold a refusal: then refusal->code is set and
 * the result is 0. */
int s3_answer_completed(const void *bytes, size_t length, struct s3_refusal *refusal, struct error *err);

/* Credentials for a web identity (AssumeRoleWithWebIdentity). */
struct s3_session {
    char access_key[256], secret_key[256], token[8192];
    int64_t ends_s;
};
int s3_answer_session(const void *bytes, size_t length, struct s3_session *ret, struct error *err);

#endif
