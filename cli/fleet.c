/* Runs a job's processes on this machine: follows the coordinator's events, starts workers and their
 * replacements, does the drills that are due, and starts a successor when the coordinator dies. */
#include "cli/fleet.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fleet_state.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "common/storage/checkpoint/checkpoint.h"

static const rm_time release_patience = 10 * RM_S; /* for workers once the run has ended */
static const rm_time start_patience = 3 * RM_S;    /* before people are told that workers are waited for */
static const rm_time farewell_patience =
    2 * RM_S; /* for them once the coordinator has ended too: nothing is lost */
static const rm_time coordinator_patience =
    5 * RM_S; /* with one that says nothing, or lostAfter where that is longer: training goes on without it */
static const rm_time same_signal = 300 * RM_MS; /* what comes sooner after the first is no second Ctrl-C */
static const rm_time save_patience =
    60 * RM_S; /* for a checkpoint where this program ends the run, beside checkpoint.endTimeout */

static bool ending(const struct fleet *fleet)
{
    return fleet->options->report->ended || fleet->killing || fleet->own_exit_code;
}

/* A program may go on for a while after its last step. */
static rm_time for_programs(const struct fleet *fleet, rm_time patience)
{
    return patience + (job_is_elastic(fleet->spec) ? fleet->spec->launch.grace_period : 0);
}

static void arm(struct fleet *fleet, rm_time patience)
{
    loop_timer_set(fleet->patience, loop_now(fleet->loop) + patience);
}

/* First all children are killed; should something else still hold the error pipe after that, it is left. */
static void patience_over(void *ctx)
{
    struct fleet *fleet = ctx;
    if (fleet->killing)
        loop_stop(fleet->loop);
    fleet_kill_all(fleet);
    arm(fleet, release_patience);
}

/* The run can't go on, says this program: what can be saved is saved, then all ends. */
static void give_up(struct fleet *fleet, int exit_code, const char *why)
{
    if (ending(fleet))
        return;
    fleet->own_exit_code = exit_code;
    text_copy(fleet->own_why, sizeof fleet->own_why, why);
    fleet_no_more_children(fleet);
    fleet_tell(fleet, &(struct command){.kind = COMMAND_INTERRUPT});
    arm(fleet, fleet->coordinator ? save_patience + fleet->spec->checkpoint.end_timeout
                                  : fleet->spec->elasticity.lost_after + 3 * RM_S);
}

static void start_worker(struct fleet *fleet, int worker)
{
    struct error err = {0};
    if (fleet_start_worker(fleet, worker, &err) == 0)
        return;
    fleet->supervisor.member[worker].alive = false;
    fleet_expect(fleet);
    give_up(fleet, error_exit_code(err.code), err.text);
}

/* --- drills --- */

static void act(struct fleet *fleet, const struct drill *drill, int worker)
{
    struct command command = {
        .kind = COMMAND_ACT, .act = {.cause = drill_cause(drill->kind), .worker = worker, .at = clock_now()}};
    fleet_act(fleet, &command);
}

static void start_newcomer(struct fleet *fleet, int worker)
{
    const struct drill join = {.kind = DRILL_JOIN};
    supervisor_start(&fleet->supervisor, worker);
    fleet_expect(fleet);
    act(fleet, &join, worker);
    FAULT("newcomer-expected");
    start_worker(fleet, worker);
}

/* A worker that was just taken away may not have ended yet: its successor gets its index once it has. */
static void drill_join(struct fleet *fleet, const struct drill *drill)
{
    int worker = supervisor_free_index(&fleet->supervisor);
    if (worker < 0) {
        console_say(fleet->console, "ringmaster: drill %s: all %d workers are there already", drill->spec,
                    fleet->supervisor.workers_max);
        return;
    }
    if (!fleet->supervisor.member[worker].alive) {
        start_newcomer(fleet, worker);
        return;
    }
    supervisor_promise(&fleet->supervisor, worker);
    fleet_expect(fleet);
}

/* The agent first: it must not live to tell that its trainer died. */
static void drill_harm(struct fleet *fleet, const struct drill *drill)
{
    struct fleet_worker *w = &fleet->worker[drill->worker];
    bool whole = drill->kind != DRILL_TRAINER && drill->kind != DRILL_HANG;
    bool stops = drill->kind == DRILL_STOP || drill->kind == DRILL_HANG;
    const struct supervised_worker *member = &fleet->supervisor.member[drill->worker];
    if (!w->child || !member->alive || member->drilled || (!whole && w->trainer_pid <= 1)) {
        console_say(fleet->console, "ringmaster: drill %s: worker %d is not in the ring at this moment",
                    drill->spec, drill->worker);
        return;
    }
    act(fleet, drill, drill->worker);
    FAULT("drill-told");
    if (whole) {
        supervisor_drilled(&fleet->supervisor, drill->worker);
        w->stopped = fleet->supervisor.member[drill->worker].stands = stops;
        loop_child_kill(w->child, drill->kind == DRILL_TERM ? SIGTERM : stops ? SIGSTOP : SIGKILL);
    }
    if (drill->kind != DRILL_TERM && w->trainer_pid > 1) {
        kill((pid_t)w->trainer_pid, stops ? SIGSTOP : SIGKILL);
        w->stopped_launcher = stops && whole && job_restarts(fleet->spec) ? w->trainer_pid : 0;
        w->trainer_pid = 0;
    }
}

static void drill_coordinator(struct fleet *fleet)
{
    if (!fleet->coordinator || fleet->coordinator_drilled)
        return;
    fleet->coordinator_drilled = true;
    fleet->told.lost_at = clock_now();
    loop_child_kill(fleet->coordinator, SIGKILL);
}

static void do_drill(struct fleet *fleet, const struct drill *drill, int64_t step)
{
    tell_drill(fleet, drill, step);
    if (drill->kind == DRILL_JOIN)
        drill_join(fleet, drill);
    else if (drill->kind == DRILL_COORDINATOR)
        drill_coordinator(fleet);
    else
        drill_harm(fleet, drill);
}

static void do_drills(struct fleet *fleet, int64_t step)
{
    const struct drill *drill;
    while (!ending(fleet) && !fleet->interrupted && (drill = drill_due(fleet->options->drills, step)))
        do_drill(fleet, drill, step);
}

/* Those that have a time, from the first ring on. */
static void do_timed_drills(void *ctx)
{
    struct fleet *fleet = ctx;
    struct drill_plan *plan = fleet->options->drills;
    const struct drill *drill;
    rm_time elapsed = loop_now(fleet->loop) - fleet->first_ring_at;
    while (!ending(fleet) && !fleet->interrupted && (drill = drill_due_after(plan, elapsed)))
        do_drill(fleet, drill, 0);
    rm_time next = ending(fleet) || fleet->interrupted ? RM_NEVER : drill_next_after(plan);
    loop_timer_set(fleet->drill_timer, next == RM_NEVER ? RM_NEVER : fleet->first_ring_at + next);
}

static void time_drills(struct fleet *fleet)
{
    if (fleet->first_ring_at)
        return;
    fleet->first_ring_at = loop_now(fleet->loop);
    do_timed_drills(fleet);
}

/* --- a coordinator that hangs --- */

/* It says at least that it lives. Counted in heartbeats of this program, not by the clock: a person may have
 * stopped the whole group for an hour. */
static void watch_coordinator(void *ctx)
{
    struct fleet *fleet = ctx;
    rm_time lost_after = fleet->spec->elasticity.lost_after, every = fleet->spec->elasticity.heartbeat;
    loop_timer_set(fleet->watch, loop_now(fleet->loop) + every);
    if (!fleet->coordinator || fleet->silent < 0 || ending(fleet))
        return;
    rm_time silence = ++fleet->silent * every;
    if (silence <= lost_after || silence <= coordinator_patience)
        return;
    console_say(fleet->console, "ringmaster: the coordinator has said nothing for %.1f s and is replaced",
                (double)silence / RM_S);
    fleet->silent = -1;
    loop_child_kill(fleet->coordinator, SIGKILL);
}

/* --- what the coordinator tells --- */

static void take_listening(struct fleet *fleet, const struct event *event)
{
    if (fleet->term > 1)
        return; /* the workers are there, and it was told all when it was started */
    text_copy(fleet->address, sizeof fleet->address, event->address);
    tell_started(fleet);
    say_skipped(fleet);
    for (int w = 0; w < fleet->spec->workers.target; w++)
        supervisor_start(&fleet->supervisor, w);
    fleet_expect(fleet);
    for (int w = 0; w < fleet->spec->workers.target && !ending(fleet); w++)
        start_worker(fleet, w);
}

static void take_ring(struct fleet *fleet, const struct event *event)
{
    for (int i = 0; i < event->members; i++) {
        int worker = event->member[i].worker;
        if (worker < 0)
            continue;
        supervisor_seen(&fleet->supervisor, worker);
        fleet->worker[worker].trainer_pid = event->member[i].trainer_pid;
    }
}

/* One that was stopped is given up with the coordinator's word: should it go on, nobody expects it. */
static void take_loss(struct fleet *fleet, int worker)
{
    if (!fleet->worker[worker].stopped)
        return;
    supervisor_stopped(&fleet->supervisor, worker);
    fleet_expect(fleet);
}

/* What stands still never hears that it may go. A launcher whose agent has ended goes on to end its program.
 */
static void kill_stopped(struct fleet *fleet)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct fleet_worker *w = &fleet->worker[i];
        if (!w->stopped || !w->child)
            continue;
        loop_child_kill(w->child, SIGKILL);
        if (w->stopped_launcher)
            kill((pid_t)w->stopped_launcher, SIGCONT);
        w->stopped_launcher = 0;
    }
}

static void take_end(struct fleet *fleet, const struct event *event)
{
    fleet_no_more_children(fleet);
    FAULT("run-ending");
    kill_stopped(fleet);
    arm(fleet, for_programs(fleet, release_patience));
    if (event->kind == EVENT_FAILED && !fleet->own_exit_code)
        console_say(fleet->console, "ringmaster: %s", event->text);
    bool same = event->kind == EVENT_FAILED && event->exit_code == fleet->own_exit_code;
    if (same && fleet->own_is_vague)
        text_copy(fleet->own_why, sizeof fleet->own_why, event->text);
}

static void act_on(struct fleet *fleet, const struct event *event)
{
    switch (event->kind) {
    case EVENT_LISTENING:
        take_listening(fleet, event);
        break;
    case EVENT_WORKER_REFUSED:
        if (event->worker >= 0)
            text_copy(fleet->worker[event->worker].refused, EVENT_TEXT_MAX, event->text);
        break;
    case EVENT_RELEASED:
        supervisor_released(&fleet->supervisor, event->worker);
        break;
    case EVENT_WORKER_QUARANTINED:
        supervisor_quarantined(&fleet->supervisor, event->worker);
        break;
    case EVENT_RING_FORMED:
        take_ring(fleet, event);
        time_drills(fleet);
        break;
    case EVENT_WORKER_LOST:
        take_loss(fleet, event->worker);
        break;
    case EVENT_STEP:
        do_drills(fleet, event->step);
        break;
    case EVENT_FAILED:
    case EVENT_INTERRUPTED:
    case EVENT_COMPLETE:
        take_end(fleet, event);
        break;
    default:
        break;
    }
}

static void remember(int64_t *newest, int64_t step)
{
    if (step > *newest)
        *newest = step;
}

/* What a successor is told by its command line. */
static void remember_told(struct fleet *fleet, const struct event *event)
{
    struct fleet_told *t = &fleet->told;
    if (event->kind == EVENT_STEP || event->kind == EVENT_RING_FORMED)
        remember(&t->step, event->step);
    if (event->kind == EVENT_EVALUATED || event->kind == EVENT_CHECKPOINT_LOADED)
        remember(&t->evaluated, event->step);
    if (event->kind == EVENT_CHECKPOINT_SAVED || event->kind == EVENT_CHECKPOINT_LOADED)
        t->saved = event->step;
    if (event->kind == EVENT_ALIVE && event->at > 0) {
        t->spent_at = event->at;
        memcpy(t->spent, event->spent, sizeof t->spent);
        memcpy(t->saves, event->saves, sizeof t->saves);
    }
    if (report_is_takeover(event))
        t->lost_at = 0;
    if (event->kind == EVENT_CHECKPOINT_SAVED)
        text_copy(fleet->saved_uri, sizeof fleet->saved_uri, event->uri);
    if (event->kind == EVENT_RING_FORMED) {
        fleet->ring_term = event->term;
        fleet->ring_generation = event->generation;
    }
}

/* A successor repeats the ring that it found, a checkpoint whose telling it did not see, and that one waits.
 */
static bool told_already(const struct fleet *fleet, const struct event *event)
{
    if (fleet->term == 1)
        return false;
    if (event->kind == EVENT_RING_FORMED)
        return event->term == fleet->ring_term && event->generation == fleet->ring_generation;
    if (event->kind == EVENT_CHECKPOINT_WAITING)
        return fleet->options->report->store_is_away;
    return event->kind == EVENT_CHECKPOINT_SAVED && !strcmp(event->uri, fleet->saved_uri);
}

/* Workers take a moment to arrive: that they are waited for is worth a line only after a while. */
static bool starting(struct fleet *fleet)
{
    const struct report *report = fleet->options->report;
    return !report->world && loop_now(fleet->loop) - report->begun < start_patience;
}

static void show(struct fleet *fleet, const struct event *event, const char *text, size_t length)
{
    struct console *console = fleet->console;
    struct str out = str_init(length + 8192);
    bool final =
        event->kind == EVENT_FAILED || event->kind == EVENT_INTERRUPTED || event->kind == EVENT_COMPLETE;
    if (final && fleet->own_exit_code)
        return; /* this program's own verdict is told at the end in its place */
    if (console->json && event->kind >= EVENT_SHOWN) {
        str_add(&out, text, length);
        str_adds(&out, "\n");
    } else if (!console->json && !(event->kind == EVENT_WAITING && starting(fleet)))
        screen_event(fleet->options->report, event, console->style, &out);
    console_print(console, &out);
    if (event->kind == EVENT_STEP || event->kind == EVENT_PROGRESS)
        console_progress(console, fleet->options->report, loop_now(fleet->loop));
    str_clear(&out);
}

static void interrupt(struct fleet *fleet);

/* A reader that goes away wants no more; any other failure is one of the machine. */
static void output_broken(struct fleet *fleet)
{
    char why[EVENT_TEXT_MAX];
    if (fleet->console->reason == EPIPE) {
        interrupt(fleet);
        return;
    }
    snprintf(why, sizeof why, "standard output can't be written: %s", strerror(fleet->console->reason));
    give_up(fleet, EXIT_MACHINE, why);
}

void fleet_event_line(void *ctx, char *text, size_t length)
{
    struct fleet *fleet = ctx;
    struct event event;
    struct error err = {0};
    fleet->silent = 0;
    if (event_read(&event, text, length, &err) < 0) {
        if (err.code != ERR_NOT_FOUND)
            console_say(fleet->console, "ringmaster: the coordinator said what can't be read: %s", err.text);
        return;
    }
    if (!told_already(fleet, &event)) {
        tell_resumed(fleet, &event);
        report_take(fleet->options->report, &event, loop_now(fleet->loop));
        show(fleet, &event, text, length);
        FAULT("event-shown");
    }
    remember_told(fleet, &event);
    act_on(fleet, &event);
    if (fleet->console->broken && !fleet->interrupted)
        output_broken(fleet);
}

void fleet_error_line(void *ctx, char *text, size_t length)
{
    struct fleet *fleet = ctx;
    (void)length;
    console_say(fleet->console, "%s", text);
}

/* --- ends --- */

/* The coordinator ended without a last word: the newest checkpoint is what is left. */
static void coordinator_lost(struct fleet *fleet, const char *how)
{
    struct checkpoint_list *list = malloc(sizeof *list);
    char why[EVENT_TEXT_MAX], newest[CHECKPOINT_NAME_MAX] = "";
    struct object_store *store = fleet->options->prepared->store; /* a program may have none */
    if (list && store && checkpoint_list(store, list, NULL) == 0 && list->count)
        text_copy(newest, sizeof newest, list->entry[0].name);
    free(list);
    if (*newest)
        snprintf(why, sizeof why, "the coordinator ended (%s); the same command goes on from %s in %.200s",
                 how, newest, fleet->spec->checkpoint.uri);
    else
        snprintf(why, sizeof why, "the coordinator ended (%s)%s", how,
                 job_restarts(fleet->spec) ? "" : "; there is no checkpoint yet");
    give_up(fleet, EXIT_MACHINE, why);
}

/* Those that were still on their way to the coordinator when it ended look for it in vain. A program that has
 * not come to its trainer yet has no state, and nothing to do after a last step that it was not in. */
static void end_who_never_arrived(struct fleet *fleet)
{
    bool elastic = job_is_elastic(fleet->spec);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (fleet->worker[w].child && !fleet->supervisor.member[w].released &&
            (elastic || !fleet->supervisor.member[w].seen))
            loop_child_kill(fleet->worker[w].child, SIGKILL);
}

/* Training goes on without it; the next one asks the workers how far they are. */
static bool start_successor(struct fleet *fleet)
{
    struct error err = {0};
    if (!fleet->coordinator_drilled &&
        ++fleet->coordinator_failures > fleet->spec->failure_policy.max_restarts)
        return false;
    fleet->coordinator_drilled = false;
    if (!fleet->told.lost_at)
        fleet->told.lost_at = fleet->coordinator_ended_at;
    if (fleet_start_coordinator(fleet, &err) < 0) {
        console_say(fleet->console, "ringmaster: %s", err.text);
        return false;
    }
    fleet_expect(fleet);
    if (fleet->acts.length)
        fleet_command(fleet, str_text(&fleet->acts));
    str_reset(&fleet->acts);
    if (fleet->interrupted)
        fleet_tell(fleet, &(struct command){.kind = COMMAND_INTERRUPT});
    return true;
}

/* Once it has ended and all that it wrote is read. */
static void judge_coordinator(struct fleet *fleet)
{
    char how[sizeof fleet->coordinator_how];
    text_copy(how, sizeof how, fleet->coordinator_how);
    *fleet->coordinator_how = 0;
    if (fleet->options->report->ended)
        arm(fleet, for_programs(fleet, farewell_patience));
    if ((fleet->interrupted || job_is_elastic(fleet->spec)) && ending(fleet))
        end_who_never_arrived(fleet);
    if (ending(fleet))
        return;
    if (*fleet->address && start_successor(fleet))
        return;
    if (*fleet->address) {
        coordinator_lost(fleet, how);
        return;
    }
    fleet->own_exit_code = fleet->coordinator_code ? fleet->coordinator_code : EXIT_MACHINE;
    snprintf(fleet->own_why, sizeof fleet->own_why,
             "the coordinator did not start (%s); its own words are above", how);
}

void fleet_coordinator_exited(void *ctx, int code, int signal)
{
    struct fleet *fleet = ctx;
    loop_child_free(fleet->coordinator);
    fleet->coordinator = NULL;
    fleet->coordinator_code = code;
    fleet->coordinator_ended_at = clock_now();
    if (signal)
        snprintf(fleet->coordinator_how, sizeof fleet->coordinator_how, "signal %d", signal);
    else
        snprintf(fleet->coordinator_how, sizeof fleet->coordinator_how, "exit %d", code);
    fleet_check_end(fleet);
}

void fleet_worker_exited(void *ctx, int code, int signal)
{
    struct fleet_worker *w = ctx;
    struct fleet *fleet = w->fleet;
    loop_child_free(w->child);
    w->child = NULL;
    w->trainer_pid = 0;
    struct supervisor_exit exit = {.worker = w->worker, .code = code, .signal = signal};
    struct supervisor_decision decision = supervisor_exited(&fleet->supervisor, &exit, loop_now(fleet->loop));
    bool going = !ending(fleet) && !fleet->interrupted;
    bool restart = decision.action == SUPERVISOR_RESTART && going;
    if (decision.action == SUPERVISOR_NEXT && going) {
        start_newcomer(fleet, w->worker);
        return;
    }
    if (restart)
        supervisor_start(&fleet->supervisor, w->worker);
    fleet_expect(fleet);
    FAULT("worker-ended");
    if (restart)
        start_worker(fleet, w->worker);
    else if (decision.action == SUPERVISOR_FAIL) {
        fleet->own_is_vague = !*w->refused && !fleet->own_exit_code;
        give_up(fleet, decision.exit_code, *w->refused ? w->refused : decision.why);
    }
    fleet_check_end(fleet);
}

/* All processes have ended, those of the workers too (nobody holds the error pipe), and all was read. */
void fleet_check_end(struct fleet *fleet)
{
    if (fleet->coordinator || fleet->events)
        return;
    if (*fleet->coordinator_how)
        judge_coordinator(fleet);
    if (fleet->coordinator || supervisor_living(&fleet->supervisor))
        return;
    fleet_no_more_children(fleet);
    arm(fleet, release_patience);
    if (!fleet->errors)
        loop_stop(fleet->loop);
}

/* `timeout` and the like signal a process and its group: one wish that comes twice. */
static void interrupt(struct fleet *fleet)
{
    rm_time now = loop_now(fleet->loop);
    if (fleet->interrupted && now - fleet->interrupted_at < same_signal)
        return;
    bool at_once = fleet->interrupted || !*fleet->address;
    fleet->interrupted = true;
    fleet->interrupted_at = now;
    if (at_once) {
        fleet_kill_all(fleet);
        return;
    }
    if (!fleet->options->report->ended && !fleet->console->broken)
        console_say(fleet->console, "ringmaster: %s; Ctrl-C again ends at once",
                    job_restarts(fleet->spec) ? "the program is told to end" : "saving a checkpoint");
    fleet_tell(fleet, &(struct command){.kind = COMMAND_INTERRUPT});
}

static void signal_came(void *ctx, int signo)
{
    (void)signo;
    interrupt(ctx);
}

/* As nohup leaves it: then it shall stay so. */
static bool is_ignored(int signo)
{
    struct sigaction now;
    return sigaction(signo, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int listen_signals(struct fleet *fleet, struct error *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (!(signals[i] == SIGHUP && is_ignored(SIGHUP)) &&
            loop_signal_open(&fleet->signals[i], fleet->loop, signals[i], signal_came, fleet, err) < 0)
            return -1;
    if (loop_timer_open(&fleet->patience, fleet->loop, patience_over, fleet, err) < 0 ||
        loop_timer_open(&fleet->watch, fleet->loop, watch_coordinator, fleet, err) < 0 ||
        loop_timer_open(&fleet->drill_timer, fleet->loop, do_timed_drills, fleet, err) < 0)
        return -1;
    watch_coordinator(fleet);
    return 0;
}

static int verdict(struct fleet *fleet)
{
    const struct report *report = fleet->options->report;
    if (fleet->own_exit_code) {
        console_say(fleet->console, "ringmaster: %s", fleet->own_why);
        tell_failed(fleet, fleet->own_why, fleet->own_exit_code);
        return fleet->own_exit_code;
    }
    if (!report->ended) {
        console_say(fleet->console, "ringmaster: ended at once%s",
                    job_restarts(fleet->spec) ? "" : "; nothing was saved since the last checkpoint");
        return EXIT_INTERRUPTED;
    }
    if (report->end.kind == EVENT_INTERRUPTED) {
        if (job_restarts(fleet->spec))
            console_say(fleet->console, "ringmaster: interrupted; the program was told to end");
        else if (report->end.step > 0)
            console_say(fleet->console,
                        "ringmaster: interrupted at step %lld, checkpoint saved; the same command goes on",
                        (long long)report->end.step);
        else
            console_say(fleet->console,
                        "ringmaster: interrupted before the first step: nothing was there to save");
        return EXIT_INTERRUPTED;
    }
    return report->end.kind == EVENT_COMPLETE ? EXIT_DONE : report->end.exit_code;
}

int fleet_run(const struct fleet_options *options, struct error *err)
{
    struct fleet *fleet = calloc(1, sizeof *fleet);
    const struct job_spec *spec = &options->prepared->spec;
    if (!fleet)
        return err_set(err, ERR_MACHINE, "no memory for a run");
    fleet->options = options;
    fleet->spec = spec;
    fleet->console = options->console;
    fleet->told = (struct fleet_told){.step = -1, .evaluated = -1, .saved = -1, .saves = {-1}};
    fleet->acts = str_init(1 << 16);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        fleet->worker[w] = (struct fleet_worker){.fleet = fleet, .worker = w};
    supervisor_init(&fleet->supervisor, spec->workers.max, spec->failure_policy.max_restarts,
                    spec->failure_policy.within);
    int code = -1;
    if (fleet_open(fleet, err) == 0 && listen_signals(fleet, err) == 0 &&
        fleet_start_coordinator(fleet, err) == 0) {
        loop_run(fleet->loop);
        code = verdict(fleet);
    }
    fleet_close(fleet);
    free(fleet);
    return code;
}
