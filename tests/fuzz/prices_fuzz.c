/* prices.csv, whatever is in it: it is read or refused with a sentence of one line that names the line, and
 * what was read is found again under its own machine. */
#include <stdlib.h>
#include <string.h>

#include "operator/core/prices.h"
#include "tests/fuzz/fuzz.h"

static void check_sentence(const struct error *err)
{
    if (err->code != ERR_USAGE || strncmp(err->text, "line ", 5) != 0)
        fuzz_broken("a refusal names the line");
    if (strchr(err->text, '\n'))
        fuzz_broken("a sentence is one line");
}

static void check_row(const struct prices *prices, const struct price *row)
{
    int64_t until, at = row->from_ms == INT64_MIN ? 0 : row->from_ms;
    struct price_machine machine = row->of;
    if (machine.capacity == PRICE_ANY)
        machine.capacity = PRICE_SPOT;
    if (row->micros < 0 || row->micros > PRICE_MOST || !price_is_currency(prices->currency))
        fuzz_broken("a price is what a price may be");
    if (prices_find(prices, &machine, at, &until) < 0)
        fuzz_broken("a machine with a price has one");
    if (until <= at)
        fuzz_broken("a price holds for a while");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct prices prices;
    struct error err = {0};
    char *text = fuzz_text(data, size);
    if (prices_parse(&prices, text, size, &err) < 0) {
        check_sentence(&err);
    } else {
        for (int i = 0; i < prices.count; i++)
            check_row(&prices, &prices.row[i]);
        prices_clear(&prices);
    }
    free(text);
    return 0;
}
