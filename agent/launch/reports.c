#include "agent/launch/reports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/os/log.h"

enum {
    IN_A_ROW = 64,
    SOCKET_HOLDS = 4096 /* datagrams; /proc/sys/net/unix/max_dgram_qlen is 10, or 512 */
};

static const rm_time rest = 10 * RM_MS; /* so that 6400 in a second are read at most */

struct reports {
    struct reports_options options;
    struct loop *loop;
    struct loop_watch *watch;
    struct loop_timer *timer;
    int fd;
    bool warned;
    struct sockaddr_un address;
};

const char *reports_path(const struct reports *r)
{
    return r ? r->address.sun_path : NULL;
}

static void warn(struct reports *r, const struct error *err)
{
    if (!r->warned)
        log_warn("what came at RINGMASTER_SOCKET is no report; it, and all such, is passed over",
                 "why=\"%s\" wanted=\"step=40 steps=1000 loss=2.5 rank=0\"", err->text);
    r->warned = true;
}

/* How many were there, of at most `most`. */
static int take_reports(struct reports *r, int most, bool heard)
{
    char bytes[LAUNCH_PROGRESS_MAX + 1];
    struct launch_progress progress;
    struct error err;
    for (int n = 0; n < most; n++) {
        ssize_t length = recv(r->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (length < 0 && errno != EINTR)
            return n;
        if (length < 0 || !heard)
            continue;
        if (launch_progress_read(&progress, bytes, (size_t)length, &err) == 0)
            r->options.told(r->options.ctx, &progress);
        else
            warn(r, &err);
    }
    return most;
}

static void socket_ready(void *ctx, int events)
{
    struct reports *r = ctx;
    (void)events;
    if (take_reports(r, IN_A_ROW, true) < IN_A_ROW)
        return;
    loop_watch_set(r->watch, 0);
    loop_timer_set(r->timer, loop_now(r->loop) + rest);
}

static void rested(void *ctx)
{
    struct reports *r = ctx;
    loop_watch_set(r->watch, LOOP_READABLE);
}

void reports_hear(struct reports *r)
{
    if (r)
        take_reports(r, SOCKET_HOLDS, true);
}

void reports_forget(struct reports *r)
{
    if (!r)
        return;
    take_reports(r, SOCKET_HOLDS, false);
    r->warned = false;
}

static int make(struct reports *r, struct error *err)
{
    size_t most = sizeof r->address.sun_path;
    r->address.sun_family = AF_UNIX;
    int length = snprintf(r->address.sun_path, most, "%s/report", r->options.folder);
    if (length >= (int)most)
        return err_set(err, ERR_USAGE,
                       "%s/report is longer than the %zu characters that a socket may have; set a "
                       "shorter TMPDIR",
                       r->options.folder, most - 1);
    r->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->fd < 0 || bind(r->fd, (struct sockaddr *)&r->address, sizeof r->address) < 0)
        return err_errno(err, ERR_MACHINE, "%s: no socket for reports", r->address.sun_path);
    return 0;
}

int reports_open(struct reports **ret, struct loop *loop, const struct reports_options *options,
                 struct error *err)
{
    struct reports *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, ERR_MACHINE, "no memory for reports");
    r->options = *options;
    r->loop = loop;
    r->fd = -1;
    if (make(r, err) < 0 || loop_watch_open(&r->watch, loop, r->fd, socket_ready, r, err) < 0 ||
        loop_timer_open(&r->timer, loop, rested, r, err) < 0) {
        reports_free(r);
        return -1;
    }
    loop_watch_set(r->watch, LOOP_READABLE);
    *ret = r;
    return 0;
}

void reports_free(struct reports *r)
{
    if (!r)
        return;
    loop_timer_free(r->timer);
    loop_watch_free(r->watch);
    if (r->fd >= 0) {
        close(r->fd);
        unlink(r->address.sun_path);
    }
    free(r);
}
