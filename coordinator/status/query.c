#include "coordinator/status/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Behind "name="; NULL: it is another one. */
static const char *value_of(const char *member, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(member, name, length) && member[length] == '=' ? member + length + 1 : NULL;
}

static bool is_end(char c)
{
    return !c || c == '&';
}

/* "2.1,4.3": workers by number and attempt; "": none. */
static bool read_relief(const char *text, struct rdzv_relief *ret)
{
    ret->count = 0;
    while (!is_end(*text)) {
        int used = 0, worker, attempt;
        if (ret->count == RM_WORKERS_MAX || sscanf(text, "%9d.%9d%n", &worker, &attempt, &used) != 2)
            return false;
        ret->one[ret->count].worker = worker;
        ret->one[ret->count++].attempt = attempt;
        text += used;
        if (*text == ',' && !is_end(text[1]))
            text++;
        else if (!is_end(*text))
            return false;
    }
    return true;
}

void query_read(const char *text, struct query *ret)
{
    *ret = (struct query){.after = -1};
    for (const char *at = text; at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL) {
        int64_t number;
        int used = 0;
        const char *after = value_of(at, "after"), *stay = value_of(at, "stay"),
                   *relieve = value_of(at, "relieve");
        if (after && sscanf(after, "%18" SCNd64 "%n", &number, &used) == 1 && is_end(after[used]))
            ret->after = number;
        if (stay && sscanf(stay, "%9" SCNd64 "%n", &number, &used) == 1 && is_end(stay[used]))
            ret->relief.stay = (int)number;
        if (relieve)
            ret->relieves = read_relief(relieve, &ret->relief);
    }
    if (!ret->relieves)
        ret->relief = (struct rdzv_relief){0};
}
