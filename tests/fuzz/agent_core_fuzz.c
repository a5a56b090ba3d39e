/* The agent's core between a coordinator and a trainer that say whatever they like, in any order, and a shell
 * that does what it is told and says how that went: no word may fail an assertion or come to a number that is
 * none, and what it sends must be what its peers take. */
#include <stdlib.h>
#include <string.h>

#include "agent/core/agent.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/words.h"

enum { TURNS_MAX = 600, TRAINER_ENDED = -1 };

/* What the shell was told to do and has not done. */
struct shell {
    bool connecting, connected, welcomed, trainer, loading, writing, publishing;
    int lists;
    struct message load, write, publish;
};

static struct agent *core;
static struct agent_out *out;
static struct shell shell;
static struct message word;
static struct msg_generation ring; /* the newest that was formed */
static int64_t term, up_pid;
static bool over;
static rm_time now;

static void obey(const struct agent_action *a)
{
    switch (a->kind) {
    case AGENT_CONNECT:
        shell.connecting = true;
        break;
    case AGENT_SEND_CONTROL:
    case AGENT_SEND_LINK:
        words_trace(a->kind == AGENT_SEND_LINK ? "to the trainer" : "to the coordinator", 0, a->message);
        words_well_formed(a->message);
        break;
    case AGENT_SPAWN:
        if (shell.trainer)
            fuzz_broken("one trainer at a time");
        shell.trainer = true;
        break;
    case AGENT_LIST:
        shell.lists++;
        break;
    case AGENT_LOAD:
        shell.loading = true;
        message_copy(&shell.load, a->message);
        break;
    case AGENT_WRITE:
        shell.writing = true;
        message_copy(&shell.write, a->message);
        break;
    case AGENT_PUBLISH:
        shell.publishing = true;
        message_copy(&shell.publish, a->message);
        break;
    case AGENT_EXIT:
        over = true;
        break;
    default:
        break;
    }
}

static void give(const struct agent_event *event)
{
    if (over)
        return;
    if (event->message)
        words_trace("event", (int)event->kind, event->message);
    else
        words_trace_event("event", (int)event->kind, now);
    agent_step(core, event, now, out);
    for (int i = 0; i < out->count; i++)
        obey(&out->action[i]);
}

/* ---- the coordinator ---- */

static void connection(struct words *words)
{
    if (shell.connecting && words_below(words, 3) == 0) {
        shell.connecting = false;
        shell.connected = true;
        shell.welcomed = false;
        give(&(struct agent_event){.kind = AGENT_CONNECTED});
    } else if (shell.connecting || (shell.connected && words_below(words, 8) == 7)) {
        shell.connecting = shell.connected = false;
        give(&(struct agent_event){.kind = AGENT_DISCONNECTED, .text = "the connection ended"});
    }
}

static void control(struct words *words)
{
    static const enum msg_type types[] = {MSG_ACK,   MSG_STOP,    MSG_FORM,    MSG_GO,      MSG_SAVE,
                                          MSG_LIST,  MSG_PUBLISH, MSG_FORM,    MSG_PROBE,   MSG_SAVE_EVERY,
                                          MSG_FAULT, MSG_WELCOME, MSG_RELEASE, MSG_ABANDON, MSG_LISTEN};
    if (!shell.connected)
        return;
    int which = words_below(words, 20);
    enum msg_type type = which < 15   ? types[which]
                         : which < 18 ? MSG_FORM
                                      : (enum msg_type)words_below(words, MSG_TYPES);
    type = shell.welcomed ? type : MSG_WELCOME; /* the shell sees to that */
    words_message(words, type, &word);
    if (words_below(words, 8)) /* of the same coordinator, or the next one */
        word.term = term = term % 100 + (words_below(words, 16) == 15) + !term;
    if (type == MSG_FORM && words_below(words, 8))
        word.generation = (struct msg_generation){term, ring.n + (ring.n < (int64_t)1 << 40)};
    else if (words_below(words, 4))
        word.generation = ring;
    if (type == MSG_FORM && word.form.count && words_below(words, 2)) {
        word.form.member[0].worker = 0;
        word.form.member[0].role = ROLE_LOAD;
    }
    if (type == MSG_FORM && generation_compare(word.generation, ring) > 0)
        ring = word.generation;
    shell.welcomed = true;
    give(&(struct agent_event){.kind = AGENT_CONTROL, .message = &word});
}

/* ---- the trainer ---- */

static void up(struct words *words)
{
    words_message(words, MSG_UP, &word);
    if (words_below(words, 8))
        word.up.pid = ++up_pid;
    give(&(struct agent_event){.kind = AGENT_LINK, .message = &word});
}

static void link_word(struct words *words)
{
    static const enum msg_type types[] = {MSG_PROGRESS,        MSG_EVALUATED, MSG_STOPPED,  MSG_READY,
                                          MSG_FINISHED,        MSG_LOAD,      MSG_SNAPSHOT, MSG_SNAPSHOT,
                                          MSG_SNAPSHOT_WANTED, MSG_FAULT,     MSG_REPORTED, MSG_PROBED,
                                          MSG_HEARTBEAT,       MSG_HEARD};
    if (!shell.trainer)
        return;
    int which = words_below(words, 16);
    words_message(words, which < 14 ? types[which] : (enum msg_type)words_below(words, MSG_TYPES), &word);
    if (words_below(words, 4))
        word.generation = ring;
    give(&(struct agent_event){.kind = AGENT_LINK, .message = &word});
}

static void trainer_ends(struct words *words)
{
    if (!shell.trainer)
        return;
    shell.trainer = false;
    int code = words_below(words, 4) == 3 ? 1 + words_below(words, 8) : TRAINER_ENDED;
    give(&(struct agent_event){.kind = AGENT_TRAINER_EXIT, .code = code, .text = "killed by signal 9"});
}

/* ---- the store ---- */

static void fails(struct words *words, struct agent_event *event, int64_t step)
{
    event->ok = false;
    event->again = words_below(words, 2);
    event->step = step;
    event->class = (enum fault_class)words_below(words, FAULT_CLASSES);
    text_copy(event->text, sizeof event->text, "the store is away");
}

static void listed(struct words *words)
{
    struct agent_event e = {.kind = AGENT_LISTED, .ok = true, .message = &word};
    if (!shell.lists)
        return;
    shell.lists--;
    message_init(&word, MSG_CHECKPOINTS);
    if (words_once_in(words, 3))
        fails(words, &e, -1);
    give(&e);
}

static void loaded(struct words *words)
{
    struct agent_event e = {.kind = AGENT_LOADED, .ok = true, .message = &word};
    if (!shell.loading)
        return;
    shell.loading = false;
    message_init(&word, MSG_LOADED);
    word.generation = shell.load.generation;
    word.loaded.state = shell.load.load.state;
    word.loaded.parts = shell.load.load.parts;
    word.loaded.shares = shell.load.load.shares;
    word.loaded.in_state = shell.load.load.in_state;
    if (words_once_in(words, 3))
        fails(words, &e, word.loaded.state.step);
    e.again = false;
    e.given_up = !e.ok && words_below(words, 2);
    give(&e);
}

static void written(struct words *words)
{
    const struct msg_snapshot *s = &shell.write.snapshot;
    struct agent_event e = {.kind = AGENT_WRITTEN, .ok = true, .message = &word};
    if (!shell.writing)
        return;
    shell.writing = false;
    message_init(&word, MSG_CHECKPOINTED);
    word.checkpointed.step = s->state.step;
    word.checkpointed.final = s->final;
    word.checkpointed.part = s->part;
    word.checkpointed.parts = s->parts;
    if (words_once_in(words, 3))
        fails(words, &e, s->state.step);
    e.final = s->final;
    give(&e);
}

static void published(struct words *words)
{
    const struct msg_publish *p = &shell.publish.publish;
    struct agent_event e = {.kind = AGENT_PUBLISHED, .ok = true, .message = &word};
    if (!shell.publishing)
        return;
    shell.publishing = false;
    message_init(&word, MSG_PUBLISHED);
    word.published.step = p->step;
    word.published.final = p->final;
    if (words_once_in(words, 3))
        fails(words, &e, p->step);
    give(&e);
}

/* ---- its machine ---- */

static void machine(struct words *words)
{
    struct notice notice = {.source = (enum notice_source)words_below(words, NOTICE_SOURCES),
                            .cause = (enum notice_cause)words_below(words, NOTICE_CAUSES),
                            .certainty = words_below(words, 2) ? NOTICE_WILL : NOTICE_MAY,
                            .until = words_below(words, 2) ? RM_NEVER : now + words_time(words)};
    struct agent_event e = {
        .kind = AGENT_NOTICED, .notice = words_below(words, 3) ? &notice : NULL, .text = "pool"};
    int what = words_below(words, 8);
    if (what == 7)
        e = (struct agent_event){.kind = AGENT_TERM, .deadline = words_time(words)};
    else if (what > 4)
        e = (struct agent_event){.kind = AGENT_NOTICE, .deadline = words_time(words), .text = "aws-spot"};
    give(&e);
}

static void pass_time(struct words *words, bool to_deadline)
{
    rm_time at = agent_deadline(core);
    if (!to_deadline)
        now += words_time(words);
    else if (at != RM_NEVER && at > now)
        now = at;
    give(&(struct agent_event){.kind = AGENT_TICK});
}

static void turn(struct words *story)
{
    struct words part = words_part(story), *words = &part;
    static void (*const turns[])(struct words *) = {
        connection, connection, connection, control,   control, control, control, control,  up,
        link_word,  link_word,  link_word,  link_word, listed,  loaded,  written, published};
    enum { TURNS = sizeof turns / sizeof *turns };
    now += RM_MS;
    int what = words_below(words, TURNS + 5);
    if (what < TURNS)
        turns[what](words);
    else if (what < TURNS + 2)
        pass_time(words, what == TURNS);
    else if (what == TURNS + 2)
        trainer_ends(words);
    else if (what == TURNS + 3)
        machine(words);
    else
        up(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct words words = {data, size};
    if (!out && !(out = calloc(1, sizeof *out)))
        fuzz_broken("no memory");
    now = 1000 * RM_S;
    over = false;
    shell = (struct shell){0};
    ring = (struct msg_generation){0};
    term = 0;
    up_pid = 100;
    struct agent_settings settings = {.job = "job",
                                      .incarnation = 7,
                                      .agent_pid = 10,
                                      .heartbeat = RM_S,
                                      .lost_after = 20 * RM_S,
                                      .checkpoint_uri = "file:///c"};
    settings.launcher = words_below(&words, 8) == 7;
    settings.lost_after = words_below(&words, 4) == 3 ? RM_NEVER : settings.lost_after;
    core = agent_open(&settings);
    give(&(struct agent_event){.kind = AGENT_START});
    for (int i = 0; i < TURNS_MAX && words.size && !over; i++)
        turn(&words);
    agent_free(core);
    return 0;
}
