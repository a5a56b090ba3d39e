/* What the job may cost. Where that is reached, less what a last save costs, the job pauses as by
 * spec.suspend; and goes on when the budget is higher.
 *
 * Where what the workers hold can't be saved then, they are not told to end yet: their grace would be over
 * long before a store comes back, and all since the newest checkpoint would be paid for again. They stay, and
 * nobody else comes, until it can be saved, for checkpoint.endTimeout at most; the coordinator is replaced
 * meanwhile, since without one nothing is ever saved. */
#include <stdio.h>
#include <string.h>

#include "operator/core/plan_parts.h"

#include "common/base/assert.h"
#include "operator/core/instant.h"

enum {
    END_S = 60,                       /* that workers may take to save and end... */
    SAVE_BYTES_S = 100 * 1000 * 1000, /* ...and as much more as the newest checkpoint takes at this pace... */
    END_MOST_S = 600,                 /* ...but no longer than that */
    CENT = PRICE_UNIT / 100,
};

const char *plan_lacks_prices(const struct planner *p)
{
    bool begun = p->stored->ring.coordinator.attempt > 0;
    if (!p->job->budget_micros || begun || plan_can_price(p))
        return NULL;
    if (plan_has_prices(p))
        return "spec.cost.budget: the operator may not see nodes, so its table of prices can't tell what the "
               "job's machines cost; set spec.spot.price, or let it see them (nodes of the chart)";
    return "spec.cost.budget: there is no price to hold it against; set spec.spot.price, or mount prices.csv "
           "into the operator (prices.configMap of the chart)";
}

/* What the end of all that runs now will cost. */
static int64_t end_price(const struct planner *p)
{
    RM_ASSERT(p->stored->checkpoint.bytes >= 0, "a checkpoint of %lld bytes",
              (long long)p->stored->checkpoint.bytes);
    int64_t seconds = END_S + p->stored->checkpoint.bytes / SAVE_BYTES_S;
    seconds = seconds < END_MOST_S ? seconds : END_MOST_S;
    return plan_rate(&p->next.cost) / OP_HOUR_S * seconds +
           plan_rate(&p->next.cost) % OP_HOUR_S * seconds / OP_HOUR_S;
}

void plan_say_budget(const struct planner *p, char *out, size_t size)
{
    char spent[PRICE_TEXT_MAX], limit[PRICE_TEXT_MAX];
    price_text(p->next.cost.spent.micros / CENT * CENT, spent);
    price_text(p->job->budget_micros, limit);
    snprintf(out, size, "%s of the budget of %s %s are spent", spent, limit, p->next.cost.currency);
}

void plan_say_end(const struct planner *p, char *out, size_t size)
{
    char beyond[PRICE_TEXT_MAX];
    int64_t excess = p->next.cost.spent.micros - p->job->budget_micros;
    plan_say_budget(p, out, size);
    size_t length = strlen(out);
    RM_ASSERT(length < size, "a sentence of %zu bytes", length);
    if (excess < CENT)
        return;
    price_text(excess / CENT * CENT, beyond);
    snprintf(out + length, size - length, ", %s more than the limit", beyond);
}

static int64_t lingers_until(const struct planner *p)
{
    RM_ASSERT(p->next.cost_told.stopped_ms && p->next.cost_told.stopped_ms <= p->s->now_ms,
              "job %s waits since %lld", p->job->name, (long long)p->next.cost_told.stopped_ms);
    return p->next.cost_told.stopped_ms + p->job->end_timeout_ms;
}

void plan_say_lingering(const struct planner *p, char *out, size_t size)
{
    char spent[RM_WHY_MAX], why[RM_WHY_MAX], until[OP_INSTANT_TEXT];
    RM_ASSERT(p->lingers, "job %s ends, and waits for nothing", p->job->name);
    plan_say_budget(p, spent, sizeof spent);
    plan_say_unsaved(p, why, sizeof why);
    instant_text(lingers_until(p), until);
    snprintf(out, size, "%s; the workers stay until what they hold is saved, until %s at most: %.150s", spent,
             until, why);
}

/* To two places, and never less than it is. */
static void text_up(int64_t micros, char out[PRICE_TEXT_MAX])
{
    RM_ASSERT(micros >= 0, "%lld millionths are kept", (long long)micros);
    price_text((micros + CENT - 1) / CENT * CENT, out);
}

void plan_say_resumption(const struct planner *p, char *out, size_t size)
{
    RM_ASSERT(p->pauses && p->job->budget_micros > 0, "job %s goes on already", p->job->name);
    char wanted[PRICE_TEXT_MAX], kept[PRICE_TEXT_MAX];
    int64_t reserve = p->next.cost_told.reserve_micros;
    text_up(p->next.cost.spent.micros + reserve, wanted);
    text_up(reserve, kept);
    snprintf(out, size, "it goes on with a limit above %s (%s are kept for a last save%s)", wanted, kept,
             reserve >= p->job->budget_micros ? ", which is more than the whole limit" : "");
}

/* Where what an end takes is more than all there is, no step is ever trained on it. */
static void tell_stop(struct planner *p, int64_t reserve)
{
    char said[RM_WHY_MAX], kept[PRICE_TEXT_MAX];
    RM_ASSERT(p->pauses != p->lingers && reserve >= 0, "a job that goes on keeps %lld millionths for its end",
              (long long)reserve);
    plan_say_budget(p, said, sizeof said);
    text_up(reserve, kept);
    if (reserve >= p->job->budget_micros)
        plan_event(p, true, "BudgetSpent", "Suspend",
                   "%s: a last save alone takes %s, so that nothing can be trained for this limit", said,
                   kept);
    else
        plan_event(p, true, "BudgetSpent", "Suspend", "%s: what is left is kept for a last save%s", said,
                   p->lingers ? ", which can't be made now and is waited for" : "");
}

static void tell_given_up(struct planner *p)
{
    RM_ASSERT(p->pauses && !p->job->suspend, "job %s waits for its save", p->job->name);
    char said[RM_WHY_MAX];
    plan_say_budget(p, said, sizeof said);
    plan_event(p, true, "BudgetSpent", "Suspend",
               "%s, and checkpoint.endTimeout is over: all end without a last save", said);
}

/* They are told to go, and none of them lingers, once a plan has said so: its slots are nobody's then. */
static void decide_pause(struct planner *p, bool just_now, int64_t reserve)
{
    struct op_found found = find_present(p);
    int64_t *stopped_ms = &p->next.cost_told.stopped_ms;
    if (*stopped_ms >
        p->s->now_ms) /* another clock wrote that, or somebody by hand: it is waited from now on */
        *stopped_ms = p->s->now_ms / 1000 * 1000;
    bool unsaved =
        !p->pauses && p->next.cost_told.stopped_ms && !p->stored->idle.since_ms && plan_may_lose(p, &found);
    p->lingers = unsaved && p->s->now_ms < lingers_until(p);
    p->pauses = !p->lingers;
    if (just_now)
        tell_stop(p, reserve);
    if (p->lingers)
        plan_wake(p, lingers_until(p));
    else if (unsaved)
        tell_given_up(p);
}

/* When it will be, if all goes on as now; in centuries is never. */
static void wake_then(struct planner *p, int64_t left_micros)
{
    int64_t rate = plan_rate(&p->next.cost);
    double left_ms = rate > 0 ? (double)left_micros / (double)rate * OP_HOUR_S * 1000 : 0;
    if (left_ms > 0 && left_ms < 1e13)
        plan_wake(p, p->s->now_ms + (int64_t)left_ms + 1);
}

static void warn(struct planner *p)
{
    RM_ASSERT(p->job->budget_micros > 0, "a warning of no budget, at %lld", (long long)p->job->warn_micros);
    char said[RM_WHY_MAX];
    struct op_cost_told *told = &p->next.cost_told;
    int64_t left = p->job->warn_micros - p->next.cost.spent.micros;
    if (told->warned_micros >= p->job->budget_micros)
        return;
    wake_then(p, left);
    if (left > 0)
        return;
    told->warned_micros = p->job->budget_micros;
    plan_say_budget(p, said, sizeof said);
    plan_event(p, true, "BudgetWarning", "Account", "%s", said);
}

/* One that was stopped goes on only where there is more than it was stopped at: what it kept for its end is
 * no money to begin with. */
static bool is_spent(const struct planner *p, int64_t reserve)
{
    RM_ASSERT(p->job->budget_micros > 0 && reserve >= 0, "%lld of no budget are kept", (long long)reserve);
    const struct op_cost_told *stored = &p->stored->cost_told;
    reserve = stored->stopped_micros && stored->reserve_micros > reserve ? stored->reserve_micros : reserve;
    return p->next.cost.spent.micros + reserve >= p->job->budget_micros;
}

void plan_budget(struct planner *p)
{
    struct op_cost_told *told = &p->next.cost_told;
    int64_t reserve = end_price(p);
    p->pauses = p->job->suspend;
    bool over = condition_is(p->stored, OP_FINISHED);
    if (!p->job->budget_micros || over || !p->next.cost.accounted_ms || !is_spent(p, reserve)) {
        told->stopped_micros = told->reserve_micros = told->stopped_ms = 0;
        if (p->job->budget_micros && !over)
            warn(p);
        wake_then(p, p->job->budget_micros - reserve - p->next.cost.spent.micros);
        return;
    }
    bool just_now = !told->stopped_micros;
    if (just_now) {
        told->reserve_micros = reserve;
        told->stopped_ms = p->s->now_ms / 1000 * 1000;
    }
    told->stopped_micros = p->job->budget_micros;
    decide_pause(p, just_now, reserve);
    RM_ASSERT(p->pauses != p->lingers && told->stopped_micros > 0, "stopped at %lld millionths",
              (long long)told->stopped_micros);
}
