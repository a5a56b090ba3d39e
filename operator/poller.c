/* Asks each job's coordinator for its status, and brings its answer to the loop. */
#include "operator/poller.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/question.h"
#include "operator/core/pod.h"

static const rm_time answer_within = 30 * RM_S, apart = 500 * RM_MS, again_least = RM_S,
                     again_most = 10 * RM_S;

enum { QUESTION_ROOM = OP_RELIEF_MAX + 80 }; /* and two numbers with their names */

struct poller {
    struct loop *loop;
    struct loop_timer *timer;
    struct poller_options options;
    struct http_call *call;
    struct str answer; /* whole where it is in line to be read, */
    struct answers_place place;
    char job[OP_NAME_MAX], ip[RM_ADDRESS_MAX];
    int term, failures;
    int64_t revision; /* that is known; 0: none */
    int told_term;
    int64_t told; /* of that term's events: so far are they known; 0: not at all */
    char relief[OP_RELIEF_MAX];
    bool hurries;                    /* there is something new to be said, as soon as that is read */
    bool says;                       /* that with the newest question, */
    bool said;                       /* or with one that may have been heard and was not taken back */
    rm_time asked_at, in_vain_since; /* 0: no question is without an answer */
};

/* What was said with it may have been heard. */
static void fail_question(struct poller *poller, const char *why)
{
    rm_time delay = rm_backoff(again_least, again_most, poller->failures++);
    poller->said = poller->said || poller->says;
    if (poller->options.failed)
        poller->options.failed(poller->options.ctx, poller->asked_at, why);
    loop_timer_set(poller->timer, loop_now(poller->loop) + delay);
}

static int body_came(void *ctx, int status, const void *bytes, size_t count)
{
    struct poller *poller = ctx;
    (void)status;
    str_add(&poller->answer, bytes, count);
    return poller->answer.truncated ? -1 : 0;
}

/* From `soonest` on, and not before those to other coordinators that are in line already. */
static void ask_in_turn(struct poller *poller, rm_time soonest)
{
    struct bucket *pace = poller->options.pace;
    rm_time turn = pace ? bucket_queue(pace, loop_now(poller->loop)) : 0;
    loop_timer_set(poller->timer, turn > soonest ? turn : soonest);
}

static void ask_later(struct poller *poller)
{
    rm_time soonest = poller->asked_at + apart;
    poller->failures = 0;
    if (poller->hurries)
        loop_timer_set(poller->timer, rm_later(loop_now(poller->loop), soonest));
    else
        ask_in_turn(poller, soonest);
}

/* A pod's IP may be another pod's by now: whose words these are is checked each time. */
static int read_answer(struct poller *poller, struct coordinator_view **ret, struct error *err)
{
    struct coordinator_view *view = malloc(sizeof *view);
    if (!view)
        abort();
    if (coordinator_read(str_text(&poller->answer), poller->answer.length, view, err) == 0) {
        if (!strcmp(view->job, poller->job) && view->term == poller->term) {
            *ret = view;
            return 0;
        }
        err_set(err, ERR_PROTOCOL, "the answer is of job %.40s, term %d", view->job, view->term);
    }
    free(view);
    return -1;
}

static void answer_read(void *ctx)
{
    struct poller *poller = ctx;
    struct coordinator_view *view = NULL;
    struct error err;
    if (read_answer(poller, &view, &err) < 0) {
        fail_question(poller, err.text);
        return;
    }
    poller->in_vain_since = 0;
    poller->revision = view->revision;
    poller->said = poller->says;
    str_clear(&poller->answer);
    poller->answer = str_init(OP_ANSWER_MAX);
    ask_later(poller);
    poller->options.told(poller->options.ctx, view);
}

static void answer_done(void *ctx, const struct http_answer *answer)
{
    struct poller *poller = ctx;
    poller->call = NULL;
    if (answer->outcome != HTTP_ANSWERED) {
        fail_question(poller, answer->why);
    } else if (answer->status != 200) {
        char why[64];
        snprintf(why, sizeof why, "the coordinator answers with status %d", answer->status);
        fail_question(poller, why);
    } else {
        answers_add(poller->options.answers, &poller->place);
    }
}

/* What stands behind the path; "" where nothing is known and nothing to be said. */
static void print_question(const struct poller *poller, char *out, size_t size)
{
    const char *relief = *poller->relief ? poller->relief : poller->said ? QUESTION_RELIEVE "=" : "";
    bool told = poller->told && poller->told_term == poller->term;
    struct str text = str_init(size);
    if (poller->revision)
        str_addf(&text, "&" QUESTION_AFTER "=%" PRId64, poller->revision);
    if (told)
        str_addf(&text, "&" QUESTION_TOLD "=%" PRId64, poller->told);
    if (*relief)
        str_addf(&text, "&%s", relief);
    RM_ASSERT(!text.truncated, "a question of %zu characters", text.length);
    snprintf(out, size, "%s%s", text.length ? "?" : "", text.length ? str_text(&text) + 1 : "");
    str_clear(&text);
}

static void ask_coordinator(void *ctx)
{
    struct poller *poller = ctx;
    char url[RM_ADDRESS_MAX + QUESTION_ROOM + 64], question[QUESTION_ROOM];
    int port = poller->options.port ? poller->options.port : OP_COORDINATOR_PORT;
    const char *form = strchr(poller->ip, ':') ? "http://[%s]:%d/v1/status%s" : "http://%s:%d/v1/status%s";
    print_question(poller, question, sizeof question);
    poller->says = *poller->relief;
    snprintf(url, sizeof url, form, poller->ip, port, question);
    struct http_request request = {.method = "GET",
                                   .url = url,
                                   .connect_within = 5 * RM_S,
                                   .within = answer_within,
                                   .buffer = 4 << 10, /* there is one of these for each job */
                                   .address = true,
                                   .body_came = body_came,
                                   .done = answer_done,
                                   .ctx = poller};
    struct error err;
    RM_ASSERT(!poller->place.waits, "%s is asked before its answer was read", poller->ip);
    str_reset(&poller->answer);
    poller->hurries = false;
    poller->asked_at = loop_now(poller->loop);
    if (!poller->in_vain_since)
        poller->in_vain_since = poller->asked_at;
    if (http_start(poller->options.http, &poller->call, &request, &err) < 0)
        fail_question(poller, err.text);
}

void poller_ask(struct poller *poller, const char *job, const char *ip, int term)
{
    if (!strcmp(poller->job, job) && !strcmp(poller->ip, ip) && poller->term == term)
        return;
    http_cancel(poller->call);
    poller->call = NULL;
    answers_remove(poller->options.answers, &poller->place);
    text_copy(poller->job, sizeof poller->job, job);
    text_copy(poller->ip, sizeof poller->ip, ip);
    poller->term = term;
    poller->revision = poller->failures = 0;
    poller->in_vain_since = 0;
    poller->said = poller->hurries = false;
    if (*ip)
        ask_in_turn(poller, loop_now(poller->loop));
    else
        loop_timer_set(poller->timer, RM_NEVER);
}

void poller_say(struct poller *poller, const char *relief)
{
    if (!strcmp(poller->relief, relief))
        return;
    text_copy(poller->relief, sizeof poller->relief, relief);
    if (poller->place.waits) {
        poller->hurries = true;
        return;
    }
    bool fails = !poller->call && poller->failures; /* and is asked again within 10 s, whoever is in line */
    if (!*poller->ip || fails)
        return;
    if (poller->call) {
        http_cancel(poller->call);
        poller->call = NULL;
        poller->said = poller->said || poller->says;
    }
    loop_timer_set(poller->timer, rm_later(loop_now(poller->loop), poller->asked_at + apart));
}

void poller_told(struct poller *poller, int term, int64_t sequence)
{
    poller->told_term = term;
    poller->told = sequence;
}

rm_time poller_in_vain_since(const struct poller *poller)
{
    return poller && !poller->place.waits ? poller->in_vain_since : 0;
}

int poller_open(struct poller **ret, struct loop *loop, const struct poller_options *options,
                struct error *err)
{
    struct poller *poller = calloc(1, sizeof *poller);
    if (!poller)
        return err_set(err, ERR_MACHINE, "no memory for a poller");
    poller->loop = loop;
    poller->options = *options;
    poller->answer = str_init(OP_ANSWER_MAX);
    poller->place = (struct answers_place){.read = answer_read, .ctx = poller};
    if (loop_timer_open(&poller->timer, loop, ask_coordinator, poller, err) < 0) {
        poller_free(poller);
        return -1;
    }
    *ret = poller;
    return 0;
}

void poller_free(struct poller *poller)
{
    if (!poller)
        return;
    http_cancel(poller->call);
    answers_remove(poller->options.answers, &poller->place);
    loop_timer_free(poller->timer);
    str_clear(&poller->answer);
    free(poller);
}
