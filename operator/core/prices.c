/* Reads prices.csv, and finds the row that says most about a machine at a moment. */
#include "operator/core/prices.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "operator/core/instant.h"

enum { FIELDS = 8, LINE_MAX = 512, PLACES = 6 };
enum { RANK_PROVIDER = 1, RANK_CAPACITY = 2, RANK_REGION = 4, RANK_ZONE = 8, RANK_TYPE = 16 };

static const char header[] =
    "provider,region,zone,instance_type,capacity_type,price_per_hour,currency,valid_from";

bool price_is_currency(const char *text)
{
    return strlen(text) == 3 && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

/* Digits behind the point, as millionths. */
static bool read_fraction(const char *text, int64_t *ret)
{
    int64_t weight = PRICE_UNIT / 10;
    *ret = 0;
    for (; isdigit((unsigned char)*text); text++, weight /= 10) {
        if (!weight && *text != '0')
            return false;
        *ret += weight * (*text - '0');
    }
    RM_ASSERT(*ret >= 0 && *ret < PRICE_UNIT, "%lld millionths behind the point", (long long)*ret);
    return !*text;
}

bool price_parse(const char *text, int64_t *ret_micros)
{
    int64_t whole = 0, fraction = 0;
    if (!isdigit((unsigned char)*text))
        return false;
    for (; isdigit((unsigned char)*text); text++) {
        whole = whole * 10 + (*text - '0');
        if (whole > PRICE_MOST / PRICE_UNIT)
            return false;
    }
    if (*text && (*text != '.' || !isdigit((unsigned char)text[1]) || !read_fraction(text + 1, &fraction)))
        return false;
    *ret_micros = whole * PRICE_UNIT + fraction;
    RM_ASSERT(*ret_micros >= 0, "a price of %lld", (long long)*ret_micros);
    return *ret_micros <= PRICE_MOST;
}

void price_text(int64_t micros, char out[PRICE_TEXT_MAX])
{
    uint64_t size = micros < 0 ? 0 - (uint64_t)micros : (uint64_t)micros;
    int length = snprintf(out, PRICE_TEXT_MAX, "%s%llu.%06llu", micros < 0 ? "-" : "",
                          (unsigned long long)(size / PRICE_UNIT), (unsigned long long)(size % PRICE_UNIT));
    for (int left = PLACES; left > 2 && out[length - 1] == '0'; left--)
        out[--length] = 0;
}

/* Cuts a line at its commas, in place, and the blanks off both ends of each field; how many there are. */
static int split(char *line, char *field[FIELDS])
{
    int count = 0;
    for (char *at = line, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = 0;
        while (*at == ' ' || *at == '\t')
            at++;
        for (size_t length = strlen(at); length && strchr(" \t", at[length - 1]); length--)
            at[length - 1] = 0;
        if (count < FIELDS)
            field[count] = strcmp(at, "*") == 0 ? at + 1 : at;
        count++;
    }
    RM_ASSERT(count >= 1, "a line of %d fields", count);
    return count;
}

static int read_place(const char *name, const char *text, char *out, size_t size, int line, struct error *err)
{
    RM_ASSERT(size > 0 && line > 1, "%s of line %d into %zu bytes", name, line, size);
    if (strchr(text, '"'))
        return err_set(err, ERR_USAGE, "line %d: %s is in quotes; write it without, and without commas", line,
                       name);
    if (!text_copy(out, size, text))
        return err_set(err, ERR_USAGE, "line %d: %s %.40s... is longer than %zu characters", line, name, text,
                       size - 1);
    return 0;
}

/* "ON_DEMAND" of EKS is "on-demand". */
static int read_capacity(const char *text, enum price_capacity *ret, int line, struct error *err)
{
    static const char *const words[] = {
        [PRICE_ANY] = "", [PRICE_ON_DEMAND] = "on-demand", [PRICE_SPOT] = "spot"};
    char word[16];
    text_copy(word, sizeof word, text);
    for (char *c = word; *c; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    for (int i = PRICE_ANY; i <= PRICE_SPOT; i++)
        if (!strcmp(word, words[i])) {
            *ret = i;
            return 0;
        }
    return err_set(err, ERR_USAGE,
                   "line %d: capacity_type is %.40s; write spot, on-demand, or nothing for both", line, text);
}

static int read_price(const char *text, int64_t *ret, int line, struct error *err)
{
    if (*text == '-')
        return err_set(err, ERR_USAGE, "line %d: the price %.40s is negative; write what an hour costs", line,
                       text);
    if (!price_parse(text, ret))
        return err_set(
            err, ERR_USAGE,
            "line %d: \"%.40s\" is no price an hour; write a number such as 9.8312, with six digits "
            "behind the point at most",
            line, text);
    return 0;
}

static int read_currency(struct prices *prices, const char *text, int line, struct error *err)
{
    if (!*text)
        return err_set(err, ERR_USAGE, "line %d: the price has no currency; write one such as USD", line);
    if (!price_is_currency(text))
        return err_set(err, ERR_USAGE,
                       "line %d: %.40s is no currency; write three capital letters such as USD", line, text);
    if (*prices->currency && strcmp(prices->currency, text) != 0)
        return err_set(
            err, ERR_USAGE,
            "line %d: the currency is %s, and that of the lines before %s; write all prices in one", line,
            text, prices->currency);
    text_copy(prices->currency, sizeof prices->currency, text);
    return 0;
}

/* A day alone is its beginning. */
static int read_from(const char *text, int64_t *ret_ms, int line, struct error *err)
{
    char day[OP_INSTANT_TEXT];
    *ret_ms = INT64_MIN;
    if (!*text || instant_parse(text, ret_ms))
        return 0;
    snprintf(day, sizeof day, "%.12sT00:00:00Z", text);
    if (strlen(text) == 10 && instant_parse(day, ret_ms))
        return 0;
    return err_set(
        err, ERR_USAGE,
        "line %d: valid_from is %.40s; write a moment such as 2026-03-01T00:00:00Z, a day, or nothing", line,
        text);
}

static int read_row(struct prices *prices, char *text, int line, struct error *err)
{
    char *field[FIELDS];
    struct price row = {.line = line};
    int count = split(text, field);
    if (count < FIELDS)
        return err_set(err, ERR_USAGE, "line %d: %d of %d fields are there; is the file cut?", line, count,
                       FIELDS);
    if (count > FIELDS)
        return err_set(err, ERR_USAGE, "line %d: %d fields are %d too many; there are %s", line, count,
                       count - FIELDS, header);
    if (read_place("provider", field[0], row.of.provider, sizeof row.of.provider, line, err) < 0 ||
        read_place("region", field[1], row.of.region, sizeof row.of.region, line, err) < 0 ||
        read_place("zone", field[2], row.of.zone, sizeof row.of.zone, line, err) < 0 ||
        read_place("instance_type", field[3], row.of.type, sizeof row.of.type, line, err) < 0 ||
        read_capacity(field[4], &row.of.capacity, line, err) < 0 ||
        read_price(field[5], &row.micros, line, err) < 0 || read_currency(prices, field[6], line, err) < 0 ||
        read_from(field[7], &row.from_ms, line, err) < 0)
        return -1;
    if (!strcmp(row.of.provider, "gcp")) /* which is gce in the providerID of its nodes */
        text_copy(row.of.provider, sizeof row.of.provider, "gce");
    prices->row[prices->count++] = row;
    return 0;
}

static int take_line(struct prices *prices, const char *text, size_t length, int line, struct error *err)
{
    RM_ASSERT(line >= 1, "line %d", line);
    char own[LINE_MAX];
    if (length >= sizeof own)
        return err_set(err, ERR_USAGE, "line %d: it is longer than %d characters", line, LINE_MAX - 1);
    memcpy(own, text, length);
    own[length] = 0;
    if (length && own[length - 1] == '\r')
        own[--length] = 0;
    for (size_t i = 0; i < length; i++)
        if (own[i] != '\t' && ((unsigned char)own[i] < 0x20 || own[i] == 0x7f))
            return err_set(err, ERR_USAGE, "line %d: it holds a control character; this is no text", line);
    if (line == 1)
        return strcmp(own, header) == 0 ? 0 : err_set(err, ERR_USAGE, "line 1: it should be %s", header);
    if (!own[strspn(own, " \t")] || *own == '#')
        return 0;
    return read_row(prices, own, line, err);
}

static int compare_machines(const struct price_machine *a, const struct price_machine *b)
{
    int order = strcmp(a->type, b->type);
    order = order ? order : strcmp(a->zone, b->zone);
    order = order ? order : strcmp(a->region, b->region);
    order = order ? order : strcmp(a->provider, b->provider);
    return order ? order : (int)a->capacity - (int)b->capacity;
}

/* By machine, then by time, then by line. */
static int compare(const void *left, const void *right)
{
    const struct price *a = left, *b = right;
    int order = compare_machines(&a->of, &b->of);
    if (order)
        return order;
    if (a->from_ms != b->from_ms)
        return a->from_ms < b->from_ms ? -1 : 1;
    return a->line - b->line;
}

static int check_doubles(const struct prices *prices, struct error *err)
{
    RM_ASSERT(prices->count >= 0, "%d prices", prices->count);
    const struct price *first = NULL;
    for (int i = 1; i < prices->count; i++) {
        const struct price *a = &prices->row[i - 1], *b = &prices->row[i];
        bool same = !compare_machines(&a->of, &b->of) && a->from_ms == b->from_ms;
        if (same && (!first || b->line < first->line))
            first = b;
    }
    for (int i = 0; first && i < prices->count; i++) {
        const struct price *a = &prices->row[i];
        if (!compare_machines(&a->of, &first->of) && a->from_ms == first->from_ms)
            return err_set(
                err, ERR_USAGE,
                "line %d: it is of the same machines and the same time as line %d; remove one of them",
                first->line, a->line);
    }
    return 0;
}

static int parse(struct prices *prices, const char *text, size_t length, struct error *err)
{
    int line = 0;
    for (size_t at = 0; at < length; line++) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t size = end ? (size_t)(end - text) - at : length - at;
        if (!end)
            return err_set(
                err, ERR_USAGE,
                "line %d: it does not end, so the file is cut; write a line break behind the last line",
                line + 1);
        if (take_line(prices, text + at, size, line + 1, err) < 0)
            return -1;
        at += size + 1;
    }
    if (!line)
        return err_set(err, ERR_USAGE, "line 1: the file is empty; it should begin with %s", header);
    qsort(prices->row, (size_t)prices->count, sizeof *prices->row, compare);
    return check_doubles(prices, err);
}

int prices_parse(struct prices *ret, const char *text, size_t length, struct error *err)
{
    size_t lines = 1;
    if (length > PRICES_BYTES_MAX)
        return err_set(err, ERR_USAGE, "line 1: the file is longer than %d bytes", PRICES_BYTES_MAX);
    size_t mark = length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0; /* as spreadsheets write UTF-8 */
    text += mark;
    length -= mark;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    struct prices prices = {.row = calloc(lines, sizeof *prices.row)};
    if (!prices.row)
        abort();
    if (parse(&prices, text, length, err) < 0) {
        prices_clear(&prices);
        return -1;
    }
    *ret = prices;
    return 0;
}

void prices_clear(struct prices *prices)
{
    free(prices->row);
    *prices = (struct prices){0};
}

static bool fits(const char *row, const char *machine)
{
    return !*row || !strcmp(row, machine);
}

/* How much a row says of this machine; 0 or more where it fits, -1 where it does not. */
static int rank_of(const struct price_machine *row, const struct price_machine *machine)
{
    if (!fits(row->provider, machine->provider) || !fits(row->region, machine->region) ||
        !fits(row->zone, machine->zone) || !fits(row->type, machine->type) ||
        (row->capacity != PRICE_ANY && row->capacity != machine->capacity))
        return -1;
    RM_ASSERT((unsigned)row->capacity <= PRICE_SPOT, "a price of capacity %d", (int)row->capacity);
    return (*row->provider ? RANK_PROVIDER : 0) + (row->capacity != PRICE_ANY ? RANK_CAPACITY : 0) +
           (*row->region ? RANK_REGION : 0) + (*row->zone ? RANK_ZONE : 0) + (*row->type ? RANK_TYPE : 0);
}

struct best {
    const struct price *row;
    int rank;
    int64_t until_ms;
};

/* The first row of that type, or of the next one. */
static int first_of(const struct prices *prices, const char *type)
{
    int low = 0, high = prices->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(prices->row[middle].of.type, type) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    RM_ASSERT(low >= 0 && low <= prices->count, "row %d of %d", low, prices->count);
    return low;
}

static void look_through(const struct prices *prices, const char *type, const struct price_machine *machine,
                         int64_t at_ms, struct best *best)
{
    RM_ASSERT(best->rank >= -1 && (best->rank < 0) == !best->row, "a price of rank %d, and none", best->rank);
    for (int i = first_of(prices, type); i < prices->count && !strcmp(prices->row[i].of.type, type); i++) {
        const struct price *row = &prices->row[i];
        int rank = rank_of(&row->of, machine);
        if (rank < 0)
            continue;
        if (row->from_ms > at_ms) {
            best->until_ms = row->from_ms < best->until_ms ? row->from_ms : best->until_ms;
            continue;
        }
        bool later = best->row && rank == best->rank && row->from_ms > best->row->from_ms;
        if (rank > best->rank || later) {
            best->row = row;
            best->rank = rank;
        }
    }
}

int64_t prices_find(const struct prices *prices, const struct price_machine *machine, int64_t at_ms,
                    int64_t *ret_until_ms)
{
    struct best best = {.rank = -1, .until_ms = INT64_MAX};
    look_through(prices, "", machine, at_ms, &best);
    if (*machine->type)
        look_through(prices, machine->type, machine, at_ms, &best);
    *ret_until_ms = best.until_ms;
    RM_ASSERT(best.until_ms > at_ms, "a price holds until %lld, at %lld", (long long)best.until_ms,
              (long long)at_ms);
    return best.row ? best.row->micros : -1;
}
