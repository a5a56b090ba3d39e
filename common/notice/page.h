/* What an agent of a machine tells the pods on it: GET /v1/notices. Times are told as what is left of them,
 * so that no two clocks have to agree. Pure.
 *
 *     {"revision": 7, "cloud": "aws", "complete": true, "pool": "p3.2xlarge/us-east-1a", "notices":
 * [{"source": "aws-spot", "cause": "reclaim", "certainty": "will", "leftMs": 118000, "id": ""}]}
 *
 * leftMs is missing where no time is known; complete: see watch.h; pool: see pool.h, "" where it is
 * not known.
 */
#ifndef RM_NOTICE_PAGE_H
#define RM_NOTICE_PAGE_H

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/notice/watch.h"

enum { NOTICE_PAGE_MAX = 65536 };

struct notice_page {
    int64_t revision;
    bool complete;
    char pool[MACHINE_POOL_NAME_MAX];
    struct notices notices;
};

/* How soon a caller asks again: at once after news, and after a question that waited for some, so that what
 * follows a notice is heard as soon as it is told. Not so after an answer that came at once and says nothing
 * new, nor for ever of one who has news each time: then a pause lies between two questions. All zero at
 * first. */
struct notice_pace {
    int quick; /* answers in a row that came at once */
};

/* news: its revision is another one than that which was asked with; took: from question to answer. */
rm_time notice_page_pause(struct notice_pace *pace, bool news, rm_time took);

/* How often it is to be looked whether who waits has waited for long enough. */
#define NOTICE_PAGE_LOOK (5 * RM_S)

/* Whether the answer to GET /v1/notices?query waits for news: who asks knows the newest revision, and has not
 * waited for 55 s yet, as its own patience may end after a minute. waited: since it asked; RM_NEVER: it can't
 * wait. */
bool notice_page_waits(const struct watch *watch, const char *query, rm_time waited);

void notice_page_write(const struct watch *watch, rm_time now, struct str *out);

/* Of whoever answers at that port: ERR_PROTOCOL with a sentence where it is no such page. A source that is
 * not known (of a newer release) is passed over; of times that are told no more than twice what the vendor
 * promises is believed. */
int notice_page_read(const char *text, size_t length, rm_time now, struct notice_page *ret,
                     struct error *err);

#endif
