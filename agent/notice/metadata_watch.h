/* Listens to a machine's metadata: asks what common/notice/watch.h wants to know, over HTTP on the loop, and
 * logs its sentences. No proxy is asked, no redirect followed, and an answer over 64 KiB is none. */
#ifndef RM_AGENT_METADATA_WATCH_H
#define RM_AGENT_METADATA_WATCH_H

#include "common/loop/loop.h"
#include "common/net/http.h"
#include "common/notice/watch.h"

struct metadata_watch;

struct metadata_watch_options {
    struct http *http;
    const char *base;           /* "http://169.254.169.254", borrowed */
    void (*changed)(void *ctx); /* metadata_watch_see has a new revision */
    void *ctx;
};

/* A base that is no address of HTTP's is ERR_USAGE. */
int metadata_watch_open(struct metadata_watch **ret, struct loop *loop,
                        const struct metadata_watch_options *options, struct error *err);
void metadata_watch_free(struct metadata_watch *watch); /* before its http */

/* Has the cloud begin with what it has planned for this machine alone (common/notice/start_request.h): done
 * comes once, within seconds, whatever becomes of it. Nothing is tried twice. False: there is nothing of the
 * kind, or it was told before. */
bool metadata_watch_start(struct metadata_watch *watch, void (*done)(void *ctx), void *ctx);

const struct watch *metadata_watch_see(const struct metadata_watch *watch);

#endif
