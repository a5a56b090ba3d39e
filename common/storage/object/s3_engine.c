/* Runs the requests of a store at S3, several at once: each has a slot that is signed, sent, judged
 * (s3_judge.c) and, where it is worth it, sent again after a pause, within a budget of retries that all slots
 * share. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/prng.h"
#include "common/os/clock.h"
#include "common/storage/object/s3.h"

/* Retries of all tasks together are paid from one purse, so that a store in trouble is not asked ten times as
 * often as one that works. */
enum { BUDGET = 500, RETRY_COSTS = 5, MOVED_ON = 1 << 20 };
static const rm_time tell_every = 100 * RM_MS;

enum slot_state {
    SLOT_FREE,
    SLOT_UNREAD,  /* its body has to be hashed */
    SLOT_HASHING, /* which happens on another thread */
    SLOT_READY,   /* to start at `at` */
    SLOT_RUNNING,
    SLOT_ENDED, /* its answer waits to be judged */
};

struct s3_slot {
    struct s3_store *store;
    enum slot_state state;
    struct s3_task task;
    struct s3_signed sent;
    struct http_call *call;
    enum http_outcome outcome;
    rm_time at;
    struct s3_slot *beside;   /* hashed together with it, by one thread, */
    struct s3_protection how; /* which reads this and not what the place says meanwhile */
};

/* --- what comes in --- */

static bool is_2xx(int status)
{
    return status >= 200 && status < 300;
}

static int decline(struct s3_task *task, enum error_code code, const char *why)
{
    return err_set(&task->failed, code, "%s", why);
}

/* The first bytes of a range: is it the range, and of the content that is wanted? */
static int check_range(struct s3_task *task, int status)
{
    struct s3_request *request = &task->request;
    int64_t from = request->offset + task->got, bytes = request->bytes - task->got;
    if (request->tag && request->tag[0] && strcmp(request->tag, task->tag) != 0)
        return decline(task, ERR_DATA, "the object has changed since it was looked at");
    if (request->tag && !request->tag[0])
        text_copy(request->tag, OBJECT_TAG_MAX, task->tag);
    if (status == 206 && task->range_from == from && task->range_to == from + bytes - 1)
        return 0;
    if (status == 206 && task->range_from == from && task->range_of >= 0 && task->range_of < from + bytes)
        return decline(task, ERR_DATA, "the object has fewer bytes than were asked for");
    if (status == 200 && from == 0 && task->length == bytes)
        return 0;
    return decline(task, ERR_DATA, "the answer is not the range that was asked for");
}

static int write_file(struct s3_task *task, const char *bytes, size_t count)
{
    int64_t at = task->request.at + task->got;
    while (count > 0) {
        ssize_t n = pwrite(task->request.file, bytes, count, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(&task->failed, ERR_MACHINE, "what comes can't be written");
        bytes += n;
        at += n;
        count -= (size_t)n;
    }
    return 0;
}

static int came_into(struct s3_task *task, int status, const void *bytes, size_t count)
{
    struct s3_request *request = &task->request;
    if (task->range_from != -2 && check_range(task, status) < 0)
        return -1;
    task->range_from = -2; /* checked */
    if ((int64_t)count > request->bytes - task->got)
        return decline(task, ERR_DATA, "more bytes came than were asked for");
    if (request->into)
        memcpy(request->into + task->got, bytes, count);
    else if (write_file(task, bytes, count) < 0)
        return -1;
    if (request->came)
        request->came(request->ctx, request->into ? request->into + task->got : bytes, count);
    task->got += (int64_t)count;
    return 0;
}

static int came_compare(struct s3_task *task, const char *bytes, size_t count)
{
    const struct object_body *body = task->request.against;
    int64_t skip = task->got;
    task->got += (int64_t)count;
    for (int i = 0; i < body->runs && count; i++) {
        size_t run = body->run[i].count;
        if (skip >= (int64_t)run) {
            skip -= (int64_t)run;
            continue;
        }
        size_t take = run - (size_t)skip < count ? run - (size_t)skip : count;
        if (memcmp((const char *)body->run[i].bytes + skip, bytes, take) != 0)
            break;
        bytes += take;
        count -= take;
        skip = 0;
    }
    return count ? decline(task, ERR_EXISTS, "other bytes") : 0;
}

static void tell_answering(const struct s3_store *store)
{
    if (store->answering)
        store->answering(store->ctx);
}

static int body_came(void *ctx, int status, const void *bytes, size_t count)
{
    struct s3_task *task = &((struct s3_slot *)ctx)->task;
    if (is_2xx(status) && task->request.sink == S3_INTO)
        return came_into(task, status, bytes, count);
    if (is_2xx(status) && task->request.sink == S3_COMPARE)
        return came_compare(task, bytes, count);
    str_add(&task->kept, bytes, count);
    if (is_2xx(status))
        tell_answering(((struct s3_slot *)ctx)->store);
    if (is_2xx(status) && task->kept.truncated)
        return decline(task, ERR_DATA, "the answer is longer than it may be");
    return 0; /* the rest of a long refusal is dropped */
}

static void read_content_range(struct s3_task *task, const char *value)
{
    int64_t from, to, of;
    int end = 0;
    if (sscanf(value, "bytes %19" SCNd64 "-%19" SCNd64 "/%19" SCNd64 "%n", &from, &to, &of, &end) == 3 &&
        end && !value[end]) {
        task->range_from = from;
        task->range_to = to;
        task->range_of = of;
    }
}

/* Of what has arrived, in base64; behind it there may be more, after a comma. */
static void read_checksum(struct s3_task *task, const char *value)
{
    size_t length = strlen(task->crc);
    if (length && !strncmp(value, task->crc, length) && strchr(", ", value[length]))
        task->crc_came = true;
}

/* "x-goog-hash: crc32c=...,md5=...", or a line for each. */
static void google_came(struct s3_task *task, const char *name, const char *value)
{
    static const char mark[] = "crc32c=";
    const char *at = strcasecmp(name, "x-goog-hash") ? NULL : strstr(value, mark);
    task->by_google = true;
    if (at)
        read_checksum(task, at + strlen(mark));
}

void s3_count_proof(struct s3_store *store, const struct s3_task *task)
{
    store->base.unproven +=
        (task->borne || !task->payload[0]) && !task->crc_came; /* no signature stands for it */
}

static void header_came(void *ctx, int status, const char *name, const char *value)
{
    (void)status;
    struct s3_task *task = &((struct s3_slot *)ctx)->task;
    int end = 0;
    if (!strcasecmp(name, "ETag"))
        text_copy(task->tag, sizeof task->tag, value);
    else if (!strcasecmp(name, "Content-Length")) {
        if (sscanf(value, "%19" SCNd64 "%n", &task->length, &end) != 1 || value[end])
            task->length = -1;
    } else if (!strcasecmp(name, "Content-Range"))
        read_content_range(task, value);
    else if (!strcasecmp(name, "Last-Modified"))
        date_of_http(value, &task->modified_s);
    else if (!strcasecmp(name, "Date"))
        date_of_http(value, &task->date_s);
    else if (!strcasecmp(name, "x-amz-checksum-crc32c"))
        read_checksum(task, value);
    else if (!strncasecmp(name, "x-goog-", 7) || !strcasecmp(name, "x-guploader-uploadid"))
        google_came(task, name, value);
    else if (!strcasecmp(name, "x-amz-bucket-region"))
        text_copy(task->region, sizeof task->region, value);
}

static void answer_done(void *ctx, const struct http_answer *answer)
{
    struct s3_slot *slot = ctx;
    slot->call = NULL;
    slot->outcome = answer->outcome;
    slot->task.status = answer->status;
    text_copy(slot->task.why, sizeof slot->task.why, answer->why);
    slot->state = SLOT_ENDED;
}

/* --- a try --- */

static int64_t server_now_s(const struct s3_store *store)
{
    return clock_wall_ms() / 1000 + store->skew_s;
}

static int get_credentials(struct s3_store *store, bool anew, struct error *err)
{
    bool renewed;
    if (credentials_get(store->credentials, server_now_s(store), anew, &store->who, &renewed, err) < 0)
        return err_wrap(err, "%s", store->base.uri);
    if (renewed)
        store->key_day[0] = 0;
    return 0;
}

/* A key is good for a day. */
static void make_key(struct s3_store *store, int64_t now_s)
{
    char date[DATE_AMZ], day[9];
    date_amz(now_s, date);
    snprintf(day, sizeof day, "%.8s", date);
    if (!strcmp(day, store->key_day))
        return;
    sigv4_key(store->who->secret_key, day, store->place.region, "s3", store->key);
    memcpy(store->key_day, day, sizeof day);
}

/* Forgets the last answer. What came of a range stays. */
static void task_reset(struct s3_task *task)
{
    size_t most = task->request.most ? task->request.most : S3_ANSWER_USUAL;
    if (task->request.sink != S3_INTO)
        task->got = 0;
    task->status = 0;
    task->crc_came = false;
    task->length = task->modified_s = task->date_s = -1;
    task->range_from = task->range_to = task->range_of = -1;
    task->tag[0] = task->why[0] = 0;
    task->refusal = (struct s3_refusal){0};
    str_reset(&task->kept);
    task->kept.ceiling = most > S3_ANSWER_USUAL ? most : S3_ANSWER_USUAL;
}

/* Says in whose words a try is, and whether a token stands for a signature. */
static void choose_words(const struct s3_store *store, struct s3_task *task)
{
    const struct s3_place *place = &store->place;
    task->borne = store->who->bearer;
    RM_ASSERT(!task->borne || place->googles_for_sure, "a token of Google's for %s", place->host);
    task->googled = task->borne || (task->request.create && place->google && !place->google_refused);
    task->checksummed = !task->googled && place->checksums && (task->crc[0] || task->request.with_algorithm);
}

static int slot_start(struct s3_slot *slot, struct error *err)
{
    struct s3_store *store = slot->store;
    struct s3_task *task = &slot->task;
    const struct object_body *body = task->request.body;
    struct http_run run[OBJECT_RUNS_MAX];
    bool fresh = task->request.create || task->request.seen || store->base.past_caches;
    if (get_credentials(store, false, err) < 0)
        return -1;
    struct s3_signing signing = {
        .place = &store->place, .who = store->who, .key = store->key, .now_s = server_now_s(store)};
    if (!store->who->bearer)
        make_key(store, signing.now_s);
    task->signed_s = signing.now_s;
    choose_words(store, task);
    task_reset(task);
    s3_sign(&slot->sent, task, &signing);
    for (int i = 0; body && i < body->runs; i++)
        run[i] = (struct http_run){body->run[i].bytes, body->run[i].count};
    struct http_request request = {.method = task->request.method,
                                   .url = str_text(&slot->sent.url),
                                   .header = slot->sent.header,
                                   .headers = slot->sent.headers,
                                   .body = run,
                                   .runs = body ? body->runs : 0,
                                   .connect_within = store->patience.connect,
                                   .silent_within =
                                       task->request.silent ? task->request.silent : store->patience.silent,
                                   .ca_file = store->place.ca_file[0] ? store->place.ca_file : NULL,
                                   .fresh = fresh, /* a second sending would find the first one's object */
                                   .proxy = store->place.proxy,
                                   .header_came = header_came,
                                   .body_came = body_came,
                                   .done = answer_done,
                                   .ctx = slot};
    if (http_start(store->waiter.http, &slot->call, &request, err) < 0)
        return -1;
    slot->state = SLOT_RUNNING;
    return 0;
}

/* --- bodies are hashed aside --- */

static void hash_work(void *ctx)
{
    struct s3_slot *slot = ctx;
    struct s3_task *task[S3_HASH_BESIDE] = {&slot->task, slot->beside ? &slot->beside->task : NULL};
    s3_task_hash(task, slot->beside ? 2 : 1, slot->how);
}

static void hash_done(void *ctx)
{
    struct s3_slot *slot = ctx;
    if (slot->beside)
        slot->beside->state = SLOT_READY;
    slot->state = SLOT_READY;
}

static struct s3_protection protection_of(const struct s3_store *store)
{
    return (struct s3_protection){store->place.tls, store->place.signs, store->place.checksums};
}

static int count_slots(const struct s3_store *store, enum slot_state state)
{
    int count = 0;
    for (int i = 0; i < store->slots; i++)
        count += store->slot[i].state == state;
    return count;
}

/* By twos, which costs less than one after the other. One that is left over waits for the next, as long as
 * the others keep the connections busy. */
static int hash_all(struct s3_store *store, bool more, struct error *err)
{
    bool wait = more && 2 * count_slots(store, SLOT_RUNNING) > store->slots;
    for (int i = 0, j; i < store->slots; i = j) {
        struct s3_slot *slot = &store->slot[i];
        for (j = i + 1; j < store->slots && store->slot[j].state != SLOT_UNREAD; j++)
            continue;
        if (slot->state != SLOT_UNREAD || (j == store->slots && wait))
            continue;
        slot->beside = j < store->slots ? &store->slot[j++] : NULL;
        slot->how = protection_of(store);
        if (loop_work(store->waiter.loop, hash_work, hash_done, slot, err) < 0)
            return -1;
        slot->state = SLOT_HASHING;
        if (slot->beside)
            slot->beside->state = SLOT_HASHING;
    }
    return 0;
}

static void slot_begin(struct s3_slot *slot)
{
    const struct s3_place *place = &slot->store->place;
    const struct object_body *body = slot->task.request.body;
    size_t bytes = 0;
    for (int i = 0; body && i < body->runs; i++)
        bytes += body->run[i].count;
    slot->at = 0;
    if (bytes >= S3_BODY_SMALL && ((place->signs && !body->sha256) || place->checksums)) {
        slot->state = SLOT_UNREAD;
        return;
    }
    s3_task_hash(&(struct s3_task *){&slot->task}, 1, protection_of(slot->store));
    slot->state = SLOT_READY;
}

/* Neither signed nor checked by anything: what was read before the place was found to know no checksums. */
static bool is_bare(const struct s3_slot *slot)
{
    const struct s3_place *place = &slot->store->place;
    return slot->task.request.body && !place->tls && !place->checksums && !slot->task.payload[0];
}

/* The store knows no checksums. Where those were all that protected a body it has to be signed. */
static int slot_without_checksum(struct s3_slot *slot)
{
    struct s3_place *place = &slot->store->place;
    place->checksums = false;
    place->signs = place->signs || !place->tls;
    slot->task.crc[0] = 0;
    slot_begin(slot);
    return 0;
}

/* --- between tries --- */

/* Anything up to a bound that doubles ("full jitter"): those who were refused together come back apart. */
static rm_time pause_of(struct s3_store *store, int tries)
{
    rm_time most = store->patience.pause;
    for (int i = 1; i < tries && most < store->patience.pause_most; i++)
        most *= 2;
    if (most > store->patience.pause_most)
        most = store->patience.pause_most;
    return (rm_time)(prng_unit(&store->chance) * (double)most);
}

static int give_up(const struct s3_slot *slot, struct error *err)
{
    const struct s3_store *store = slot->store;
    const struct s3_task *task = &slot->task;
    const char *name = task->request.key ? s3_name(store, task->request.key) : NULL;
    if (!task->why[0])
        return s3_refused(store, task, err);
    err_set(err, ERR_MACHINE, "%.200s%s%.100s: %s gets no good answer from %s: %s (%d tries)",
            store->base.uri, name ? "/" : "", name ? name : "", task->request.method, store->place.host,
            task->why, task->tries);
    return err_class(err, CLASS_PASSING);
}

static int slot_again(struct s3_slot *slot, struct error *err)
{
    struct s3_store *store = slot->store;
    struct s3_task *task = &slot->task;
    char why[512];
    task->failures++;
    if (task->got - task->got_before >= MOVED_ON)
        task->tries = 0;
    task->got_before = task->got;
    if (++task->tries >= store->patience.tries || store->budget < RETRY_COSTS)
        return give_up(slot, err);
    store->budget -= RETRY_COSTS;
    s3_describe(task, why, sizeof why);
    if (store->retrying)
        store->retrying(store->ctx, why);
    slot->at = clock_now() + pause_of(store, task->tries);
    slot->state = SLOT_READY;
    return 0;
}

static int slot_renew(struct s3_slot *slot, struct error *err)
{
    slot->task.renewed = true;
    slot->state = SLOT_READY;
    return get_credentials(slot->store, true, err);
}

static int slot_set_clock(struct s3_slot *slot)
{
    slot->task.clock_set++;
    slot->store->skew_s = slot->task.date_s - clock_wall_ms() / 1000;
    slot->store->key_day[0] = 0;
    slot->state = SLOT_READY;
    return 0;
}

static int slot_failed(const struct s3_slot *slot, struct error *err)
{
    const struct s3_task *task = &slot->task;
    const char *name = task->request.key ? s3_name(slot->store, task->request.key) : NULL;
    return err_from(err, &task->failed, "%.240s%s%.120s: %s", slot->store->base.uri, name ? "/" : "",
                    name ? name : "", task->failed.text);
}

/* Written as for any other store, it may overwrite: who has to know tries that
 * (common/storage/checkpoint/owner.h). */
static int slot_without_google(struct s3_slot *slot)
{
    slot->store->place.google_refused = true;
    slot->state = SLOT_READY;
    return 0;
}

static int64_t task_bytes(const struct s3_task *task)
{
    int64_t bytes = task->got;
    for (int i = 0; task->request.body && i < task->request.body->runs; i++)
        bytes += (int64_t)task->request.body->run[i].count;
    return bytes;
}

static int slot_final(struct s3_slot *slot, const struct s3_work *work, struct error *err)
{
    struct s3_store *store = slot->store;
    if (s3_is_good(&slot->task)) {
        tell_answering(store);
        store->moved += task_bytes(&slot->task);
        store->budget += store->budget < BUDGET;
    } else if (s3_denies(&slot->task)) {
        credentials_doubt(store->credentials);
        store->place.google_refused = false; /* it was not the words */
    }
    slot->state = SLOT_FREE;
    return work->done(work->ctx, store, &slot->task, err);
}

static int slot_judge(struct s3_slot *slot, const struct s3_work *work, struct error *err)
{
    struct s3_task *task = &slot->task;
    slot->store->place.google |= task->by_google;
    switch (s3_judge(task, slot->outcome)) {
    case S3_FINAL:
        return slot_final(slot, work, err);
    case S3_AGAIN:
        return slot_again(slot, err);
    case S3_RENEW:
        return slot_renew(slot, err);
    case S3_SET_CLOCK:
        return slot_set_clock(slot);
    case S3_NO_CHECKSUM:
        return slot_without_checksum(slot);
    case S3_NO_GOOGLE:
        return slot_without_google(slot);
    case S3_FAILED:
        break;
    }
    return slot_failed(slot, err);
}

/* --- all slots --- */

static int slot_step(struct s3_slot *slot, const struct s3_work *work, bool *more, rm_time now,
                     struct error *err)
{
    if (slot->state == SLOT_ENDED && slot_judge(slot, work, err) < 0)
        return -1;
    if (slot->state == SLOT_FREE && *more) {
        struct str kept = slot->task.kept;
        slot->task = (struct s3_task){.kept = kept};
        *more = work->next(work->ctx, &slot->task);
        if (*more)
            slot_begin(slot);
    }
    if (slot->state == SLOT_READY && slot->at <= now && is_bare(slot))
        slot_begin(slot);
    if (slot->state == SLOT_READY && slot->at <= now)
        return slot_start(slot, err);
    return 0;
}

/* In each turn of the waiter, also while credentials are waited for. */
void s3_tell_progress(void *ctx)
{
    struct s3_store *store = ctx;
    rm_time now = loop_now(store->waiter.loop);
    int64_t moved = store->moved;
    if (!store->progress || now < store->told_at + tell_every)
        return;
    for (int i = 0; i < store->slots; i++)
        if (store->slot[i].state == SLOT_RUNNING)
            moved += store->slot[i].task.got + http_sent(store->slot[i].call);
    store->told_at = now;
    store->progress(store->ctx, moved);
}

/* Ends what is under way; hashing can't be ended, only waited for. */
static void drop_all(struct s3_store *store)
{
    for (int i = 0; i < store->slots; i++) {
        struct s3_slot *slot = &store->slot[i];
        http_cancel(slot->call);
        slot->call = NULL;
        while (slot->state == SLOT_HASHING)
            loop_turn(store->waiter.loop, true);
        slot->state = SLOT_FREE;
        str_clear(&slot->task.kept);
    }
}

/* Steps every slot; *until: when the next one wants to start, or 0 where nothing is left to wait for. */
static int step_all(struct s3_store *store, const struct s3_work *work, bool *more, rm_time *until,
                    struct error *err)
{
    rm_time now = clock_now();
    bool busy = false;
    *until = RM_NEVER;
    for (int i = 0; i < store->slots; i++) {
        struct s3_slot *slot = &store->slot[i];
        if (slot_step(slot, work, more, now, err) < 0)
            return -1;
        busy |= slot->state != SLOT_FREE;
        if (slot->state == SLOT_READY && slot->at < *until)
            *until = slot->at;
    }
    if (!busy && !*more)
        *until = 0;
    return hash_all(store, *more, err);
}

int s3_run(struct s3_store *store, const struct s3_work *work, struct error *err)
{
    bool more = true;
    rm_time until;
    int result;
    store->moved = 0;
    while ((result = step_all(store, work, &more, &until, err)) == 0 && until) {
        if ((result = waiter_turn(&store->waiter, until, err)) < 0)
            break;
    }
    if (result < 0)
        drop_all(store);
    return result;
}

/* --- one task --- */

struct once {
    struct s3_task *task;
    bool given;
};

static bool once_next(void *ctx, struct s3_task *task)
{
    struct once *once = ctx;
    if (once->given)
        return false;
    once->given = true;
    str_clear(&task->kept);
    *task = *once->task;
    return true;
}

static int once_done(void *ctx, struct s3_store *store, struct s3_task *task, struct error *err)
{
    (void)store, (void)err;
    struct once *once = ctx;
    *once->task = *task;
    task->kept = str_init(0);
    return 0;
}

int s3_once(struct s3_store *store, struct s3_task *task, struct error *err)
{
    struct once once = {.task = task};
    return s3_run(store, &(struct s3_work){once_next, once_done, &once}, err);
}

struct s3_task s3_task(const char *method, const char *key)
{
    return (struct s3_task){.request = {.method = method, .key = key}};
}

void s3_task_query(struct s3_task *task, const char *name, const char *value)
{
    task->request.query[task->request.queries++] = (struct sigv4_pair){name, value};
}

int s3_engine_open(struct s3_store *store, int connections, struct error *err)
{
    int slots = connections > 0 ? connections : S3_CONNECTIONS_USUAL;
    store->slots = slots < S3_CONNECTIONS_MOST ? slots : S3_CONNECTIONS_MOST;
    store->slot = calloc((size_t)store->slots, sizeof *store->slot);
    if (!store->slot)
        return err_set(err, ERR_MACHINE, "no memory for requests");
    for (int i = 0; i < store->slots; i++)
        store->slot[i] = (struct s3_slot){
            .store = store,
            .sent = {.url = str_init(SIGV4_TARGET_MAX), .lines = str_init(SIGV4_CANONICAL_MAX)}};
    store->budget = BUDGET;
    return 0;
}

void s3_engine_free(struct s3_store *store)
{
    for (int i = 0; store->slot && i < store->slots; i++) {
        struct s3_slot *slot = &store->slot[i];
        if (slot->sent.lines.data)
            explicit_bzero(slot->sent.lines.data, slot->sent.lines.capacity); /* a session's token */
        str_clear(&slot->sent.lines);
        str_clear(&slot->sent.url);
        str_clear(&slot->task.kept);
    }
    free(store->slot);
}
