/* What is said to a cloud so that it begins at once with what it has planned for a machine: Azure's
 * StartRequests. Pure: who sends it, and when nothing is lost by it, is its caller's to know (agent/notice).
 *
 * Only what is planned for this machine and no other is begun: an event that names two would end another
 * one's work, and one that has begun needs no word. No other cloud knows such a word. */
#ifndef RM_NOTICE_START_REQUEST_H
#define RM_NOTICE_START_REQUEST_H

#include "common/base/str.h"
#include "common/notice/watch.h"

struct start_request {
    const char *path; /* by POST */
    char header[WATCH_HEADER_MAX];
    struct str body; /* the caller's, to be cleared */
    int events;
};

enum { START_BODY_MAX = 64 + NOTICES_MAX * (NOTICE_ID_MAX + 32) };

/* By what the watch knows now. False: there is nothing that could be begun, and *ret is as it was. */
bool start_request_write(const struct watch *w, struct start_request *ret);

#endif
