/* What the job's pods cost, as it stands in the status: sums for people, and the reading that the next plan
 * goes on from. */
#include <stdio.h>

#include "common/wire/json.h"
#include "operator/core/instant.h"
#include "operator/core/read.h"
#include "operator/core/resources.h"
#include "operator/core/status.h"

static void read_sum(const struct js *object, const char *micros, const char *rest, struct op_sum *ret)
{
    read_int(object, micros, 0, OP_SUM_MOST, &ret->micros);
    read_small(object, rest, 0, OP_HOUR_S - 1, &ret->rest);
}

static void put_some(struct js *o, const char *key, int64_t number)
{
    if (number)
        js_set_int(o, key, number);
}

static void put_sum(struct js *o, const char *micros, const char *rest, const struct op_sum *sum)
{
    js_set_int(o, micros, sum->micros);
    put_some(o, rest, sum->rest);
}

static void put_money(struct js *o, const char *key, int64_t micros)
{
    char text[PRICE_TEXT_MAX];
    price_text(micros, text);
    js_set_string(o, key, text);
}

static void read_meter(const struct js *from, struct op_meter *ret)
{
    *ret = (struct op_meter){.index = -1, .rate = -1, .on_demand = -1, .share = RESOURCE_WHOLE};
    read_small(from, "worker", -1, RM_WORKERS_MAX - 1, &ret->index);
    read_small(from, "attempt", 0, OP_COUNT_MAX, &ret->attempt);
    read_small(from, "shareMicros", 0, RESOURCE_WHOLE, &ret->share);
    read_int(from, "priceMicros", -1, PRICE_MOST, &ret->rate);
    read_int(from, "onDemandMicros", -1, PRICE_MOST, &ret->on_demand);
    read_flag(from, "over", &ret->over);
    read_flag(from, "away", &ret->away);
    read_instant(from, "unseenTime", &ret->unseen_ms);
}

void status_read_cost(const struct js *object, struct job_status *ret)
{
    struct op_cost *cost = &ret->cost;
    const struct js *pods = js_get(object, "pods");
    read_instant(object, "accountedTime", &cost->accounted_ms);
    read_text(object, "currency", cost->currency, sizeof cost->currency);
    read_text(object, "perMillionTokens", cost->per_million, sizeof cost->per_million);
    read_sum(object, "spentMicros", "spentRest", &cost->spent);
    read_sum(object, "onDemandMicros", "onDemandRest", &cost->on_demand);
    read_sum(object, "hoursMicros", "hoursRest", &cost->hours);
    read_sum(object, "unpricedMicros", "unpricedRest", &cost->unpriced);
    for (size_t i = 0; i < js_size(pods) && cost->meters_count < OP_METERS_MAX; i++)
        read_meter(js_at(pods, i), &cost->meter[cost->meters_count++]);
    read_flag(object, "unknownTold", &ret->cost_told.unknown);
    read_flag(object, "wholeTold", &ret->cost_told.whole);
    read_flag(object, "currencyTold", &ret->cost_told.currency);
    read_flag(object, "fullTold", &ret->cost_told.full);
    read_int(object, "warnedMicros", 0, BUDGET_MOST, &ret->cost_told.warned_micros);
    read_int(object, "stoppedMicros", 0, BUDGET_MOST, &ret->cost_told.stopped_micros);
    read_int(object, "reserveMicros", 0, BUDGET_MOST, &ret->cost_told.reserve_micros);
}

static void put_flag(struct js *o, const char *key, bool value)
{
    if (value)
        js_set_bool(o, key, true);
}

static void put_known(struct js *o, const char *key, int64_t micros)
{
    if (micros >= 0)
        js_set_int(o, key, micros);
}

static void put_since(struct js *o, const char *key, int64_t ms)
{
    char text[OP_INSTANT_TEXT];
    if (!ms)
        return;
    instant_text(ms, text);
    js_set_string(o, key, text);
}

static struct js *meters_json(const struct op_cost *cost)
{
    struct js *pods = js_array();
    for (int i = 0; i < cost->meters_count; i++) {
        const struct op_meter *meter = &cost->meter[i];
        struct js *m = js_object();
        put_known(m, "worker", meter->index);
        js_set_int(m, "attempt", meter->attempt);
        js_set_int(m, "shareMicros", meter->share);
        put_known(m, "priceMicros", meter->rate);
        put_known(m, "onDemandMicros", meter->on_demand);
        put_flag(m, "over", meter->over);
        put_flag(m, "away", meter->away);
        put_since(m, "unseenTime", meter->unseen_ms);
        js_push(pods, m);
    }
    return pods;
}

/* Of a job of which no price is known there is nothing for people but hours. */
struct js *status_cost_json(const struct job_status *status)
{
    char text[OP_INSTANT_TEXT];
    const struct op_cost *cost = &status->cost;
    struct js *o = js_object();
    bool priced = *cost->currency;
    if (priced) {
        js_set_string(o, "currency", cost->currency);
        put_money(o, "spent", cost->spent.micros);
        put_money(o, "onDemandSpent", cost->on_demand.micros);
        put_money(o, "saved", cost->on_demand.micros - cost->spent.micros);
    }
    if (priced && *cost->per_million)
        js_set_string(o, "perMillionTokens", cost->per_million);
    put_money(o, "hours", cost->hours.micros);
    if (priced && cost->unpriced.micros)
        put_money(o, "unpricedHours", cost->unpriced.micros);
    instant_text(cost->accounted_ms, text);
    js_set_string(o, "accountedTime", text);
    put_sum(o, "spentMicros", "spentRest", &cost->spent);
    put_sum(o, "onDemandMicros", "onDemandRest", &cost->on_demand);
    put_sum(o, "hoursMicros", "hoursRest", &cost->hours);
    put_sum(o, "unpricedMicros", "unpricedRest", &cost->unpriced);
    js_set(o, "pods", meters_json(cost));
    put_flag(o, "unknownTold", status->cost_told.unknown);
    put_flag(o, "wholeTold", status->cost_told.whole);
    put_flag(o, "currencyTold", status->cost_told.currency);
    put_flag(o, "fullTold", status->cost_told.full);
    put_some(o, "warnedMicros", status->cost_told.warned_micros);
    put_some(o, "stoppedMicros", status->cost_told.stopped_micros);
    put_some(o, "reserveMicros", status->cost_told.reserve_micros);
    return o;
}

/* To two places, cut: nobody is billed by a column. */
void status_cost_column(const struct op_cost *cost, char out[OP_REASON_MAX])
{
    int64_t micros = *cost->currency ? cost->spent.micros : cost->hours.micros;
    long long whole = (long long)(micros / PRICE_UNIT), cents = (long long)(micros % PRICE_UNIT / 10000);
    *out = 0;
    if (cost->accounted_ms)
        snprintf(out, OP_REASON_MAX, "%lld.%02lld %s", whole, cents, *cost->currency ? cost->currency : "h");
}
