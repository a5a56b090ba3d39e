/* Reads Kubernetes' quantities, adds them up over a pod's containers, and says what share of a machine
 * they are. view.c reads nodes and pods by it; plan_meter.c shares out a machine's price. */
#include "operator/core/resources.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/wire/json.h"

static const double milli_most = 9e18;

/* Up to the next whole one, but for what a double leaves out. */
static int64_t rounded_up(double value)
{
    RM_ASSERT(value >= 0, "an amount of %g", value);
    int64_t below = (int64_t)value;
    return below + (value - (double)below > 1e-6);
}

/* What a suffix multiplies by; 0: it is none. */
static double scale_of(const char *suffix)
{
    static const struct {
        const char *suffix;
        double scale;
    } scales[] = {{"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},
                  {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
                  {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20},
                  {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (!strcmp(suffix, scales[i].suffix))
            return scales[i].scale;
    return 0;
}

/* "e3" and "E-3", but not the suffix "E". */
static bool is_exponent(const char *at)
{
    if (*at != 'e' && *at != 'E')
        return false;
    at += 1 + (at[1] == '-' || at[1] == '+');
    return isdigit((unsigned char)*at) && strspn(at, "0123456789") == strlen(at) && strlen(at) <= 3;
}

bool quantity_parse(const char *text, int64_t *ret_milli)
{
    char number[64];
    size_t length = strspn(text, "0123456789.");
    const char *suffix = text + length;
    if (!length || !strspn(text + (*text == '.'), "0123456789") || length > 40)
        return false;
    bool exponent = is_exponent(suffix);
    double scale = exponent ? 1 : scale_of(suffix);
    char *end;
    snprintf(number, sizeof number, "%.*s%s", (int)length, text, exponent ? suffix : "");
    double value = strtod(number, &end) * scale * 1000;
    if (*end || scale == 0)
        return false;
    *ret_milli = value < milli_most ? rounded_up(value) : (int64_t)milli_most;
    RM_ASSERT(*ret_milli >= 0, "%s is %lld", text, (long long)*ret_milli);
    return true;
}

static int64_t *place_of(struct resources *r, const char *name)
{
    RM_ASSERT(r->count >= 0 && r->count <= RESOURCES_MAX, "%d resources", r->count);
    for (int i = 0; i < r->count; i++)
        if (!strcmp(r->of[i].name, name))
            return &r->of[i].milli;
    if (r->count == RESOURCES_MAX || strlen(name) >= RESOURCE_NAME_MAX)
        return NULL;
    text_copy(r->of[r->count].name, RESOURCE_NAME_MAX, name);
    return &r->of[r->count++].milli;
}

static int64_t amount_of(const struct resources *r, const char *name)
{
    RM_ASSERT(r->count >= 0 && r->count <= RESOURCES_MAX, "%d resources", r->count);
    for (int i = 0; i < r->count; i++)
        if (!strcmp(r->of[i].name, name))
            return r->of[i].milli;
    return 0;
}

static bool read_amount(const struct js *value, int64_t *ret)
{
    double real;
    int64_t whole;
    const char *text = js_as_string(value);
    if (text)
        return quantity_parse(text, ret);
    if (js_as_int(value, &whole))
        real = (double)whole;
    else if (!js_as_real(value, &real))
        return false;
    if (!(real >= 0))
        return false;
    *ret = real < milli_most / 1000 ? rounded_up(real * 1000) : (int64_t)milli_most;
    RM_ASSERT(*ret >= 0, "an amount of %lld", (long long)*ret);
    return true;
}

/* What a scheduler counts of most machines, before what else there may be on one. */
static bool is_common(const char *name)
{
    return !strcmp(name, "cpu") || !strcmp(name, "memory") || !strcmp(name, "ephemeral-storage");
}

void resources_read(const struct js *object, struct resources *ret)
{
    *ret = (struct resources){0};
    for (int common = 1; common >= 0; common--)
        for (void *it = js_first(object); it; it = js_next(object, it)) {
            int64_t milli;
            if (is_common(js_key(it)) != common || !read_amount(js_value(it), &milli))
                continue;
            if (!milli || !strcmp(js_key(it), "pods")) /* hugepages that a machine has none of, say */
                continue;
            int64_t *place = place_of(ret, js_key(it));
            if (place)
                *place = milli;
        }
    RM_ASSERT(ret->count <= RESOURCES_MAX, "%d resources", ret->count);
}

void resources_add(struct resources *sum, const struct resources *more)
{
    RM_ASSERT(more->count >= 0 && more->count <= RESOURCES_MAX, "%d resources are added", more->count);
    for (int i = 0; i < more->count; i++) {
        int64_t *place = place_of(sum, more->of[i].name), most = (int64_t)milli_most;
        if (place)
            *place = *place > most - more->of[i].milli ? most : *place + more->of[i].milli;
    }
}

void resources_raise(struct resources *sum, const struct resources *least)
{
    RM_ASSERT(least->count >= 0 && least->count <= RESOURCES_MAX, "%d resources at least", least->count);
    for (int i = 0; i < least->count; i++) {
        int64_t *place = place_of(sum, least->of[i].name);
        if (place && *place < least->of[i].milli)
            *place = least->of[i].milli;
    }
}

/* A limit stands for a request that is not given, as the API server writes it, too. */
static void read_requests(const struct js *resources, struct resources *ret)
{
    struct resources limits;
    resources_read(js_get(resources, "requests"), ret);
    resources_read(js_get(resources, "limits"), &limits);
    for (int i = 0; i < limits.count; i++)
        if (!js_get(js_get(resources, "requests"), limits.of[i].name)) {
            int64_t *place = place_of(ret, limits.of[i].name);
            if (place)
                *place = limits.of[i].milli;
        }
}

void resources_of_pod(const struct js *spec, struct resources *ret)
{
    struct resources sum = {0}, beside = {0}, first = {0}, own, all;
    const struct js *containers = js_get(spec, "containers"), *before = js_get(spec, "initContainers");
    for (size_t i = 0; i < js_size(containers); i++) {
        read_requests(js_get(js_at(containers, i), "resources"), &own);
        resources_add(&sum, &own);
    }
    for (size_t i = 0; i < js_size(before); i++) {
        const char *policy = js_as_string(js_get(js_at(before, i), "restartPolicy"));
        bool runs_on = policy && !strcmp(policy, "Always");
        read_requests(js_get(js_at(before, i), "resources"), &own);
        if (runs_on)
            resources_add(&beside, &own);
        all = beside;
        if (!runs_on)
            resources_add(&all, &own);
        resources_raise(&first, &all);
    }
    resources_add(&sum, &beside);
    resources_raise(&sum, &first);
    read_requests(js_get(spec, "resources"), &own);
    for (int i = 0; i < own.count; i++) {
        int64_t *place = place_of(&sum, own.of[i].name);
        if (place)
            *place = own.of[i].milli;
    }
    resources_read(js_get(spec, "overhead"), &own);
    resources_add(&sum, &own);
    *ret = sum;
}

bool resources_are_asked(const struct resources *asked)
{
    RM_ASSERT(asked->count >= 0 && asked->count <= RESOURCES_MAX, "%d resources are asked for", asked->count);
    for (int i = 0; i < asked->count; i++)
        if (asked->of[i].milli && strcmp(asked->of[i].name, "ephemeral-storage") != 0)
            return true;
    return false;
}

int64_t resources_share(const struct resources *asked, const struct resources *there)
{
    double share = 0;
    bool known = false;
    for (int i = 0; i < asked->count; i++) {
        int64_t all = amount_of(there, asked->of[i].name);
        double own = all > 0 ? (double)asked->of[i].milli / (double)all : 0;
        known = known || (all > 0 && strcmp(asked->of[i].name, "ephemeral-storage") != 0);
        share = own > share ? own : share;
    }
    if (!known || share >= 1)
        return RESOURCE_WHOLE;
    RM_ASSERT(share >= 0, "%g of a machine", share);
    return rounded_up(share * RESOURCE_WHOLE);
}
