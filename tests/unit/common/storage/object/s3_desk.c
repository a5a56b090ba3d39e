#include "tests/unit/common/storage/object/s3_desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static void answering(void *ctx)
{
    ((struct desk *)ctx)->answers++;
}

static void retrying(void *ctx, const char *why)
{
    struct desk *desk = ctx;
    desk->retries++;
    text_copy(desk->last_retry, sizeof desk->last_retry, why);
}

static void forget_environment(void)
{
    char name[128];
    for (char **at = environ; *at;) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (strncmp(name, "AWS_", 4) != 0 && strcmp(name, "RINGMASTER_POD_CREDENTIALS") != 0 &&
            strcmp(name, "RINGMASTER_GOOGLE_ENDPOINT") != 0 && strcmp(name, "GCE_METADATA_HOST") != 0 &&
            !strcasestr(name, "proxy"))
            at++;
        else
            unsetenv(name);
    }
}

void desk_open_bare(struct desk *desk, stub_reply reply)
{
    *desk = (struct desk){.heard = str_init(64 << 20)};
    desk->stub = stub_open(reply, desk);
    snprintf(desk->endpoint, sizeof desk->endpoint, "http://127.0.0.1:%d", stub_port(desk->stub));
    forget_environment();
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
}

void desk_open(struct desk *desk, stub_reply reply)
{
    desk_open_bare(desk, reply);
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-nobody-tells", 1);
    desk_store(desk, "s3://bucket/base", 4, NULL);
}

void desk_store(struct desk *desk, const char *uri, int connections, const atomic_int *cancel)
{
    struct object_options options = {.uri = uri,
                                     .endpoint = desk->endpoint,
                                     .region = "eu-test-1",
                                     .connections = connections,
                                     .cancel = cancel,
                                     .answering = answering,
                                     .retrying = retrying,
                                     .ctx = desk};
    cr_assert_eq(object_s3_open(&desk->store, &options, &desk->err), 0, "%s", desk->err.text);
    desk->ops = desk->store->ops;
    desk_inside(desk)->patience = (struct s3_patience){
        .connect = 5 * RM_S, .silent = 2 * RM_S, .pause = RM_MS, .pause_most = 5 * RM_MS, .tries = 6};
}

void desk_close(struct desk *desk)
{
    if (desk->store)
        desk->ops->free(desk->store);
    stub_free(desk->stub);
    str_clear(&desk->heard);
}

struct s3_store *desk_inside(struct desk *desk)
{
    return (struct s3_store *)desk->store;
}

void expect_error(const struct desk *desk, int result, enum error_code code, const char *words)
{
    cr_assert_eq(result, -1);
    cr_assert_eq(desk->err.code, code, "code %d: %s", desk->err.code, desk->err.text);
    cr_assert(strstr(desk->err.text, words), "%s", desk->err.text);
    cr_assert(!strstr(desk->err.text, "a-secret-that"), "%s", desk->err.text);
}

struct object_body body_of(const char *text)
{
    return (struct object_body){.runs = 1, .run = {{text, strlen(text)}}};
}

enum stub_then refuse(struct str *answer, int status, const char *code)
{
    struct str body = str_init(1024);
    str_addf(&body, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>because</Message></Error>", code);
    stub_say(answer, status, "", str_text(&body), body.length);
    str_clear(&body);
    return STUB_KEEP;
}
