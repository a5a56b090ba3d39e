/* Writes the request by which Azure begins with its events sooner. */
#include "common/notice/start_request.h"

#include "common/base/assert.h"
#include "common/notice/metadata.h"
#include "common/wire/json.h"

bool start_request_write(const struct watch *w, struct start_request *ret)
{
    struct js *list = js_array();
    for (int i = 0; i < w->notices.count; i++) {
        const struct notice *n = &w->notices.at[i];
        if (w->cloud != WATCH_AZURE || n->source != NOTICE_AZURE || !n->startable)
            continue;
        RM_ASSERT(n->id[0], "event %d of %d, without a name, is to begin", i, w->notices.count);
        struct js *entry = js_object();
        js_set_string(entry, "EventId", n->id);
        js_push(list, entry);
    }
    int events = (int)js_size(list);
    struct js *body = js_object();
    js_set(body, "StartRequests", list);
    if (events) {
        *ret = (struct start_request){
            .path = METADATA_AZURE_EVENTS_PATH, .body = str_init(START_BODY_MAX), .events = events};
        watch_header(w, ret->header);
        js_print(body, &ret->body);
    }
    js_free(body);
    return events > 0;
}
