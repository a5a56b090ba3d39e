#include "common/notice/pool.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/notice/watch.h"

enum { PARTS = 2 };

static const rm_time pause_first = 5 * RM_S, pause_most = 600 * RM_S, within = 5 * RM_S;

/* By cloud: the type, then the zone. Google's end with them, behind a project's number. */
static const char *const paths[][PARTS] = {
    [WATCH_AWS] = {"/latest/meta-data/instance-type", "/latest/meta-data/placement/availability-zone"},
    [WATCH_GCE] = {"/computeMetadata/v1/instance/machine-type", "/computeMetadata/v1/instance/zone"},
    [WATCH_AZURE] = {"/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text",
                     "/metadata/instance/compute/zone?api-version=2021-02-01&format=text"}};

/* ---- asking ---- */

static bool is_done(const struct watch *w)
{
    return w->pool.cloud == (int)w->cloud && w->pool.heard == PARTS;
}

static rm_time due_at(const struct watch *w)
{
    RM_ASSERT((unsigned)w->cloud <= WATCH_AZURE, "a pool of cloud %d", (int)w->cloud);
    bool known = w->cloud != WATCH_UNKNOWN && (w->cloud != WATCH_AWS || w->token[0]);
    if (!known || w->pool.asked || is_done(w))
        return RM_NEVER;
    return w->pool.cloud == (int)w->cloud ? w->pool.at : 0;
}

bool machine_pool_ask(struct watch *w, rm_time now, struct watch_question *ret)
{
    struct machine_pool *p = &w->pool;
    if (due_at(w) > now)
        return false;
    if (p->cloud != (int)w->cloud)
        *p = (struct machine_pool){.cloud = (int)w->cloud};
    RM_ASSERT(p->heard < PARTS, "part %d of a pool is asked for", p->heard);
    p->asked = true;
    *ret = (struct watch_question){.slot = -1, .method = "GET", .within = within};
    text_copy(ret->path, sizeof ret->path, paths[p->cloud][p->heard]);
    watch_header(w, ret->header);
    return true;
}

rm_time machine_pool_deadline(const struct watch *w)
{
    return due_at(w);
}

/* ---- an answer ---- */

static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
}

/* A machine of Azure's that stands in no zone says so by nothing. */
static bool read_part(const struct machine_pool *p, const struct watch_answer *a,
                      char ret[MACHINE_POOL_PART_MAX])
{
    RM_ASSERT(p->heard >= 0 && p->heard < PARTS, "part %d of a pool", p->heard);
    const char *from = a->body;
    size_t length = a->length, last = 0;
    if (a->status != 200 || (p->cloud == WATCH_GCE && !a->google))
        return false;
    while (length && (from[length - 1] == '\n' || from[length - 1] == '\r'))
        length--;
    for (size_t i = 0; i < length; i++)
        if (from[i] == '/')
            last = i + 1;
    from += last;
    length -= last;
    if (length >= MACHINE_POOL_PART_MAX || (!length && (p->cloud != WATCH_AZURE || p->heard == 0)))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_plain(from[i]))
            return false;
    memcpy(ret, from, length);
    ret[length] = 0;
    return true;
}

void machine_pool_answer(struct watch *w, const struct watch_answer *a, rm_time now)
{
    struct machine_pool *p = &w->pool;
    RM_ASSERT(p->asked && p->heard < PARTS, "an answer to part %d of a pool, which nobody asked for",
              p->heard);
    p->asked = false;
    if (read_part(p, a, p->part[p->heard])) {
        p->heard++;
        p->failures = 0;
        p->at = now;
    } else {
        p->at = now + rm_backoff(pause_first, pause_most, p->failures++);
    }
}

/* ---- what it is called ---- */

void machine_pool_name(const struct machine_pool *p, char ret[MACHINE_POOL_NAME_MAX])
{
    RM_ASSERT(p->heard >= 0 && p->heard <= PARTS, "%d parts of a pool", p->heard);
    ret[0] = 0;
    if (p->heard == PARTS)
        snprintf(ret, MACHINE_POOL_NAME_MAX, "%s/%s", p->part[0], p->part[1]);
}

bool machine_pool_is_same(const char *a, const char *b)
{
    return !*a || !*b || !strcmp(a, b);
}
