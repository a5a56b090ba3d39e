/* Carries one job after the other through its rounds: a look at the caches, a plan, its writes, a pause where
 * the server refuses; and keeps what has to be remembered of a job between two of them. */
#include "operator/reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/descriptors.h"
#include "common/os/log.h"
#include "operator/poller.h"
#include "operator/price_file.h"
#include "operator/status_pace.h"
#include "operator/work.h"

enum {
    IN_WORK_MAX = 64,
    FILES_KEPT = 256, /* of those that may be open: for the API server, pages, files that are read again */
};

static const rm_time refused_least = 5 * RM_S, refused_most = 300 * RM_S;
static const rm_time busy_least = 500 * RM_MS, busy_most = 30 * RM_S;
static const rm_time conflict_least = 100 * RM_MS, conflict_most = 5 * RM_S;
static const rm_time tell_silence_after = 30 * RM_S; /* of a coordinator */
static const rm_time deaf_after = 60 * RM_S;
/* Ten thousand coordinators have news each five seconds. Were all asked again at once, their answers would
 * come at once, and nothing else would have its turn while they are read, up to 0.7 ms each. */
static const double questions_per_second = 1000, questions_at_once = 100;
static const rm_time place_again = 10 * RM_S; /* to look whether one more coordinator may be asked */

struct reconciler {
    struct reconciler_options options;
    struct queue queue;
    struct loop_timer *timer;
    struct loop_bell *more;  /* is due at once: it is looked at in the next turn */
    struct answers *answers; /* of coordinators, that are not read yet */
    struct status_paces paces;
    struct op_trials trials;
    int asked;            /* coordinators that are asked, */
    int asked_most;       /* each over a connection of its own */
    struct bucket asking; /* of all coordinators together */
    int pollers;          /* opened, modulo https: whose turn it is */
    int places_lacked;    /* how often there was none for one more */
    int64_t answered_ms;  /* wall clock of the last answer of any of them */
    bool started, stopped;
};

/* What only this file keeps of a job. */
struct reconcile_state {
    struct reconciler *reconciler;
    struct job_entry *job;
    struct poller *poller;
    rm_time begun;
    rm_time heard_at;   /* the first change that a watch told since the job was last looked at; 0: none */
    rm_time acts_on;    /* the same of the work under way */
    rm_time held_until; /* a refusal's back-off */
    int64_t held_generation;       /* of the spec that was refused */
    struct status_pace pace;       /* of its status */
    struct op_silence silence;     /* of its coordinator... */
    char asked_ip[RM_ADDRESS_MAX]; /* ...which is asked there; "": nobody is */
    int asked_term;
    rm_time status_due; /* when a status that had to wait has its turn; 0: none waits */
    rm_time look_due;   /* when the job is looked at after its newest write, whatever comes before */
};

static void arm_timer(struct reconciler *r)
{
    bool full = r->queue.in_work >= IN_WORK_MAX;
    bool rests = !r->started || r->stopped || full;
    rm_time next = rests ? RM_NEVER : queue_next(&r->queue);
    bool due = next <= loop_now(r->options.loop);
    loop_timer_set(r->timer, due ? RM_NEVER : next);
    if (due)
        loop_wake(r->more);
}

static void want(struct reconciler *r, struct job_entry *job, rm_time when)
{
    queue_add(&r->queue, &job->item, when);
    arm_timer(r);
}

/* --- the coordinator --- */

static void coordinator_told(void *ctx, struct coordinator_view *view)
{
    struct reconcile_state *state = ctx;
    struct reconciler *r = state->reconciler;
    free(state->job->coordinator);
    state->job->coordinator = view;
    state->job->answered_ms = r->answered_ms = clock_wall_ms();
    state->silence = (struct op_silence){0};
    r->options.metrics->polls++;
    want(r, state->job, loop_now(r->options.loop));
}

static void coordinator_failed(void *ctx, rm_time asked_at, const char *why)
{
    struct reconcile_state *state = ctx;
    struct reconciler *r = state->reconciler;
    int64_t now_ms = clock_wall_ms();
    r->options.metrics->polls_failed++;
    log_debug("a coordinator gives no answer", "job=%s why=\"%s\"", state->job->key, why);
    silence_note(&state->silence, now_ms - (loop_now(r->options.loop) - asked_at) / RM_MS, now_ms, why);
    if (now_ms - state->silence.since_ms >= tell_silence_after / RM_MS)
        want(r, state->job, loop_now(r->options.loop));
}

static int64_t find_in_vain_ms(const struct reconcile_state *state)
{
    rm_time since = poller_in_vain_since(state->poller);
    return since ? clock_wall_ms() - (loop_now(state->reconciler->options.loop) - since) / RM_MS : 0;
}

/* Nobody can be said to be silent by somebody whom nobody at all answers. */
static bool is_deaf(const struct reconciler *r)
{
    return r->asked > 1 && clock_wall_ms() - r->answered_ms > deaf_after / RM_MS;
}

static void note_asked(struct reconcile_state *state, const char *ip, int term)
{
    if (!strcmp(state->asked_ip, ip) && state->asked_term == term)
        return;
    state->reconciler->asked += (*ip != 0) - (*state->asked_ip != 0);
    text_copy(state->asked_ip, sizeof state->asked_ip, ip);
    state->asked_term = term;
    state->silence = (struct op_silence){0};
}

/* With no descriptor left, each question would fail, as would all else that this process does; and who is
 * blamed for that is the coordinator, which is silent, and after two minutes replaced. */
static bool has_place(struct reconcile_state *state)
{
    struct reconciler *r = state->reconciler;
    if (*state->asked_ip || r->asked < r->asked_most)
        return true;
    int lacked = ++r->places_lacked;
    if ((lacked & (lacked - 1)) == 0)
        log_warn("a coordinator is not asked",
                 "job=%s why=\"%d others are, each over a connection of its own, and this process may have "
                 "%d files "
                 "open, as the container runtime of its node says (LimitNOFILE): raise that\"",
                 state->job->key, r->asked, descriptors_beside(0));
    queue_add(&r->queue, &state->job->item, loop_now(r->options.loop) + place_again);
    return false;
}

static void ask_coordinator(struct reconcile_state *state, const struct op_plan *plan)
{
    struct reconciler *r = state->reconciler;
    struct job_entry *job = state->job;
    char identity[OP_NAME_MAX];
    name_identity(job->view.name, job->view.uid, identity);
    struct poller_options options = {.http = r->options.http[r->pollers % r->options.https],
                                     .answers = r->answers,
                                     .pace = &r->asking,
                                     .port = r->options.coordinator_port,
                                     .told = coordinator_told,
                                     .failed = coordinator_failed,
                                     .ctx = state};
    if (job->coordinator &&
        (job->coordinator->term != plan->poll_term || strcmp(job->coordinator->job, identity) != 0)) {
        free(job->coordinator); /* a successor's job now, or nobody's: it would only get old */
        job->coordinator = NULL;
        job->answered_ms = 0;
    }
    const char *ip = *plan->poll_ip && has_place(state) ? plan->poll_ip : "";
    note_asked(state, ip, *ip ? plan->poll_term : 0);
    if (!state->poller && *ip && poller_open(&state->poller, r->options.loop, &options, NULL) == 0)
        r->pollers = (r->pollers + 1) % r->options.https;
    if (!state->poller)
        return;
    poller_ask(state->poller, identity, ip, *ip ? plan->poll_term : 0);
    poller_say(state->poller, plan->relief);
}

/* It is another operator's now: as if we had not been there. */
static void leave_alone(struct job_entry *job)
{
    struct reconcile_state *state = job->reconcile_state;
    if (state) {
        note_asked(state, "", 0);
        poller_free(state->poller);
        state->poller = NULL;
        state->heard_at = state->held_until = state->status_due = 0;
    }
    free(job->coordinator);
    job->coordinator = NULL;
    job->answered_ms = 0;
    job->memo = (struct op_memo){0};
}

static struct reconcile_state *state_of(struct reconciler *r, struct job_entry *job)
{
    struct reconcile_state *state = job->reconcile_state;
    if (state)
        return state;
    state = calloc(1, sizeof *state);
    if (!state)
        abort();
    state->reconciler = r;
    state->job = job;
    job->reconcile_state = state;
    return state;
}

static void drop(struct job_entry *job)
{
    struct reconcile_state *state = job->reconcile_state;
    if (state) {
        note_asked(state, "", 0);
        poller_free(state->poller);
    }
    free(state);
    cache_job_free(job);
}

/* --- after the writes --- */

/* An answer may have come since the plan was made. */
static bool has_more_to_tell(const struct job_entry *job)
{
    const struct coordinator_view *view = job->coordinator;
    return view->term != job->memo.told_term ||
           view->event[view->events_count - 1].sequence > job->memo.told_sequence;
}

static struct kube_note note_about(const struct job_entry *job)
{
    return (struct kube_note){.resource = &kube_training_jobs,
                              .namespace = job->view.namespace_name,
                              .name = job->view.name,
                              .uid = job->view.uid};
}

static void tell_events(struct reconciler *r, struct job_entry *job, const struct op_plan *plan)
{
    for (int i = 0; i < plan->events_count; i++) {
        const struct op_event *event = &plan->event[i];
        struct kube_note note = note_about(job);
        note.warning = event->warning;
        note.reason = event->reason;
        note.action = event->action;
        note.text = event->note;
        recorder_tell(r->options.recorder, &note);
    }
    op_memo_told(&job->memo, plan);
    const struct reconcile_state *state = job->reconcile_state;
    if (state && state->poller)
        poller_told(state->poller, plan->told_term, plan->told_sequence);
    if (job->coordinator && job->coordinator->events_count && !has_more_to_tell(job))
        coordinator_forget_events(&job->coordinator);
}

static void tell_beside_status(struct reconciler *r, const struct job_entry *job, const char *text)
{
    struct kube_note note = note_about(job);
    note.warning = true;
    note.reason = "StatusRefused";
    note.text = text;
    recorder_tell(r->options.recorder, &note);
}

static void count_writes(struct metrics *metrics, const struct op_plan *plan)
{
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *action = &plan->action[i];
        metrics->pods_created += action->kind == OP_CREATE && action->resource == OP_PODS;
        metrics->pods_deleted += action->kind == OP_DELETE && action->resource == OP_PODS;
        metrics->status_writes += action->kind == OP_STATUS;
    }
}

static rm_time moment_of(const struct reconciler *r, int64_t wall_ms)
{
    int64_t in_ms = wall_ms - clock_wall_ms();
    return loop_now(r->options.loop) + (in_ms > 0 ? in_ms * RM_MS : 0);
}

static void done_well(struct reconciler *r, struct reconcile_state *state, const struct op_plan *plan,
                      const struct work_result *result)
{
    struct job_entry *job = state->job;
    rm_time now = loop_now(r->options.loop);
    if (plan->wake_ms)
        queue_add(&r->queue, &job->item, moment_of(r, plan->wake_ms));
    if (state->held_until > now)
        queue_add(&r->queue, &job->item, state->held_until);
    else
        queue_forget(&job->item);
    if (result->healed)
        queue_add(&r->queue, &job->item, now);
    if (result->writes)
        state->look_due = now + plan_looks_again_ms(plan) * RM_MS;
    if (state->look_due >= now)
        queue_add(&r->queue, &job->item, state->look_due);
    if (state->status_due) { /* events follow the status that they belong to */
        queue_add(&r->queue, &job->item, state->status_due);
        if (!plan->events_count)
            tell_events(r, job, plan); /* and what is none for people is known */
        return;
    }
    if (result->writes && plan->change != OP_SAME)
        state->pace.written = now;
    tell_events(r, job, plan);
}

static void done_refused(struct reconciler *r, struct reconcile_state *state,
                         const struct work_result *result)
{
    struct job_entry *job = state->job;
    rm_time now = loop_now(r->options.loop);
    bool passing = result->outcome == KUBE_UNREACHABLE || result->outcome == KUBE_BUSY;
    rm_time delay = passing ? busy_least : refused_least, most = passing ? busy_most : refused_most;
    r->options.metrics->reconciles_refused++;
    if (*result->untold)
        tell_beside_status(r, job, result->untold);
    for (int i = 0; i < job->item.failures && delay < most; i++)
        delay *= 2;
    delay = delay < most ? delay : most;
    delay -= (rm_time)(prng_unit(&r->queue.seed) * (double)delay / 2);
    delay = delay < result->retry_after ? result->retry_after : delay;
    bool again = state->held_until > now && state->held_generation == job->view.generation;
    job->item.failures++;
    state->held_until = now + delay;
    state->held_generation = job->view.generation;
    /* At once, to tell the job's status why; unless it is that which was refused. */
    queue_add(&r->queue, &job->item, again || passing ? state->held_until : now);
}

static void note_reaction(struct reconciler *r, const struct job_entry *job, rm_time took)
{
    timings_add(&r->options.metrics->reactions, took);
    log_debug("a change led to a request", "job=%s ms=%.3f", job->key, rm_ms(took));
}

static void work_done(void *ctx, struct job_entry *job, const struct op_plan *plan,
                      const struct work_result *result)
{
    struct reconciler *r = ctx;
    struct reconcile_state *state = state_of(r, job);
    rm_time now = loop_now(r->options.loop);
    timings_add(&r->options.metrics->reconciles, clock_now() - state->begun);
    if (state->acts_on && result->first_sent)
        note_reaction(r, job, result->first_sent - state->acts_on);
    if (job->gone) {
        r->queue.in_work--;
        drop(job);
        arm_timer(r);
        return;
    }
    if (result->end == WORK_DONE) {
        count_writes(r->options.metrics, plan);
        done_well(r, state, plan, result);
    } else if (result->end == WORK_REFUSED) {
        done_refused(r, state, result);
    }
    r->options.metrics->conflicts += result->end == WORK_CONFLICT;
    if (result->end == WORK_CONFLICT)
        queue_retry(&r->queue, &job->item, now, conflict_least, conflict_most);
    else
        queue_done(&r->queue, &job->item);
    arm_timer(r);
}

/* --- one job --- */

static bool is_held(const struct reconcile_state *state, rm_time now)
{
    return state->held_until > now && state->held_generation == state->job->view.generation;
}

static bool may_write(void *ctx)
{
    struct reconciler *r = ctx;
    return r->options.may_write(r->options.ctx);
}

/* For a person who looks for the reason of something: RINGMASTER_LOG=debug. */
static void log_plan(const struct job_entry *job, const struct op_plan *plan)
{
    if (!log_shows(LOG_DEBUG))
        return;
    struct str text = str_init(1400);
    plan_print(plan, false, &text);
    log_debug("a plan", "job=%s plan=\"%s\"", job->key, str_text(&text));
    str_clear(&text);
}

/* Of what this plan may make and nobody is to foresee. */
static void draw_name(char out[OP_CHANCE_TEXT])
{
    uint8_t random[OP_CHANCE_TEXT - 1];
    crypto_random(random, sizeof random);
    name_chance(random, out);
}

/* Once more without a refusal that it tells of, if it does not want any more what was refused. */
static struct op_plan *plan_of(const struct op_view *view, struct op_memo *memo)
{
    struct op_plan *plan = job_plan(view);
    if (!op_memo_forget(memo, plan))
        return plan;
    plan_free(plan);
    return job_plan(view);
}

static void begin_job(struct reconciler *r, struct job_entry *job)
{
    rm_time now = loop_now(r->options.loop);
    struct reconcile_state *state = state_of(r, job);
    char chance[OP_CHANCE_TEXT];
    draw_name(chance);
    cache_recall_applied(r->options.cache, job);
    struct op_view view = {.job = &job->view,
                           .node = cache_find_node,
                           .nodes = r->options.cache,
                           .nodes_known = !r->options.cache->nodes_denied,
                           .coordinator = job->coordinator,
                           .answered_ms = job->answered_ms,
                           .in_vain_ms = find_in_vain_ms(state),
                           .silence = &state->silence,
                           .deaf = is_deaf(r),
                           .memo = &job->memo,
                           .trials = &r->trials,
                           .prices = price_file_prices(r->options.prices),
                           .now_ms = clock_wall_ms(),
                           .chance = chance,
                           .sha256 = sha256_once,
                           .settings = r->options.settings};
    view.pods = cache_pods(r->options.cache, job, now, &view.pods_count);
    state->begun = clock_now();
    state->acts_on = state->heard_at;
    state->heard_at = 0;
    state->status_due = 0;
    struct op_plan *plan = plan_of(&view, &job->memo);
    op_memo_metered(&job->memo, &job->view, plan);
    log_plan(job, plan);
    ask_coordinator(state, plan);
    bool waits = !status_pace_allows(&r->paces, &state->pace, plan->change, now, &state->status_due);
    if (!waits)
        state->status_due = 0;
    struct work_options options = {.kube = r->options.kube,
                                   .cache = r->options.cache,
                                   .loop = r->options.loop,
                                   .job = job,
                                   .plan = plan,
                                   .trials = &r->trials,
                                   .quiet = is_held(state, now),
                                   .without_status = waits,
                                   .may_write = may_write,
                                   .done = work_done,
                                   .ctx = r};
    work_begin(&options);
}

static void take_up(struct reconciler *r, struct job_entry *job)
{
    if (!r->options.leaves_out(r->options.ctx, job->view.namespace_name)) {
        begin_job(r, job);
        return;
    }
    leave_alone(job);
    queue_forget(&job->item);
    queue_done(&r->queue, &job->item);
}

/* A portion of them, so that whoever asks something else waits for no more. */
static void take_some(void *ctx)
{
    struct reconciler *r = ctx;
    struct queue_item *item;
    rm_time until = clock_now() + ANSWERS_PORTION;
    while (r->started && !r->stopped && r->queue.in_work < IN_WORK_MAX && clock_now() < until &&
           (item = queue_take(&r->queue, loop_now(r->options.loop))))
        take_up(r, (struct job_entry *)item);
    arm_timer(r);
}

/* --- from outside --- */

void reconciler_changed(struct reconciler *reconciler, struct job_entry *job)
{
    want(reconciler, job, loop_now(reconciler->options.loop));
}

void reconciler_heard(struct reconciler *reconciler, struct job_entry *job)
{
    struct reconcile_state *state = state_of(reconciler, job);
    if (!state->heard_at)
        state->heard_at = loop_now(reconciler->options.loop);
    reconciler_changed(reconciler, job);
}

void reconciler_removed(struct reconciler *reconciler, struct job_entry *job)
{
    struct reconcile_state *state = job->reconcile_state;
    if (state) { /* in work or not: nobody is asked any more */
        note_asked(state, "", 0);
        poller_free(state->poller);
        state->poller = NULL;
    }
    if (job->item.in_work)
        return;
    queue_remove(&reconciler->queue, &job->item);
    drop(job);
    arm_timer(reconciler);
}

static void look_at(void *ctx, const char *name, void *value)
{
    (void)name;
    reconciler_changed(ctx, value);
}

void reconciler_look_at_all(struct reconciler *reconciler)
{
    table_each(&reconciler->options.cache->jobs, look_at, reconciler);
}

void reconciler_start(struct reconciler *reconciler)
{
    reconciler->started = true;
    arm_timer(reconciler);
}

void reconciler_stop(struct reconciler *reconciler)
{
    reconciler->stopped = true;
    arm_timer(reconciler);
}

int reconciler_in_work(const struct reconciler *reconciler)
{
    return reconciler->queue.in_work;
}

int reconciler_queued(const struct reconciler *reconciler)
{
    return (int)reconciler->queue.count;
}

int reconciler_open(struct reconciler **ret, const struct reconciler_options *options, struct error *err)
{
    struct reconciler *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, ERR_MACHINE, "no memory for the reconciler");
    r->options = *options;
    r->queue.seed = crypto_seed();
    r->asked_most = descriptors_beside(FILES_KEPT);
    r->asking = bucket_init(questions_per_second, questions_at_once, loop_now(options->loop));
    r->paces = status_paces_init(loop_now(options->loop));
    if (loop_timer_open(&r->timer, options->loop, take_some, r, err) < 0 ||
        loop_bell_open(&r->more, options->loop, take_some, r, err) < 0 ||
        answers_open(&r->answers, options->loop, err) < 0) {
        reconciler_free(r);
        return -1;
    }
    *ret = r;
    return 0;
}

static void free_state(void *ctx, const char *name, void *value)
{
    struct job_entry *job = value;
    struct reconcile_state *state = job->reconcile_state;
    (void)ctx, (void)name;
    if (state)
        poller_free(state->poller);
    free(state);
    work_abandon(job->work);
    job->reconcile_state = NULL;
    job->work = NULL;
}

void reconciler_free(struct reconciler *reconciler)
{
    if (!reconciler)
        return;
    table_each(&reconciler->options.cache->jobs, free_state, NULL);
    answers_free(reconciler->answers);
    loop_bell_free(reconciler->more);
    loop_timer_free(reconciler->timer);
    queue_clear(&reconciler->queue);
    free(reconciler);
}
