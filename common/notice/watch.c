/* Decides what a machine's metadata is asked next, one cloud's questions after the other, and makes notices
 * of the answers. */
#include "common/notice/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/notice/metadata.h"

enum {
    GIVEN_UP = 8, /* failures in a row of every question, after which it may be another cloud */
    HANG_S = 60,
};

static const rm_time pause_first = RM_S, pause_most = 30 * RM_S, at_once = RM_S;
static const int64_t skew_most_ms = 5000; /* a Date has whole seconds, and an answer is on its way for some */

/* ---- the questions ---- */

enum topic {
    TOPIC_NONE,
    TOPIC_AWS_TOKEN, /* the first three also tell which cloud it is */
    TOPIC_GCE_ID,
    TOPIC_AZURE_NAME,
    TOPIC_AWS_SPOT,
    TOPIC_AWS_REBALANCE,
    TOPIC_AWS_MAINTENANCE,
    TOPIC_GCE_PREEMPTED,
    TOPIC_GCE_MAINTENANCE,
    TOPIC_AZURE_EVENTS,
    TOPICS
};

struct topic_row {
    enum watch_cloud cloud;
    const char *path, *header;
    enum notice_source source; /* NOTICE_SOURCES: its answer holds no notices */
    bool waits;                /* by a hanging GET */
    rm_time every, within;
    rm_time lead; /* of a `will` without a time: the least that its vendor gives; RM_NEVER: it has one */
};

/* Azure's first answer comes up to two minutes late, as its service is switched on by it. */
static const rm_time azures_first = 130 * RM_S;

#define GCE_HEADER   "Metadata-Flavor: Google"
#define AZURE_HEADER "Metadata: true"

/* AWS advises to ask each 5 s: of the two minutes that it gives those would be lost. Azure advises each
 * second. To a machine that hibernates AWS promises no time: what is there is what it takes to leave. */
static const struct topic_row topics[TOPICS] = {
    [TOPIC_AWS_TOKEN] = {WATCH_AWS, METADATA_AWS_TOKEN_PATH, METADATA_AWS_TOKEN_TTL, NOTICE_SOURCES, false, 0,
                         2 * RM_S, RM_NEVER},
    [TOPIC_GCE_ID] = {WATCH_GCE, "/computeMetadata/v1/instance/id", GCE_HEADER, NOTICE_SOURCES, false, 0,
                      2 * RM_S, RM_NEVER},
    [TOPIC_AZURE_NAME] = {WATCH_AZURE, "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
                          AZURE_HEADER, NOTICE_SOURCES, false, 0, 2 * RM_S, RM_NEVER},
    [TOPIC_AWS_SPOT] = {WATCH_AWS, "/latest/meta-data/spot/instance-action", NULL, NOTICE_AWS_SPOT, false,
                        RM_S, 5 * RM_S, 5 * RM_S},
    [TOPIC_AWS_REBALANCE] = {WATCH_AWS, "/latest/meta-data/events/recommendations/rebalance", NULL,
                             NOTICE_AWS_REBALANCE, false, 5 * RM_S, 5 * RM_S, RM_NEVER},
    [TOPIC_AWS_MAINTENANCE] = {WATCH_AWS, "/latest/meta-data/events/maintenance/scheduled", NULL,
                               NOTICE_AWS_MAINTENANCE, false, 5 * RM_S, 5 * RM_S, RM_NEVER},
    [TOPIC_GCE_PREEMPTED] = {WATCH_GCE, "/computeMetadata/v1/instance/preempted", GCE_HEADER,
                             NOTICE_GCE_PREEMPTED, true, 0, (HANG_S + 15) * RM_S, 30 * RM_S},
    [TOPIC_GCE_MAINTENANCE] = {WATCH_GCE, "/computeMetadata/v1/instance/maintenance-event", GCE_HEADER,
                               NOTICE_GCE_MAINTENANCE, true, 0, (HANG_S + 15) * RM_S, 60 * RM_S},
    [TOPIC_AZURE_EVENTS] = {WATCH_AZURE, METADATA_AZURE_EVENTS_PATH, AZURE_HEADER, NOTICE_AZURE, false, RM_S,
                            5 * RM_S, 30 * RM_S},
};

static const char *const cloud_names[] = {"", "aws", "gce", "azure"};

const char *watch_cloud_name(enum watch_cloud cloud)
{
    RM_ASSERT((unsigned)cloud < sizeof cloud_names / sizeof *cloud_names, "cloud %d has no name", (int)cloud);
    return cloud_names[cloud];
}

/* ---- which cloud ---- */

static void put_topic(struct watch_slot *slot, enum topic topic, rm_time at)
{
    RM_ASSERT((unsigned)topic < TOPICS, "a question of topic %d", (int)topic);
    *slot = (struct watch_slot){.topic = topic, .asked = slot->asked, .at = at};
}

static void look_for_cloud(struct watch *w, rm_time at)
{
    w->cloud = WATCH_UNKNOWN;
    w->token[0] = 0;
    put_topic(&w->slot[0], TOPIC_AWS_TOKEN, at);
    for (int i = 1; i < WATCH_SLOTS; i++)
        put_topic(&w->slot[i], TOPIC_NONE, RM_NEVER);
}

void watch_init(struct watch *w, int64_t revision, rm_time now)
{
    *w = (struct watch){.revision = revision};
    look_for_cloud(w, now);
}

static void found(struct watch *w, enum watch_cloud cloud, rm_time now, char say[WATCH_SAY_MAX])
{
    int slots = 0;
    w->cloud = cloud;
    w->looked = 0;
    for (int i = TOPIC_AWS_SPOT; i < TOPICS; i++)
        if (topics[i].cloud == cloud)
            put_topic(&w->slot[slots++], (enum topic)i, now);
    RM_ASSERT(slots > 0 && slots <= WATCH_SLOTS, "%d questions for cloud %d", slots, (int)cloud);
    while (slots < WATCH_SLOTS)
        put_topic(&w->slot[slots++], TOPIC_NONE, RM_NEVER);
    snprintf(say, WATCH_SAY_MAX, "the machine's metadata is that of %s", watch_cloud_name(cloud));
}

/* ---- asking ---- */

static bool has_token(const struct watch *w)
{
    return w->cloud != WATCH_AWS || w->token[0];
}

/* One asks for the token; the others wait for it. */
static bool waits_for_token(const struct watch *w, int slot)
{
    RM_ASSERT(slot >= 0 && slot < WATCH_SLOTS, "question %d waits", slot);
    return !has_token(w) && slot > 0;
}

static rm_time due_at(const struct watch *w, int slot)
{
    RM_ASSERT(slot >= 0 && slot < WATCH_SLOTS, "question %d", slot);
    return w->slot[slot].asked || waits_for_token(w, slot) ? RM_NEVER : w->slot[slot].at;
}

static enum topic next_topic(const struct watch *w, int slot)
{
    RM_ASSERT(slot >= 0 && slot < WATCH_SLOTS, "question %d is next", slot);
    return w->cloud == WATCH_AWS && !has_token(w) ? TOPIC_AWS_TOKEN : (enum topic)w->slot[slot].topic;
}

static void fill_question(const struct watch *w, int slot, struct watch_question *ret)
{
    const struct watch_slot *s = &w->slot[slot];
    const struct topic_row *row = &topics[next_topic(w, slot)];
    RM_ASSERT(row->path, "question %d is about nothing, of cloud %d", slot, (int)w->cloud);
    bool waits = row->waits && s->etag[0];
    *ret =
        (struct watch_question){.slot = slot,
                                .method = row == &topics[TOPIC_AWS_TOKEN] ? "PUT" : "GET",
                                .within = waits || !row->waits ? row->within : topics[TOPIC_GCE_ID].within};
    if (row == &topics[TOPIC_AZURE_EVENTS] && !s->heard)
        ret->within = azures_first;
    text_copy(ret->path, sizeof ret->path, row->path);
    if (waits)
        snprintf(ret->path, sizeof ret->path, "%s?wait_for_change=true&timeout_sec=%d&last_etag=%s",
                 row->path, HANG_S, s->etag);
    if (row->header)
        text_copy(ret->header, sizeof ret->header, row->header);
    else
        watch_header(w, ret->header);
}

void watch_header(const struct watch *w, char ret[WATCH_HEADER_MAX])
{
    if (w->cloud == WATCH_AWS)
        snprintf(ret, WATCH_HEADER_MAX, METADATA_AWS_TOKEN_HEADER "%s", w->token);
    else
        text_copy(ret, WATCH_HEADER_MAX, w->cloud == WATCH_GCE ? GCE_HEADER : AZURE_HEADER);
}

bool watch_ask(struct watch *w, rm_time now, struct watch_question *ret)
{
    for (int i = 0; i < WATCH_SLOTS; i++) {
        struct watch_slot *s = &w->slot[i];
        if (due_at(w, i) > now)
            continue;
        fill_question(w, i, ret);
        s->asked = next_topic(w, i);
        s->hangs = topics[s->asked].waits && s->etag[0];
        s->at = RM_NEVER;
        s->asked_at = now;
        return true;
    }
    return false;
}

rm_time watch_deadline(const struct watch *w)
{
    rm_time at = RM_NEVER;
    for (int i = 0; i < WATCH_SLOTS; i++)
        at = rm_earlier(at, due_at(w, i));
    return at;
}

/* ---- what an answer says ---- */

/* A token or a name: what may go into a header, and is printed as it is. */
static bool read_plain(const struct watch_answer *a, char *out, size_t size)
{
    RM_ASSERT(size > 0, "an answer of %zu bytes into nothing", a->length);
    size_t length = a->length;
    while (length && (a->body[length - 1] == '\n' || a->body[length - 1] == '\r'))
        length--;
    if (!length || length >= size)
        return false;
    for (size_t i = 0; i < length; i++)
        if (a->body[i] <= ' ' || a->body[i] > '~' || a->body[i] == '"' || a->body[i] == '<')
            return false;
    memcpy(out, a->body, length);
    out[length] = 0;
    return true;
}

static bool etag_is_plain(const char *etag)
{
    for (const char *c = etag; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '-' ||
              *c == '_' || *c == '.'))
            return false;
    return true;
}

/* An answer of that status that is no answer. */
static int refuse_status(const struct watch_answer *a, const char *path, struct error *err)
{
    if (!a->status)
        return err_set(err, ERR_MACHINE, "%.60s: %.200s", path, a->why);
    if (a->status >= 300 && a->status < 400)
        return err_set(err, ERR_PROTOCOL,
                       "%.60s: the answer is a redirect (status %d), which is not followed", path, a->status);
    return err_set(err, ERR_PROTOCOL, "%.60s: the answer has status %d", path, a->status);
}

static int read_words(const struct watch *w, enum topic topic, const struct watch_answer *a, int64_t said_ms,
                      struct metadata_words *ret, struct error *err)
{
    RM_ASSERT(topic >= TOPIC_AWS_SPOT && topic < TOPICS, "notices in answer to topic %d", (int)topic);
    ret->count = 0;
    if (topics[topic].cloud == WATCH_AWS && a->status == 404)
        return 0; /* nothing is planned */
    if (a->status != 200)
        return refuse_status(a, topics[topic].path, err);
    if (topics[topic].cloud == WATCH_GCE && !a->google)
        return err_set(err, ERR_PROTOCOL, "%.60s: the answer is not of Google's metadata server",
                       topics[topic].path);
    switch (topic) {
    case TOPIC_AWS_SPOT:
        return metadata_read_aws_spot(a->body, a->length, ret, err);
    case TOPIC_AWS_REBALANCE:
        return metadata_read_aws_rebalance(a->body, a->length, ret, err);
    case TOPIC_AWS_MAINTENANCE:
        return metadata_read_aws_maintenance(a->body, a->length, ret, err);
    case TOPIC_GCE_PREEMPTED:
        return metadata_read_gce_preempted(a->body, a->length, ret, err);
    case TOPIC_GCE_MAINTENANCE:
        return metadata_read_gce_maintenance(a->body, a->length, ret, err);
    default:
        return metadata_read_azure(a->body, a->length, w->machine, said_ms, ret, err);
    }
}

/* ---- what is known ---- */

static const struct notice *find_notice(const struct watch *w, enum notice_source source, const char *id)
{
    RM_ASSERT(w->notices.count >= 0 && w->notices.count <= NOTICES_MAX, "%d notices", w->notices.count);
    for (int i = 0; i < w->notices.count; i++)
        if (w->notices.at[i].source == source && !strcmp(w->notices.at[i].id, id))
            return &w->notices.at[i];
    return NULL;
}

static rm_time until_of(const struct watch *w, enum notice_source source, const char *id)
{
    const struct notice *known = find_notice(w, source, id);
    return known ? known->until : RM_NEVER;
}

/* Its moment is over and it has not come: what is known of it is of no use to those who hear of it now. */
static void doubt(struct watch *w, enum notice_source source, const struct metadata_word *word)
{
    const struct notice *known = find_notice(w, source, word->id);
    if (!known || known->certainty != NOTICE_WILL || word->certainty != NOTICE_MAY)
        return;
    notices_withdraw(&w->notices, source, word->id, NULL);
    w->revision++;
}

static void take_word(struct watch *w, const struct topic_row *row, const struct metadata_word *word,
                      int64_t said_ms, rm_time now, char say[WATCH_SAY_MAX])
{
    RM_ASSERT((unsigned)row->source < NOTICE_SOURCES, "%s has no source of notices", row->path);
    struct notice told = {
        .source = row->source, .cause = word->cause, .certainty = word->certainty, .until = RM_NEVER};
    text_copy(told.id, sizeof told.id, word->id);
    told.startable = word->startable;
    doubt(w, row->source, word);
    if (word->timed)
        told.until = notice_until(row->source, word->until_ms, said_ms, now);
    else if (word->certainty == NOTICE_WILL && row->lead != RM_NEVER)
        told.until = now + row->lead;
    rm_time before = until_of(w, row->source, told.id);
    enum notice_news news = notices_take(&w->notices, &told);
    rm_time after = until_of(w, row->source, told.id);
    if (news == NOTICE_SAME ||
        (news == NOTICE_SOONER && before != RM_NEVER && before - after < NOTICE_SAME_MOMENT))
        return;
    w->revision++;
    int n = snprintf(say, WATCH_SAY_MAX, "%s: this machine %s go (%s)", notice_kind(row->source)->name,
                     word->certainty == NOTICE_WILL ? "will" : "may", notice_cause_name(word->cause));
    if (told.until != RM_NEVER)
        snprintf(say + n, WATCH_SAY_MAX - (size_t)n, ", in %" PRId64 " s", (told.until - now) / RM_S);
}

/* ---- what is odd about it ---- */

enum odd {
    ODD_STALE = 1, /* a machine that was to be gone long ago, and answers, is not about to go */
    ODD_FAR = 2,
    ODD_PUT_OFF = 4,
};

/* By what was known before. */
static enum odd oddness_of(const struct watch *w, enum notice_source source, const struct metadata_word *word,
                           int64_t said_ms, rm_time now)
{
    int64_t left_ms = word->until_ms - said_ms, most_ms = notice_most(source) / RM_MS;
    RM_ASSERT(most_ms > 0, "source %d has %lld ms", (int)source, (long long)most_ms);
    if (!word->timed)
        return 0;
    if (left_ms < -most_ms)
        return ODD_STALE;
    if (left_ms > most_ms)
        return ODD_FAR;
    rm_time known = until_of(w, source, word->id);
    bool off =
        known != RM_NEVER && notice_until(source, word->until_ms, said_ms, now) > known + NOTICE_SAME_MOMENT;
    return off ? ODD_PUT_OFF : 0;
}

static void add_sentence(char say[WATCH_SAY_MAX], const char *sentence)
{
    size_t length = strlen(say);
    RM_ASSERT(length < WATCH_SAY_MAX && *sentence, "a sentence behind %zu bytes", length);
    snprintf(say + length, WATCH_SAY_MAX - length, "%s%s", length ? "; " : "", sentence);
}

/* Each until it is over. */
static void say_odd(struct watch_slot *s, const struct topic_row *row, unsigned odd, char say[WATCH_SAY_MAX])
{
    RM_ASSERT((unsigned)row->source < NOTICE_SOURCES, "%s has no source of notices", row->path);
    const char *name = notice_kind(row->source)->name;
    unsigned fresh = odd & ~s->odd;
    char sentence[160];
    s->odd = odd;
    if (fresh & ODD_STALE) {
        snprintf(sentence, sizeof sentence, "%s: its time is long past: it is not heeded", row->path);
        add_sentence(say, sentence);
    }
    if (fresh & ODD_FAR) {
        snprintf(sentence, sizeof sentence,
                 "%s: its time is more than %" PRId64 " s ahead, twice what is promised: no more is believed",
                 name, notice_most(row->source) / RM_S);
        add_sentence(say, sentence);
    }
    if (fresh & ODD_PUT_OFF) {
        snprintf(sentence, sizeof sentence, "%s: its time is put off: the one that was told first counts",
                 name);
        add_sentence(say, sentence);
    }
}

static void check_clock(struct watch *w, const struct watch_answer *a, char say[WATCH_SAY_MAX])
{
    int64_t ahead_ms = a->wall_ms - a->said_ms;
    char sentence[160];
    if (!a->said_ms)
        return;
    bool skewed = ahead_ms > skew_most_ms || ahead_ms < -skew_most_ms;
    if (skewed && !w->skewed) {
        snprintf(sentence, sizeof sentence,
                 "this machine's clock is %" PRId64 " s %s that of its metadata: times are taken by the "
                 "metadata's, but set this machine's clock",
                 (ahead_ms < 0 ? -ahead_ms : ahead_ms) / 1000, ahead_ms < 0 ? "behind" : "ahead of");
        add_sentence(say, sentence);
    }
    w->skewed = skewed;
}

/* ---- which notices stand ---- */

static bool is_among(const struct metadata_words *words, const char *id)
{
    RM_ASSERT(words->count >= 0 && words->count <= METADATA_WORDS_MAX, "%d words", words->count);
    for (int i = 0; i < words->count; i++)
        if (!strcmp(words->word[i].id, id))
            return true;
    return false;
}

static void withdraw_others(struct watch *w, enum notice_source source, const struct metadata_words *words,
                            char say[WATCH_SAY_MAX])
{
    RM_ASSERT(w->notices.count <= NOTICES_MAX, "%d notices", w->notices.count);
    for (int i = w->notices.count - 1; i >= 0; i--) {
        struct notice gone = w->notices.at[i];
        if (gone.source != source || is_among(words, gone.id))
            continue;
        notices_withdraw(&w->notices, source, gone.id, NULL);
        w->revision++;
        snprintf(say, WATCH_SAY_MAX, "%s: the notice is withdrawn", notice_kind(source)->name);
    }
}

/* ---- an answer ---- */

static bool all_fail(const struct watch *w)
{
    for (int i = 0; i < WATCH_SLOTS; i++)
        if (w->slot[i].topic != TOPIC_NONE && w->slot[i].failures < GIVEN_UP && !waits_for_token(w, i))
            return false;
    return true;
}

static bool all_heard(const struct watch *w)
{
    for (int i = 0; i < WATCH_SLOTS; i++)
        if (w->slot[i].topic != TOPIC_NONE && !w->slot[i].heard)
            return false;
    return true;
}

/* Asked again after a pause; what is known stays. */
static void fail_slot(struct watch *w, struct watch_slot *s, const char *why, rm_time now,
                      char say[WATCH_SAY_MAX])
{
    s->at = now + rm_backoff(pause_first, pause_most, s->failures++);
    s->etag[0] = 0;
    RM_ASSERT(s->failures > 0 && s->at >= now, "asked again after %d failures, at %lld of %lld", s->failures,
              (long long)s->at, (long long)now);
    if (strcmp(s->trouble, why) != 0) {
        text_copy(s->trouble, sizeof s->trouble, why);
        snprintf(say, WATCH_SAY_MAX, "the machine's metadata tells nothing to rely on: %.300s", why);
    }
    if (all_fail(w))
        look_for_cloud(w, s->at);
}

static void answer_token(struct watch *w, struct watch_slot *s, const struct watch_answer *a, rm_time now,
                         char say[WATCH_SAY_MAX])
{
    RM_ASSERT(w->cloud == WATCH_AWS, "a token of cloud %d", (int)w->cloud);
    struct error err;
    if (a->status == 200 && read_plain(a, w->token, sizeof w->token)) {
        s->at = now;
        return;
    }
    w->token[0] = 0;
    if (a->status == 200)
        err_set(&err, ERR_PROTOCOL, METADATA_AWS_TOKEN_PATH ": the answer is no token");
    else
        refuse_status(a, METADATA_AWS_TOKEN_PATH, &err);
    fail_slot(w, s, err.text, now, say);
}

/* While it is not known whose it is. */
static void answer_look(struct watch *w, const struct watch_answer *a, rm_time now, char say[WATCH_SAY_MAX])
{
    struct watch_slot *s = &w->slot[0];
    enum topic topic = (enum topic)s->topic;
    char plain[WATCH_TOKEN_MAX];
    bool read = a->status == 200 && read_plain(a, plain, sizeof plain);
    RM_ASSERT(w->cloud == WATCH_UNKNOWN, "a cloud is looked for, and is %d", (int)w->cloud);
    if (read && topic == TOPIC_AWS_TOKEN) {
        text_copy(w->token, sizeof w->token, plain);
    } else if (read && topic == TOPIC_AZURE_NAME) {
        read = text_copy(w->machine, sizeof w->machine, plain);
    } else {
        read = read && a->google;
    }
    if (read) {
        found(w, topics[topic].cloud, now, say);
        return;
    }
    if (topic != TOPIC_AZURE_NAME) {
        put_topic(s, topic + 1, now);
        return;
    }
    if (w->looked++ == 0)
        snprintf(say, WATCH_SAY_MAX,
                 "no cloud's metadata answers here (the last of three: %s): it is looked for again", //
                 a->status ? "not as it should" : a->why);
    look_for_cloud(w, now + rm_backoff(pause_first, pause_most, w->looked));
}

/* A token that has become too old is no trouble: another one is asked for. */
static void refused(struct watch *w, struct watch_slot *s, const struct watch_answer *a, const char *why,
                    rm_time now, char say[WATCH_SAY_MAX])
{
    RM_ASSERT(*why, "an answer of status %d is refused, and nobody says why", a->status);
    bool old = w->cloud == WATCH_AWS && a->status == 401;
    if (old) {
        w->token[0] = 0;
        w->slot[0].at = now;
    }
    if (!old || s->failures > 0)
        fail_slot(w, s, why, now, say);
    else {
        s->failures++;
        s->at = now;
    }
}

static bool is_known(const struct watch *w, enum notice_source source)
{
    for (int i = 0; i < w->notices.count; i++)
        if (w->notices.at[i].source == source)
            return true;
    return false;
}

/* A 404 that would withdraw a notice may be that of another server than the one that told it, which has no
 * such path. AWS's own gives a token: it is asked for one, and then again. */
static bool is_in_doubt(struct watch *w, struct watch_slot *s, const struct watch_answer *a, rm_time now)
{
    RM_ASSERT(s->topic > TOPIC_NONE && s->topic < TOPICS, "topic %d is in doubt", s->topic);
    bool denies = w->cloud == WATCH_AWS && a->status == 404 && is_known(w, topics[s->topic].source);
    bool doubt = denies && !s->denied;
    s->denied = a->status == 404 ? doubt : s->denied && (!a->status || a->status == 401);
    if (!doubt)
        return false;
    w->token[0] = 0;
    w->slot[0].at = s->at = now;
    return true;
}

static void answer_topic(struct watch *w, struct watch_slot *s, const struct watch_answer *a, rm_time now,
                         char say[WATCH_SAY_MAX])
{
    const struct topic_row *row = &topics[s->topic];
    int64_t said_ms = a->said_ms ? a->said_ms : a->wall_ms;
    struct metadata_words words, fresh = {.count = 0};
    struct error err = {0};
    RM_ASSERT(w->cloud != WATCH_UNKNOWN && row->cloud == w->cloud,
              "cloud %d answers what is asked of cloud %d", (int)w->cloud, (int)row->cloud);
    if (is_in_doubt(w, s, a, now))
        return;
    if (read_words(w, (enum topic)s->topic, a, said_ms, &words, &err) < 0) {
        refused(w, s, a, err.text, now, say);
        return;
    }
    s->failures = 0;
    s->heard = true;
    text_copy(s->etag, sizeof s->etag, etag_is_plain(a->etag) ? a->etag : "");
    s->trouble[0] = 0;
    unsigned odd = 0;
    for (int i = 0; i < words.count; i++) {
        enum odd one = oddness_of(w, row->source, &words.word[i], said_ms, now);
        odd |= one;
        if (one != ODD_STALE)
            fresh.word[fresh.count++] = words.word[i];
    }
    for (int i = 0; i < fresh.count; i++)
        take_word(w, row, &fresh.word[i], said_ms, now, say);
    withdraw_others(w, row->source, &fresh, say);
    say_odd(s, row, odd, say);
    check_clock(w, a, say);
    if (!w->complete && all_heard(w)) {
        w->complete = true;
        w->revision++;
    }
    /* a server that does not wait, or names no state to wait for a change of, is not asked in a circle */
    bool quick = row->waits && (!s->etag[0] || (s->hangs && now - s->asked_at < at_once));
    bool renews = !has_token(w) && s == &w->slot[0]; /* the others wait for it to ask for another token */
    s->at = now + (renews ? 0 : quick ? at_once : row->every);
}

/* Moments that are told again a little sooner are no news each; but together they may be, as may the order in
 * which two causes come. */
static void show_what_changed(struct watch *w, int64_t before)
{
    const struct notice *first = notices_first(&w->notices);
    if (w->revision == before && notice_change(w->shows ? &w->shown : NULL, first) != NOTICE_SAME)
        w->revision++;
    if (w->revision == before)
        return;
    w->shows = first != NULL;
    if (first)
        w->shown = *first;
    RM_ASSERT(w->shows == (w->notices.count > 0), "%d notices come to nothing", w->notices.count);
}

void watch_answer(struct watch *w, int slot, const struct watch_answer *answer, rm_time now,
                  char say[WATCH_SAY_MAX])
{
    RM_ASSERT(slot >= 0 && slot < WATCH_SLOTS && w->slot[slot].asked,
              "an answer to question %d, which nobody asked", slot);
    struct watch_slot *s = &w->slot[slot];
    int topic = s->asked;
    int64_t revision = w->revision;
    say[0] = 0;
    s->asked = TOPIC_NONE;
    if (topic == TOPIC_AWS_TOKEN && w->cloud == WATCH_AWS)
        answer_token(w, s, answer, now, say);
    else if (topic != s->topic)
        return; /* of a cloud that is no longer asked */
    else if (w->cloud == WATCH_UNKNOWN)
        answer_look(w, answer, now, say);
    else
        answer_topic(w, s, answer, now, say);
    show_what_changed(w, revision);
    repeats_thin(w->revision == revision ? &w->troubles : &w->words, now, say, WATCH_SAY_MAX);
}
