/* A place for bytes under names: a bucket with a prefix (s3://bucket/prefix) or a folder (file:///folder).
 *
 * One interface, two implementations (object_file.c, and the S3 client in s3*.c) that pass the same contract
 * tests. Names are relative to the URI, with "/" between their parts, without "." or ".." as a part; an
 * object is absent or whole, never in between, and appears at once: nobody reads half of one.
 *
 * Calls block and work in parallel inside: a store of `connections` transfers that many ranges or parts at a
 * time. A store belongs to one thread at a time and keeps its connections until it is freed. What is under
 * way when *cancel becomes non-zero is given up (ERR_ABORTED). Memory given in stays the caller's, is sent as
 * it lies and must not change during the call; what comes in is written where the caller wants it. Beside
 * that a store takes a fixed amount of memory, whatever the size of the objects.
 *
 * Errors: ERR_NOT_FOUND (object), ERR_EXISTS (created by someone else first), ERR_USAGE (URI, bucket absent,
 * region, credentials absent, refused or out of date: what a person has to set right), ERR_MACHINE (the store
 * doesn't answer, is full, a disk error: it may work later), ERR_DATA (fewer bytes than asked for, a checksum
 * that doesn't fit, an answer that can't be), ERR_ABORTED. Those that say nothing about an object itself have
 * a class (common/base/error.h): a disk or store that did not answer is passing, and so is a refusal for want
 * of rights, for a person; what this machine lacks is its own. Each with a sentence that names the URI and
 * never a secret. Retries with growing, jittered pauses are inside; an error is final for this call. */
#ifndef RM_OBJECT_OBJECT_H
#define RM_OBJECT_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/base/time.h"

enum {
    OBJECT_NAME_MAX = 1024,      /* with its NUL */
    OBJECT_TAG_MAX = 128,        /* what the store says about a content: an ETag */
    OBJECT_UPLOAD_MAX = 1024,    /* an upload's id */
    OBJECT_RUNS_MAX = 4,         /* places in memory that make up one body */
    OBJECT_PARTS_MAX = 10000,    /* numbers of parts are 1 to this */
    OBJECT_PART_LEAST = 5 << 20, /* bytes of a part that isn't the last of its object, in any store */
};

struct object_store;

struct object_options {
    const char *uri;          /* s3://bucket[/prefix], file:///folder or an absolute path */
    const char *endpoint;     /* "" or NULL: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, then AWS itself.
                                 http(s)://host[:port] */
    const char *region;       /* "" or NULL: AWS_REGION, AWS_DEFAULT_REGION, the profile, then us-east-1 */
    int connections;          /* at most; 0: a good number for the machine */
    const atomic_int *cancel; /* NULL: never given up */
    /* Called now and then while waiting, with all that has moved so far, or (S3) in this call; on the calling
     * thread, or on several that read one object's parts from a folder. NULL: nobody asks. */
    void (*progress)(void *ctx, int64_t bytes_moved);
    /* The store has answered well, or is about to: sign of life where few bytes move; NULL: nobody asks. */
    void (*answering)(void *ctx);
    /* A try has failed and another follows; NULL: nobody asks. why names no secret. */
    void (*retrying)(void *ctx, const char *why);
    void *ctx;
};

/* No connection is made and no folder is touched. */
int object_open(struct object_store **ret, const struct object_options *options, struct error *err);
void object_free(struct object_store *store);
const char *object_uri(const struct object_store *store);
bool object_is_local(
    const struct object_store *store); /* a folder: parallel parts cost nothing but the disk */

/* Bytes come over a network with nothing but TCP's checksum on them. */
bool object_is_clear(const struct object_store *store);

/* --- reading --- */

/* From now on what is read comes from where it lies and not from what this machine remembers of it: of a
 * folder past the memory's pages, where its file system can; of a bucket over a new connection. Dearer, and
 * for one purpose: bytes that were found to be wrong are looked at again before that is believed. */
void object_pass_caches(struct object_store *store, bool pass);
bool object_passes_caches(const struct object_store *store);

struct object_info {
    int64_t bytes;
    int64_t modified_s; /* since the epoch, by the store's clock */
    char tag[OBJECT_TAG_MAX];
};

int object_head(struct object_store *store, const char *name, struct object_info *ret, struct error *err);

/* A small object whole, appended to *out. Longer than `most`: ERR_DATA. */
int object_get(struct object_store *store, const char *name, int64_t most, struct str *out,
               struct error *err);

/* Bytes of one object, straight to where they belong. `came` (may be NULL) is told of each run of bytes of
 * the range in order, once, on the calling thread while other ranges go on: for hashing what has just
 * arrived. A range that starts anew after a cut goes on where it stopped, and only within the same content
 * (tag). */
struct object_range {
    const char *name;
    int64_t offset, bytes;
    void *into; /* (bytes); NULL: they go to the file below, which is cheaper than memory that was never
                   touched */
    int file;   /* descriptor, the caller's; several ranges may share it */
    int64_t at; /* where in it the first byte goes */
    void (*came)(void *ctx, const void *bytes, size_t count);
    void *ctx;
    const char *tag; /* NULL, or the content that it has to be: anything else is ERR_DATA */
};
/* All of them, large ones cut into several requests where `came` is NULL. The first failure ends the call. */
int object_read(struct object_store *store, const struct object_range *range, int count, struct error *err);

/* Every object whose name starts with prefix, in byte order of the names. One that isn't shown: what lies
 * unfinished. visit returning -1 ends the listing with its error. */
struct object_entry {
    const char *name; /* relative to the URI, like all names; borrowed for the call */
    struct object_info info;
};
int object_list(struct object_store *store, const char *prefix,
                int (*visit)(void *ctx, const struct object_entry *entry, struct error *err), void *ctx,
                struct error *err);
/* The next parts of the names below prefix ("" or ending with "/"): "step-00000200/", and names without a "/"
 * as they are. */
int object_list_folders(struct object_store *store, const char *prefix,
                        int (*visit)(void *ctx, const char *part, struct error *err), void *ctx,
                        struct error *err);

/* --- writing --- */

struct object_body {
    int runs;
    struct {
        const void *bytes;
        size_t count;
    } run[OBJECT_RUNS_MAX]; /* one behind the other */
    const uint8_t *sha256;  /* (RM_HASH_BYTES) of all of it where the caller knows it, else NULL */
    /* A folder tells of each run of bytes that it has taken, from byte `at` of the body on, in order: for a
     * sum that is worked out while they are near the processor. Where it has to begin anew, `at` is 0 again.
     * NULL: nobody asks. A bucket sends out of order, and never tells. */
    void (*taken)(void *ctx, int64_t at, const void *bytes, size_t count);
    void *ctx;
};

enum object_mode {
    OBJECT_REPLACE,
    OBJECT_CREATE, /* only where nothing is: ERR_EXISTS. Our own first try having succeeded is success. */
};
/* At most 5 GiB. Durable on return. */
int object_put(struct object_store *store, const char *name, const struct object_body *body,
               enum object_mode mode, struct error *err);

/* Bodies that the store has taken so far without a word about what has arrived: their checksum did not come
 * back with its answer, and no signature covers them. A folder syncs what it takes: 0. */
int64_t object_unproven(const struct object_store *store);

/* Absent is fine. */
int object_delete(struct object_store *store, const char *const *name, int count, struct error *err);

/* An object made of parts, by several writers that know its id. Nothing is to be seen under its name until it
 * is completed. Part numbers may have gaps; the object is the parts in order of their numbers. */
struct object_part {
    int number;
    int64_t offset; /* of the part in the object: a folder writes it there */
    struct object_body body;
    const uint8_t *label;     /* (RM_HASH_BYTES) NULL, or what stands for the bytes where sha256 is not known:
                                 a folder, which reads what it writes for its tag, need not then. It is
                                 looked at when all bytes are taken, so `taken` may fill it */
    char tag[OBJECT_TAG_MAX]; /* set by object_upload_parts; given to object_upload_complete */
};
int object_upload_open(struct object_store *store, const char *name, char ret_id[OBJECT_UPLOAD_MAX],
                       struct error *err);
/* Sends all of them, several at a time. A part sent again replaces the earlier one. ERR_NOT_FOUND: no such
 * upload (completed or aborted). */
int object_upload_parts(struct object_store *store, const char *name, const char *id,
                        struct object_part *part, int count, struct error *err);
/* What is there already, in order of the numbers; bytes of a part are in info.bytes. */
struct object_part_info {
    int number;
    int64_t bytes;
    char tag[OBJECT_TAG_MAX];
};
int object_upload_list(struct object_store *store, const char *name, const char *id,
                       int (*visit)(void *ctx, const struct object_part_info *part, struct error *err),
                       void *ctx, struct error *err);
/* Only number and tag of the parts are looked at. Completed already by an earlier try of ours: success. */
int object_upload_complete(struct object_store *store, const char *name, const char *id,
                           const struct object_part *part, int count, enum object_mode mode,
                           struct error *err);
int object_upload_abort(struct object_store *store, const char *name, const char *id, struct error *err);
/* Aborts the uploads below prefix, of any object where `over` is NULL, else of those whose name it says yes
 * to; counts them. */
int object_uploads_collect(struct object_store *store, const char *prefix,
                           bool (*over)(void *ctx, const char *name), void *ctx, int *ret_aborted,
                           struct error *err);

#endif
