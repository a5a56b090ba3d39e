/* Judges the answer of an S3 server: good, to be tried again, or refused, and then why, in a sentence for
 * people. Pure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/storage/object/s3.h"

/* A clock that is further off than this is wrong; S3 itself allows 15 minutes. */
enum { SKEW_S = 300 };
/* One server of several may be wrong about the time: the next one that is right sets it right again. */
enum { CLOCKS_MOST = 8 };

/* A person can set it right while we wait: a key, a bucket, a region, a certificate, a clock. */
static int for_a_person(struct error *err)
{
    err_class(err, CLASS_PASSING);
    return err_person(err);
}

static bool is_one_of(const char *code, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(code, *list))
            return true;
    return false;
}

/* Refusals that another try may not meet, whatever status they come with. */
static const char *const passing[] = {"SlowDown",
                                      "SlowDownRead",
                                      "SlowDownWrite",
                                      "InternalError",
                                      "ServiceUnavailable",
                                      "Throttling",
                                      "ThrottlingException",
                                      "RequestThrottled",
                                      "RequestLimitExceeded",
                                      "BandwidthLimitExceeded",
                                      "RequestTimeout",
                                      "RequestTimeoutException",
                                      "IncompleteBody",
                                      "BadDigest",
                                      "XAmzContentSHA256Mismatch",
                                      "OperationAborted",
                                      "ConditionalRequestConflict",
                                      NULL};
static const char *const outdated[] = {"ExpiredToken",         "ExpiredTokenException", "InvalidToken",
                                       "TokenRefreshRequired", "RequestExpired",        NULL};
static const char *const full[] = {"QuotaExceeded",
                                   "XMinioStorageFull",
                                   "InsufficientStorage",
                                   "StorageFull",
                                   "XMinioAdminBucketQuotaExceeded",
                                   "NoSpace",
                                   "InsufficientCapacity",
                                   NULL};

bool s3_is_good(const struct s3_task *task)
{
    return task->status >= 200 && task->status < 300 && !task->refusal.code[0];
}

/* Refused for now: another try may be taken. */
static bool is_busy(const struct s3_task *task)
{
    if (task->status == 501 || task->status == 505)
        return false;
    return task->status >= 500 || task->status == 429 || task->status == 408 ||
           is_one_of(task->refusal.code, passing);
}

bool s3_denies(const struct s3_task *task)
{
    return task->status == 401 || task->status == 403 || is_one_of(task->refusal.code, outdated);
}

static enum s3_action judge_refusal(struct s3_task *task);

/* The status that a refusal of this name comes with where it is not late; of any other it is a failure. */
static int status_of(const char *code)
{
    static const struct {
        const char *code;
        int status;
    } known[] = {{"AccessDenied", 403},          {"AllAccessDisabled", 403},    {"InvalidAccessKeyId", 403},
                 {"SignatureDoesNotMatch", 403}, {"RequestTimeTooSkewed", 403}, {"NoSuchBucket", 404},
                 {"NoSuchUpload", 404},          {"ExpiredToken", 400},         {"InvalidToken", 400},
                 {"InvalidArgument", 400},       {"InvalidRequest", 400}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].code, code))
            return known[i].status;
    return 500;
}

/* A server that fails when it has said 200 can say so in its text alone. */
static enum s3_action judge_late(struct s3_task *task)
{
    const char *code = task->refusal.code;
    if (s3_answer_late(str_text(&task->kept), task->kept.length, &task->refusal) < 0) {
        text_copy(task->why, sizeof task->why, "an answer that is no XML, or not all of it");
        return S3_AGAIN;
    }
    if (!code[0])
        return S3_FINAL;
    task->status = status_of(code);
    return judge_refusal(task);
}

/* Did the whole of what was asked for come? */
static enum s3_action judge_good(struct s3_task *task)
{
    const struct s3_request *request = &task->request;
    if (request->late_refusal) {
        if (s3_answer_completed(str_text(&task->kept), task->kept.length, &task->refusal, NULL) < 0) {
            text_copy(task->why, sizeof task->why, "an answer that says neither done nor refused");
            return S3_AGAIN;
        }
        return task->refusal.code[0] && is_one_of(task->refusal.code, passing) ? S3_AGAIN : S3_FINAL;
    }
    if (request->xml)
        return judge_late(task);
    if (request->sink == S3_INTO && task->got < request->bytes) {
        text_copy(task->why, sizeof task->why, "fewer bytes came than were asked for");
        return S3_AGAIN;
    }
    return S3_FINAL;
}

/* Whether the clock was off when that try was signed: another request may have set it since. */
static bool clock_was_off(const struct s3_task *task)
{
    return task->date_s >= 0 && llabs(task->date_s - task->signed_s) > SKEW_S;
}

/* What to do about a refusal with a status of 300 or more. */
static enum s3_action judge_refusal(struct s3_task *task)
{
    const char *code = task->refusal.code;
    s3_answer_refusal(str_text(&task->kept), task->kept.length, &task->refusal);
    if (task->refusal.region[0])
        text_copy(task->region, sizeof task->region, task->refusal.region);
    if (is_one_of(code, full) || task->status == 507)
        return S3_FINAL;
    if ((task->status == 501 || !strcmp(code, "NotImplemented")) && task->checksummed)
        return S3_NO_CHECKSUM;
    if (task->googled && !task->borne && (task->status == 400 || task->status == 403) && !clock_was_off(task))
        return S3_NO_GOOGLE;
    if (task->status == 501 || task->status == 505)
        return S3_FINAL;
    if (is_busy(task))
        return S3_AGAIN;
    if ((is_one_of(code, outdated) || (task->borne && task->status == 401)) && !task->renewed)
        return S3_RENEW;
    /* A HEAD is refused without a word: the date alone says that it may have been the clock. */
    if (!task->borne && task->status == 403 && (!code[0] || strstr(code, "Skewed")) &&
        task->clock_set < CLOCKS_MOST && clock_was_off(task))
        return S3_SET_CLOCK;
    return S3_FINAL;
}

/* A connection that breaks behind the last byte of a range has taken nothing from it. */
static bool is_all_there(const struct s3_task *task)
{
    return s3_is_good(task) && task->request.sink == S3_INTO && task->got == task->request.bytes;
}

enum s3_action s3_judge(struct s3_task *task, enum http_outcome outcome)
{
    if (task->failed.code != ERR_NONE)
        return S3_FAILED; /* declined while its bytes came */
    if (is_all_there(task))
        return S3_FINAL;
    switch (outcome) {
    case HTTP_ANSWERED:
        return task->status >= 200 && task->status < 300 ? judge_good(task) : judge_refusal(task);
    case HTTP_UNTRUSTED:
        err_set(&task->failed, ERR_USAGE,
                "the server's certificate is not trusted: %s (AWS_CA_BUNDLE names a file with certificates "
                "to trust)",
                task->why);
        for_a_person(&task->failed);
        return S3_FAILED;
    case HTTP_DECLINED:
        err_set(&task->failed, ERR_MACHINE, "%s", task->why);
        return S3_FAILED;
    case HTTP_NO_CONNECTION:
    case HTTP_SILENT:
    case HTTP_BROKEN:
        break;
    }
    return S3_AGAIN;
}

void s3_describe(const struct s3_task *task, char *out, size_t size)
{
    const char *key = task->request.key ? task->request.key : "";
    if (task->why[0])
        snprintf(out, size, "%s %s: %s", task->request.method, key, task->why);
    else
        snprintf(out, size, "%s %s: status %d %s", task->request.method, key, task->status,
                 task->refusal.code);
}

/* --- what a refusal means to a person --- */

static int wrong_region(const struct s3_store *store, const struct s3_task *task, struct error *err)
{
    const struct s3_place *place = &store->place;
    if (task->region[0] && strcmp(task->region, place->region) != 0)
        err_set(err, ERR_USAGE,
                "%s: the bucket is in region %s, and %s was %s: set AWS_REGION or the job's region to %s",
                store->base.uri, task->region, place->region, place->region_guessed ? "guessed" : "asked for",
                task->region);
    else
        err_set(err, ERR_USAGE,
                "%s: the bucket is not at %s in region %s (status %d %s): set its region or endpoint",
                store->base.uri, place->host, place->region, task->status, task->refusal.code);
    return for_a_person(err);
}

/* Who comes with a token has no key that could be wrong: it is unknown who that is, or that one may not. */
static void denied_bearer(const struct s3_task *task, const char *where, const char *source,
                          struct error *err)
{
    if (task->status == 401)
        err_set(err, ERR_USAGE, "%s: the token from %s is not taken (status 401 %s %.120s)", where, source,
                task->refusal.code, task->refusal.message);
    else
        err_set(err, ERR_USAGE,
                "%s: access denied: the Google service account may not %s here: grant it "
                "roles/storage.objectUser on the bucket (status %d %s %.120s)",
                where, task->request.method, task->status, task->refusal.code, task->refusal.message);
}

static int denied(const struct s3_store *store, const struct s3_task *task, const char *where,
                  struct error *err)
{
    const char *code = task->refusal.code, *source = store->who ? store->who->source : "nowhere";
    if (task->borne)
        denied_bearer(task, where, source, err);
    else if (is_one_of(code, outdated))
        err_set(err, ERR_USAGE, "%s: the credentials from %s are out of date (%s): renew them", where, source,
                code);
    else if (!strcmp(code, "InvalidAccessKeyId") || !strcmp(code, "SignatureDoesNotMatch"))
        err_set(err, ERR_USAGE,
                "%s: %s doesn't take the credentials from %s (%s): is the key for this store?", where,
                store->place.host, source, code);
    else if (strstr(code, "Skewed"))
        err_set(err, ERR_USAGE, "%s: this machine's clock is wrong (%s): set it", where, code);
    else
        err_set(err, ERR_USAGE,
                "%s: access denied: the credentials from %s may not %s here (status %d %s %.120s)", where,
                source, task->request.method, task->status, code, task->refusal.message);
    return for_a_person(err);
}

static int absent(const struct s3_store *store, const struct s3_task *task, const char *where,
                  struct error *err)
{
    if (!strcmp(task->refusal.code, "NoSuchBucket")) {
        err_set(err, ERR_USAGE, "%s: there is no bucket %s at %s: make it first", store->base.uri,
                store->place.bucket, store->place.host);
        return for_a_person(err);
    }
    if (!strcmp(task->refusal.code, "NoSuchUpload"))
        return err_set(err, ERR_NOT_FOUND, "%s: there is no such upload", where);
    return err_set(err, ERR_NOT_FOUND, "%s: not found", where);
}

int s3_refused(const struct s3_store *store, const struct s3_task *task, struct error *err)
{
    const char *code = task->refusal.code,
               *name = task->request.key ? s3_name(store, task->request.key) : NULL;
    char where[OBJECT_URI_MAX];
    snprintf(where, sizeof where, "%.240s%s%.120s", store->base.uri, name ? "/" : "", name ? name : "");
    if ((task->status >= 300 && task->status < 400) || !strcmp(code, "AuthorizationHeaderMalformed") ||
        !strcmp(code, "IllegalLocationConstraintException"))
        return wrong_region(store, task, err);
    if (is_one_of(code, full) || task->status == 507) {
        err_set(err, ERR_MACHINE, "%s: the store is full (%s): make room or raise its quota", where, code);
        return err_class(err, CLASS_PASSING);
    }
    if (!strcmp(code, "InvalidPart") || !strcmp(code, "EntityTooSmall"))
        return err_set(err, ERR_DATA, "%s: its parts are not those that were sent (%s)", where, code);
    if (s3_denies(task))
        return denied(store, task, where, err);
    if (task->status == 404)
        return absent(store, task, where, err);
    if (task->status == 412 && task->request.sink == S3_INTO)
        return err_set(err, ERR_DATA, "%s: has changed since it was looked at", where);
    if (task->status == 412 || task->status == 409)
        return err_set(err, ERR_EXISTS, "%s: exists already", where);
    if (task->status == 416)
        return err_set(err, ERR_DATA, "%s: has fewer bytes than were asked for", where);
    err_set(err, ERR_MACHINE, "%s: %s gets status %d %s %.160s", where, task->request.method, task->status,
            code, task->refusal.message);
    return is_busy(task) ? err_class(err, CLASS_PASSING) : -1;
}
