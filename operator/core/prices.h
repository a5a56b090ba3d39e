/* What machines cost an hour: the file prices.csv.
 *
 *     provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from
 *     aws,eu-west-1,eu-west-1a,p4d.24xlarge,spot,9.8312,USD,2026-03-01T00:00:00Z
 *     aws,,,p4d.24xlarge,on-demand,32.7726,USD,
 *
 * One line a price behind that first one, all in one currency. An empty field, or *, stands for whatever the
 * machine has there; of the lines that fit a machine the one that says most of it counts (its type weighs
 * most, then zone, region, capacity, provider), and of several such lines the one that became valid last.
 * Prices are whole millionths of the currency's unit, so sums are exact. Empty lines and such that begin with
 * # are passed over, as is a byte order mark in front of all. Ownership: prices_parse fills memory that
 * prices_clear frees. Pure. */
#ifndef RM_OPERATOR_CORE_PRICES_H
#define RM_OPERATOR_CORE_PRICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum {
    PRICES_BYTES_MAX = 1 << 20, /* of the file; no ConfigMap is larger */
    PRICE_PLACE_MAX = 64,       /* a label's value with its NUL */
    PRICE_PROVIDER_MAX = 16,    /* "aws", "gce" (or "gcp"), "azure": as a node's spec.providerID begins */
    PRICE_CURRENCY_MAX = 4,     /* "USD" */
    PRICE_TEXT_MAX = 32,        /* a sum as text, "12.345678" */
    PRICE_UNIT = 1000 * 1000,   /* millionths in one of the currency */
};

#define PRICE_MOST  ((int64_t)1000 * 1000 * PRICE_UNIT) /* an hour */
#define BUDGET_MOST (1000 * PRICE_MOST)                 /* of a job: a double holds it to a millionth */

enum price_capacity { PRICE_ANY, PRICE_ON_DEMAND, PRICE_SPOT };

struct price_machine {
    char provider[PRICE_PROVIDER_MAX];
    char region[PRICE_PLACE_MAX], zone[PRICE_PLACE_MAX],
        type[PRICE_PLACE_MAX]; /* "": not known; of a row: any */
    enum price_capacity capacity;
};

struct price {
    struct price_machine of;
    int64_t micros;  /* an hour */
    int64_t from_ms; /* valid from then on; INT64_MIN: always was */
    int line;
};

struct prices {
    int count;
    struct price *row;
    char currency[PRICE_CURRENCY_MAX]; /* "": there is no row */
};

/* ERR_USAGE with a sentence that begins with the line ("line 7: ..."); *ret is untouched then. */
int prices_parse(struct prices *ret, const char *text, size_t length, struct error *err);
void prices_clear(struct prices *prices); /* fine on zeros */

/* What a machine costs an hour at that moment; -1 where no line fits. *ret_until_ms: until when that holds,
 * INT64_MAX where nothing is said of an end. The machine's capacity is ON_DEMAND or SPOT. */
int64_t prices_find(const struct prices *prices, const struct price_machine *machine, int64_t at_ms,
                    int64_t *ret_until_ms);

/* "9.8312" -> 9831200; more than six digits behind the point are taken where they are 0. false: none,
 * negative or more than PRICE_MOST. */
bool price_parse(const char *text, int64_t *ret_micros);
/* The other way, with two to six digits behind the point; a minus in front where it is below 0. */
void price_text(int64_t micros, char out[PRICE_TEXT_MAX]);
bool price_is_currency(const char *text); /* three capital letters, as ISO 4217 has them */

#endif
