#include "cli/core/supervisor.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/exit_code.h"
#include "common/wire/command.h"

void supervisor_init(struct supervisor *supervisor, int workers_max, int restarts_max, rm_time within)
{
    RM_ASSERT(workers_max >= 1 && workers_max <= RM_WORKERS_MAX && restarts_max >= 0,
              "%d workers, %d restarts", workers_max, restarts_max);
    *supervisor =
        (struct supervisor){.workers_max = workers_max, .restarts_max = restarts_max, .within = within};
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        supervisor->member[w].attempt = -1;
}

static bool is_free(const struct supervised_worker *m)
{
    bool going = m->drilled && !m->promised && !m->stands;
    return !m->quarantined && (!m->alive || going);
}

int supervisor_free_index(const struct supervisor *supervisor)
{
    RM_ASSERT(supervisor->workers_max >= 1 && supervisor->workers_max <= RM_WORKERS_MAX, "a place among %d",
              supervisor->workers_max);
    for (int w = 0; w < supervisor->workers_max; w++)
        if (is_free(&supervisor->member[w]))
            return w;
    return -1;
}

void supervisor_promise(struct supervisor *supervisor, int worker)
{
    RM_ASSERT(supervisor->member[worker].alive, "the index of worker %d is promised, and free", worker);
    supervisor->member[worker].promised = true;
}

int supervisor_start(struct supervisor *supervisor, int worker)
{
    struct supervised_worker *m = &supervisor->member[worker];
    RM_ASSERT(worker >= 0 && worker < supervisor->workers_max, "worker %d of %d", worker,
              supervisor->workers_max);
    RM_ASSERT(!m->alive && !m->quarantined, "worker %d is started, and %s", worker,
              m->alive ? "lives" : "is in quarantine");
    *m = (struct supervised_worker){.alive = true, .attempt = m->attempt + 1};
    return m->attempt;
}

void supervisor_drilled(struct supervisor *supervisor, int worker)
{
    RM_ASSERT(worker >= 0 && worker < supervisor->workers_max, "a drill on worker %d of %d", worker,
              supervisor->workers_max);
    supervisor->member[worker].drilled = true;
}

void supervisor_stopped(struct supervisor *supervisor, int worker)
{
    RM_ASSERT(worker >= 0 && worker < supervisor->workers_max, "worker %d of %d is stopped", worker,
              supervisor->workers_max);
    supervisor->member[worker].stopped = true;
}

void supervisor_seen(struct supervisor *supervisor, int worker)
{
    if (worker >= 0 && worker < RM_WORKERS_MAX)
        supervisor->member[worker].seen = true;
}

void supervisor_released(struct supervisor *supervisor, int worker)
{
    if (worker >= 0 && worker < RM_WORKERS_MAX)
        supervisor->member[worker].released = true;
}

void supervisor_quarantined(struct supervisor *supervisor, int worker)
{
    if (worker < 0 || worker >= RM_WORKERS_MAX)
        return;
    supervisor->member[worker].quarantined = true;
    supervisor->unseen = 0; /* what it did is dealt with */
}

int supervisor_living(const struct supervisor *supervisor)
{
    int count = 0;
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        count += supervisor->member[w].alive;
    RM_ASSERT(count <= RM_WORKERS_MAX, "%d workers live", count);
    return count;
}

static void describe_exit(const struct supervisor_exit *exit, char *out, size_t size)
{
    if (exit->signal)
        snprintf(out, size, "signal %d", exit->signal);
    else
        snprintf(out, size, "exit %d", exit->code);
}

static void fail_run(struct supervisor_decision *d, int exit_code, const char *why)
{
    RM_ASSERT(exit_code != EXIT_DONE && *why, "a run fails with the code of one that is done: %s", why);
    d->action = SUPERVISOR_FAIL;
    d->exit_code = exit_code;
    text_copy(d->why, sizeof d->why, why);
}

static void count_unseen(struct supervisor *supervisor, const struct supervisor_exit *exit, rm_time now,
                         struct supervisor_decision *d)
{
    RM_ASSERT(supervisor->unseen >= 0 && !supervisor->member[exit->worker].seen,
              "worker %d is unseen, and was seen", exit->worker);
    if (!supervisor->unseen || now - supervisor->unseen_since > supervisor->within) {
        supervisor->unseen = 0;
        supervisor->unseen_since = now;
    }
    if (++supervisor->unseen <= supervisor->restarts_max + 1)
        return;
    char how[32], why[RM_WHY_MAX];
    describe_exit(exit, how, sizeof how);
    snprintf(why, sizeof why,
             "workers ended %d times before they could join (worker %d, %s), more than "
             "failurePolicy.maxRestarts (%d)",
             supervisor->unseen, exit->worker, how, supervisor->restarts_max);
    fail_run(d, EXIT_TRAINING, why);
}

struct supervisor_decision supervisor_exited(struct supervisor *supervisor,
                                             const struct supervisor_exit *exit, rm_time now)
{
    struct supervisor_decision d = {.action = SUPERVISOR_RESTART};
    struct supervised_worker *m = &supervisor->member[exit->worker];
    char how[32], why[RM_WHY_MAX];
    RM_ASSERT(m->alive, "worker %d ended twice (attempt %d)", exit->worker, m->attempt);
    m->alive = false;
    describe_exit(exit, how, sizeof how);
    bool left = !exit->signal && exit->code == EXIT_DONE;
    if (m->drilled || m->released || m->quarantined || left) {
        d.action = m->promised && !m->quarantined ? SUPERVISOR_NEXT : SUPERVISOR_GONE;
        return d;
    }
    /* The job file or the data is at fault: another attempt would end the same way. */
    if (!exit->signal && (exit->code == EXIT_USAGE || exit->code == EXIT_DATA)) {
        snprintf(why, sizeof why, "worker %d can't go on (%s); its own words are above", exit->worker, how);
        fail_run(&d, exit->code, why);
        return d;
    }
    if (!m->seen)
        count_unseen(supervisor, exit, now, &d);
    return d;
}

void supervisor_expect(const struct supervisor *supervisor, struct str *out)
{
    struct command command = {.kind = COMMAND_EXPECT};
    struct command_expect *expect = &command.expect;
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (supervisor->member[w].alive && !supervisor->member[w].stopped)
            expect->worker[expect->count++] =
                (struct command_worker){.worker = w,
                                        .attempt = supervisor->member[w].attempt,
                                        .next = supervisor->member[w].promised};
    RM_ASSERT(expect->count <= supervisor_living(supervisor), "%d workers are expected, and %d live",
              expect->count, supervisor_living(supervisor));
    command_print(&command, out);
}
