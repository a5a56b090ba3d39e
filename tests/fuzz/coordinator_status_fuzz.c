/* What a coordinator's pod answers, and its last word: a tenant's text that ends up in a job's status. No
 * control character gets there, every text ends within its room, and counts stay within their arrays. */
#include <stdlib.h>
#include <string.h>

#include "operator/core/coordinator.h"
#include "tests/fuzz/fuzz.h"

static void check_text(const char *text, size_t room)
{
    size_t length = strnlen(text, room);
    if (length == room)
        fuzz_broken("a text ends within its room");
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            fuzz_broken("no control character gets into a status");
}

static void check_count(int count, int most)
{
    if (count < 0 || count > most)
        fuzz_broken("a count stays within its array");
}

static void check_verdict(const struct op_last_word *last_word)
{
    check_text(last_word->reason, sizeof last_word->reason);
    check_text(last_word->result.uri, sizeof last_word->result.uri);
    check_text(last_word->result.weights_sha256, sizeof last_word->result.weights_sha256);
}

static void check_view(const struct coordinator_view *view)
{
    check_text(view->job, sizeof view->job);
    check_text(view->message, sizeof view->message);
    check_text(view->outage, sizeof view->outage);
    check_count(view->ring_size, RM_WORKERS_MAX);
    check_count(view->workers_count, RM_WORKERS_MAX);
    check_count(view->lost_count, RM_WORKERS_MAX);
    check_count(view->quarantined_count, RM_WORKERS_MAX);
    check_count(view->events_count, OP_COORDINATOR_EVENTS_MAX);
    for (int i = 0; i < view->lost_count; i++)
        check_text(view->lost[i].cause, sizeof view->lost[i].cause);
    for (int i = 0; i < view->events_count; i++) {
        check_count((int)view->event[i].kind, EVENT_KINDS);
        check_text(view->event[i].note, sizeof view->event[i].note);
    }
    check_verdict(&view->last_word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct coordinator_view *view = calloc(1, sizeof *view);
    struct op_last_word last_word = {0};
    struct error err = {0};
    char *text = fuzz_text(data, size);
    if (!view)
        fuzz_broken("no memory");
    last_word_read(text, &last_word);
    check_verdict(&last_word);
    if (coordinator_read(text, size, view, &err) == 0)
        check_view(view);
    else
        fuzz_refused(&err);
    free(view);
    free(text);
    return 0;
}
