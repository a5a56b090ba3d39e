/* Reads drills, plays them through against the job before it runs, and hands out those whose step or time
 * has come. */
#include "cli/core/drill.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/near.h"
#include "common/base/prng.h"
#include "common/base/str.h"
#include "common/job/field.h"

static const struct {
    const char *name;
    enum cause cause;
} kinds[] = {
    [DRILL_KILL] = {"kill", CAUSE_WORKER_LOST},
    [DRILL_TRAINER] = {"trainer", CAUSE_TRAINER_EXIT},
    [DRILL_TERM] = {"term", CAUSE_WORKER_LEFT},
    [DRILL_JOIN] = {"join", CAUSE_WORKER_JOINED},
    [DRILL_COORDINATOR] = {"coordinator", CAUSE_COORDINATOR_LOST},
    [DRILL_STOP] = {"stop", CAUSE_WORKER_LOST},
    [DRILL_HANG] = {"hang", CAUSE_HANG},
    [DRILL_CORRUPT] = {"corrupt", CAUSE_RING_ERROR},
};

enum { KINDS = sizeof kinds / sizeof *kinds, KINDS_DRAWN = DRILL_CORRUPT };

enum cause drill_cause(enum drill_kind kind)
{
    RM_ASSERT((unsigned)kind < KINDS, "a drill of kind %d", (int)kind);
    return kinds[kind].cause;
}

/* A whole number of at most `highest` and what follows it; false where there is none. */
static bool read_number(const char **at, int64_t highest, int64_t *ret)
{
    RM_ASSERT(highest > 0, "a number up to %lld", (long long)highest);
    if (**at < '0' || **at > '9')
        return false;
    char *end;
    errno = 0;
    *ret = strtoll(*at, &end, 10);
    *at = end;
    return !errno && *ret <= highest;
}

static bool names_worker(enum drill_kind kind)
{
    RM_ASSERT((unsigned)kind < KINDS, "a drill of kind %d", (int)kind);
    return kind != DRILL_JOIN && kind != DRILL_COORDINATOR;
}

/* Whether the worker is gone for good after it. */
static bool drill_takes(enum drill_kind kind)
{
    RM_ASSERT((unsigned)kind < KINDS, "a drill of kind %d", (int)kind);
    return kind == DRILL_KILL || kind == DRILL_TERM || kind == DRILL_STOP;
}

static int refuse_form(const char *text, struct error *err)
{
    return err_set(err, ERR_USAGE,
                   "--drill %.60s: write kill:W@S, trainer:W@S, term:W@S, stop:W@S, hang:W@S, corrupt:W@S, "
                   "join@S, coordinator@S or random:SEED (worker W, step S or a time as 20s or 1.5s)",
                   text);
}

/* The first word of it is none of ours. */
static int refuse_kind(const char *text, struct error *err)
{
    char word[DRILL_TEXT_MAX];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, ":@"), text);
    struct near near = near_to(word);
    for (int i = 0; i < KINDS; i++)
        near_try(&near, kinds[i].name, strlen(kinds[i].name));
    near_try(&near, "random", strlen("random"));
    if (!*near.best || !strcmp(near.best, word))
        return refuse_form(text, err);
    return err_set(err, ERR_USAGE, "--drill %.60s: %.40s is not a drill%s", text, word, near.question);
}

static int add_random(struct drill_list *list, const char *text, struct error *err)
{
    const char *at = text + strlen("random:");
    int64_t seed;
    if (!read_number(&at, INT64_MAX, &seed) || *at)
        return refuse_form(text, err);
    list->random = true;
    list->seed = (uint64_t)seed;
    return 0;
}

/* "1.5s": seconds with up to nine digits behind the point. */
static bool read_fraction(const char *at, rm_time *ret)
{
    int64_t whole, rest;
    const int64_t most = INT64_MAX / RM_S - 1;
    if (!read_number(&at, most, &whole) || *at++ != '.')
        return false;
    const char *behind = at;
    if (!read_number(&at, RM_S - 1, &rest) || at - behind > 9 || strcmp(at, "s") != 0)
        return false;
    for (ptrdiff_t digits = at - behind; digits < 9; digits++)
        rest *= 10;
    *ret = whole * RM_S + rest;
    return true;
}

/* "20" is a step, "20s" a time. */
static bool read_moment(const char *at, struct drill *ret)
{
    const char *rest = at;
    if (read_number(&rest, INT64_MAX, &ret->step) && !*rest)
        return true;
    ret->step = 0;
    return (read_fraction(at, &ret->after) || duration_parse(at, &ret->after)) && ret->after > 0;
}

int drill_add(struct drill_list *list, const char *text, struct error *err)
{
    if (!strncmp(text, "random:", 7))
        return add_random(list, text, err);
    int kind = 0;
    size_t length = strcspn(text, ":@");
    while (kind < KINDS && (strlen(kinds[kind].name) != length || strncmp(kinds[kind].name, text, length)))
        kind++;
    if (kind == KINDS)
        return refuse_kind(text, err);
    int64_t worker = -1;
    struct drill drill = {.kind = (enum drill_kind)kind};
    const char *at = text + length;
    if (names_worker((enum drill_kind)kind) &&
        (*at++ != ':' || !read_number(&at, RM_WORKERS_MAX - 1, &worker)))
        return refuse_form(text, err);
    if (*at++ != '@' || !read_moment(at, &drill) || strlen(text) >= DRILL_TEXT_MAX)
        return refuse_form(text, err);
    if (list->count && list->timed != (drill.after > 0))
        return err_set(err, ERR_USAGE, "--drill %s: a history has steps or times, not both", text);
    if (list->count == DRILLS_MAX)
        return err_set(err, ERR_USAGE, "--drill %s: more than %d drills", text, DRILLS_MAX);
    list->timed = drill.after > 0;
    drill.worker = (int)worker;
    text_copy(drill.spec, sizeof drill.spec, text);
    RM_ASSERT(list->count < DRILLS_MAX && (drill.worker >= 0) == names_worker(drill.kind),
              "drill %d, %s, is on worker %d", list->count, drill.spec, drill.worker);
    list->drill[list->count++] = drill;
    return 0;
}

/* The workers that live at a moment of the history. */
struct living {
    bool worker[RM_WORKERS_MAX];
    bool stopped[RM_WORKERS_MAX]; /* stands still and keeps its index */
    int count;
};

static void living_set(struct living *living, int worker, bool alive)
{
    living->count += alive - living->worker[worker];
    living->worker[worker] = alive;
    RM_ASSERT(living->count >= 0 && living->count <= RM_WORKERS_MAX, "%d workers live", living->count);
}

static int lowest_free(const struct living *living, int max)
{
    RM_ASSERT(max >= 1 && max <= RM_WORKERS_MAX, "a place among %d", max);
    for (int w = 0; w < max; w++)
        if (!living->worker[w] && !living->stopped[w])
            return w;
    return -1;
}

static int check_moment(const struct drill *drill, const struct drill_terms *terms, struct error *err)
{
    if (drill->after)
        return 0;
    if (!terms->steps)
        return err_set(err, ERR_USAGE,
                       "--drill %s: nobody knows a program's steps; write a time, as %.*s@20s", drill->spec,
                       (int)strcspn(drill->spec, "@"), drill->spec);
    if (drill->step < 1 || drill->step >= terms->steps)
        return err_set(err, ERR_USAGE, "--drill %s: the step must be from 1 to %lld, one before the last",
                       drill->spec, (long long)terms->steps - 1);
    if (drill->step <= terms->resume_step)
        return err_set(err, ERR_USAGE,
                       "--drill %s: training goes on from step %lld; choose a later step, or --overwrite",
                       drill->spec, (long long)terms->resume_step);
    return 0;
}

static int play(const struct drill *drill, const struct drill_terms *terms, struct living *living,
                struct error *err)
{
    if (check_moment(drill, terms, err) < 0)
        return -1;
    if (drill->kind == DRILL_JOIN) {
        int w = lowest_free(living, terms->workers_max);
        if (w < 0)
            return err_set(
                err, ERR_USAGE,
                "--drill %s: that would be more workers at once than spec.workers.max (%d); raise it",
                drill->spec, terms->workers_max);
        living_set(living, w, true);
        return 0;
    }
    if (drill->kind == DRILL_COORDINATOR)
        return 0;
    if (drill->kind == DRILL_CORRUPT && !terms->proven)
        return err_set(err, ERR_USAGE,
                       "--drill %s: nobody would see it: only sums of whole numbers are proven, those of "
                       "spec.trainer.reduction: exact, also of a program in mode Elastic",
                       drill->spec);
    RM_ASSERT(drill->worker >= 0 && drill->worker < RM_WORKERS_MAX, "drill %s is on worker %d", drill->spec,
              drill->worker);
    if (!living->worker[drill->worker])
        return err_set(err, ERR_USAGE, "--drill %s: there is no worker %d at %s%s", drill->spec,
                       drill->worker, drill->after ? "" : "step ", strchr(drill->spec, '@') + 1);
    if (drill_takes(drill->kind))
        living_set(living, drill->worker, false);
    living->stopped[drill->worker] = living->stopped[drill->worker] || drill->kind == DRILL_STOP;
    return 0;
}

static int pick_living(const struct living *living, uint64_t *rng)
{
    int skip = (int)prng_below(rng, (uint64_t)living->count);
    RM_ASSERT(living->count > 0, "one of %d that live", living->count);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (living->worker[w] && skip-- == 0)
            return w;
    return -1;
}

static void draw_one(struct drill *drill, const struct drill_terms *terms, struct living *living,
                     uint64_t *rng)
{
    bool may_lose = living->count > terms->workers_min,
         may_join = lowest_free(living, terms->workers_max) >= 0;
    enum drill_kind kind = (enum drill_kind)prng_below(rng, KINDS_DRAWN);
    if (kind == DRILL_JOIN && !may_join)
        kind = DRILL_TRAINER;
    if (drill_takes(kind) && !may_lose)
        kind = may_join ? DRILL_JOIN : DRILL_TRAINER;
    drill->kind = kind;
    drill->worker = -1;
    if (kind == DRILL_JOIN) {
        living_set(living, lowest_free(living, terms->workers_max), true);
        snprintf(drill->spec, sizeof drill->spec, "join@%lld", (long long)drill->step);
        return;
    }
    if (kind == DRILL_COORDINATOR) {
        snprintf(drill->spec, sizeof drill->spec, "coordinator@%lld", (long long)drill->step);
        return;
    }
    drill->worker = pick_living(living, rng);
    RM_ASSERT(drill->worker >= 0 && living->worker[drill->worker],
              "a drill on worker %d, which does not live", drill->worker);
    if (drill_takes(kind))
        living_set(living, drill->worker, false);
    living->stopped[drill->worker] = living->stopped[drill->worker] || kind == DRILL_STOP;
    snprintf(drill->spec, sizeof drill->spec, "%s:%d@%lld", kinds[kind].name, drill->worker,
             (long long)drill->step);
}

/* Three to ten drills at random steps, as many as there are steps for. */
static void draw(struct drill_list *list, const struct drill_terms *terms, struct living living)
{
    uint64_t rng = list->seed;
    int64_t first = terms->resume_step + 1, room = terms->steps - first;
    int count = (int)(3 + prng_below(&rng, 8));
    list->count = room < 1 ? 0 : count > room ? (int)room : count;
    for (int i = 0; i < list->count; i++) {
        /* Part i of the way, so that steps come out in order and spread over the run. */
        int64_t from = first + room * i / list->count, to = first + room * (i + 1) / list->count;
        list->drill[i].step = from + (int64_t)prng_below(&rng, (uint64_t)(to - from));
        draw_one(&list->drill[i], terms, &living, &rng);
    }
    RM_ASSERT(list->count >= 0 && list->count <= DRILLS_MAX, "%d drills", list->count);
}

static bool later(const struct drill *a, const struct drill *b)
{
    return a->after != b->after ? a->after > b->after : a->step > b->step;
}

/* Insertion: few drills, and those of one step keep their order. */
static void sort(struct drill_list *list)
{
    RM_ASSERT(list->count >= 0 && list->count <= DRILLS_MAX, "%d drills", list->count);
    for (int i = 1; i < list->count; i++) {
        struct drill moved = list->drill[i];
        int j = i;
        for (; j > 0 && later(&list->drill[j - 1], &moved); j--)
            list->drill[j] = list->drill[j - 1];
        list->drill[j] = moved;
    }
}

int drill_list_check(struct drill_list *list, const struct drill_terms *terms, struct error *err)
{
    struct living living = {0};
    for (int w = 0; w < terms->workers_target; w++)
        living_set(&living, w, true);
    if (list->random && list->count)
        return err_set(err, ERR_USAGE,
                       "--drill random:%llu: a random history stands alone; leave out the other drills",
                       (unsigned long long)list->seed);
    if (list->random && !terms->steps)
        return err_set(
            err, ERR_USAGE,
            "--drill random:%llu: a random history is made of steps, and nobody knows a program's; write "
            "drills with times, as kill:1@20s",
            (unsigned long long)list->seed);
    if (list->random)
        draw(list, terms, living);
    sort(list);
    for (int i = 0; i < list->count; i++)
        if (play(&list->drill[i], terms, &living, err) < 0)
            return -1;
    list->next = 0;
    return 0;
}

const struct drill *drill_due(struct drill_list *list, int64_t step)
{
    RM_ASSERT(list->next >= 0 && list->next <= list->count, "drill %d of %d is next", list->next,
              list->count);
    if (list->timed || list->next == list->count || list->drill[list->next].step > step)
        return NULL;
    return &list->drill[list->next++];
}

const struct drill *drill_due_after(struct drill_list *list, rm_time elapsed)
{
    return drill_next_after(list) > elapsed ? NULL : &list->drill[list->next++];
}

rm_time drill_next_after(const struct drill_list *list)
{
    RM_ASSERT(list->next >= 0 && list->next <= list->count, "drill %d of %d is next", list->next,
              list->count);
    return list->timed && list->next < list->count ? list->drill[list->next].after : RM_NEVER;
}
