/* The time between two checkpoints, where the job leaves it to us. */
#include "coordinator/core/rdzv_interval.h"

#include "common/base/assert.h"
#include "coordinator/core/rdzv_goodput.h"
#include "coordinator/core/rdzv_out.h"

static const rm_time save_least = 60 * RM_S, believed = 86400 * RM_S;

static const double newest_save = 0.5;  /* its weight beside those before */
static const double newest_step = 0.05; /* likewise */
static const double slow = 4;           /* times the usual: more of a step is no step's own */

/* ---- what is known ---- */

/* Somebody held the state in all of it but the waiting for workers. */
static rm_time time_at_risk(const struct rdzv *st, rm_time now)
{
    struct rdzv_goodput g = rdzv_goodput(st, now);
    return g.productive + g.checkpoint + g.recovery + g.rework;
}

struct interval_facts rdzv_interval_facts(const struct rdzv *st, rm_time now)
{
    const struct rdzv_saves *known = &st->interval.known;
    const struct rdzv_settings *s = &st->settings;
    RM_ASSERT(s->max_loss > 0, "the job of %lld steps says itself when to save", (long long)s->steps);
    return (struct interval_facts){.least = s->save_least ? s->save_least : save_least,
                                   .most = s->max_loss,
                                   .believed = s->believed ? s->believed : believed,
                                   .measured = known->safe > 0,
                                   .stall = known->stall,
                                   .safe = known->safe,
                                   .losses = known->losses,
                                   .observed = known->observed + time_at_risk(st, now)};
}

void rdzv_interval_restore(struct rdzv *st)
{
    struct rdzv_interval *i = &st->interval;
    i->known = st->settings.predecessor.saves;
    if (i->known.reached < st->told)
        i->known.reached = st->told;
    i->at_risk = i->known.reached > 0;
    RM_ASSERT(i->known.reached >= st->told, "step %lld was told, and %lld reached", (long long)st->told,
              (long long)i->known.reached);
}

/* ---- what is told ---- */

static void send_interval(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->interval.every > 0, "%lld ns between two checkpoints", (long long)st->interval.every);
    rdzv_send(turn, MSG_SAVE_EVERY)->save_every.every = st->interval.every;
    for (int r = 0; r < st->world; r++)
        rdzv_send_to(turn, &st->worker[st->member[r]]);
}

void rdzv_interval_again(const struct turn *turn, const struct rdzv_worker *w)
{
    const struct rdzv_interval *i = &turn->st->interval;
    if (i->every)
        rdzv_send_one(turn, w, MSG_SAVE_EVERY)->save_every.every = i->every;
}

/* It grows with each hour without a loss: nobody needs to hear of each second. */
static bool is_news(const struct rdzv_interval *i, rm_time every)
{
    RM_ASSERT(every > 0, "%lld ns between two checkpoints", (long long)every);
    rm_time difference = every > i->every ? every - i->every : i->every - every;
    return !i->every || i->known.losses != i->reason.losses || difference >= i->every / 10;
}

static bool choose_interval(const struct turn *turn)
{
    struct rdzv_interval *i = &turn->st->interval;
    enum interval_limit limit;
    struct interval_facts f = rdzv_interval_facts(turn->st, turn->now);
    rm_time every = interval_choose(&f, &limit);
    RM_ASSERT(every <= turn->st->settings.max_loss, "%lld ns between two checkpoints, of %lld",
              (long long)every, (long long)turn->st->settings.max_loss);
    if (!is_news(i, every))
        return false;
    i->every = every;
    i->reason = f;
    struct rdzv_tell *t = rdzv_tell(turn, TELL_CHECKPOINT_INTERVAL);
    t->every = every;
    interval_sentence(&f, t->text, sizeof t->text);
    return true;
}

/* ---- how often all were lost ---- */

/* It begins from a checkpoint, or anew, and somebody had been further. */
static void count_loss(struct rdzv *st)
{
    struct rdzv_interval *i = &st->interval;
    int64_t from = st->resume.held ? st->resume.step : 0;
    bool nobody_held = st->loading || !st->resume.held;
    if (!nobody_held || !i->at_risk)
        return;
    i->known.losses += i->known.reached > from;
    RM_ASSERT(i->known.losses >= 0, "all were lost %lld times", (long long)i->known.losses);
    i->known.reached = from;
    i->at_risk = false;
}

void rdzv_interval_begins(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(st->world > 0, "a ring of %d is told when to save", st->world);
    if (!st->settings.max_loss)
        return;
    count_loss(st);
    choose_interval(turn);
    send_interval(turn);
}

/* ---- what a save costs ---- */

static void average(double *value, double now, double weight)
{
    RM_ASSERT(weight > 0 && weight <= 1 && now >= 0, "a mean of %g with weight %g", now, weight);
    *value = *value > 0 ? (1 - weight) * *value + weight * now : now;
}

/* Evaluations take their own time, after the step that they are of. */
static double *usual_of(struct rdzv *st)
{
    int64_t every = st->settings.evaluation_every;
    bool evaluates = every > 0 && st->interval.step > 0 && st->interval.step % every == 0;
    return evaluates ? &st->interval.evaluating : &st->interval.pace;
}

/* Training has gone on for a whole step since it is safe. */
static void save_is_over(struct rdzv_interval *i, rm_time now)
{
    struct rdzv_saves *known = &i->known;
    RM_ASSERT(i->saving.safe_at >= i->saving.made && now >= i->saving.since,
              "step %lld, made at %lld, is safe at %lld", (long long)i->saving.step,
              (long long)i->saving.made, (long long)i->saving.safe_at);
    bool first = known->safe == 0;
    double stall = (double)(now - i->saving.since) - i->saving.usual;
    double safe = (double)rm_later(i->saving.safe_at - i->saving.made, 1), old = first ? 0 : 1 - newest_save;
    known->stall = (rm_time)(old * (double)known->stall + (1 - old) * stall);
    known->safe = rm_later((rm_time)(old * (double)known->safe + (1 - old) * safe), 1);
    i->saving.step = 0;
}

/* One step after the other of one ring. True: what a save costs is known better than before. */
static bool followed(const struct turn *turn)
{
    struct rdzv_interval *i = &turn->st->interval;
    RM_ASSERT(i->at <= turn->now, "step %lld was made %lld ns from now", (long long)i->step,
              (long long)(i->at - turn->now));
    double took = (double)(turn->now - i->at), *usual = usual_of(turn->st);
    if (!i->saving.step) {
        average(usual, *usual > 0 && took > slow * *usual ? slow * *usual : took, newest_step);
        return false;
    }
    i->saving.usual += *usual;
    bool over = *usual > 0 && i->saving.safe_at;
    if (over)
        save_is_over(i, turn->now);
    if (*usual <= 0)
        i->saving.step = 0; /* there is nothing to compare with */
    return over;
}

/* The step that is saved may take longer itself: its update is written to where it is saved from. */
static void begin_save(struct rdzv *st, int64_t step, rm_time now)
{
    struct rdzv_interval *i = &st->interval;
    double usual = *usual_of(st);
    i->saving.step = usual > 0 ? step : 0;
    i->saving.since = i->at;
    i->saving.made = now;
    i->saving.safe_at = 0;
    i->saving.usual = usual;
    RM_ASSERT(i->saving.since <= now && i->saving.usual >= 0, "step %lld is saved from %lld on, at %lld",
              (long long)step, (long long)i->saving.since, (long long)now);
}

void rdzv_interval_step(const struct turn *turn, const struct msg_progress *p)
{
    struct rdzv *st = turn->st;
    struct rdzv_interval *i = &st->interval;
    bool same = generation_compare(i->ring, st->ring) == 0, better = false;
    if (!st->settings.max_loss || (same && p->step <= i->step))
        return;
    bool follows = same && p->step == i->step + 1 && p->step_time > 0;
    if (follows && !p->saves)
        better = followed(turn);
    else
        i->saving.step = 0; /* of two saves at once neither can be told from the other */
    if (follows && p->saves)
        begin_save(st, p->step, turn->now);
    i->ring = st->ring;
    i->step = i->known.reached = p->step;
    i->at = turn->now;
    i->at_risk = true;
    if (better && choose_interval(turn) && st->state == RDZV_TRAINING)
        send_interval(turn);
}

void rdzv_interval_published(const struct turn *turn, int64_t step)
{
    struct rdzv *st = turn->st;
    if (!st->interval.saving.step || step != st->interval.saving.step)
        return;
    RM_ASSERT(st->interval.saving.made <= turn->now, "step %lld is made %lld ns from now", (long long)step,
              (long long)(st->interval.saving.made - turn->now));
    if (st->outage.on)
        st->interval.saving.step = 0; /* it was the store that took its time */
    else
        st->interval.saving.safe_at = turn->now;
}
