/* prices.csv: what is read, which line counts for a machine, and the sentence for each way to be wrong. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "operator/core/instant.h"
#include "operator/core/prices.h"

#define HEAD "provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from\n"

static struct prices parsed(const char *text)
{
    struct prices prices = {0};
    struct error err = {0};
    cr_assert_eq(prices_parse(&prices, text, strlen(text), &err), 0, "%s", err.text);
    return prices;
}

static int64_t moment(const char *text)
{
    int64_t ms = 0;
    cr_assert(instant_parse(text, &ms), "%s", text);
    return ms;
}

static struct price_machine machine(const char *zone, const char *type, enum price_capacity capacity)
{
    struct price_machine made = {.provider = "aws", .region = "eu-west-1", .capacity = capacity};
    text_copy(made.zone, sizeof made.zone, zone);
    text_copy(made.type, sizeof made.type, type);
    return made;
}

static int64_t price_at(const struct prices *prices, struct price_machine of, const char *when,
                        int64_t *ret_until)
{
    int64_t until;
    int64_t micros = prices_find(prices, &of, moment(when), ret_until ? ret_until : &until);
    return micros;
}

Test(operator_prices, the_line_that_says_most_of_a_machine_counts)
{
    struct prices prices = parsed(HEAD ",,,,,1,USD,\n"
                                       ",,,,spot,0.5,USD,\n"
                                       "aws,,,p4d,,40,USD,\n"
                                       "*,eu-west-1,*,p4d,spot,12.5,USD,\n"
                                       "# the zone weighs more than the capacity\n"
                                       "\n"
                                       "aws, eu-west-1 ,eu-west-1a,p4d,SPOT,9.831200000,USD,\r\n"
                                       "gce,,,p4d,ON_DEMAND,7,USD,\n");
    const char *now = "2026-03-01T00:00:00Z";
    cr_assert_eq(prices.count, 6);
    cr_assert_str_eq(prices.currency, "USD");
    cr_assert_eq(price_at(&prices, machine("eu-west-1a", "p4d", PRICE_SPOT), now, NULL), 9831200);
    cr_assert_eq(price_at(&prices, machine("eu-west-1b", "p4d", PRICE_SPOT), now, NULL), 12500000);
    cr_assert_eq(price_at(&prices, machine("eu-west-1b", "p4d", PRICE_ON_DEMAND), now, NULL), 40000000);
    cr_assert_eq(price_at(&prices, machine("eu-west-1b", "m5", PRICE_SPOT), now, NULL), 500000);
    cr_assert_eq(price_at(&prices, machine("", "", PRICE_ON_DEMAND), now, NULL), 1000000);
    prices_clear(&prices);
}

Test(operator_prices, a_mark_of_utf8_in_front_is_passed_over)
{
    struct error err = {0};
    struct prices prices = parsed("\xef\xbb\xbf" HEAD ",,,,,1,USD,\n");
    cr_assert_eq(prices.count, 1);
    prices_clear(&prices);
    static const char twice[] = "\xef\xbb\xbf\xef\xbb\xbf" HEAD, only[] = "\xef\xbb\xbf";
    cr_assert_lt(prices_parse(&prices, twice, sizeof twice - 1, &err), 0);
    cr_assert_lt(prices_parse(&prices, only, sizeof only - 1, &err), 0);
    cr_assert(strstr(err.text, "line 1: the file is empty"), "%s", err.text);
}

Test(operator_prices, googles_machines_are_known_by_either_of_its_names)
{
    struct error err = {0};
    struct prices prices = parsed(HEAD "gcp,,,a2,,7,USD,\n");
    struct price_machine of = machine("", "a2", PRICE_SPOT);
    text_copy(of.provider, sizeof of.provider, "gce"); /* as a node's providerID begins */
    cr_assert_eq(price_at(&prices, of, "2026-03-01T00:00:00Z", NULL), 7 * PRICE_UNIT);
    prices_clear(&prices);
    static const char both[] = HEAD "gcp,,,a2,,7,USD,\ngce,,,a2,,8,USD,\n";
    cr_assert_lt(prices_parse(&prices, both, sizeof both - 1, &err), 0);
    cr_assert(strstr(err.text, "line 3: it is of the same machines"), "%s", err.text);
}

Test(operator_prices, a_price_holds_from_its_moment_until_the_next)
{
    struct prices prices = parsed(HEAD "aws,,,p4d,spot,3,USD,2026-03-02\n"
                                       "aws,,,p4d,spot,2,USD,2026-03-01T12:00:00Z\n");
    struct price_machine of = machine("a", "p4d", PRICE_SPOT);
    int64_t until;
    cr_assert_eq(price_at(&prices, of, "2026-03-01T11:59:59Z", &until), -1, "there was none before");
    cr_assert_eq(until, moment("2026-03-01T12:00:00Z"));
    cr_assert_eq(price_at(&prices, of, "2026-03-01T12:00:00Z", &until), 2000000);
    cr_assert_eq(until, moment("2026-03-02T00:00:00Z"));
    cr_assert_eq(price_at(&prices, of, "2026-03-03T00:00:00Z", &until), 3000000);
    cr_assert_eq(until, INT64_MAX);
    cr_assert_eq(price_at(&prices, machine("a", "other", PRICE_SPOT), "2026-03-03T00:00:00Z", NULL), -1);
    prices_clear(&prices);
}

Test(operator_prices, what_is_wrong_is_said_with_its_line)
{
    static const struct {
        const char *text, *sentence;
    } wrong[] = {
        {"", "line 1: the file is empty"},
        {"aws,eu,a,m5,spot,1,USD,\n", "line 1: it should be provider,region"},
        {HEAD "aws,,,m5,spot,1,,\n", "line 2: the price has no currency"},
        {HEAD "aws,,,m5,spot,1,$,\n", "line 2: $ is no currency"},
        {HEAD "aws,,,m5,spot,1,USD,\naws,,,m5,spot,-1,USD,\n", "line 3: the price -1 is negative"},
        {HEAD "aws,,,m5,spot,1,USD,\naws,,,m6,spot,1,EUR,\n", "line 3: the currency is EUR, and that of the"},
        {HEAD "aws,,,m5,spot,1,USD,\n\naws,,,m6,,1,USD,\naws,,,m5,spot,2,USD,\n",
         "line 5: it is of the same machines and the same time as line 2"},
        {HEAD "aws,,,m5,spot,1,USD,\naws,,,m6,spot,1", "line 3: it does not end, so the file is cut"},
        {HEAD "aws,,,m6,spot,1\n", "line 2: 6 of 8 fields are there; is the file cut?"},
        {HEAD "aws,,,m6,spot,1,5,USD,\n", "line 2: 9 fields are 1 too many"},
        {HEAD "aws,,,m6,spot,1\r,USD,\n", "line 2: it holds a control character"},
        {HEAD "aws,,,m6,spot,,USD,\n", "line 2: \"\" is no price an hour"},
        {HEAD "aws,,,m6,spot,1e3,USD,\n", "line 2: \"1e3\" is no price an hour"},
        {HEAD "aws,,,m6,spot,0.0000001,USD,\n", "line 2: \"0.0000001\" is no price an hour"},
        {HEAD "aws,,,m6,spot,1000001,USD,\n", "line 2: \"1000001\" is no price an hour"},
        {HEAD "aws,,,m6,reserved,1,USD,\n", "line 2: capacity_type is reserved; write spot"},
        {HEAD "aws,,,m6,spot,1,USD,tomorrow\n", "line 2: valid_from is tomorrow"},
        {HEAD "aws,,,\"m6\",spot,1,USD,\n", "line 2: instance_type is in quotes"},
        {HEAD "a-provider-of-machines,,,m6,spot,1,USD,\n",
         "line 2: provider a-provider-of-machines... is longer"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct prices prices = {.count = 7};
        struct error err = {0};
        cr_assert_eq(prices_parse(&prices, wrong[i].text, strlen(wrong[i].text), &err), -1, "%s",
                     wrong[i].text);
        cr_assert_eq(err.code, ERR_USAGE);
        cr_assert(strstr(err.text, wrong[i].sentence), "%s: %s", wrong[i].text, err.text);
        cr_assert_eq(prices.count, 7, "touched");
    }
}

/* A file is cut anywhere by who writes it while it is read: it is never taken for a shorter one. */
Test(operator_prices, a_file_that_is_cut_in_a_line_is_refused_wherever_that_is)
{
    const char text[] = HEAD "aws,eu,a,m5,spot,12.25,USD,2026-03-01T00:00:00Z\n";
    for (size_t length = 0; length + 1 < sizeof text; length++) {
        struct prices prices;
        struct error err = {0};
        if (length == sizeof HEAD - 1)
            continue; /* between two lines: a file without prices */
        cr_assert_eq(prices_parse(&prices, text, length, &err), -1, "%zu bytes", length);
    }
}

Test(operator_prices, sums_are_exact_in_millionths_both_ways)
{
    static const struct {
        const char *text;
        int64_t micros;
        const char *shown;
    } sums[] = {{"0", 0, "0.00"},
                {"0.1", 100000, "0.10"},
                {"12.345678", 12345678, "12.345678"},
                {"12.3450", 12345000, "12.345"},
                {"1000000", PRICE_MOST, "1000000.00"},
                {"0.000001", 1, "0.000001"}};
    char shown[PRICE_TEXT_MAX];
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        int64_t micros = -7;
        cr_assert(price_parse(sums[i].text, &micros), "%s", sums[i].text);
        cr_assert_eq(micros, sums[i].micros, "%s", sums[i].text);
        price_text(micros, shown);
        cr_assert_str_eq(shown, sums[i].shown);
    }
    price_text(-1500000, shown);
    cr_assert_str_eq(shown, "-1.50");
    static const char *const none[] = {"",    ".5",    "1.",   "+1",  " 1",
                                       "1,5", "1.2.3", "0x10", "nan", "1000000.000001"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        int64_t micros;
        cr_assert_not(price_parse(none[i], &micros), "%s", none[i]);
    }
}
