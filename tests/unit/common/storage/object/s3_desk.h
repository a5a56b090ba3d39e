/* A store whose server says what a test wants said. */
#ifndef RM_TESTS_S3_DESK_H
#define RM_TESTS_S3_DESK_H

#include <criterion/criterion.h>

#include "common/storage/object/s3.h"
#include "tests/unit/common/net/stub.h"

struct desk {
    struct stub *stub;
    struct object_store *store;
    const struct object_ops *ops;
    struct error err;
    char endpoint[64];
    int retries, answers;
    char last_retry[512];
    int state;        /* the reply's own */
    const char *text; /* the reply's own */
    struct str heard; /* the reply's own */
};

/* Credentials in the environment, no shared files, no proxy; short patience. Fails the test where it can't.
 */
void desk_open(struct desk *desk, stub_reply reply);
/* The same without any credentials. */
void desk_open_bare(struct desk *desk, stub_reply reply);
/* Opens the store; `uri` like s3://bucket. */
void desk_store(struct desk *desk, const char *uri, int connections, const atomic_int *cancel);
void desk_close(struct desk *desk);

struct s3_store *desk_inside(struct desk *desk);
void expect_error(const struct desk *desk, int result, enum error_code code, const char *words);
struct object_body body_of(const char *text);
/* An <Error> with this code. */
enum stub_then refuse(struct str *answer, int status, const char *code);

#endif
