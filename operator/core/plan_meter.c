/* What the job's pods cost: each from the second that it got its node to that in which the last of it ended,
 * at its machine's price times its share of the machine. The reading goes on from the one in the status, so
 * that whoever leads next counts no second twice; a pod has its line there while the API server has the pod.
 */
#include <string.h>

#include "common/base/assert.h"
#include "operator/core/machine.h"
#include "operator/core/plan_parts.h"

enum { MS_S = 1000 };

static const int64_t span_most_s = 1000 * 1000 * 1000;
static const int64_t unseen_most_s = 600; /* for a machine that is looked for */

struct meter {
    struct planner *p;
    struct op_cost *cost;
    int64_t from_s, now_s; /* since the last reading */
    bool went_on;          /* that reading was this process's own, so it saw all that happened since */
    int64_t share;
    const struct node_view *node; /* of the pod that is read; NULL */
};

static void add_spent(struct op_sum *sum, int64_t rate, int64_t seconds)
{
    if (seconds <= 0 || rate <= 0)
        return;
    seconds = seconds < span_most_s ? seconds : span_most_s;
    int64_t rest = rate % OP_HOUR_S * seconds + sum->rest;
    sum->micros += rate / OP_HOUR_S * seconds + rest / OP_HOUR_S;
    sum->micros = sum->micros < OP_SUM_MOST ? sum->micros : OP_SUM_MOST;
    sum->rest = (int)(rest % OP_HOUR_S);
    RM_ASSERT(sum->micros >= 0 && sum->rest >= 0 && sum->rest < OP_HOUR_S, "%lld millionths and %d",
              (long long)sum->micros, sum->rest);
}

/* What was added for a time of which it is known later that there was nothing to pay. */
static void take_back(struct op_sum *sum, int64_t rate, int64_t seconds)
{
    if (seconds <= 0 || rate <= 0)
        return;
    struct op_sum part = {0};
    add_spent(&part, rate, seconds);
    int rest = sum->rest - part.rest;
    sum->micros -= part.micros + (rest < 0);
    sum->rest = rest < 0 ? rest + OP_HOUR_S : rest;
    if (sum->micros < 0)
        *sum = (struct op_sum){0};
    RM_ASSERT(sum->micros >= 0 && sum->rest >= 0 && sum->rest < OP_HOUR_S, "%lld millionths and %d",
              (long long)sum->micros, sum->rest);
}

static bool is_usable(const struct op_cost *cost, const char *currency)
{
    return *currency && (!*cost->currency || !strcmp(cost->currency, currency));
}

/* A currency alone is none. */
static bool has_own_price(const struct job_view *job)
{
    return job->price[PRICE_SPOT] >= 0 || job->price[PRICE_ON_DEMAND] >= 0;
}

bool plan_has_prices(const struct planner *p)
{
    return has_own_price(p->job) || (p->s->prices && p->s->prices->count);
}

bool plan_can_price(const struct planner *p)
{
    return has_own_price(p->job) || (p->s->nodes_known && plan_has_prices(p));
}

/* An hour of this machine; -1: nobody knows. The job's own word comes first; and there is one currency, that
 * of the job's own price, else that of what was counted first. */
static int64_t price_of(const struct meter *m, enum price_capacity capacity, int64_t at_s,
                        int64_t *ret_until_s, const char **ret_currency)
{
    RM_ASSERT((unsigned)capacity <= PRICE_SPOT, "a price of capacity %d", (int)capacity);
    const struct job_view *job = m->p->job;
    const struct prices *prices = m->p->s->prices;
    int64_t until_ms = INT64_MAX, found = -1;
    *ret_until_s = INT64_MAX;
    if (job->price[capacity] >= 0 && is_usable(m->cost, job->currency)) {
        *ret_currency = job->currency;
        return job->price[capacity];
    }
    if (!m->node || !prices || !is_usable(m->cost, prices->currency))
        return -1;
    struct price_machine machine = m->node->machine;
    machine.capacity = capacity;
    found = prices_find(prices, &machine, at_s * MS_S, &until_ms);
    *ret_currency = prices->currency;
    *ret_until_s = until_ms == INT64_MAX ? INT64_MAX : (until_ms + MS_S - 1) / MS_S;
    return found;
}

/* Of a machine that is not to be seen the dearer one is taken, where the job says it. */
static enum price_capacity capacity_of(const struct meter *m)
{
    if (m->node)
        return m->node->machine.capacity;
    return m->p->job->price[PRICE_ON_DEMAND] >= 0 ? PRICE_ON_DEMAND : PRICE_SPOT;
}

/* Where the operator may see no node at all, the job's own price is the only one that can be held to. */
static bool is_rated(const struct meter *m)
{
    return m->node ||
           (!m->p->s->nodes_known && has_own_price(m->p->job) && is_usable(m->cost, m->p->job->currency));
}

/* What its share of its machine costs from then on; until when. */
static int64_t rate_at(struct meter *m, struct op_meter *meter, int64_t at_s)
{
    const char *currency = "";
    int64_t until_s, spot_until_s;
    int64_t own = price_of(m, capacity_of(m), at_s, &spot_until_s, &currency);
    if (own >= 0)
        text_copy(m->cost->currency, sizeof m->cost->currency, currency);
    int64_t full = price_of(m, PRICE_ON_DEMAND, at_s, &until_s, &currency);
    if (own >= 0 && full < 0)
        full = own; /* nothing counts as saved where nobody knows how much */
    meter->rate = own < 0 ? -1 : (own * m->share + RESOURCE_WHOLE / 2) / RESOURCE_WHOLE;
    meter->on_demand = own < 0 ? -1 : (full * m->share + RESOURCE_WHOLE / 2) / RESOURCE_WHOLE;
    RM_ASSERT((meter->rate < 0) == (meter->on_demand < 0), "%lld an hour, %lld on demand",
              (long long)meter->rate, (long long)meter->on_demand);
    return until_s < spot_until_s ? until_s : spot_until_s;
}

static void charge_span(struct op_cost *cost, const struct op_meter *meter, int64_t share, int64_t seconds)
{
    RM_ASSERT(seconds > 0 && share >= 0, "%lld s are charged, at a share of %lld", (long long)seconds,
              (long long)share);
    add_spent(&cost->hours, share, seconds);
    if (meter->rate < 0)
        add_spent(&cost->unpriced, share, seconds);
    add_spent(&cost->spent, meter->rate, seconds);
    add_spent(&cost->on_demand, meter->on_demand, seconds);
}

/* At the machine's prices where they can be told, else at the last ones known. */
static void charge(struct meter *m, struct op_meter *meter, int64_t from_s, int64_t to_s)
{
    while (from_s < to_s) {
        int64_t until_s = is_rated(m) ? rate_at(m, meter, from_s) : INT64_MAX;
        until_s = until_s < to_s ? until_s : to_s;
        RM_ASSERT(until_s > from_s, "a price holds from %lld to %lld", (long long)from_s, (long long)until_s);
        charge_span(m->cost, meter, m->share, until_s - from_s);
        from_s = until_s;
    }
    if (is_rated(m) && !meter->over)
        rate_at(m, meter, to_s);
}

static void discharge(struct op_cost *cost, const struct op_meter *meter, int64_t share, int64_t seconds)
{
    RM_ASSERT(seconds > 0 && seconds <= unseen_most_s, "%lld s are not charged after all",
              (long long)seconds);
    take_back(&cost->hours, share, seconds);
    if (meter->rate < 0)
        take_back(&cost->unpriced, share, seconds);
    take_back(&cost->spent, meter->rate, seconds);
    take_back(&cost->on_demand, meter->on_demand, seconds);
}

static struct op_meter *find_meter(struct op_cost *cost, int index, int attempt)
{
    RM_ASSERT(cost->meters_count >= 0 && cost->meters_count <= OP_METERS_MAX, "%d meters",
              cost->meters_count);
    for (int i = 0; i < cost->meters_count; i++)
        if (cost->meter[i].index == index && cost->meter[i].attempt == attempt)
            return &cost->meter[i];
    return NULL;
}

/* A machine that has just come is not known at once, nor are its labels. */
static bool is_early(struct meter *m, const struct pod_view *pod)
{
    RM_ASSERT(pod->bound_ms, "pod %s is early on no node", pod->name);
    struct op_meter trial = {0};
    int64_t until_ms = pod->bound_ms + OP_PRICE_PATIENCE_MS;
    if (!m->p->s->nodes_known || m->p->s->now_ms >= until_ms || pod_is_spent(pod))
        return false;
    if (m->node && plan_has_prices(m->p))
        rate_at(m, &trial, m->now_s);
    if (m->node && (trial.rate >= 0 || !plan_has_prices(m->p)))
        return false;
    plan_wake(m->p, until_ms);
    return true;
}

/* A pod keeps its line, over or not, while the API server has it: without, it would be counted anew. So room
 * is made by those that are gone (drop_gone) alone; one that finds none is counted from its binding on once
 * there is some, if it is still there. */
static struct op_meter *begin_meter(struct meter *m, const struct pod_view *pod)
{
    RM_ASSERT(!find_meter(m->cost, pod->index, pod->attempt), "pod %s is counted twice", pod->name);
    struct op_cost *cost = m->cost;
    struct op_cost_told *told = &m->p->next.cost_told;
    if (cost->meters_count == OP_METERS_MAX) {
        if (!told->full)
            plan_event(m->p, true, "CostUnknown", "Account",
                       "the cost of %d pods at a time is counted: pod %s and further ones are not, until "
                       "others are deleted",
                       OP_METERS_MAX, pod->name);
        told->full = true;
        return NULL;
    }
    struct op_meter *meter = &cost->meter[cost->meters_count++];
    *meter = (struct op_meter){.index = pod->index, .attempt = pod->attempt, .rate = -1, .on_demand = -1};
    return meter;
}

/* A node that is gone costs nothing any more. When it went only who was there knows. */
static bool is_away(struct meter *m, struct op_meter *meter, const struct pod_view *pod)
{
    bool gone = m->p->s->nodes_known && !m->node && !pod_is_spent(pod), was = meter->away;
    meter->away = gone;
    return gone ? was || !m->went_on : was;
}

/* It is said once a job, and once more where the table is in another currency. */
static void tell_unknown(struct meter *m, const struct pod_view *pod)
{
    char kind[MACHINE_TEXT_MAX] = "a node that is not to be seen";
    struct op_cost_told *told = &m->p->next.cost_told;
    const struct prices *prices = m->p->s->prices;
    bool differs = prices && prices->count && !is_usable(m->cost, prices->currency);
    bool *said = differs ? &told->currency : &told->unknown;
    if (*said)
        return;
    *said = true;
    if (m->node)
        machine_text(&m->node->machine, kind);
    if (differs)
        plan_event(m->p, true, "CostUnknown", "Account",
                   "prices.csv is in %s, this job's cost is in %s: the hours of pod %s (%.60s) don't count "
                   "towards the budget",
                   prices->currency, m->cost->currency, pod->name, kind);
    else
        plan_event(m->p, true, "CostUnknown", "Account",
                   "no price for %.60s (pod %s): its hours are counted, but not towards the budget", kind,
                   pod->name);
}

static void tell_once(struct meter *m, const struct pod_view *pod, const struct op_meter *meter)
{
    struct op_cost_told *told = &m->p->next.cost_told;
    if (!plan_has_prices(m->p))
        return;
    if (!told->whole && m->node && !resources_are_asked(&pod->asked)) {
        told->whole = true;
        plan_event(m->p, false, "WholeNodeCounted", "Account",
                   "pod %s requests neither cpu nor memory nor a device: its cost is that of its whole node",
                   pod->name);
    }
    if (meter->rate < 0 && !meter->over)
        tell_unknown(m, pod);
}

/* Up to when a pod is charged now. One that is new costs nothing beyond this clock's moment, though a leader
 * whose clock was ahead has accounted for more. */
static int64_t charged_until(const struct meter *m, const struct pod_view *pod, bool is_new)
{
    int64_t to_s = m->now_s, clock_s = m->p->s->now_ms / MS_S;
    if (is_new && clock_s < to_s)
        to_s = clock_s;
    if (pod_is_spent(pod) && pod->finished_ms && pod->finished_ms / MS_S < to_s)
        to_s = pod->finished_ms / MS_S;
    return to_s > pod->bound_ms / MS_S ? to_s : pod->bound_ms / MS_S;
}

/* The second after which nobody saw its machine: that has ended, or will be seen again, and then has cost all
 * along, as it has where it is looked for in vain for long. Of a node that is gone it stays as it was. */
static int64_t unseen_since(const struct meter *m, const struct op_meter *meter, const struct pod_view *pod)
{
    int64_t since_s = (m->node ? m->node->unseen_ms : meter->unseen_ms) / MS_S,
            bound_s = pod->bound_ms / MS_S;
    if (!since_s || (m->node && m->now_s >= since_s + unseen_most_s))
        return 0;
    return since_s > bound_s ? since_s : bound_s;
}

/* The last reading charged it beyond its end, of which its kubelet tells some seconds later. Where that
 * reading was by a clock that is ahead of this one, nobody knows up to when it was charged. */
static bool is_told_late(const struct meter *m, const struct pod_view *pod)
{
    RM_ASSERT(pod->bound_ms, "pod %s ends on no node", pod->name);
    return pod_is_spent(pod) && m->from_s <= m->p->s->now_ms / MS_S;
}

/* A machine that vanishes is missed a while later: until then it was charged. */
static void charge_pod(struct meter *m, struct op_meter *meter, const struct pod_view *pod, bool is_new)
{
    RM_ASSERT(pod->bound_ms, "pod %s is charged, and on no node", pod->name);
    int64_t before_s = meter->unseen_ms / MS_S, since_s = unseen_since(m, meter, pod);
    int64_t from_s = is_new ? pod->bound_ms / MS_S : before_s ? before_s : m->from_s;
    int64_t to_s = charged_until(m, pod, is_new);
    to_s = since_s && since_s < to_s ? since_s : to_s;
    int64_t beyond_s = from_s - to_s < unseen_most_s ? from_s - to_s : unseen_most_s;
    if (beyond_s > 0 && ((since_s && !before_s) || is_told_late(m, pod)))
        discharge(m->cost, meter, m->share, beyond_s);
    else
        charge(m, meter, from_s, to_s);
    meter->unseen_ms = since_s * MS_S;
}

static void read_pod(struct meter *m, const struct pod_view *pod)
{
    if (!pod->bound_ms)
        return;
    struct op_meter *meter = find_meter(m->cost, pod->index, pod->attempt);
    m->node = find_node(m->p, pod);
    m->share = m->node ? resources_share(&pod->asked, &m->node->allocatable)
               : meter ? meter->share
                       : RESOURCE_WHOLE;
    RM_ASSERT(m->share >= 0 && m->share <= RESOURCE_WHOLE, "pod %s has %lld millionths of its machine",
              pod->name, (long long)m->share);
    bool is_new = !meter;
    if (is_new && !is_early(m, pod))
        meter = begin_meter(m, pod);
    if (!meter || meter->over)
        return;
    bool away = is_away(m, meter, pod);
    meter->share = (int)m->share;
    meter->over = pod_is_spent(pod);
    if (is_new || !away)
        charge_pod(m, meter, pod, is_new);
    tell_once(m, pod, meter);
}

static bool is_there(const struct planner *p, const struct op_meter *meter)
{
    for (int i = 0; i < p->s->pods_count; i++)
        if (p->s->pods[i]->index == meter->index && p->s->pods[i]->attempt == meter->attempt)
            return true;
    return false;
}

/* A pod that went while nobody looked had gone, for all we know, when it was last seen. */
static void drop_gone(struct meter *m)
{
    int kept = 0;
    for (int i = 0; i < m->cost->meters_count; i++) {
        struct op_meter *meter = &m->cost->meter[i];
        if (is_there(m->p, meter)) {
            m->cost->meter[kept++] = *meter;
            continue;
        }
        m->node = NULL;
        m->share = meter->share;
        if (!meter->over && !meter->away && !meter->unseen_ms && m->went_on)
            charge(m, meter, m->from_s, m->now_s);
    }
    RM_ASSERT(kept <= m->cost->meters_count, "%d of %d meters are kept", kept, m->cost->meters_count);
    m->cost->meters_count = kept;
}

static int running(const struct op_cost *cost)
{
    int count = 0;
    for (int i = 0; i < cost->meters_count; i++)
        count += !cost->meter[i].over;
    RM_ASSERT(count <= OP_METERS_MAX, "%d pods run", count);
    return count;
}

static bool is_same(const struct op_cost *stored, int64_t at_ms, const struct op_sum *hours)
{
    return stored->accounted_ms == at_ms && stored->hours.micros == hours->micros &&
           stored->hours.rest == hours->rest;
}

/* The last plan's reading, if the status is that which it went on from, or holds that very reading: else
 * somebody else has led meanwhile. */
static bool goes_on(const struct planner *p)
{
    const struct op_memo *memo = p->s->memo;
    const struct op_cost *stored = &p->stored->cost;
    return memo->cost.accounted_ms && (is_same(stored, memo->cost_from_ms, &memo->cost_from) ||
                                       is_same(stored, memo->cost.accounted_ms, &memo->cost.hours));
}

void plan_meter(struct planner *p)
{
    struct op_cost *cost = &p->next.cost;
    struct meter m = {.p = p, .cost = cost, .now_s = p->s->now_ms / MS_S, .went_on = goes_on(p)};
    if (m.went_on)
        *cost = p->s->memo->cost;
    m.from_s = cost->accounted_ms / MS_S;
    m.now_s = m.now_s > m.from_s ? m.now_s : m.from_s;
    RM_ASSERT(m.now_s >= m.from_s, "time is charged from %lld to %lld", (long long)m.from_s,
              (long long)m.now_s);
    if (!*cost->currency && has_own_price(p->job))
        text_copy(cost->currency, sizeof cost->currency, p->job->currency);
    bool ran = running(cost) > 0;
    drop_gone(&m);
    for (int i = 0; i < p->s->pods_count; i++)
        read_pod(&m, p->s->pods[i]);
    if (ran || running(cost) || (!cost->accounted_ms && cost->meters_count))
        cost->accounted_ms = m.now_s * MS_S;
    p->plan->cost = *cost;
    if (running(cost))
        plan_wake(p, p->stored->cost.accounted_ms + OP_METER_EACH_MS > p->s->now_ms
                         ? p->stored->cost.accounted_ms + OP_METER_EACH_MS
                         : p->s->now_ms + OP_METER_EACH_MS);
}

int64_t plan_rate(const struct op_cost *cost)
{
    int64_t rate = 0;
    for (int i = 0; i < cost->meters_count; i++)
        if (!cost->meter[i].over && !cost->meter[i].away && !cost->meter[i].unseen_ms &&
            cost->meter[i].rate > 0)
            rate += cost->meter[i].rate;
    RM_ASSERT(rate >= 0, "all of it costs %lld an hour", (long long)rate);
    return rate;
}

bool plan_is_due(const struct planner *p)
{
    const struct op_cost *next = &p->next.cost, *stored = &p->stored->cost;
    bool ended = !running(next) && !is_same(stored, next->accounted_ms, &next->hours);
    return ended || (running(next) && next->accounted_ms - stored->accounted_ms >= OP_METER_EACH_MS);
}

/* Of tokens that count: what was lost and done again costs, and brings none. */
void plan_price_tokens(struct planner *p)
{
    double tokens = (double)p->next.progress.step * (double)p->job->step_tokens;
    double micros = tokens > 0 ? (double)p->next.cost.spent.micros * 1e6 / tokens : 0;
    *p->next.cost.per_million = 0;
    if (p->next.progress.known && tokens > 0 && *p->next.cost.currency && micros < 9e15)
        price_text((int64_t)micros, p->next.cost.per_million);
}
