#include "agent/notice/node.h"

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>

#include "agent/notice/metadata_watch.h"
#include "common/base/address.h"
#include "common/base/exit_code.h"
#include "common/base/limits.h"
#include "common/net/ws.h"
#include "common/notice/page.h"
#include "common/os/log.h"

/* 64 wait for news, and as many may come beside them, who are answered at once.
 *
 * Of one address 4 wait. A pod has its own address, and its worker asks one question at a time; one that
 * starts again leaves a question behind, which waits on for up to a minute. Of pods with the machine's
 * network a node has one, for each has the same ports. So 4 is a worker that has been started three times
 * within a minute; whoever asks more is answered at once, and hears news as well. Without it one pod could
 * take all places, and the others, who then ask ten times a second, the machine's time. */
enum {
    WAITING_MAX = 64,
    WAITING_EACH = 4,
    CALLERS_MAX = 2 * WAITING_MAX,
    STRANGERS_MAX = 64,
    QUEUE_MAX = NOTICE_PAGE_MAX
};

struct node {
    struct loop *loop;
    struct http *http;
    struct ws *ws;
    struct loop_timer *timer; /* while somebody waits */
    struct loop_signal *term;
    struct metadata_watch *watch;
};

static int answer_get(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    struct node *node = ctx;
    const struct watch *watch = metadata_watch_see(node->watch);
    if (!strcmp(get->path, "/healthz")) {
        str_adds(body, "ok\n");
        return 200;
    }
    if (strcmp(get->path, "/v1/notices") != 0)
        return 404;
    if (notice_page_waits(watch, get->query, get->waited)) {
        if (!ws_gets_waiting(node->ws))
            loop_timer_set(node->timer, loop_now(node->loop) + NOTICE_PAGE_LOOK);
        return 0;
    }
    notice_page_write(watch, loop_now(node->loop), body);
    *type = "application/json";
    return 200;
}

static void answer_again(void *ctx)
{
    struct node *node = ctx;
    if (ws_gets_waiting(node->ws) && ws_get_again(node->ws))
        loop_timer_set(node->timer, loop_now(node->loop) + NOTICE_PAGE_LOOK);
}

static void told_to_go(void *ctx, int signo)
{
    struct node *node = ctx;
    (void)signo;
    loop_stop(node->loop);
}

/* An address that stands for all would be open to the world where the machine has one that is. */
static int check_address(const char *text, struct error *err)
{
    struct in6_addr six;
    struct in_addr four;
    bool is_four = inet_pton(AF_INET, text, &four) == 1, is_six = inet_pton(AF_INET6, text, &six) == 1;
    if (!is_four && !is_six)
        return err_set(err, ERR_USAGE, "--listen wants an IP address of this machine, not \"%.60s\"", text);
    bool any = is_four ? four.s_addr == INADDR_ANY
                       : IN6_IS_ADDR_UNSPECIFIED(&six) ||
                             (IN6_IS_ADDR_V4MAPPED(&six) && !memcmp(&six.s6_addr[12], "\0\0\0\0", 4));
    if (any)
        return err_set(err, ERR_USAGE,
                       "--listen %s stands for all addresses of this machine, also those that the world "
                       "reaches: name the one that its pods know (status.hostIP)",
                       text);
    return 0;
}

static int node_open(struct node *node, const struct node_options *options, struct error *err)
{
    struct metadata_watch_options watch = {.base = options->metadata, .changed = answer_again, .ctx = node};
    struct ws_options ws = {.address = options->listen,
                            .port = options->port,
                            .strangers_max = STRANGERS_MAX,
                            .watchers_max = CALLERS_MAX,
                            .waiting_max = WAITING_MAX,
                            .waiting_each = WAITING_EACH,
                            .queue_max = QUEUE_MAX,
                            .get = answer_get,
                            .ctx = node};
    if (check_address(options->listen, err) < 0 || loop_open(&node->loop, err) < 0 ||
        loop_signal_open(&node->term, node->loop, SIGTERM, told_to_go, node, err) < 0 ||
        loop_timer_open(&node->timer, node->loop, answer_again, node, err) < 0 ||
        http_open(&node->http, node->loop, err) < 0)
        return -1;
    watch.http = node->http;
    if (metadata_watch_open(&node->watch, node->loop, &watch, err) < 0)
        return -1;
    return ws_open(&node->ws, node->loop, &ws, err);
}

static void node_close(struct node *node)
{
    metadata_watch_free(node->watch);
    http_free(node->http);
    ws_free(node->ws);
    loop_timer_free(node->timer);
    loop_signal_free(node->term);
    loop_free(node->loop);
}

int node_run(const struct node_options *options, struct error *err)
{
    struct node node = {0};
    char at[RM_ADDRESS_MAX];
    int result = node_open(&node, options, err);
    if (result == 0) {
        address_join(at, sizeof at, options->listen, ws_port(node.ws));
        log_info("listening", "at=%s metadata=%s", at, options->metadata);
        loop_run(node.loop);
        result = EXIT_DONE;
    }
    node_close(&node);
    return result;
}
