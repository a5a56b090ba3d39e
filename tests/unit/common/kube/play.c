#include "tests/unit/common/kube/play.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/os/clock.h"

static enum stub_then answer(void *ctx, const struct stub_request *request, struct str *out)
{
    struct play *play = ctx;
    str_addf(&play->asked, "%s %s %s %s\n", request->method, request->target,
             stub_header(request, "Content-Type"), request->body);
    if (play->played == play->scenes)
        return STUB_HANG;
    const struct scene *scene = &play->scene[play->played++];
    if (strcmp(scene->method, request->method) != 0 || !strstr(request->target, scene->target)) {
        str_addf(&play->asked, "WRONG: scene %d expects %s %s\n", play->played, scene->method, scene->target);
        stub_say(out, 500, "", "{}", 2);
        return STUB_KEEP;
    }
    const char *body = scene->body ? scene->body : "{}";
    const char *headers = scene->headers ? scene->headers : "";
    if (scene->cut)
        str_addf(out, "HTTP/1.1 %d As Told\r\nContent-Length: %zu\r\n\r\n%s", scene->status,
                 strlen(body) + 100, body);
    else if (scene->status == 0)
        str_addf(out, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s", body);
    else
        stub_say(out, scene->status, headers, body, strlen(body));
    return scene->cut || scene->status == 0 ? STUB_CLOSE : scene->then;
}

void play_open(struct play *play, const struct scene *scene, int scenes, double per_second, double burst)
{
    struct error err = {0};
    *play = (struct play){.scene = scene, .scenes = scenes};
    play->log = str_init(1 << 20);
    play->asked = str_init(1 << 20);
    play->config.ca = play->config.cert = play->config.key = play->config.token = str_init(KUBE_TEXT_MAX);
    str_adds(&play->config.token, "t0");
    play->stub = stub_open(answer, play);
    snprintf(play->config.server, sizeof play->config.server, "http://127.0.0.1:%d", stub_port(play->stub));
    struct kube_options options = {
        .config = &play->config, .manager = "us", .per_second = per_second, .burst = burst};
    cr_assert_eq(loop_open(&play->loop, &err), 0, "%s", err.text);
    cr_assert_eq(kube_open(&play->kube, play->loop, &options, &err), 0, "%s", err.text);
}

void play_close(struct play *play)
{
    kube_free(play->kube);
    loop_free(play->loop);
    stub_free(play->stub);
    cr_expect_null(strstr(str_text(&play->asked), "WRONG"), "%s", str_text(&play->asked));
    kube_config_clear(&play->config);
    str_clear(&play->log);
    str_clear(&play->asked);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static bool ends_with(const struct str *text, const char *words)
{
    size_t length = strlen(words);
    return text->length >= length && !strcmp(text->data + text->length - length, words);
}

void play_until(struct play *play, const char *words)
{
    struct loop_timer *guard; /* wakes the loop, so that a test that waits in vain ends */
    rm_time until = clock_now() + 20 * RM_S;
    cr_assert_eq(loop_timer_open(&guard, play->loop, nothing, NULL, NULL), 0);
    loop_timer_set(guard, until);
    while (!ends_with(&play->log, words) && clock_now() < until)
        loop_turn(play->loop, true);
    loop_timer_free(guard);
    cr_assert(ends_with(&play->log, words), "\"%s\" does not end with \"%s\"; asked:\n%s",
              str_text(&play->log), words, str_text(&play->asked));
}
