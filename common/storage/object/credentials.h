/* Whose requests these are: found as the AWS tools find it, and renewed before it ends.
 *
 * In this order, the first that is there: in a pod the folder RINGMASTER_POD_CREDENTIALS, where the Secret of
 * the job lies as files; AWS_ACCESS_KEY_ID; a web identity (AWS_WEB_IDENTITY_TOKEN_FILE and
 * AWS_ROLE_ARN); the profile's keys or its web identity in the shared files; the container's endpoint (ECS,
 * EKS Pod Identity); the machine's role (IMDSv2), or for a store of Google's the access token of a Google
 * service account. Secrets lie in memory of their own that no core dump holds, and are in no error.
 *
 * What fails here heals where it was made (a key, a role, a service that was busy), so every error is
 * CLASS_PASSING; `person` says that somebody has to do something about it. */
#ifndef RM_OBJECT_CREDENTIALS_H
#define RM_OBJECT_CREDENTIALS_H

#include <stdbool.h>

#include "common/storage/object/fetch.h"
#include "common/storage/object/profile.h"

struct credentials {
    char access_key[256], secret_key[512], token[16384]; /* token "": none; Google's have up to 12 KiB */
    bool bearer;        /* an access token of Google's, which is sent as it is: there are no keys */
    int64_t ends_s;     /* since the epoch; 0: never */
    const char *source; /* "the environment": for a sentence */
};

struct credentials_store;

struct credentials_options {
    struct waiter *waiter;
    const struct profile *profile; /* already read; NULL or not found: without */
    const char *region, *ca_file;  /* of STS; ca_file NULL: the system's */
    bool google;                   /* the store is Google's for sure: it may have a service account's token */
};

/* The strings and the waiter stay the caller's. Nothing is asked yet. */
int credentials_open(struct credentials_store **ret, const struct credentials_options *options,
                     struct error *err);
void credentials_free(struct credentials_store *store);

/* What is valid now (seconds since the epoch), borrowed until the next call; *renewed says whether it is
 * another than that of the last call. Asks anew where it ends within five minutes, or where `anew` is set
 * because a server refused it. Where asking fails and what there is still holds, that is given. */
int credentials_get(struct credentials_store *store, int64_t now_s, bool anew, const struct credentials **ret,
                    bool *renewed, struct error *err);
/* A server did not take them: the next call asks all sources anew, files too, as somebody may have set them
 * right. */
void credentials_doubt(struct credentials_store *store);

/* --- the parts, for tests and fuzzing --- */

/* From where a container or a machine keeps them: {"AccessKeyId": "...", ...}. Code other than "Success",
 * a missing key, or an end that is no date is ERR_DATA. */
int credentials_of_json(const char *text, size_t length, struct credentials *ret, struct error *err);
/* {"access_token": "...", "expires_in": 3599, "token_type": "Bearer"} as Google's metadata server has it,
 * from that moment on. Another type, no token, one that is no word, or an end that is no number is ERR_DATA.
 */
int credentials_google_token(const char *text, size_t length, int64_t now_s, struct credentials *ret,
                             struct error *err);
/* May credentials be asked for there over plain HTTP? This machine and the fixed addresses of containers. */
bool credentials_host_allowed(const char *url);

/* A file's text without the line end behind it. Unreadable, empty or too long: ERR_USAGE. */
int credentials_read_file(const char *path, char *out, size_t size, struct error *err);

/* They lie in credentials_remote.c and credentials_google.c. 0; -1 with ERR_NOT_FOUND where there is no such
 * source. */
int credentials_web_identity(const struct credentials_options *options, const char *role, const char *session,
                             const char *token_file, struct credentials *ret, struct error *err);
int credentials_container(const struct credentials_options *options, struct credentials *ret,
                          struct error *err);
int credentials_machine(const struct credentials_options *options, struct credentials *ret,
                        struct error *err);
int credentials_google(const struct credentials_options *options, int64_t now_s, struct credentials *ret,
                       struct error *err);

#endif
