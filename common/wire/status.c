/* Holds the rows of a coordinator's status page, and walks them to read and to write it. */
#include "common/wire/status.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/json.h"

enum { SENTENCE_MAX = 97 /* bytes of one of many, with its NUL */ };

static const char *const recovery_keys[RECOVERY_PARTS] = {
    [RECOVERY_DETECT] = "detectMs", [RECOVERY_AGREE] = "agreeMs",          [RECOVERY_RING] = "ringMs",
    [RECOVERY_STATE] = "stateMs",   [RECOVERY_FIRST_STEP] = "firstStepMs", [RECOVERY_TOTAL] = "totalMs",
};

static const char *const goodput_keys[GOODPUT_CLASSES] = {
    [GOODPUT_PRODUCTIVE] = "productiveSeconds", [GOODPUT_CHECKPOINT] = "checkpointSeconds",
    [GOODPUT_RECOVERY] = "recoverySeconds",     [GOODPUT_WAITING] = "waitingSeconds",
    [GOODPUT_REWORK] = "reworkSeconds",
};

static const char *const states[STATUS_STATES] = {
    [STATUS_UNKNOWN] = "",
    [STATUS_GATHERING] = "Gathering",
    [STATUS_FORMING] = "Forming",
    [STATUS_TRAINING] = "Training",
    [STATUS_QUIESCING] = "Quiescing",
    [STATUS_SAVING] = "Saving",
    [STATUS_RECOVERING] = "Recovering",
    [STATUS_FINISHED] = "Finished",
    [STATUS_FAILED] = "Failed",
};

const char *recovery_key(enum recovery_part part)
{
    return recovery_keys[part];
}

const char *goodput_key(enum goodput_class which)
{
    return goodput_keys[which];
}

const char *status_state_name(enum status_state state)
{
    return states[state];
}

enum status_state status_state_of_name(const char *name)
{
    int state = STATUS_UNKNOWN + 1;
    while (state < STATUS_STATES && strcmp(states[state], name) != 0)
        state++;
    return state < STATUS_STATES ? (enum status_state)state : STATUS_UNKNOWN;
}

static const char *const phases[STATUS_PHASES] = {
    [STATUS_PHASE_UNKNOWN] = "",          [STATUS_PHASE_EXPECTED] = "expected",
    [STATUS_PHASE_AWAY] = "away",         [STATUS_PHASE_STARTING] = "starting",
    [STATUS_PHASE_WAITING] = "waiting",   [STATUS_PHASE_FORMING] = "forming",
    [STATUS_PHASE_READY] = "ready",       [STATUS_PHASE_TRAINING] = "training",
    [STATUS_PHASE_FINISHED] = "finished", [STATUS_PHASE_STOPPING] = "stopping",
    [STATUS_PHASE_STOPPED] = "stopped",   [STATUS_PHASE_SAVING] = "saving",
    [STATUS_PHASE_LEAVING] = "leaving",   [STATUS_PHASE_RELEASED] = "released",
    [STATUS_PHASE_LEFT_OUT] = "leftOut",  [STATUS_PHASE_QUARANTINED] = "quarantined",
};

const char *status_phase_name(enum status_phase phase)
{
    return phases[phase];
}

enum status_phase status_phase_of_name(const char *name)
{
    int phase = STATUS_PHASE_UNKNOWN + 1;
    while (phase < STATUS_PHASES && strcmp(phases[phase], name) != 0)
        phase++;
    return phase < STATUS_PHASES ? (enum status_phase)phase : STATUS_PHASE_UNKNOWN;
}

/* ---- the rows ---- */

enum kind {
    END,
    INT,      /* int; absent: its lowest */
    LONG,     /* int64_t; absent: its lowest */
    REAL,     /* double; NaN is null */
    REALS,    /* an array of doubles, each a member of its own */
    FLAG,     /* bool */
    MARK,     /* the same, and absent where it is false */
    TEXT,     /* const char * */
    SENTENCE, /* TEXT that is one of up to 64 in a list: cut, and without what JSON makes six bytes of */
    OBJECT,   /* a struct with rows of its own */
    PART,     /* the same, with `known` in front: null where it is not */
    WORKERS,  /* struct status_workers; the rows are of an entry */
    VALUE,    /* const struct js *: as it is */
};

struct row {
    const char *key;
    enum kind kind;
    size_t at;
    int64_t lowest, highest; /* of INT and LONG; highest 0: that of the type */
    size_t only_if;          /* a bool of the struct: the member is there where it is true; 0: always */
    const struct row *rows;
    const char *const *keys; /* of REALS, `count` of them */
    int count;
};

#define WORKER(member) offsetof(struct status_worker, member)

static const struct row member_rows[] = {
    {"worker", INT, .at = WORKER(worker), .lowest = -1, .highest = RM_WORKERS_MAX},
    {"attempt", INT, .at = WORKER(attempt)},
    {0},
};

#define NOTICE(member) offsetof(struct status_notice, member)

static const struct row notice_rows[] = {
    {"source", TEXT, .at = NOTICE(source)},
    {"cause", TEXT, .at = NOTICE(cause)},
    {"certainty", TEXT, .at = NOTICE(certainty)},
    {"leftSeconds", REAL, .at = NOTICE(left_seconds)},
    {0},
};

#define PACE(member) offsetof(struct status_speed, member)

static const struct row pace_rows[] = {
    {"lanes", INT, .at = PACE(lanes), .highest = RM_LANES_MAX},
    {"laneMs", REAL, .at = PACE(lane_ms)},
    {"timesMost", REAL, .at = PACE(times), .only_if = PACE(slow)},
    {"slowBy", TEXT, .at = PACE(by), .only_if = PACE(slow)},
    {0},
};

static const struct row worker_rows[] = {
    {"worker", INT, .at = WORKER(worker), .lowest = -1, .highest = RM_WORKERS_MAX},
    {"attempt", INT, .at = WORKER(attempt)},
    {"phase", TEXT, .at = WORKER(phase)},
    {"rank", INT, .at = WORKER(rank), .lowest = -1, .highest = RM_WORKERS_MAX},
    {"notice", PART, .at = WORKER(notice), .only_if = WORKER(notice.known), .rows = notice_rows},
    {"pace", PART, .at = WORKER(pace), .only_if = WORKER(pace.known), .rows = pace_rows},
    {"leaveSeconds", REAL, .at = WORKER(leave_seconds), .only_if = WORKER(told)},
    {0},
};

static const struct row lost_rows[] = {
    {"worker", INT, .at = WORKER(worker), .lowest = -1, .highest = RM_WORKERS_MAX},
    {"attempt", INT, .at = WORKER(attempt)},
    {"cause", SENTENCE, .at = WORKER(cause)},
    {"time", LONG, .at = WORKER(time)},
    {0},
};

static const struct row left_rows[] = {
    {"worker", INT, .at = WORKER(worker), .lowest = -1, .highest = RM_WORKERS_MAX},
    {"attempt", INT, .at = WORKER(attempt)},
    {"time", LONG, .at = WORKER(time)},
    {0},
};

static const struct row quarantined_rows[] = {
    {"worker", INT, .at = WORKER(worker), .lowest = -1, .highest = RM_WORKERS_MAX},
    {"cause", SENTENCE, .at = WORKER(cause)},
    {0},
};

#define RING(member) offsetof(struct status_ring, member)

static const struct row ring_rows[] = {
    {"generation", LONG, .at = RING(generation), .highest = INT32_MAX},
    {"term", LONG, .at = RING(term), .highest = INT32_MAX},
    {"begun", LONG, .at = RING(begun)},
    {"size", INT, .at = RING(size)},
    {"formedTime", LONG, .at = RING(formed)},
    {"members", WORKERS, .at = RING(members), .rows = member_rows},
    {0},
};

#define PROGRESS(member) offsetof(struct status_progress, member)

static const struct row progress_rows[] = {
    {"step", LONG, .at = PROGRESS(step)},
    {"steps", LONG, .at = PROGRESS(steps)},
    {"loss", REAL, .at = PROGRESS(loss)},
    {"heldOutLoss", REAL, .at = PROGRESS(held_out)},
    {"gradientNorm", REAL, .at = PROGRESS(norm)},
    {"clipFactor", REAL, .at = PROGRESS(clip)},
    {"learningRate", REAL, .at = PROGRESS(rate)},
    {"tokensPerSecond", REAL, .at = PROGRESS(tokens_per_second)},
    {"samplesPerSecond", REAL, .at = PROGRESS(samples_per_second)},
    {"stepsPerSecond", REAL, .at = PROGRESS(steps_per_second)},
    {"etaSeconds", REAL, .at = PROGRESS(eta_seconds)},
    {0},
};

#define CHECKPOINT(member) offsetof(struct status_checkpoint, member)

static const struct row checkpoint_rows[] = {
    {"step", LONG, .at = CHECKPOINT(step)},
    {"uri", TEXT, .at = CHECKPOINT(uri)},
    {"savedTime", LONG, .at = CHECKPOINT(saved), .only_if = CHECKPOINT(seen)},
    {"bytes", LONG, .at = CHECKPOINT(bytes), .only_if = CHECKPOINT(seen)},
    {0},
};

#define INTERVAL(member) offsetof(struct status_interval, member)

static const struct row interval_rows[] = {
    {"everySeconds", REAL, .at = INTERVAL(every_seconds)},
    {"reason", TEXT, .at = INTERVAL(reason)},
    {"losses", LONG, .at = INTERVAL(losses)},
    {"observedSeconds", REAL, .at = INTERVAL(observed_seconds)},
    {"stallMs", REAL, .at = INTERVAL(stall_ms)},
    {"safeMs", REAL, .at = INTERVAL(safe_ms)},
    {0},
};

static const struct row store_rows[] = {
    {"reason", TEXT, .at = offsetof(struct status_store, reason)},
    {"person", FLAG, .at = offsetof(struct status_store, person)},
    {0},
};

static const struct row outage_rows[] = {
    {"step", LONG, .at = offsetof(struct status_outage, step)},
    {"ageSeconds", REAL, .at = offsetof(struct status_outage, age_seconds)},
    {"reason", TEXT, .at = offsetof(struct status_outage, reason)},
    {0},
};

static const struct row transport_rows[] = {
    {"used", FLAG, .at = offsetof(struct status_transport, used)},
    {"reason", TEXT, .at = offsetof(struct status_transport, reason)},
    {0},
};

static const struct row recovery_rows[] = {
    {"cause", TEXT, .at = offsetof(struct status_recovery, cause)},
    {NULL, REALS, .at = offsetof(struct status_recovery, ms), .keys = recovery_keys, .count = RECOVERY_PARTS},
    {"stepsRedone", LONG, .at = offsetof(struct status_recovery, steps_redone)},
    {0},
};

static const struct row goodput_rows[] = {
    {"ratio", REAL, .at = offsetof(struct status_goodput, ratio)},
    {NULL, REALS, .at = offsetof(struct status_goodput, seconds), .keys = goodput_keys,
     .count = GOODPUT_CLASSES},
    {0},
};

static const struct row redone_rows[] = {
    {"announced", LONG, .at = offsetof(struct status_redone, announced)},
    {"sudden", LONG, .at = offsetof(struct status_redone, sudden)},
    {0},
};

#define RESULT(member) offsetof(struct status_result, member)

static const struct row result_rows[] = {
    {"exitCode", INT, .at = RESULT(exit_code), .lowest = -1, .highest = 255},
    {"programExitCode", INT, .at = RESULT(program_code), .highest = 255, .only_if = RESULT(program)},
    {"reason", TEXT, .at = RESULT(reason)},
    {"interrupted", FLAG, .at = RESULT(interrupted)},
    {"step", LONG, .at = RESULT(step)},
    {"loss", REAL, .at = RESULT(loss), .only_if = RESULT(trained)},
    {"weightsSha256", TEXT, .at = RESULT(weights_sha256), .only_if = RESULT(trained)},
    {"exact", FLAG, .at = RESULT(exact), .only_if = RESULT(trained)},
    {"goodput", REAL, .at = RESULT(goodput), .only_if = RESULT(complete)},
    {"uri", TEXT, .at = RESULT(uri), .only_if = RESULT(trained)},
    {"bytes", LONG, .at = RESULT(bytes), .only_if = RESULT(weighed)},
    {"savedTime", LONG, .at = RESULT(saved), .only_if = RESULT(timed)},
    {0},
};

#define WORD(member) offsetof(struct status_word, member)

static const struct row word_rows[] = {
    {"left", MARK, .at = WORD(left)},
    {"exitCode", INT, .at = WORD(exit_code), .highest = 255, .only_if = WORD(over)},
    {"reason", TEXT, .at = WORD(reason), .only_if = WORD(over)},
    {"elsewhere", MARK, .at = WORD(elsewhere)},
    {0},
};

#define PAGE(member) offsetof(struct status_page, member)

static const struct row page_rows[] = {
    {"revision", LONG, .at = PAGE(revision)},
    {"time", LONG, .at = PAGE(time)},
    {"job", TEXT, .at = PAGE(job)},
    {"name", TEXT, .at = PAGE(name)},
    {"term", LONG, .at = PAGE(term), .highest = INT32_MAX},
    {"preparing", FLAG, .at = PAGE(preparing)},
    {"state", TEXT, .at = PAGE(state)},
    {"message", TEXT, .at = PAGE(message)},
    {"mixedHardware", FLAG, .at = PAGE(mixed_hardware)},
    {"program", FLAG, .at = PAGE(program)},
    {"ring", OBJECT, .at = PAGE(ring), .rows = ring_rows},
    {"workers", WORKERS, .at = PAGE(workers), .rows = worker_rows},
    {"lost", WORKERS, .at = PAGE(lost), .rows = lost_rows},
    {"left", WORKERS, .at = PAGE(left), .rows = left_rows},
    {"quarantined", WORKERS, .at = PAGE(quarantined), .rows = quarantined_rows},
    {"progress", PART, .at = PAGE(progress), .rows = progress_rows},
    {"checkpoint", PART, .at = PAGE(checkpoint), .rows = checkpoint_rows},
    {"checkpointInterval", PART, .at = PAGE(interval), .rows = interval_rows},
    {"storeWaiting", PART, .at = PAGE(store), .rows = store_rows},
    {"fenced", FLAG, .at = PAGE(fenced)},
    {"checkpointWaiting", PART, .at = PAGE(outage), .rows = outage_rows},
    {"secondTransport", PART, .at = PAGE(transport), .rows = transport_rows},
    {"failures", LONG, .at = PAGE(failures)},
    {"recoveries", LONG, .at = PAGE(recoveries)},
    {"lanesDealt", LONG, .at = PAGE(lanes_dealt)},
    {"lastRecovery", PART, .at = PAGE(last_recovery), .rows = recovery_rows},
    {"goodput", PART, .at = PAGE(goodput), .rows = goodput_rows},
    {"stepsRedone", OBJECT, .at = PAGE(steps_redone), .rows = redone_rows},
    {"result", PART, .at = PAGE(result), .rows = result_rows},
    {"events", VALUE, .at = PAGE(events)},
    {0},
};

static const struct row *const parts[STATUS_PARTS] = {
    [STATUS_OF_PAGE] = page_rows,
    [STATUS_OF_RING] = ring_rows,
    [STATUS_OF_MEMBER] = member_rows,
    [STATUS_OF_PROGRESS] = progress_rows,
    [STATUS_OF_CHECKPOINT] = checkpoint_rows,
    [STATUS_OF_INTERVAL] = interval_rows,
    [STATUS_OF_RECOVERY] = recovery_rows,
    [STATUS_OF_GOODPUT] = goodput_rows,
    [STATUS_OF_RESULT] = result_rows,
};

static bool lies_at(const struct row *r, size_t at)
{
    size_t size = r->kind == REALS ? (size_t)r->count * sizeof(double) : 1;
    return at >= r->at && at < r->at + size;
}

const char *status_key_at(enum status_part part, size_t at)
{
    RM_ASSERT(part > STATUS_OF_NONE && part < STATUS_PARTS, "part %d of a status has no rows", (int)part);
    const struct row *r = parts[part];
    while (r->kind != END && !lies_at(r, at))
        r++;
    RM_ASSERT(r->kind != END, "part %d of a status has no member at %zu", (int)part, at);
    return r->kind == REALS ? r->keys[(at - r->at) / sizeof(double)] : r->key;
}

/* ---- writing ---- */

static void set_rows(struct js *o, const struct row *rows, const void *from);

static void set_sentence(struct js *o, const char *key, const char *text)
{
    char cut[SENTENCE_MAX];
    size_t length = strnlen(text, sizeof cut - 1);
    while (length && text[length] && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    for (size_t i = 0; i < length; i++)
        cut[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
    cut[length] = 0;
    js_set_string(o, key, cut);
}

static struct js *object_of(const struct row *rows, const void *from)
{
    struct js *o = js_object();
    set_rows(o, rows, from);
    return o;
}

static struct js *array_of(const struct row *rows, const struct status_workers *from)
{
    struct js *array = js_array();
    for (int i = 0; i < from->count; i++)
        js_push(array, object_of(rows, &from->worker[i]));
    return array;
}

static void set_row(struct js *o, const struct row *r, const void *at)
{
    switch (r->kind) {
    case END:
        break;
    case INT:
        js_set_int(o, r->key, *(const int *)at);
        break;
    case LONG:
        js_set_int(o, r->key, *(const int64_t *)at);
        break;
    case REAL:
        js_set_real(o, r->key, *(const double *)at);
        break;
    case REALS:
        for (int i = 0; i < r->count; i++)
            js_set_real(o, r->keys[i], ((const double *)at)[i]);
        break;
    case MARK:
        if (!*(const bool *)at)
            break;
        /* fall through */
    case FLAG:
        js_set_bool(o, r->key, *(const bool *)at);
        break;
    case TEXT:
        js_set_string(o, r->key, *(const char *const *)at);
        break;
    case SENTENCE:
        set_sentence(o, r->key, *(const char *const *)at);
        break;
    case OBJECT:
        js_set(o, r->key, object_of(r->rows, at));
        break;
    case PART:
        js_set(o, r->key, *(const bool *)at ? object_of(r->rows, at) : js_new_null());
        break;
    case WORKERS:
        js_set(o, r->key, array_of(r->rows, at));
        break;
    case VALUE:
        js_set(o, r->key, js_copy(*(const struct js *const *)at));
        break;
    }
}

static void set_rows(struct js *o, const struct row *rows, const void *from)
{
    for (const struct row *r = rows; r->kind != END; r++)
        if (!r->only_if || *(const bool *)((const char *)from + r->only_if))
            set_row(o, r, (const char *)from + r->at);
}

void status_set_page(struct js *object, const struct status_page *page)
{
    set_rows(object, page_rows, page);
}

void status_set_recovery(struct js *object, const struct status_recovery *recovery)
{
    set_rows(object, recovery_rows, recovery);
}

void status_set_result(struct js *object, const struct status_result *result)
{
    set_rows(object, result_rows, result);
}

void status_set_word(struct js *object, const struct status_word *word)
{
    set_rows(object, word_rows, word);
}

/* ---- reading ---- */

static void read_rows(void *to, const struct row *rows, const struct js *o);

static bool read_whole(const struct js *from, const struct row *r, int64_t most, int64_t *ret)
{
    double real;
    int64_t highest = r->highest ? r->highest : most;
    if (!js_as_int(from, ret)) {
        if (!js_as_real(from, &real) || !(real >= -9e15 && real <= 9e15))
            return false;
        *ret = (int64_t)real;
    }
    *ret = *ret < r->lowest ? r->lowest : *ret > highest ? highest : *ret;
    return true;
}

static void read_workers(struct status_workers *to, const struct row *rows, const struct js *list)
{
    to->count = 0;
    for (size_t i = 0; i < js_size(list) && to->count < RM_WORKERS_MAX; i++) {
        struct status_worker *entry = &to->worker[to->count];
        *entry = (struct status_worker){.rank = -1, .phase = "", .cause = ""};
        read_rows(entry, rows, js_at(list, i));
        to->count += entry->worker >= 0 && entry->worker < RM_WORKERS_MAX;
    }
}

static bool read_int(void *at, const struct row *r, const struct js *from)
{
    int64_t value = 0;
    bool there = read_whole(from, r, INT32_MAX, &value);
    *(int *)at = (int)(there ? value : r->lowest);
    return there;
}

static bool read_long(void *at, const struct row *r, const struct js *from)
{
    int64_t value = 0, *ret = at;
    bool there = read_whole(from, r, INT64_MAX, &value);
    *ret = there ? value : r->lowest;
    return there;
}

static bool read_number(double *ret, const struct js *from)
{
    double value = 0;
    bool there = js_as_real(from, &value);
    *ret = there ? value : NAN;
    return there;
}

/* Whether it is there. */
static bool read_row(void *at, const struct row *r, const struct js *o)
{
    const struct js *from = r->key ? js_get(o, r->key) : NULL;
    bool is_object = from && js_kind(from) == JS_OBJECT;
    switch (r->kind) {
    case END:
        break;
    case INT:
        return read_int(at, r, from);
    case LONG:
        return read_long(at, r, from);
    case REAL:
        return read_number(at, from);
    case REALS:
        for (int i = 0; i < r->count; i++)
            read_number((double *)at + i, js_get(o, r->keys[i]));
        break;
    case FLAG:
    case MARK:
        return js_as_bool(from, at);
    case TEXT:
    case SENTENCE:
        *(const char **)at = js_as_string(from) ? js_as_string(from) : "";
        return js_as_string(from);
    case PART:
        *(bool *)at = is_object;
        read_rows(at, r->rows, is_object ? from : NULL);
        return is_object;
    case OBJECT:
        read_rows(at, r->rows, is_object ? from : NULL);
        break;
    case WORKERS:
        read_workers(at, r->rows, from && js_kind(from) == JS_ARRAY ? from : NULL);
        break;
    case VALUE:
        *(const struct js **)at = from;
        break;
    }
    return from;
}

static void read_rows(void *to, const struct row *rows, const struct js *o)
{
    for (const struct row *r = rows; r->kind != END; r++) {
        bool there = read_row((char *)to + r->at, r, o);
        if (there && r->only_if)
            *(bool *)((char *)to + r->only_if) = true;
    }
}

void status_read_page(struct status_page *ret, const struct js *object)
{
    *ret = (struct status_page){.preparing = ret->preparing, .fenced = ret->fenced};
    read_rows(ret, page_rows, object);
}

void status_read_result(struct status_result *ret, const struct js *object)
{
    *ret = (struct status_result){.known = object && js_kind(object) == JS_OBJECT};
    read_rows(ret, result_rows, ret->known ? object : NULL);
}

void status_read_word(struct status_word *ret, const struct js *object)
{
    *ret = (struct status_word){.reason = ""};
    read_rows(ret, word_rows, object && js_kind(object) == JS_OBJECT ? object : NULL);
}

/* ---- listing ---- */

static void list_one(struct status_listed *ret, int most, int *count, const char *key, int depth)
{
    if (*count < most)
        ret[*count] = (struct status_listed){.key = key, .depth = depth};
    ++*count;
}

static void list_rows(struct status_listed *ret, int most, int *count, const struct row *rows, int depth)
{
    for (const struct row *r = rows; r->kind != END; r++) {
        for (int i = 0; i < r->count; i++)
            list_one(ret, most, count, r->keys[i], depth);
        if (r->key)
            list_one(ret, most, count, r->key, depth);
        if (r->rows)
            list_rows(ret, most, count, r->rows, depth + 1);
    }
}

int status_list(struct status_listed *ret, int most)
{
    int count = 0;
    list_rows(ret, most, &count, page_rows, 0);
    return count;
}
