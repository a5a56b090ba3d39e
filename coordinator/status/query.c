/* Reads what a watcher's question says. */
#include "coordinator/status/query.h"

#include <string.h>

#include "common/wire/question.h"

/* What stands behind "name="; NULL: this member has another name. */
static const char *value_of(const char *member, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(member, name, length) && member[length] == '=' ? member + length + 1 : NULL;
}

static bool is_end(char c)
{
    return !c || c == '&';
}

/* Behind the number that the text begins with, which has so many digits at most; NULL: it begins with none.
 */
static const char *read_number(const char *text, int digits, int64_t *ret)
{
    const char *at = text;
    for (*ret = 0; *at >= '0' && *at <= '9'; at++)
        if (at - text < digits)
            *ret = *ret * 10 + (*at - '0');
    return at > text && at - text <= digits ? at : NULL;
}

/* "2.1,4.3": workers by number and attempt; "": none. */
static bool read_relief(const char *text, struct rdzv_relief *ret)
{
    ret->count = 0;
    while (!is_end(*text)) {
        int64_t worker, attempt;
        text = ret->count < RM_WORKERS_MAX ? read_number(text, 9, &worker) : NULL;
        text = text && *text == '.' ? read_number(text + 1, 9, &attempt) : NULL;
        if (!text)
            return false;
        ret->one[ret->count].worker = (int)worker;
        ret->one[ret->count++].attempt = (int)attempt;
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
        const char *after = value_of(at, QUESTION_AFTER), *stay = value_of(at, QUESTION_STAY),
                   *relieve = value_of(at, QUESTION_RELIEVE);
        if (after && (after = read_number(after, 18, &number)) && is_end(*after))
            ret->after = number;
        if (stay && (stay = read_number(stay, 9, &number)) && is_end(*stay))
            ret->relief.stay = (int)number;
        if (relieve)
            ret->relieves = read_relief(relieve, &ret->relief);
    }
    if (!ret->relieves)
        ret->relief = (struct rdzv_relief){0};
}
