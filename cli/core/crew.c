#include "cli/core/crew.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/exit_code.h"
#include "common/wire/command.h"

void crew_init(struct crew *crew, int workers_max, int restarts_max, rm_time within)
{
    *crew = (struct crew){.workers_max = workers_max, .restarts_max = restarts_max, .within = within};
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        crew->member[w].attempt = -1;
}

static bool is_free(const struct crew_member *m)
{
    bool going = m->drilled && !m->promised && !m->stands;
    return !m->quarantined && (!m->alive || going);
}

int crew_free_index(const struct crew *crew)
{
    for (int w = 0; w < crew->workers_max; w++)
        if (is_free(&crew->member[w]))
            return w;
    return -1;
}

void crew_promise(struct crew *crew, int worker)
{
    RM_ASSERT(crew->member[worker].alive, "the index of worker %d is promised, and free", worker);
    crew->member[worker].promised = true;
}

int crew_start(struct crew *crew, int worker)
{
    struct crew_member *m = &crew->member[worker];
    RM_ASSERT(worker >= 0 && worker < crew->workers_max, "worker %d of %d", worker, crew->workers_max);
    RM_ASSERT(!m->alive && !m->quarantined, "worker %d is started, and %s", worker,
              m->alive ? "lives" : "is in quarantine");
    *m = (struct crew_member){.alive = true, .attempt = m->attempt + 1};
    return m->attempt;
}

void crew_drilled(struct crew *crew, int worker)
{
    crew->member[worker].drilled = true;
}

void crew_stopped(struct crew *crew, int worker)
{
    crew->member[worker].stopped = true;
}

void crew_seen(struct crew *crew, int worker)
{
    if (worker >= 0 && worker < RM_WORKERS_MAX)
        crew->member[worker].seen = true;
}

void crew_released(struct crew *crew, int worker)
{
    if (worker >= 0 && worker < RM_WORKERS_MAX)
        crew->member[worker].released = true;
}

void crew_quarantined(struct crew *crew, int worker)
{
    if (worker < 0 || worker >= RM_WORKERS_MAX)
        return;
    crew->member[worker].quarantined = true;
    crew->unseen = 0; /* what it did is dealt with */
}

int crew_living(const struct crew *crew)
{
    int count = 0;
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        count += crew->member[w].alive;
    return count;
}

static void describe(const struct crew_exit *exit, char *out, size_t size)
{
    if (exit->signal)
        snprintf(out, size, "signal %d", exit->signal);
    else
        snprintf(out, size, "exit %d", exit->code);
}

static void fail(struct crew_decision *d, int exit_code, const char *why)
{
    d->verdict = CREW_FAIL;
    d->exit_code = exit_code;
    text_copy(d->why, sizeof d->why, why);
}

static void count_unseen(struct crew *crew, const struct crew_exit *exit, rm_time now,
                         struct crew_decision *d)
{
    if (!crew->unseen || now - crew->unseen_since > crew->within) {
        crew->unseen = 0;
        crew->unseen_since = now;
    }
    if (++crew->unseen <= crew->restarts_max + 1)
        return;
    char how[32], why[RM_WHY_MAX];
    describe(exit, how, sizeof how);
    snprintf(why, sizeof why,
             "workers ended %d times before they could join (worker %d, %s), more than "
             "failurePolicy.maxRestarts (%d)",
             crew->unseen, exit->worker, how, crew->restarts_max);
    fail(d, EXIT_TRAINING, why);
}

struct crew_decision crew_exited(struct crew *crew, const struct crew_exit *exit, rm_time now)
{
    struct crew_decision d = {.verdict = CREW_RESTART};
    struct crew_member *m = &crew->member[exit->worker];
    char how[32], why[RM_WHY_MAX];
    RM_ASSERT(m->alive, "worker %d ended twice (attempt %d)", exit->worker, m->attempt);
    m->alive = false;
    describe(exit, how, sizeof how);
    bool left = !exit->signal && exit->code == EXIT_DONE;
    if (m->drilled || m->released || m->quarantined || left) {
        d.verdict = m->promised ? CREW_NEXT : CREW_GONE;
        return d;
    }
    /* The job file or the data is at fault: another attempt would end the same way. */
    if (!exit->signal && (exit->code == EXIT_USAGE || exit->code == EXIT_DATA)) {
        snprintf(why, sizeof why, "worker %d can't go on (%s); its own words are above", exit->worker, how);
        fail(&d, exit->code, why);
        return d;
    }
    if (!m->seen)
        count_unseen(crew, exit, now, &d);
    return d;
}

void crew_expect(const struct crew *crew, struct str *out)
{
    struct command command = {.kind = COMMAND_EXPECT};
    struct command_expect *expect = &command.expect;
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (crew->member[w].alive && !crew->member[w].stopped)
            expect->worker[expect->count++] = (struct command_worker){
                .worker = w, .attempt = crew->member[w].attempt, .next = crew->member[w].promised};
    command_print(&command, out);
}
