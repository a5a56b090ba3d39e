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

/* ".110", at the end of the first number; NULL: it is not there. */
static const char *read_next(const char *text, int digits, int64_t *ret)
{
    return text && *text == '.' ? read_number(text + 1, digits, ret) : NULL;
}

/* "2.1,4.3": workers by number and attempt, of those that will go with the seconds that are left, behind
 * those that are there; "": none. */
static bool read_relief(const char *text, enum rdzv_eased_by by, struct rdzv_relief *ret)
{
    int count = ret->count;
    while (!is_end(*text)) {
        int64_t worker, attempt, seconds = 0;
        text = count < RDZV_EASED_MAX ? read_number(text, 9, &worker) : NULL;
        text = read_next(text, 9, &attempt);
        if (by == EASED_BY_WILL)
            text = read_next(text, 5, &seconds);
        if (!text)
            return false;
        ret->one[count].worker = (int)worker;
        ret->one[count].attempt = (int)attempt;
        ret->one[count].left = seconds * RM_S;
        ret->one[count++].by = by;
        if (*text == ',' && !is_end(text[1]))
            text++;
        else if (!is_end(*text))
            return false;
    }
    ret->count = count;
    return true;
}

void query_read(const char *text, struct query *ret)
{
    *ret = (struct query){.after = -1};
    for (const char *at = text; at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL) {
        int64_t number;
        const char *after = value_of(at, QUESTION_AFTER), *told = value_of(at, QUESTION_TOLD),
                   *stay = value_of(at, QUESTION_STAY), *relieve = value_of(at, QUESTION_RELIEVE),
                   *deleted = value_of(at, QUESTION_DELETED), *will = value_of(at, QUESTION_WILL);
        if (after && (after = read_number(after, 18, &number)) && is_end(*after))
            ret->after = number;
        if (told && (told = read_number(told, 18, &number)) && is_end(*told))
            ret->told = number;
        if (stay && (stay = read_number(stay, 9, &number)) && is_end(*stay))
            ret->relief.stay = (int)number;
        if (relieve && read_relief(relieve, EASED_BY_MAY, &ret->relief))
            ret->relieves = true;
        if (deleted)
            read_relief(deleted, EASED_BY_DELETION, &ret->relief);
        if (will)
            read_relief(will, EASED_BY_WILL, &ret->relief);
    }
    if (!ret->relieves)
        ret->relief = (struct rdzv_relief){0};
}
