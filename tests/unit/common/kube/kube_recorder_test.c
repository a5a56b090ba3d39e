#include "common/kube/recorder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/common/kube/play.h"

static struct kube_note note_of(const char *text)
{
    return (struct kube_note){.resource = &kube_training_jobs,
                              .namespace = "ns",
                              .name = "gpt",
                              .uid = "u-1",
                              .reason = "RingFormed",
                              .text = text};
}

static int count_of(const struct play *play, const char *what)
{
    int count = 0;
    for (const char *at = str_text(&play->asked); (at = strstr(at, what)); at++)
        count++;
    return count;
}

static void until_idle(struct play *play)
{
    while (kube_waiting(play->kube) + kube_in_flight(play->kube))
        loop_turn(play->loop, true);
}

static void trouble(void *ctx, const struct kube_answer *answer, int n)
{
    str_addf(&((struct play *)ctx)->log, "%d: %s. ", n, answer->message);
}

static struct recorder *open_recorder(struct play *play, struct scene *scenes, int count)
{
    struct recorder *recorder;
    for (int i = 0; i < count; i++)
        scenes[i] =
            (struct scene){.method = "POST", .target = "/apis/events.k8s.io/v1/namespaces/", .status = 201};
    play_open(play, scenes, count, 0, 0);
    struct recorder_options options = {.kube = play->kube,
                                       .controller = "ringmaster.dev/operator",
                                       .instance = "pod-1",
                                       .trouble = trouble,
                                       .ctx = play};
    cr_assert_eq(recorder_open(&recorder, play->loop, &options, NULL), 0);
    return recorder;
}

Test(recorder, an_event_says_who_what_and_about_whom)
{
    struct scene scenes[1];
    struct play play;
    struct recorder *recorder = open_recorder(&play, scenes, 1);
    struct kube_note note = note_of("4 workers");
    recorder_tell(recorder, &note);
    until_idle(&play);
    static const char *const parts[] = {
        "POST /apis/events.k8s.io/v1/namespaces/ns/events",
        "\"name\":\"gpt.",
        "\"type\":\"Normal\"",
        "\"reason\":\"RingFormed\"",
        "\"action\":\"Reconcile\"",
        "\"note\":\"4 workers\"",
        "\"reportingController\":\"ringmaster.dev/operator\"",
        "\"reportingInstance\":\"pod-1\"",
        "\"regarding\":{\"apiVersion\":\"ringmaster.dev/v1alpha1\",\"kind\":"
        "\"TrainingJob\",\"namespace\":\"ns\",\"name\":\"gpt\",\"uid\":\"u-1\"}"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_expect_not_null(strstr(str_text(&play.asked), parts[i]), "%s lacks %s", str_text(&play.asked),
                           parts[i]);
    recorder_free(recorder);
    play_close(&play);
}

/* Each number is a note of its own. */
static void tell_number(struct recorder *recorder, int number)
{
    char text[32];
    snprintf(text, sizeof text, "number %d", number);
    struct kube_note note = note_of(text);
    recorder_tell(recorder, &note);
}

Test(recorder, repeats_become_a_series_and_other_words_another_event)
{
    struct scene scenes[3];
    struct play play;
    struct recorder *recorder = open_recorder(&play, scenes, 3);
    scenes[1].method = "PATCH";
    struct kube_note same = note_of("again"), other = note_of("something else");
    recorder_tell(recorder, &same);
    until_idle(&play);
    for (int i = 0; i < 10; i++)
        recorder_tell(recorder, &same);
    until_idle(&play);
    recorder_tell(recorder, &other);
    until_idle(&play);
    cr_assert_eq(stub_requests(play.stub), 3, "%s", str_text(&play.asked));
    cr_assert_eq(count_of(&play, "PATCH /apis/events.k8s.io/v1/namespaces/ns/events/gpt."), 1);
    cr_assert_eq(count_of(&play, "\"series\":{\"count\":2,"), 1);
    cr_assert_eq(recorder_lost(recorder), 0);
    recorder_free(recorder);
    play_close(&play);
}

Test(recorder, what_the_server_does_not_take_is_told_in_its_words_and_how_often_in_a_row)
{
    struct scene scenes[4];
    struct play play;
    struct recorder *recorder = open_recorder(&play, scenes, 4);
    for (int i = 0; i < 4; i++) {
        if (i != 2) {
            scenes[i].status = 403;
            scenes[i].body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no right\"}";
        }
        tell_number(recorder, i);
        until_idle(&play);
    }
    cr_assert_str_eq(str_text(&play.log), "1: no right. 2: no right. 1: no right. ");
    cr_assert_eq(recorder_lost(recorder), 3);
    recorder_free(recorder);
    play_close(&play);
}

Test(recorder, a_repeat_waits_for_the_answer_to_its_event_and_of_one_that_was_not_taken_is_an_event_itself)
{
    struct scene scenes[3];
    struct play play;
    struct recorder *recorder = open_recorder(&play, scenes, 3);
    struct kube_note note = note_of("again");
    scenes[0].status = 403;
    scenes[2].method = "PATCH";
    recorder_tell(recorder, &note);
    recorder_tell(recorder, &note);
    cr_assert_eq(kube_waiting(play.kube) + kube_in_flight(play.kube), 1);
    until_idle(&play);
    recorder_tell(recorder, &note);
    recorder_tell(recorder, &note);
    until_idle(&play);
    cr_assert_eq(count_of(&play, "POST "), 2, "%s", str_text(&play.asked));
    cr_assert_eq(count_of(&play, "\"series\":{\"count\":2,"), 1, "%s", str_text(&play.asked));
    cr_assert_eq(recorder_lost(recorder), 1);
    recorder_free(recorder);
    play_close(&play);
}

Test(recorder, one_object_can_not_fill_the_store)
{
    struct scene scenes[26];
    struct play play;
    struct recorder *recorder = open_recorder(&play, scenes, 26);
    for (int i = 0; i < 100; i++)
        tell_number(recorder, i);
    cr_assert_eq(recorder_lost(recorder), 75);
    struct kube_note note = note_of("of another");
    note.uid = "u-2";
    recorder_tell(recorder, &note);
    until_idle(&play);
    cr_assert_eq(stub_requests(play.stub), 26);
    recorder_free(recorder);
    play_close(&play);
}

Test(recorder, a_warning_is_told_however_much_else_there_was_to_tell)
{
    struct scene scenes[26];
    struct play play;
    struct recorder *recorder = open_recorder(&play, scenes, 26);
    for (int i = 0; i < 100; i++) { /* as one that saves every second */
        char text[32];
        snprintf(text, sizeof text, "step %d", i);
        struct kube_note note = note_of(text);
        recorder_tell(recorder, &note);
    }
    struct kube_note note = note_of("the store does not take checkpoints");
    note.warning = true;
    recorder_tell(recorder, &note);
    until_idle(&play);
    cr_assert_eq(count_of(&play, "the store does not take checkpoints"), 1);
    recorder_free(recorder);
    play_close(&play);
}

Test(recorder, a_long_sentence_is_cut_between_two_characters)
{
    struct scene scenes[1];
    char text[2000] = "";
    struct play play;
    struct recorder *recorder = open_recorder(&play, scenes, 1);
    for (int i = 0; i < 700; i++)
        memcpy(text + 2 * i + 1, "\xc3\xa9", 2);
    text[0] = 'x';
    struct kube_note note = note_of(text);
    recorder_tell(recorder, &note);
    until_idle(&play);
    const char *begun = strstr(str_text(&play.asked), "\"note\":\"x");
    cr_assert_not_null(begun, "%s", str_text(&play.asked));
    size_t bytes = strcspn(begun + 8, "\"");
    cr_assert_geq(bytes, 1021);
    cr_assert_leq(bytes, 1024);
    cr_assert_eq(strncmp(begun + 8 + bytes - 2, "\xc3\xa9", 2), 0, "the last character is whole");
    recorder_free(recorder);
    play_close(&play);
}
