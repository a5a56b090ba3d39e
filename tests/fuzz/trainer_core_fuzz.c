/* The trainer's core under an agent that says whatever it likes, in any order, and threads that do each
 * command as they can: no word may fail an assertion or come to a number that is none, and what it sends must
 * be what an agent takes. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/words.h"
#include "trainer/core/elastic.h"

enum { TURNS_MAX = 600, STEPS = 12 };

static struct elastic *core;
static struct elastic_out *out;
static struct message word;
static struct elastic_action running; /* CMD_NONE: no command is under way */
static struct msg_state state;        /* what the memory holds */
static int64_t update_step;
static struct msg_generation ring; /* the newest that was told */
static int64_t stop_round;
static bool aborted, over;

static void obey(const struct elastic_action *a)
{
    switch (a->kind) {
    case ELASTIC_RUN:
        if (running.command != CMD_NONE)
            fuzz_broken("one command at a time");
        running = *a;
        aborted = false;
        break;
    case ELASTIC_ABORT:
        aborted = true;
        break;
    case ELASTIC_SEND:
        words_trace("trainer", 0, a->message);
        words_well_formed(a->message);
        break;
    case ELASTIC_EXIT:
        over = true;
        break;
    default:
        break;
    }
}

static void give(const struct elastic_event *event)
{
    if (over)
        return;
    if (event->message)
        words_trace("event", (int)event->kind, event->message);
    else
        words_trace_event("event", event->result ? 100 + (int)event->result->command : (int)event->kind, 0);
    elastic_step(core, event, out);
    for (int i = 0; i < out->count; i++)
        obey(&out->action[i]);
}

/* ---- the threads ---- */

static void take_state(const struct msg_state *resume)
{
    state = *resume;
    state.held = true;
    update_step = -1;
}

static void does(struct elastic_result *r)
{
    const struct msg_form *form = running.form ? &running.form->form : NULL;
    if (r->command == CMD_INIT) {
        take_state(&(struct msg_state){.held = true});
    } else if (r->command == CMD_LOAD || r->command == CMD_RECEIVE) {
        take_state(&form->resume);
    } else if (r->command == CMD_LISTEN) {
        take_state(
            &(struct msg_state){.held = true, .step = state.held ? state.step + (state.step < STEPS) : 0});
        update_step = state.step;
    } else if (r->command == CMD_CATCH_UP) {
        take_state(&form->resume);
        update_step = state.step;
    } else if (r->command == CMD_COMMIT) {
        state.step++;
        update_step = state.step;
    } else if (r->command == CMD_SNAPSHOT) {
        r->snapshot.state = state;
    }
}

/* What else than well a command can go: those of enum elastic_outcome that name it. */
static enum elastic_outcome goes_wrong(struct words *words, struct elastic_result *r)
{
    static const enum elastic_outcome exchange[] = {OUTCOME_RESCALE, OUTCOME_NOT_FINITE, OUTCOME_DISPUTED,
                                                    OUTCOME_LINEAGE, OUTCOME_PROOF,      OUTCOME_PEER,
                                                    OUTCOME_RESCALE};
    enum elastic_command c = r->command;
    bool peers = c == CMD_LOAD || c == CMD_RECEIVE || c == CMD_CATCH_UP || c == CMD_CONNECT ||
                 c == CMD_EVALUATE || c == CMD_LISTEN;
    int which = words_below(words, 7);
    r->minority = words_below(words, 2);
    r->outvoted = r->minority && words_below(words, 2);
    r->class = (enum fault_class)words_below(words, FAULT_CLASSES);
    if (c == CMD_EXCHANGE)
        return exchange[which];
    if (c == CMD_COMPARE)
        return which % 2 ? OUTCOME_LINEAGE : OUTCOME_PROOF;
    if (which < 2 && (c == CMD_RECEIVE || c == CMD_CATCH_UP))
        return OUTCOME_LINEAGE;
    if (which < 4 && c == CMD_LOAD) {
        set_add(&r->missing, words_below(words, running.loaded->parts ? running.loaded->parts : 1));
        return OUTCOME_MISSING;
    }
    return peers ? OUTCOME_PEER : OUTCOME_FAILED;
}

static bool must_work(enum elastic_command command)
{
    return command == CMD_DROP || command == CMD_COMMIT || command == CMD_SNAPSHOT || command == CMD_DIGEST;
}

static void done(struct words *words)
{
    struct elastic_result r = {.command = running.command, .peer = -1, .took = RM_MS, .text = "why"};
    if (r.command == CMD_NONE)
        return;
    if (aborted && words_below(words, 4))
        r.outcome = OUTCOME_ABORTED;
    else if (words_once_in(words, 4) && !must_work(r.command))
        r.outcome = goes_wrong(words, &r);
    else if (words_once_in(words, 16) && must_work(r.command) && r.command != CMD_DROP)
        r.outcome = OUTCOME_FAILED;
    r.code = r.outcome == OUTCOME_FAILED ? ERR_DATA : ERR_NONE;
    r.stop = words_once_in(words, 8);
    r.save = words_once_in(words, 8);
    r.numbers = msg_numbers_unknown();
    r.followed = elastic_follows(&r) != CMD_NONE && !aborted && words_below(words, 2);
    if (r.outcome == OUTCOME_OK)
        does(&r);
    if (r.command == CMD_DROP)
        state = (struct msg_state){0};
    r.state = state;
    r.update_step = state.held ? update_step : -1;
    running.command = r.followed ? elastic_follows(&r) : CMD_NONE;
    give(&(struct elastic_event){.kind = ELASTIC_DONE, .result = &r, .peer = -1});
}

/* ---- the agent ---- */

static void shape_form(struct words *words)
{
    if (words_below(words, 8))
        word.generation =
            (struct msg_generation){ring.term + !ring.term, ring.n + (ring.n < (int64_t)1 << 40)};
    if (word.form.count && words_below(words, 8))
        word.form.member[words_below(words, word.form.count)].worker = 0;
    if (words_below(words, 2))
        word.form.resume = state;
    if (generation_compare(word.generation, ring) > 0)
        ring = word.generation;
}

static void say(struct words *words, enum msg_type type)
{
    words_message(words, type, &word);
    if (type == MSG_FORM)
        shape_form(words);
    else if (words_below(words, 4))
        word.generation = ring;
    if (type == MSG_STOP && words_below(words, 8))
        word.stop.round = ++stop_round;
    if (type == MSG_LOADED && words_below(words, 4) && running.form)
        word.loaded.state = running.form->form.resume;
    if (type == MSG_SAVE && words_below(words, 4))
        word.save.step = state.step;
    give(&(struct elastic_event){.kind = ELASTIC_LINK, .message = &word, .peer = -1});
}

static void turn(struct words *story)
{
    struct words part = words_part(story), *words = &part;
    static const enum msg_type types[] = {MSG_STOP,       MSG_FORM,  MSG_FORM,   MSG_GO,
                                          MSG_GO,         MSG_SAVE,  MSG_LOADED, MSG_SNAPSHOT_FREE,
                                          MSG_SAVE_EVERY, MSG_PROBE, MSG_STOP,   MSG_LISTEN};
    enum { TYPES = sizeof types / sizeof *types };
    int what = words_below(words, TYPES + 14);
    if (what < TYPES)
        say(words, types[what]);
    else if (what == TYPES)
        say(words, (enum msg_type)words_below(words, MSG_TYPES));
    else if (what == TYPES + 1)
        give(&(struct elastic_event){.kind = ELASTIC_PEER_GONE, .peer = words_below(words, 4) - 1});
    else
        done(words);
}

/* It opens with what a trainer before it left. */
static void opens(struct words *words)
{
    message_init(&word, MSG_UP);
    word.up.pid = 100;
    if (words_once_in(words, 3)) {
        state = (struct msg_state){.held = true, .step = words_below(words, STEPS + 1)};
        update_step = words_below(words, 2) ? state.step : -1;
    }
    word.up.state = state;
    give(&(struct elastic_event){.kind = ELASTIC_OPENED,
                                 .message = &word,
                                 .update_step = update_step,
                                 .loss_known = state.held && words_below(words, 2),
                                 .peer = -1});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct words words = {data, size};
    if (!out && !(out = calloc(1, sizeof *out)))
        fuzz_broken("no memory");
    running = (struct elastic_action){.command = CMD_NONE};
    state = (struct msg_state){0};
    update_step = -1;
    ring = (struct msg_generation){0};
    stop_round = 0;
    aborted = over = false;
    struct elastic_settings settings = {.steps = STEPS,
                                        .evaluation_every = words_below(&words, 4),
                                        .checkpoint_every = words_below(&words, 4),
                                        .snapshot_busy = words_below(&words, 4) == 3,
                                        .load_busy = words_below(&words, 4) == 3};
    core = elastic_open(&settings);
    opens(&words);
    for (int i = 0; i < TURNS_MAX && words.size && !over; i++)
        turn(&words);
    elastic_free(core);
    return 0;
}
