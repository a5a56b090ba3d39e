/* A bucket in memory, behind a server on 127.0.0.1: small objects, conditions and listings. */
#ifndef RM_TESTS_BUCKET_H
#define RM_TESTS_BUCKET_H

#include <stdbool.h>
#include <stddef.h>

struct bucket;

/* Sets the environment's credentials. */
struct bucket *bucket_open(void);
void bucket_free(struct bucket *b);
const char *bucket_endpoint(const struct bucket *b); /* of "s3://bucket/base" */

/* As somebody else. Names are relative to "base". */
void bucket_put(struct bucket *b, const char *name, const char *text);
bool bucket_has(struct bucket *b, const char *name);
/* "" where there is none. */
void bucket_get(struct bucket *b, const char *name, char *out, size_t size);
/* Until as many listings more were asked for; false: not within 30 s. */
bool bucket_await_listings(struct bucket *b, int more);
/* HEAD of names that end so is refused from now on. NULL: of none. */
void bucket_refuse_heads(struct bucket *b, const char *end);

#endif
