#include "tests/unit/common/net/stub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 512, HEAD_MAX = 64 << 10, ANSWER_MAX = 256 << 20 };

struct connection {
    struct stub *stub;
    pthread_t thread;
    int fd;
};

struct stub {
    int fd, port, requests, connections;
    bool ended;
    pthread_t thread;
    pthread_mutex_t lock;
    stub_reply reply;
    void *ctx;
    struct connection connection[CONNECTIONS_MAX];
};

static bool send_all(int fd, const char *bytes, size_t count)
{
    while (count) {
        ssize_t n = send(fd, bytes, count, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        count -= (size_t)n;
    }
    return true;
}

static bool recv_all(int fd, char *bytes, size_t count)
{
    while (count) {
        ssize_t n = recv(fd, bytes, count, 0);
        if (n <= 0)
            return false;
        bytes += n;
        count -= (size_t)n;
    }
    return true;
}

/* Byte by byte to the empty line: slow, and never a byte too far. */
static bool read_head(int fd, char *head)
{
    size_t length = 0;
    while (length + 1 < HEAD_MAX) {
        if (!recv_all(fd, head + length, 1))
            return false;
        head[++length] = 0;
        if (length >= 4 && !memcmp(head + length - 4, "\r\n\r\n", 4))
            return true;
    }
    return false;
}

const char *stub_header(const struct stub_request *request, const char *name)
{
    static _Thread_local char value[4096];
    size_t length = strlen(name);
    value[0] = 0;
    for (const char *at = strstr(request->head, "\r\n"); at && at[2]; at = strstr(at + 2, "\r\n")) {
        if (strncasecmp(at + 2, name, length) != 0 || at[2 + length] != ':')
            continue;
        const char *from = at + 3 + length;
        from += strspn(from, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(from, "\r"), from);
        break;
    }
    return value;
}

void stub_say(struct str *answer, int status, const char *headers, const void *body, size_t length)
{
    str_addf(answer, "HTTP/1.1 %d Status\r\nContent-Length: %zu\r\n%s\r\n", status, length, headers);
    str_add(answer, body, length);
}

static enum stub_then serve_one(struct connection *c, struct stub_request *request, char *body)
{
    struct str answer = str_init(ANSWER_MAX);
    request->body = body;
    pthread_mutex_lock(&c->stub->lock);
    request->number = c->stub->requests++;
    enum stub_then then = c->stub->reply(c->stub->ctx, request, &answer);
    pthread_mutex_unlock(&c->stub->lock);
    if (!send_all(c->fd, str_text(&answer), answer.length))
        then = STUB_CLOSE;
    str_clear(&answer);
    return then;
}

static enum stub_then serve(struct connection *c, char *head)
{
    struct stub_request request = {.head = head};
    if (!read_head(c->fd, head) || sscanf(head, "%15s %8191s", request.method, request.target) != 2)
        return STUB_CLOSE;
    request.body_length = strtoull(stub_header(&request, "Content-Length"), NULL, 10);
    char *body = malloc(request.body_length + 1);
    enum stub_then then = STUB_CLOSE;
    if (body && recv_all(c->fd, body, request.body_length)) {
        body[request.body_length] = 0;
        then = serve_one(c, &request, body);
    }
    free(body);
    return then;
}

static void *connection_run(void *arg)
{
    struct connection *c = arg;
    char *head = malloc(HEAD_MAX);
    enum stub_then then;
    while (head && (then = serve(c, head)) == STUB_KEEP)
        ;
    free(head);
    struct linger at_once = {.l_onoff = 1};
    if (then == STUB_HANG)
        return NULL; /* stub_free closes it */
    if (then == STUB_RESET)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    pthread_mutex_lock(&c->stub->lock);
    close(c->fd);
    c->fd = -1;
    pthread_mutex_unlock(&c->stub->lock);
    return NULL;
}

static void *accept_run(void *arg)
{
    struct stub *stub = arg;
    for (int fd; (fd = accept(stub->fd, NULL, NULL)) >= 0;) {
        pthread_mutex_lock(&stub->lock);
        if (stub->ended || stub->connections == CONNECTIONS_MAX) {
            pthread_mutex_unlock(&stub->lock);
            close(fd);
            continue;
        }
        struct connection *c = &stub->connection[stub->connections++];
        *c = (struct connection){.stub = stub, .fd = fd};
        if (pthread_create(&c->thread, NULL, connection_run, c) != 0)
            abort();
        pthread_mutex_unlock(&stub->lock);
    }
    return NULL;
}

struct stub *stub_open(stub_reply reply, void *ctx)
{
    struct stub *stub = calloc(1, sizeof *stub);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    if (!stub)
        abort();
    stub->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    stub->reply = reply;
    stub->ctx = ctx;
    pthread_mutex_init(&stub->lock, NULL);
    if (stub->fd < 0 || bind(stub->fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(stub->fd, 64) < 0 ||
        getsockname(stub->fd, (struct sockaddr *)&at, &length) < 0 ||
        pthread_create(&stub->thread, NULL, accept_run, stub) != 0)
        abort();
    stub->port = ntohs(at.sin_port);
    return stub;
}

void stub_free(struct stub *stub)
{
    pthread_mutex_lock(&stub->lock);
    stub->ended = true;
    for (int i = 0; i < stub->connections; i++)
        if (stub->connection[i].fd >= 0)
            shutdown(stub->connection[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&stub->lock);
    shutdown(stub->fd, SHUT_RDWR);
    pthread_join(stub->thread, NULL);
    for (int i = 0; i < stub->connections; i++) {
        pthread_join(stub->connection[i].thread, NULL);
        if (stub->connection[i].fd >= 0)
            close(stub->connection[i].fd);
    }
    close(stub->fd);
    pthread_mutex_destroy(&stub->lock);
    free(stub);
}

int stub_port(const struct stub *stub)
{
    return stub->port;
}

static int counted(struct stub *stub, const int *what)
{
    pthread_mutex_lock(&stub->lock);
    int count = *what;
    pthread_mutex_unlock(&stub->lock);
    return count;
}

int stub_requests(struct stub *stub)
{
    return counted(stub, &stub->requests);
}

int stub_connections(struct stub *stub)
{
    return counted(stub, &stub->connections);
}
