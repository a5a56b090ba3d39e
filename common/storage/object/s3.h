/* The inside of the S3 client: what its files share. Nobody else includes this but its tests.
 *
 * A task is one request with its retries: what is asked (the same in each try) and what came of it. The
 * engine (s3_engine.c) runs as many as there are slots on the store's own loop, signs each try, waits between
 * tries and judges answers (s3_judge.c); the operations hand tasks out and look at those that ended. */
#ifndef RM_OBJECT_S3_H
#define RM_OBJECT_S3_H

#include "common/storage/object/credentials.h"
#include "common/storage/object/object_s3.h"
#include "common/storage/object/s3_answer.h"
#include "common/storage/object/sigv4.h"

enum {
    S3_BUCKET_MAX = 256,
    S3_HOST_MAX = 512, /* with a bucket and a port */
    S3_QUERIES_MAX = 8,
    S3_CONNECTIONS_USUAL = 16,
    S3_CONNECTIONS_MOST = 256,
    S3_ANSWER_USUAL = 64 << 10, /* bytes of an answer that are kept where nobody says otherwise */
    S3_ANSWER_LIST = 16 << 20,  /* of a page of 1,000 long names */
};

/* --- where it is --- */

struct s3_place {
    char bucket[S3_BUCKET_MAX], prefix[OBJECT_NAME_MAX]; /* prefix without "/" at its ends */
    char host[S3_HOST_MAX];                              /* as in the Host header */
    char region[64], ca_file[1024];                      /* ca_file "": the system's */
    bool tls, path_style, proxy, checksums;
    bool google, google_refused; /* Google's XML API: a creation is said in its words; it did not take them */
    bool googles_for_sure;       /* by its name and certificate, or as the user says: it may have a token */
    bool signs;                  /* large bodies, too, go with their SHA-256 under the signature */
    bool region_guessed;         /* nobody named one */
};
/* From the URI, the options, the environment and the profile (NULL: none). */
int s3_place_find(struct s3_place *ret, const struct object_options *options, const struct profile *profile,
                  struct error *err);
/* The path of a request: of a key, or of the bucket where key is NULL. */
void s3_place_path(const struct s3_place *place, const char *key, struct str *out);

/* --- how long it waits --- */

struct s3_patience {
    rm_time connect, silent;   /* of a try: to connect, and without a byte */
    rm_time pause, pause_most; /* before the first and before late retries, at most */
    int tries;                 /* of a task in a row; moving on counts as a new start */
};

/* --- tasks --- */

enum s3_sink {
    S3_KEEP,    /* a good answer's bytes are kept in `kept`, `most` at most */
    S3_INTO,    /* they go to `into`, `bytes` from `offset` of the object */
    S3_COMPARE, /* they have to be those of `against` */
};

struct s3_request {
    const char *method;
    const char *key; /* the whole key, borrowed; NULL: the bucket's */
    struct sigv4_pair query[S3_QUERIES_MAX];
    int queries;
    bool create;         /* If-None-Match: *, or Google's word for it */
    bool seen;           /* each sending is a try of its own, also one that a kept connection lost */
    bool with_algorithm; /* begins an upload whose parts have checksums */
    bool late_refusal;   /* a 200 may hold a refusal */
    bool xml;            /* a good answer is XML: one that isn't was cut on its way */
    const struct object_body *body;
    rm_time silent; /* 0: the usual */

    enum s3_sink sink;
    size_t most;
    int64_t offset, bytes;
    char *into; /* NULL: to the file */
    int file;
    int64_t at;
    void (*came)(void *ctx, const void *bytes, size_t count);
    void *ctx;
    char *tag; /* (OBJECT_TAG_MAX) S3_INTO: the content it has to be; "": set by the first answer. Or NULL */
    const struct object_body *against;
};

struct s3_task {
    struct s3_request request;
    int64_t number;     /* the operation's own */
    int tries;          /* that failed since it last moved on */
    int failures;       /* all tries that failed: an earlier one may have been done without our knowing */
    int64_t got_before; /* what had come when the last try failed */
    bool renewed;
    int clock_set;    /* times */
    int64_t signed_s; /* the moment that the last try said */
    bool checksummed; /* the last try named a checksum, or how one is made */
    bool googled;     /* the last try was in Google's words, */
    bool borne;       /* with a token and no signature */
    bool by_google;   /* an answer was Google's */

    /* of the body */
    char payload[RM_HASH_HEX]; /* its SHA-256, or "": unsigned */
    char crc[12];              /* its CRC-32C in base64, or "" */

    /* of the last answer */
    int status;
    int64_t got;                        /* bytes that went into the sink, of all tries together for S3_INTO */
    int64_t length, modified_s, date_s; /* -1: not told */
    int64_t range_from, range_to, range_of;
    bool crc_came; /* it names the checksum of what has arrived, and that is the body's */
    char tag[OBJECT_TAG_MAX], region[64];
    struct s3_refusal refusal;
    struct str kept;     /* a good answer's bytes (S3_KEEP), or a refusal's */
    struct error failed; /* why the answer was declined */
    char why[256];       /* why there is no answer */
};

struct s3_store;

/* Runs tasks, several at a time. The first failure ends it, and what is under way with it. */
struct s3_work {
    /* Fills *task, which is empty; false: there are no more. */
    bool (*next)(void *ctx, struct s3_task *task);
    /* An answer that is final, of any status. -1 with an error ends the work. */
    int (*done)(void *ctx, struct s3_store *store, struct s3_task *task, struct error *err);
    void *ctx;
};
void s3_tell_progress(void *ctx); /* ctx: the store. Now and then: what has moved in the call under way */
int s3_run(struct s3_store *store, const struct s3_work *work, struct error *err);
/* One task, whose answer is in *task then; the caller clears task->kept. 0 with any final status. */
int s3_once(struct s3_store *store, struct s3_task *task, struct error *err);

/* The store has taken the task's body: does it stand for what has arrived (object_unproven)? */
void s3_count_proof(struct s3_store *store, const struct s3_task *task);

struct s3_task s3_task(const char *method, const char *key);
void s3_task_query(struct s3_task *task, const char *name, const char *value);

/* --- signing, in s3_sign.c --- */

/* The bodies' hashes and checksums as this place wants them, of S3_HASH_BESIDE tasks at most. Any thread. */
enum {
    S3_HASH_BESIDE = 2,
    S3_BODY_SMALL = 256 << 10, /* hashed on the spot, and signed wherever nothing else protects it */
};
struct s3_protection {
    bool tls, signs, checksums; /* as in s3_place */
};
void s3_task_hash(struct s3_task *const *task, int tasks, struct s3_protection how);

struct s3_signed {
    struct str url, lines; /* lines: one header behind the other, each with its NUL */
    const char *header[SIGV4_HEADERS_MAX + 1];
    int headers;
};
struct s3_signing {
    const struct s3_place *place;
    const struct credentials *who;
    const uint8_t *key; /* of the day */
    int64_t now_s;
};
/* One try, signed or with a token. An earlier one's strings are used again. */
void s3_sign(struct s3_signed *ret, const struct s3_task *task, const struct s3_signing *signing);

/* --- judging, in s3_judge.c: pure --- */

enum s3_action {
    S3_FINAL,       /* the operation looks at the status */
    S3_AGAIN,       /* after a pause */
    S3_RENEW,       /* with other credentials */
    S3_SET_CLOCK,   /* with the server's time */
    S3_NO_CHECKSUM, /* without checksums, which this store doesn't know */
    S3_NO_GOOGLE,   /* in Amazon's words after all */
    S3_FAILED,      /* task->failed says why */
};
enum s3_action s3_judge(struct s3_task *task, enum http_outcome outcome);
/* In words, for who asks about retries: "PUT a/b: status 503 SlowDown". */
void s3_describe(const struct s3_task *task, char *out, size_t size);

/* --- a store --- */

struct s3_slot;

struct s3_store {
    struct object_store base;
    struct s3_place place;
    struct s3_patience patience;
    struct profile *profile; /* memory for secrets */
    struct waiter waiter;
    struct credentials_store *credentials;
    const struct credentials *who;
    uint8_t *key; /* memory for secrets: the day's */
    char key_day[9];
    int64_t skew_s; /* the server's clock before ours */
    int budget;     /* retries are paid from it, successes pay in */
    uint64_t chance;
    struct s3_slot *slot;
    int slots;
    int64_t moved;   /* bytes of tasks that have ended, in this call */
    rm_time told_at; /* progress, last */
    void (*progress)(void *ctx, int64_t bytes_moved);
    void (*answering)(void *ctx);
    void (*retrying)(void *ctx, const char *why);
    void *ctx;
};

int s3_engine_open(struct s3_store *store, int connections, struct error *err);
void s3_engine_free(struct s3_store *store);

/* What the answer means to a person, as an error that names the object; -1. */
int s3_refused(const struct s3_store *store, const struct s3_task *task, struct error *err);
bool s3_is_good(const struct s3_task *task); /* 2xx, and no refusal in it */
bool s3_denies(const struct s3_task *task);  /* it is about who asks */
/* The key of a name (NULL: the bucket's prefix) into out[S3_KEY_MAX]. */
int s3_key(const struct s3_store *store, const char *name, char *out, struct error *err);
/* The name of a key, or NULL where it is none of ours. */
const char *s3_name(const struct s3_store *store, const char *key);

/* --- the operations that have files of their own --- */

int s3_read(struct object_store *base, const struct object_range *range, int count, struct error *err);
int s3_list(struct object_store *base, const char *prefix,
            int (*visit)(void *ctx, const struct object_entry *entry, struct error *err), void *ctx,
            struct error *err);
int s3_list_folders(struct object_store *base, const char *prefix,
                    int (*visit)(void *ctx, const char *part, struct error *err), void *ctx,
                    struct error *err);
int s3_upload_open(struct object_store *base, const char *name, char ret_id[OBJECT_UPLOAD_MAX],
                   struct error *err);
int s3_upload_parts(struct object_store *base, const char *name, const char *id, struct object_part *part,
                    int count, struct error *err);
int s3_upload_list(struct object_store *base, const char *name, const char *id,
                   int (*visit)(void *ctx, const struct object_part_info *part, struct error *err), void *ctx,
                   struct error *err);
int s3_upload_complete(struct object_store *base, const char *name, const char *id,
                       const struct object_part *part, int count, enum object_mode mode, struct error *err);
int s3_upload_abort(struct object_store *base, const char *name, const char *id, struct error *err);
int s3_uploads_collect(struct object_store *base, const char *prefix,
                       bool (*over)(void *ctx, const char *name), void *ctx, int *ret_aborted,
                       struct error *err);

#endif
