/* The table of faults itself, what its rows say in words, and the pauses of who is asked again. */
#include "coordinator/core/rdzv_fault.h"

#include "common/base/assert.h"
#include "common/base/exit_code.h"

enum { PAUSE_MOST_S = 30 };

/* When what a row says is done: until then it waits, with its back-off. */
enum bound {
    AT_ONCE,
    AFTER_30_S,
    AFTER_PATIENCE, /* checkpoint.endTimeout in a run; never in pods */
    AT_ONCE_IN_RUN, /* in pods it is left out instead: others, of which none has come yet, may be able to */
};

struct rule {
    enum fault_remedy others_can, nobody_can;
    enum bound others_bound, nobody_bound;
    bool all_end_it; /* the same from all is the job's */
};

#define PATIENT                                                                                              \
    {                                                                                                        \
        .others_can = FAULT_LEAVES_OUT, .others_bound = AFTER_30_S, .nobody_can = FAULT_ENDS,                \
        .nobody_bound = AFTER_PATIENCE                                                                       \
    }
#define MISFIT                                                                                               \
    {                                                                                                        \
        .others_can = FAULT_LEAVES_OUT, .nobody_can = FAULT_ENDS, .nobody_bound = AT_ONCE_IN_RUN,            \
        .all_end_it = true                                                                                   \
    }
#define SAID_BY_ALL                                                                                          \
    {                                                                                                        \
        .others_can = FAULT_LEAVES_OUT, .others_bound = AFTER_30_S, .nobody_can = FAULT_ENDS,                \
        .nobody_bound = AFTER_PATIENCE, .all_end_it = true                                                   \
    }
#define HANDED_ON                                                                                            \
    {                                                                                                        \
        .others_can = FAULT_ANOTHER, .nobody_can = FAULT_ENDS, .nobody_bound = AFTER_PATIENCE                \
    }
/* A place that can be none, say, becomes one for nobody. */
#define HANDED_ON_BUT_BY_ALL                                                                                 \
    {                                                                                                        \
        .others_can = FAULT_ANOTHER, .nobody_can = FAULT_ENDS, .nobody_bound = AFTER_PATIENCE,               \
        .all_end_it = true                                                                                   \
    }
/* Training goes on meanwhile, so that only time is lost where nobody can; but one alone holds up the
 * checkpoints of all. */
#define BESIDE                                                                                               \
    {                                                                                                        \
        .others_can = FAULT_LEAVES_OUT, .others_bound = AFTER_30_S, .nobody_can = FAULT_WAITS                \
    }
/* A machine that can't work is left out at once: it says so itself, and its worker may be had elsewhere. */
#define UNFIT                                                                                                \
    {                                                                                                        \
        .others_can = FAULT_LEAVES_OUT, .nobody_can = FAULT_LEAVES_OUT, .all_end_it = true                   \
    }

static const struct rule rules[FAULT_PLACES][FAULT_CLASSES] = {
    [FAULT_IN_LIST] = {[CLASS_UNKNOWN] = PATIENT,
                       [CLASS_PASSING] = PATIENT,
                       [CLASS_MACHINE] = PATIENT,
                       [CLASS_PAIR] = PATIENT,
                       [CLASS_OBJECT] = SAID_BY_ALL,
                       [CLASS_SOURCE] = PATIENT,
                       [CLASS_SOFTWARE] = MISFIT,
                       [CLASS_JOB] = SAID_BY_ALL,
                       [CLASS_DEVICE] = PATIENT},
    [FAULT_IN_LOAD] = {[CLASS_UNKNOWN] = PATIENT,
                       [CLASS_PASSING] = PATIENT,
                       [CLASS_MACHINE] = PATIENT,
                       [CLASS_PAIR] = PATIENT,
                       [CLASS_OBJECT] = PATIENT,
                       [CLASS_SOURCE] = PATIENT,
                       [CLASS_SOFTWARE] = MISFIT,
                       [CLASS_JOB] = SAID_BY_ALL,
                       [CLASS_DEVICE] = PATIENT},
    [FAULT_IN_SAVE] = {[CLASS_UNKNOWN] = HANDED_ON,
                       [CLASS_PASSING] = HANDED_ON,
                       [CLASS_MACHINE] = HANDED_ON,
                       [CLASS_PAIR] = HANDED_ON,
                       [CLASS_OBJECT] = HANDED_ON,
                       [CLASS_SOURCE] = HANDED_ON,
                       [CLASS_SOFTWARE] = HANDED_ON,
                       [CLASS_JOB] = HANDED_ON_BUT_BY_ALL,
                       [CLASS_DEVICE] = HANDED_ON},
    [FAULT_IN_SLICE] = {[CLASS_UNKNOWN] = BESIDE,
                        [CLASS_PASSING] = BESIDE,
                        [CLASS_MACHINE] = BESIDE,
                        [CLASS_PAIR] = BESIDE,
                        [CLASS_OBJECT] = BESIDE,
                        [CLASS_SOURCE] = BESIDE,
                        [CLASS_SOFTWARE] = BESIDE,
                        [CLASS_JOB] = BESIDE,
                        [CLASS_DEVICE] = BESIDE},
    [FAULT_IN_WORK] = {[CLASS_UNKNOWN] = UNFIT,
                       [CLASS_PASSING] = PATIENT,
                       [CLASS_MACHINE] = UNFIT,
                       [CLASS_PAIR] = PATIENT,
                       [CLASS_OBJECT] = UNFIT,
                       [CLASS_SOURCE] = PATIENT,
                       [CLASS_SOFTWARE] = UNFIT,
                       [CLASS_JOB] = UNFIT,
                       [CLASS_DEVICE] = PATIENT},
};

rm_time fault_pause(int times)
{
    RM_ASSERT(times >= 1, "a pause after %d failures", times);
    return rm_backoff(RM_S, PAUSE_MOST_S * RM_S, times - 1);
}

static bool is_due(const struct fault_facts *f, enum bound bound)
{
    RM_ASSERT((unsigned)bound <= AT_ONCE_IN_RUN, "a fault has bound %d", (int)bound);
    switch (bound) {
    case AT_ONCE:
    case AT_ONCE_IN_RUN:
        return true;
    case AFTER_30_S:
        return f->lasted >= FAULT_PATIENCE;
    default:
        return !f->unsupervised && f->lasted >= f->patience;
    }
}

/* One alone keeps all from saving, and is needed to go on. In pods another one may come elsewhere; until it
 * does, those who stay save what they hold, which is the first checkpoint since. */
static bool gives_up_its_place(const struct fault_facts *f)
{
    return f->where == FAULT_IN_SLICE && f->scarce && f->unsupervised && f->lasted >= f->patience;
}

static enum fault_remedy remedy_of(const struct fault_facts *f)
{
    const struct rule *r = &rules[f->where][f->class];
    RM_ASSERT((unsigned)f->where < FAULT_PLACES && (unsigned)f->class < FAULT_CLASSES && f->lasted >= 0,
              "a fault of place %d, class %d, for %lld ns", (int)f->where, (int)f->class,
              (long long)f->lasted);
    if (f->where == FAULT_IN_LOAD && f->class == CLASS_OBJECT && f->proven)
        return FAULT_REFUSES;
    if (f->where == FAULT_IN_LIST && f->class == CLASS_OBJECT && f->proven)
        return FAULT_ENDS; /* every checkpoint is damaged */
    bool saves = f->where == FAULT_IN_SAVE || f->where == FAULT_IN_SLICE;
    if (f->first && f->person && !saves)
        return FAULT_ENDS;
    if (f->all_say_so && r->all_end_it)
        return FAULT_ENDS;
    if (f->refused && !f->others_can)
        return FAULT_ENDS;
    if (f->where == FAULT_IN_LOAD && f->class == CLASS_OBJECT && f->times == 1)
        return FAULT_ANOTHER;
    if (gives_up_its_place(f))
        return FAULT_LEAVES_OUT;
    if (f->others_can)
        return is_due(f, r->others_bound) ? r->others_can : FAULT_WAITS;
    if (r->nobody_bound == AT_ONCE_IN_RUN && f->unsupervised)
        return FAULT_LEAVES_OUT;
    return is_due(f, r->nobody_bound) ? r->nobody_can : FAULT_WAITS;
}

struct fault_decision fault_decide(const struct fault_facts *f)
{
    RM_ASSERT(f->times >= 1, "what is done after %d failures", f->times);
    return (struct fault_decision){.remedy = remedy_of(f),
                                   .pause = fault_pause(f->times),
                                   .exit_code = f->exit_code ? f->exit_code : EXIT_MACHINE};
}

/* ---- the page ---- */

static const char *const places[FAULT_PLACES] = {"listing checkpoints", "loading one", "saving one",
                                                 "saving one while training", "the trainer's own work"};

static const char *remedy_words(enum fault_remedy remedy)
{
    static const char *const words[] = {"waits", "another one does it", "this worker is left out",
                                        "the checkpoint is refused", "the job ends"};
    RM_ASSERT((unsigned)remedy < sizeof words / sizeof *words, "remedy %d has no words", (int)remedy);
    return words[remedy];
}

static const char *after(enum bound bound)
{
    static const char *const words[] = {"at once", "after 30 s",
                                        "after `checkpoint.endTimeout` of a run; never in pods",
                                        "at once in a run; in pods this worker is left out"};
    RM_ASSERT((unsigned)bound < sizeof words / sizeof *words, "bound %d has no words", (int)bound);
    return words[bound];
}

static bool same_rule(const struct rule *a, const struct rule *b)
{
    return a->others_can == b->others_can && a->nobody_can == b->nobody_can &&
           a->others_bound == b->others_bound && a->nobody_bound == b->nobody_bound &&
           a->all_end_it == b->all_end_it;
}

/* Classes with one rule share a line. */
static void print_place(enum fault_where where, struct str *out)
{
    RM_ASSERT((unsigned)where < FAULT_PLACES, "place %d has no row", (int)where);
    for (int c = 0; c < FAULT_CLASSES; c++) {
        const struct rule *r = &rules[where][c];
        bool printed = false;
        for (int before = 0; before < c; before++)
            printed = printed || same_rule(&rules[where][before], r);
        if (printed)
            continue;
        str_addf(out, "| %s | %s", places[where], fault_class_names[c]);
        for (int more = c + 1; more < FAULT_CLASSES; more++) {
            if (same_rule(&rules[where][more], r))
                str_addf(out, ", %s", fault_class_names[more]);
        }
        str_addf(out, " | %s %s | ", remedy_words(r->others_can), after(r->others_bound));
        if (r->nobody_can == FAULT_WAITS)
            str_adds(out, "training goes on");
        else
            str_addf(out, "%s %s", remedy_words(r->nobody_can), after(r->nobody_bound));
        str_addf(out, " | %s |\n", r->all_end_it ? "the job ends" : "as before");
    }
}

void fault_print_table(struct str *out)
{
    str_adds(out, "| where | class | while others can | when nobody can | when all say the same |\n"
                  "|---|---|---|---|---|\n");
    for (int where = 0; where < FAULT_PLACES; where++)
        print_place((enum fault_where)where, out);
}
