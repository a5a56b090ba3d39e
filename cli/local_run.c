/* Runs a job's processes on this machine: follows the coordinator's events, starts workers and their
 * replacements, does the drills that are due, and starts a successor when the coordinator dies. */
#include "cli/local_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/local_run_state.h"
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

static bool ending(const struct local_run *run)
{
    return run->options->report->ended || run->killing || run->own_exit_code;
}

/* A program may go on for a while after its last step. */
static rm_time for_programs(const struct local_run *run, rm_time patience)
{
    return patience + (job_is_elastic(run->spec) ? run->spec->launch.grace_period : 0);
}

static void arm_patience(struct local_run *run, rm_time patience)
{
    loop_timer_set(run->patience, loop_now(run->loop) + patience);
}

/* First all children are killed; should something else still hold the error pipe after that, it is left. */
static void patience_over(void *ctx)
{
    struct local_run *run = ctx;
    if (run->killing)
        loop_stop(run->loop);
    local_run_kill_all(run);
    arm_patience(run, release_patience);
}

/* The run can't go on, says this program: what can be saved is saved, then all ends. */
static void give_up(struct local_run *run, int exit_code, const char *why)
{
    if (ending(run))
        return;
    run->own_exit_code = exit_code;
    text_copy(run->own_why, sizeof run->own_why, why);
    local_run_no_more_children(run);
    local_run_tell(run, &(struct command){.kind = COMMAND_INTERRUPT});
    arm_patience(run, run->coordinator ? save_patience + run->spec->checkpoint.end_timeout
                                       : run->spec->elasticity.lost_after + 3 * RM_S);
}

static void start_worker(struct local_run *run, int worker)
{
    struct error err = {0};
    if (local_run_start_worker(run, worker, &err) == 0)
        return;
    run->supervisor.member[worker].alive = false;
    local_run_expect(run);
    give_up(run, error_exit_code(err.code), err.text);
}

/* --- drills --- */

static void act_on_drill(struct local_run *run, const struct drill *drill, int worker)
{
    struct command command = {
        .kind = COMMAND_ACT, .act = {.cause = drill_cause(drill->kind), .worker = worker, .at = clock_now()}};
    local_run_act(run, &command);
}

static void start_newcomer(struct local_run *run, int worker)
{
    const struct drill join = {.kind = DRILL_JOIN};
    supervisor_start(&run->supervisor, worker);
    local_run_expect(run);
    act_on_drill(run, &join, worker);
    FAULT("newcomer-expected");
    start_worker(run, worker);
}

/* A worker that was just taken away may not have ended yet: its successor gets its index once it has. */
static void drill_join(struct local_run *run, const struct drill *drill)
{
    int worker = supervisor_free_index(&run->supervisor);
    if (worker < 0) {
        console_say(run->console, "ringmaster: drill %s: all %d workers are there already", drill->spec,
                    run->supervisor.workers_max);
        return;
    }
    if (!run->supervisor.member[worker].alive) {
        start_newcomer(run, worker);
        return;
    }
    supervisor_promise(&run->supervisor, worker);
    local_run_expect(run);
}

/* A program of mode Restart stands still, and its launcher, which is to end it, does not. */
static bool freezes_program(const struct local_run *run, const struct drill *drill)
{
    return drill->kind == DRILL_HANG && job_restarts(run->spec);
}

/* Without a word of it the run would wait for ever. */
static bool shows_nothing(const struct local_run *run, const struct drill *drill)
{
    if (!freezes_program(run, drill) || run->reported)
        return false;
    console_say(run->console,
                "ringmaster: drill %s: not done, as nobody would see that the program hangs: it has not "
                "called ringmaster.report(step) since it was started",
                drill->spec);
    return true;
}

/* The agent first: it must not live to tell that its trainer died. */
static void drill_harm(struct local_run *run, const struct drill *drill)
{
    struct local_run_worker *w = &run->worker[drill->worker];
    bool whole = drill->kind == DRILL_KILL || drill->kind == DRILL_TERM || drill->kind == DRILL_STOP;
    bool stops = drill->kind == DRILL_STOP || drill->kind == DRILL_HANG;
    const struct supervised_worker *member = &run->supervisor.member[drill->worker];
    if (!w->child || !member->alive || member->drilled || (!whole && w->trainer_pid <= 1)) {
        console_say(run->console, "ringmaster: drill %s: worker %d is not in the ring at this moment",
                    drill->spec, drill->worker);
        return;
    }
    if (shows_nothing(run, drill))
        return;
    act_on_drill(run, drill, drill->worker);
    FAULT("drill-told");
    if (whole) {
        supervisor_drilled(&run->supervisor, drill->worker);
        w->stopped = run->supervisor.member[drill->worker].stands = stops;
        loop_child_kill(w->child, drill->kind == DRILL_TERM ? SIGTERM : stops ? SIGSTOP : SIGKILL);
    }
    if (drill->kind == DRILL_CORRUPT || freezes_program(run, drill)) {
        kill((pid_t)w->trainer_pid, SIGUSR1);
        return;
    }
    if (drill->kind != DRILL_TERM && w->trainer_pid > 1) {
        kill((pid_t)w->trainer_pid, stops ? SIGSTOP : SIGKILL);
        w->stopped_launcher = stops && whole && job_restarts(run->spec) ? w->trainer_pid : 0;
        w->trainer_pid = 0;
    }
}

static void drill_coordinator(struct local_run *run)
{
    if (!run->coordinator || run->coordinator_drilled)
        return;
    run->coordinator_drilled = true;
    run->told.lost_at = clock_now();
    loop_child_kill(run->coordinator, SIGKILL);
}

static void do_drill(struct local_run *run, const struct drill *drill, int64_t step)
{
    tell_drill(run, drill, step);
    if (drill->kind == DRILL_JOIN)
        drill_join(run, drill);
    else if (drill->kind == DRILL_COORDINATOR)
        drill_coordinator(run);
    else
        drill_harm(run, drill);
}

static void do_drills(struct local_run *run, int64_t step)
{
    const struct drill *drill;
    while (!ending(run) && !run->interrupted && (drill = drill_due(run->options->drills, step)))
        do_drill(run, drill, step);
}

/* Those that have a time, from the first ring on. */
static void do_timed_drills(void *ctx)
{
    struct local_run *run = ctx;
    struct drill_list *drills = run->options->drills;
    const struct drill *drill;
    rm_time elapsed = loop_now(run->loop) - run->first_ring_at;
    while (!ending(run) && !run->interrupted && (drill = drill_due_after(drills, elapsed)))
        do_drill(run, drill, run->options->report->step);
    rm_time next = ending(run) || run->interrupted ? RM_NEVER : drill_next_after(drills);
    loop_timer_set(run->drill_timer, next == RM_NEVER ? RM_NEVER : run->first_ring_at + next);
}

static void time_drills(struct local_run *run)
{
    if (run->first_ring_at)
        return;
    run->first_ring_at = loop_now(run->loop);
    do_timed_drills(run);
}

/* --- a coordinator that hangs --- */

/* It says at least that it lives. Counted in heartbeats of this program, not by the clock: a person may have
 * stopped the whole group for an hour. */
static void watch_coordinator(void *ctx)
{
    struct local_run *run = ctx;
    rm_time lost_after = run->spec->elasticity.lost_after, every = run->spec->elasticity.heartbeat;
    loop_timer_set(run->watch, loop_now(run->loop) + every);
    if (!run->coordinator || run->silent < 0 || ending(run))
        return;
    rm_time silence = ++run->silent * every;
    if (silence <= lost_after || silence <= coordinator_patience)
        return;
    console_say(run->console, "ringmaster: the coordinator has said nothing for %.1f s and is replaced",
                (double)silence / RM_S);
    run->silent = -1;
    loop_child_kill(run->coordinator, SIGKILL);
}

/* --- what the coordinator tells --- */

static void take_listening(struct local_run *run, const struct event *event)
{
    if (run->term > 1)
        return; /* the workers are there, and it was told all when it was started */
    text_copy(run->address, sizeof run->address, event->address);
    tell_started(run);
    say_skipped(run);
    for (int w = 0; w < run->spec->workers.target; w++)
        supervisor_start(&run->supervisor, w);
    local_run_expect(run);
    for (int w = 0; w < run->spec->workers.target && !ending(run); w++)
        start_worker(run, w);
}

static void take_ring(struct local_run *run, const struct event *event)
{
    for (int i = 0; i < event->members; i++) {
        int worker = event->member[i].worker;
        if (worker < 0)
            continue;
        supervisor_seen(&run->supervisor, worker);
        run->worker[worker].trainer_pid = event->member[i].trainer_pid;
    }
}

/* One that was stopped is given up with the coordinator's word: should it go on, nobody expects it. */
static void take_loss(struct local_run *run, int worker)
{
    if (!run->worker[worker].stopped)
        return;
    supervisor_stopped(&run->supervisor, worker);
    local_run_expect(run);
}

/* What stands still never hears that it may go. A launcher whose agent has ended goes on to end its program.
 */
static void kill_stopped(struct local_run *run)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct local_run_worker *w = &run->worker[i];
        if (!w->stopped || !w->child)
            continue;
        loop_child_kill(w->child, SIGKILL);
        if (w->stopped_launcher)
            kill((pid_t)w->stopped_launcher, SIGCONT);
        w->stopped_launcher = 0;
    }
}

static void take_end(struct local_run *run, const struct event *event)
{
    local_run_no_more_children(run);
    FAULT("run-ending");
    kill_stopped(run);
    arm_patience(run, for_programs(run, release_patience));
    if (event->kind == EVENT_FAILED && !run->own_exit_code)
        console_say(run->console, "ringmaster: %s", event->text);
    bool same = event->kind == EVENT_FAILED && event->exit_code == run->own_exit_code;
    if (same && run->own_is_vague)
        text_copy(run->own_why, sizeof run->own_why, event->text);
}

static void act_on(struct local_run *run, const struct event *event)
{
    switch (event->kind) {
    case EVENT_LISTENING:
        take_listening(run, event);
        break;
    case EVENT_WORKER_REFUSED:
        if (event->worker >= 0)
            text_copy(run->worker[event->worker].refused, EVENT_TEXT_MAX, event->text);
        break;
    case EVENT_RELEASED:
        supervisor_released(&run->supervisor, event->worker);
        break;
    case EVENT_WORKER_QUARANTINED:
        supervisor_quarantined(&run->supervisor, event->worker);
        break;
    case EVENT_RING_FORMED:
        take_ring(run, event);
        time_drills(run);
        break;
    case EVENT_WORKER_LOST:
        take_loss(run, event->worker);
        break;
    case EVENT_STEP:
        do_drills(run, event->step);
        break;
    case EVENT_FAILED:
    case EVENT_INTERRUPTED:
    case EVENT_COMPLETE:
        take_end(run, event);
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
static void remember_told(struct local_run *run, const struct event *event)
{
    struct local_run_told *t = &run->told;
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
        text_copy(run->saved_uri, sizeof run->saved_uri, event->uri);
    if (event->kind == EVENT_RING_FORMED) {
        run->ring_term = event->term;
        run->ring_generation = event->generation;
        run->reported = false;
    }
    run->reported = run->reported || event->kind == EVENT_PROGRESS;
}

/* A successor repeats the ring that it found, a checkpoint whose telling it did not see, and that one waits.
 */
static bool told_already(const struct local_run *run, const struct event *event)
{
    if (run->term == 1)
        return false;
    if (event->kind == EVENT_RING_FORMED)
        return event->term == run->ring_term && event->generation == run->ring_generation;
    if (event->kind == EVENT_CHECKPOINT_WAITING)
        return run->options->report->store_is_away;
    return event->kind == EVENT_CHECKPOINT_SAVED && !strcmp(event->uri, run->saved_uri);
}

/* Workers take a moment to arrive: that they are waited for is worth a line only after a while. */
static bool starting(struct local_run *run)
{
    const struct report *report = run->options->report;
    return !report->world && loop_now(run->loop) - report->begun < start_patience;
}

static void show_event(struct local_run *run, const struct event *event, const char *text, size_t length)
{
    struct console *console = run->console;
    struct str out = str_init(length + 8192);
    bool final =
        event->kind == EVENT_FAILED || event->kind == EVENT_INTERRUPTED || event->kind == EVENT_COMPLETE;
    if (final && run->own_exit_code)
        return; /* why this program ended the run is told at the end in its place */
    if (console->json && event->kind >= EVENT_SHOWN) {
        str_add(&out, text, length);
        str_adds(&out, "\n");
    } else if (!console->json && !(event->kind == EVENT_WAITING && starting(run)))
        screen_event(run->options->report, event, console->style, &out);
    console_print(console, &out);
    if (event->kind == EVENT_STEP || event->kind == EVENT_PROGRESS)
        console_progress(console, run->options->report, loop_now(run->loop));
    str_clear(&out);
}

static void interrupt(struct local_run *run);

/* A reader that goes away wants no more; any other failure is one of the machine. */
static void output_broken(struct local_run *run)
{
    char why[EVENT_TEXT_MAX];
    if (run->console->reason == EPIPE) {
        interrupt(run);
        return;
    }
    snprintf(why, sizeof why, "standard output can't be written: %s", strerror(run->console->reason));
    give_up(run, EXIT_MACHINE, why);
}

void local_run_event_line(void *ctx, char *text, size_t length)
{
    struct local_run *run = ctx;
    struct event event;
    struct error err = {0};
    run->silent = 0;
    if (event_read(&event, text, length, &err) < 0) {
        if (err.code != ERR_NOT_FOUND)
            console_say(run->console, "ringmaster: the coordinator said what can't be read: %s", err.text);
        return;
    }
    if (!told_already(run, &event)) {
        tell_resumed(run, &event);
        report_take(run->options->report, &event, loop_now(run->loop));
        show_event(run, &event, text, length);
        FAULT("event-shown");
    }
    remember_told(run, &event);
    act_on(run, &event);
    if (run->console->broken && !run->interrupted)
        output_broken(run);
}

void local_run_error_line(void *ctx, char *text, size_t length)
{
    struct local_run *run = ctx;
    console_pass(run->console, text, length);
}

/* --- ends --- */

/* The coordinator ended without a last word: the newest checkpoint is what is left. */
static void coordinator_lost(struct local_run *run, const char *how)
{
    struct checkpoint_list *list = malloc(sizeof *list);
    char why[EVENT_TEXT_MAX], newest[CHECKPOINT_NAME_MAX] = "";
    struct object_store *store = run->options->prepared->store; /* a program may have none */
    if (list && store && checkpoint_list(store, list, NULL) == 0 && list->count)
        text_copy(newest, sizeof newest, list->entry[0].name);
    free(list);
    if (*newest)
        snprintf(why, sizeof why, "the coordinator ended (%s); the same command goes on from %s in %.200s",
                 how, newest, run->spec->checkpoint.uri);
    else
        snprintf(why, sizeof why, "the coordinator ended (%s)%s", how,
                 job_restarts(run->spec) ? "" : "; there is no checkpoint yet");
    give_up(run, EXIT_MACHINE, why);
}

/* Those that were still on their way to the coordinator when it ended look for it in vain. A program that has
 * not come to its trainer yet has no state, and nothing to do after a last step that it was not in. */
static void end_who_never_arrived(struct local_run *run)
{
    bool elastic = job_is_elastic(run->spec);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (run->worker[w].child && !run->supervisor.member[w].released &&
            (elastic || !run->supervisor.member[w].seen))
            loop_child_kill(run->worker[w].child, SIGKILL);
}

/* Training goes on without it; the next one asks the workers how far they are. */
static bool start_successor(struct local_run *run)
{
    struct error err = {0};
    if (!run->coordinator_drilled && ++run->coordinator_failures > run->spec->failure_policy.max_restarts)
        return false;
    run->coordinator_drilled = false;
    if (!run->told.lost_at)
        run->told.lost_at = run->coordinator_ended_at;
    if (local_run_start_coordinator(run, &err) < 0) {
        console_say(run->console, "ringmaster: %s", err.text);
        return false;
    }
    local_run_expect(run);
    if (run->acts.length)
        local_run_command(run, str_text(&run->acts));
    str_reset(&run->acts);
    if (run->interrupted)
        local_run_tell(run, &(struct command){.kind = COMMAND_INTERRUPT});
    return true;
}

/* Once it has ended and all that it wrote is read. */
static void judge_coordinator(struct local_run *run)
{
    char how[sizeof run->coordinator_how];
    text_copy(how, sizeof how, run->coordinator_how);
    *run->coordinator_how = 0;
    if (run->options->report->ended)
        arm_patience(run, for_programs(run, farewell_patience));
    if ((run->interrupted || job_is_elastic(run->spec)) && ending(run))
        end_who_never_arrived(run);
    if (ending(run))
        return;
    if (*run->address && start_successor(run))
        return;
    if (*run->address) {
        coordinator_lost(run, how);
        return;
    }
    run->own_exit_code = run->coordinator_code ? run->coordinator_code : EXIT_MACHINE;
    snprintf(run->own_why, sizeof run->own_why, "the coordinator did not start (%s); its own words are above",
             how);
}

void local_run_coordinator_exited(void *ctx, int code, int signal)
{
    struct local_run *run = ctx;
    loop_child_free(run->coordinator);
    run->coordinator = NULL;
    run->coordinator_code = code;
    run->coordinator_ended_at = clock_now();
    if (signal)
        snprintf(run->coordinator_how, sizeof run->coordinator_how, "signal %d", signal);
    else
        snprintf(run->coordinator_how, sizeof run->coordinator_how, "exit %d", code);
    local_run_check_end(run);
}

void local_run_worker_exited(void *ctx, int code, int signal)
{
    struct local_run_worker *w = ctx;
    struct local_run *run = w->run;
    loop_child_free(w->child);
    w->child = NULL;
    w->trainer_pid = 0;
    struct supervisor_exit exit = {.worker = w->worker, .code = code, .signal = signal};
    struct supervisor_decision decision = supervisor_exited(&run->supervisor, &exit, loop_now(run->loop));
    bool going = !ending(run) && !run->interrupted;
    bool restart = decision.action == SUPERVISOR_RESTART && going;
    if (decision.action == SUPERVISOR_NEXT && going) {
        start_newcomer(run, w->worker);
        return;
    }
    if (restart)
        supervisor_start(&run->supervisor, w->worker);
    local_run_expect(run);
    FAULT("worker-ended");
    if (restart)
        start_worker(run, w->worker);
    else if (decision.action == SUPERVISOR_FAIL) {
        run->own_is_vague = !*w->refused && !run->own_exit_code;
        give_up(run, decision.exit_code, *w->refused ? w->refused : decision.why);
    }
    local_run_check_end(run);
}

/* All processes have ended, those of the workers too (nobody holds the error pipe), and all was read. */
void local_run_check_end(struct local_run *run)
{
    if (run->coordinator || run->events)
        return;
    if (*run->coordinator_how)
        judge_coordinator(run);
    if (run->coordinator || supervisor_living(&run->supervisor))
        return;
    local_run_no_more_children(run);
    arm_patience(run, release_patience);
    if (!run->errors)
        loop_stop(run->loop);
}

/* `timeout` and the like signal a process and its group: one wish that comes twice. */
static void interrupt(struct local_run *run)
{
    rm_time now = loop_now(run->loop);
    if (run->interrupted && now - run->interrupted_at < same_signal)
        return;
    bool at_once = run->interrupted || !*run->address;
    run->interrupted = true;
    run->interrupted_at = now;
    if (at_once) {
        local_run_kill_all(run);
        return;
    }
    if (!run->options->report->ended && !run->console->broken)
        console_say(run->console, "ringmaster: %s; Ctrl-C again ends at once",
                    job_restarts(run->spec) ? "the program is told to end" : "saving a checkpoint");
    local_run_tell(run, &(struct command){.kind = COMMAND_INTERRUPT});
}

static void signal_came(void *ctx, int signo)
{
    (void)signo;
    interrupt(ctx);
}

/* nohup leaves a signal ignored, and then it stays so. */
static bool is_ignored(int signo)
{
    struct sigaction now;
    return sigaction(signo, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static int listen_signals(struct local_run *run, struct error *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (!(signals[i] == SIGHUP && is_ignored(SIGHUP)) &&
            loop_signal_open(&run->signals[i], run->loop, signals[i], signal_came, run, err) < 0)
            return -1;
    if (loop_timer_open(&run->patience, run->loop, patience_over, run, err) < 0 ||
        loop_timer_open(&run->watch, run->loop, watch_coordinator, run, err) < 0 ||
        loop_timer_open(&run->drill_timer, run->loop, do_timed_drills, run, err) < 0)
        return -1;
    watch_coordinator(run);
    return 0;
}

static int exit_code_of(struct local_run *run)
{
    const struct report *report = run->options->report;
    if (run->own_exit_code) {
        console_say(run->console, "ringmaster: %s", run->own_why);
        tell_failed(run, run->own_why, run->own_exit_code);
        return run->own_exit_code;
    }
    if (!report->ended) {
        console_say(run->console, "ringmaster: ended at once%s",
                    job_restarts(run->spec) ? "" : "; nothing was saved since the last checkpoint");
        return EXIT_INTERRUPTED;
    }
    if (report->end.kind == EVENT_INTERRUPTED) {
        if (job_restarts(run->spec))
            console_say(run->console, "ringmaster: interrupted; the program was told to end");
        else if (report->end.step > 0)
            console_say(run->console,
                        "ringmaster: interrupted at step %lld, checkpoint saved; the same command goes on",
                        (long long)report->end.step);
        else
            console_say(run->console,
                        "ringmaster: interrupted before the first step: nothing was there to save");
        return EXIT_INTERRUPTED;
    }
    return report->end.kind == EVENT_COMPLETE ? EXIT_DONE : report->end.exit_code;
}

int local_run_to_its_end(const struct local_run_options *options, struct error *err)
{
    struct local_run *run = calloc(1, sizeof *run);
    const struct job_spec *spec = &options->prepared->spec;
    if (!run)
        return err_set(err, ERR_MACHINE, "no memory for a run");
    run->options = options;
    run->spec = spec;
    run->console = options->console;
    run->told = (struct local_run_told){.step = -1, .evaluated = -1, .saved = -1, .saves = {-1}};
    run->acts = str_init(1 << 16);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        run->worker[w] = (struct local_run_worker){.run = run, .worker = w};
    supervisor_init(&run->supervisor, spec->workers.max, spec->failure_policy.max_restarts,
                    spec->failure_policy.within);
    int code = -1;
    if (local_run_open(run, err) == 0 && listen_signals(run, err) == 0 &&
        local_run_start_coordinator(run, err) == 0) {
        loop_run(run->loop);
        code = exit_code_of(run);
    }
    local_run_close(run);
    free(run);
    return code;
}
