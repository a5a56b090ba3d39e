/* Which members each event has: one row each. Writers hold what they form against it (event_assert), tests
 * the pages. */
#include <stdint.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "common/wire/event.h"
#include "common/wire/json.h"

#define A(key) ((uint64_t)1 << EVENT_KEY_##key)

_Static_assert(EVENT_KEYS <= 64, "a set of members is one word");

static const uint64_t of_all = A(EVENT) | A(TIME), of_pages = A(SEQUENCE);

struct members {
    uint64_t must, may; /* beside of_all; on a coordinator's page also of_pages */
};

#define OF_WORKER A(WORKER) | A(STEP) | A(CAUSE)
#define OF_NOTICE OF_WORKER | A(SOURCE) | A(CERTAINTY)
#define OF_PHASES A(DETECT_MS) | A(AGREE_MS) | A(RING_MS) | A(STATE_MS) | A(FIRST_STEP_MS) | A(TOTAL_MS)

static const struct members rows[EVENT_KINDS] = {
    [EVENT_LISTENING] = {.must = A(ADDRESS), .may = A(METRICS)},
    [EVENT_WORKER_FAILED] = {.must = A(WORKER) | A(ATTEMPT) | A(DETAIL)},
    [EVENT_WORKER_REFUSED] = {.must = A(WORKER) | A(ATTEMPT) | A(DETAIL)},
    [EVENT_RELEASED] = {.must = A(WORKER)},
    [EVENT_CHECKPOINT_LOADED] = {.must = A(STEP)},
    [EVENT_CHECKPOINT_REFUSED] = {.must = A(WORKER) | A(STEP) | A(REASON)},
    [EVENT_ALIVE] = {.must = A(AT) | A(SPENT), .may = A(SAVES)},

    /* a successor's word of the ring that it found names nobody */
    [EVENT_RING_FORMED] = {.must = A(TERM) | A(GENERATION) | A(WORLD) | A(STEP), .may = A(MEMBERS)},
    [EVENT_STEP] = {.must = A(STEP) | A(LOSS) | A(WORLD),
                    .may = A(TOKENS_PER_SECOND) | A(SAMPLES_PER_SECOND) | A(GRADIENT_NORM) | A(CLIP_FACTOR) |
                           A(LEARNING_RATE)},
    [EVENT_WORKER_LOST] = {.must = OF_WORKER},
    [EVENT_WORKER_LEFT] = {.must = OF_WORKER},
    [EVENT_WORKER_JOINED] = {.must = OF_WORKER},
    [EVENT_WORKER_QUARANTINED] = {.must = OF_WORKER},
    [EVENT_WORKER_LEFT_OUT] = {.must = OF_WORKER},
    [EVENT_WORKER_DIFFERS] = {.must = OF_WORKER},
    [EVENT_PROOF_FAILED] = {.must = OF_WORKER},
    [EVENT_WORKER_SLOW] = {.must = OF_WORKER},
    [EVENT_NOTICE_RECEIVED] = {.must = OF_NOTICE, .may = A(LEFT_SECONDS)},
    [EVENT_NOTICE_WITHDRAWN] = {.must = OF_NOTICE},
    [EVENT_PROGRAM_FAILED] = {.must = A(WORKER) | A(REASON),
                              .may = A(RANK) | A(PROGRAM_EXIT_CODE) | A(OUTPUT)},
    [EVENT_PROGRESS] = {.must = A(STEP) | A(LOSS) | A(WORLD), .may = A(STEPS)},
    [EVENT_JOIN_SKIPPED] = {.must = A(WORKER) | A(REASON)},
    [EVENT_EVALUATED] = {.must = A(STEP) | A(LOSS)},
    [EVENT_CHECKPOINT_SAVED] = {.must = A(STEP) | A(URI) | A(BYTES) | A(MS),
                                .may = A(WAITED_SECONDS) | A(FROZEN_MS)},
    [EVENT_CHECKPOINT_WAITING] = {.must = A(STEP) | A(URI) | A(REASON) | A(AGE_SECONDS)},
    [EVENT_CHECKPOINT_INTERVAL] = {.must = A(EVERY_SECONDS) | A(REASON)},
    [EVENT_CHECKPOINT_SKIPPED] = {.must = A(STEP) | A(REASON)},
    [EVENT_RECOVERED] = {.must = A(CAUSE) | A(STEPS_REDONE) | OF_PHASES},
    [EVENT_WAITING] = {.must = A(REASON)},
    [EVENT_FAILED] = {.must = A(REASON) | A(EXIT_CODE), .may = A(PROGRAM_EXIT_CODE)},
    [EVENT_INTERRUPTED] = {.must = A(STEP)},
    /* of a user's program the exit code alone, of all others everything else */
    [EVENT_COMPLETE] = {.must = A(GOODPUT),
                        .may = A(EXIT_CODE) | A(STEP) | A(LOSS) | A(WEIGHTS_SHA256) | A(EXACT) | A(URI)},

    [EVENT_STARTED] = {.must = A(COORDINATOR_PID) | A(ADDRESS), .may = A(URI)},
    [EVENT_RESUMED] = {.must = A(STEP) | A(URI) | A(SKIPPED)},
    [EVENT_DRILL] = {.must = A(SPEC) | A(STEP)},
};

enum event_need event_need(enum event_kind kind, enum event_key key)
{
    uint64_t bit = (uint64_t)1 << key;
    if ((rows[kind].must | of_all) & bit)
        return EVENT_MUST;
    return (rows[kind].may | of_pages) & bit ? EVENT_MAY : EVENT_MAY_NOT;
}

bool event_check(const struct js *event, char why[EVENT_WHY_MAX])
{
    const char *name = js_as_string(js_get(event, event_key(EVENT_KEY_EVENT)));
    enum event_kind kind = name ? event_of_name(name) : EVENT_KINDS;
    size_t known = 0;
    if (kind == EVENT_KINDS) {
        snprintf(why, EVENT_WHY_MAX, "%.32s is no event", name ? name : "a nameless one");
        return false;
    }
    for (int key = 0; key < EVENT_KEYS; key++) {
        bool there = js_get(event, event_key((enum event_key)key)) != NULL;
        enum event_need need = event_need(kind, (enum event_key)key);
        known += there;
        if (there ? need == EVENT_MAY_NOT : need == EVENT_MUST) {
            snprintf(why, EVENT_WHY_MAX, "%s %s %s", name, there ? "has" : "lacks",
                     event_key((enum event_key)key));
            return false;
        }
    }
    if (known == js_size(event))
        return true;
    snprintf(why, EVENT_WHY_MAX, "%s has members that no table knows", name);
    return false;
}

void event_assert(const struct js *event)
{
    char why[EVENT_WHY_MAX] = "";
    RM_ASSERT(event_check(event, why), "%s", why);
}
