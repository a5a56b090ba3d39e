/* What the job's pods cost, as it stands in the status: sums for people, and the reading that the next plan
 * goes on from. */
#include <stdio.h>

#include "common/base/assert.h"
#include "common/wire/json.h"
#include "operator/core/resources.h"
#include "operator/core/status_rows.h"

/* ---- for people ---- */

/* Of a job of which no price is known there is nothing for people but hours. */
static bool is_priced(const struct status_writing *w)
{
    return *w->status->cost.currency;
}

static bool lacks_prices(const struct status_writing *w)
{
    return is_priced(w) && w->status->cost.unpriced.micros;
}

static void put_money(struct js *o, const char *key, int64_t micros)
{
    char text[PRICE_TEXT_MAX];
    price_text(micros, text);
    js_set_string(o, key, text);
}

static void put_spent(struct js *o, const char *key, const struct status_writing *w)
{
    put_money(o, key, w->status->cost.spent.micros);
}

static void put_on_demand(struct js *o, const char *key, const struct status_writing *w)
{
    put_money(o, key, w->status->cost.on_demand.micros);
}

static void put_saved(struct js *o, const char *key, const struct status_writing *w)
{
    put_money(o, key, w->status->cost.on_demand.micros - w->status->cost.spent.micros);
}

static void put_hours(struct js *o, const char *key, const struct status_writing *w)
{
    put_money(o, key, w->status->cost.hours.micros);
}

static void put_unpriced(struct js *o, const char *key, const struct status_writing *w)
{
    put_money(o, key, w->status->cost.unpriced.micros);
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

/* ---- the reading of each pod ---- */

static int meters_count(const struct job_status *status)
{
    RM_ASSERT(status->cost.meters_count >= 0 && status->cost.meters_count <= OP_METERS_MAX, "%d meters",
              status->cost.meters_count);
    return status->cost.meters_count;
}

static bool has_meter(const struct job_status *status, int place)
{
    RM_ASSERT(place >= 0, "meter %d of %d", place, status->cost.meters_count);
    return place < status->cost.meters_count;
}

static int meter_place(struct job_status *ret, const struct js *entry)
{
    RM_ASSERT(ret->cost.meters_count >= 0, "%d meters", ret->cost.meters_count);
    (void)entry;
    if (ret->cost.meters_count >= OP_METERS_MAX)
        return -1;
    ret->cost.meter[ret->cost.meters_count].share = RESOURCE_WHOLE; /* of before it was noted */
    return ret->cost.meters_count++;
}

static const struct status_row_list meters = {meters_count, has_meter, meter_place, NULL};

#define METER(member) .at = offsetof(struct op_meter, member)

static const struct status_row meter_rows[] = {
    {"worker", .kind = ROW_INT, .when = ROW_KNOWN, METER(index), .lowest = -1, .highest = RM_WORKERS_MAX - 1},
    {"attempt", .kind = ROW_INT, METER(attempt)},
    {"shareMicros", .kind = ROW_INT, METER(share), .highest = RESOURCE_WHOLE},
    {"priceMicros", .kind = ROW_LONG, .when = ROW_KNOWN, METER(rate), .lowest = -1, .highest = PRICE_MOST},
    {"onDemandMicros", .kind = ROW_LONG, .when = ROW_KNOWN, METER(on_demand), .lowest = -1,
     .highest = PRICE_MOST},
    {"over", .kind = ROW_FLAG, .when = ROW_SET, METER(over)},
    {"away", .kind = ROW_FLAG, .when = ROW_SET, METER(away)},
    {"unseenTime", .kind = ROW_INSTANT, METER(unseen_ms)},
    {0},
};

/* ---- the rows ---- */

#define MICROS(sum) .kind = ROW_LONG, STATUS_AT(cost.sum.micros), .highest = OP_SUM_MOST
#define REST(sum)   .kind = ROW_INT, .when = ROW_SET, STATUS_AT(cost.sum.rest), .highest = OP_HOUR_S - 1
#define TOLD(what)  .kind = ROW_FLAG, .when = ROW_SET, STATUS_AT(cost_told.what)
#define BUDGET(of)  .kind = ROW_LONG, .when = ROW_SET, STATUS_AT(cost_told.of), .highest = BUDGET_MOST

const struct status_row status_cost_rows[] = {
    {"currency", .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(cost.currency)},
    {"spent", .kind = ROW_PUT, .there = is_priced, .put = put_spent},
    {"onDemandSpent", .kind = ROW_PUT, .there = is_priced, .put = put_on_demand},
    {"saved", .kind = ROW_PUT, .there = is_priced, .put = put_saved},
    {"perMillionTokens", .kind = ROW_TEXT, .when = ROW_SET, .there = is_priced,
     STATUS_TEXT_AT(cost.per_million)},
    {"hours", .kind = ROW_PUT, .put = put_hours},
    {"unpricedHours", .kind = ROW_PUT, .there = lacks_prices, .put = put_unpriced},
    {"accountedTime", .kind = ROW_INSTANT, STATUS_AT(cost.accounted_ms)},
    {"spentMicros", MICROS(spent)},
    {"spentRest", REST(spent)},
    {"onDemandMicros", MICROS(on_demand)},
    {"onDemandRest", REST(on_demand)},
    {"hoursMicros", MICROS(hours)},
    {"hoursRest", REST(hours)},
    {"unpricedMicros", MICROS(unpriced)},
    {"unpricedRest", REST(unpriced)},
    {"pods", .kind = ROW_LIST, STATUS_AT(cost.meter), .size = sizeof(struct op_meter), .list = &meters,
     .rows = meter_rows},
    {"unknownTold", TOLD(unknown)},
    {"wholeTold", TOLD(whole)},
    {"currencyTold", TOLD(currency)},
    {"fullTold", TOLD(full)},
    {"warnedMicros", BUDGET(warned_micros)},
    {"stoppedMicros", BUDGET(stopped_micros)},
    {"reserveMicros", BUDGET(reserve_micros)},
    {"stoppedTime", .kind = ROW_INSTANT, STATUS_AT(cost_told.stopped_ms)},
    {0},
};
