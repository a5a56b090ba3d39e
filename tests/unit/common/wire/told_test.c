/* What the codec carries of rings and data, up to the manifest and the metrics. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/wire/message.h"

Test(told, a_publish_carries_the_ring_whose_state_it_is)
{
    static struct message sent, got;
    struct str text = str_init(RM_FRAME_MAX);
    struct error err = {0};
    message_init(&sent, MSG_PUBLISH);
    sent.term = 4;
    sent.generation = (struct msg_generation){4, 17};
    message_write(&sent, &text);
    cr_assert_eq(message_read(&got, text.data, text.length, &err), 0, "%s", err.text);
    cr_assert_eq(got.generation.term, 4);
    cr_assert_eq(got.generation.n, 17);
    str_clear(&text);
}

Test(told, up_and_progress_tell_of_the_data)
{
    static struct message sent, got;
    struct str text = str_init(RM_FRAME_MAX);
    struct error err = {0};
    message_init(&sent, MSG_UP);
    sent.up.data_files = 3;
    sent.up.data_bytes = (int64_t)1 << 50;
    message_write(&sent, &text);
    cr_assert_eq(message_read(&got, text.data, text.length, &err), 0, "%s", err.text);
    cr_assert_eq(got.up.data_files, 3);
    cr_assert_eq(got.up.data_bytes, (int64_t)1 << 50);
    str_clear(&text);

    text = str_init(RM_FRAME_MAX);
    message_init(&sent, MSG_PROGRESS);
    sent.progress.data_wait = 1500 * RM_MS;
    sent.progress.reduce_time = 20 * RM_MS;
    sent.progress.reduce_bytes = (int64_t)1 << 40;
    sent.progress.second =
        (struct msg_transport){.used = true, .switches = 3, .failures = 2, .why = "a \"cable\""};
    sent.progress.pace =
        (struct msg_pace){.lanes = 9, .lane_us = 4100, .slow = 212, .by = SLOW_BY_STOLEN_TIME};
    message_write(&sent, &text);
    cr_assert_eq(message_read(&got, text.data, text.length, &err), 0, "%s", err.text);
    cr_assert_eq(got.progress.pace.lanes, 9);
    cr_assert_eq(got.progress.pace.lane_us, 4100);
    cr_assert_eq(got.progress.pace.slow, 212);
    cr_assert_eq(got.progress.pace.by, SLOW_BY_STOLEN_TIME);
    cr_assert_eq(got.progress.data_wait, 1500 * RM_MS);
    cr_assert_eq(got.progress.reduce_time, 20 * RM_MS);
    cr_assert_eq(got.progress.reduce_bytes, (int64_t)1 << 40);
    cr_assert(got.progress.second.used);
    cr_assert_eq(got.progress.second.switches, 3);
    cr_assert_eq(got.progress.second.failures, 2);
    cr_assert_str_eq(got.progress.second.why, "a \"cable\"");
    str_clear(&text);
}

/* As one writes that was built before there was anything to say of it. */
Test(told, progress_without_a_second_transport_or_a_pace_is_read_as_without_one)
{
    static const char text[] =
        "{\"type\":\"progress\",\"term\":3,\"generation\":[3,9],\"step\":7,\"saves\":false,\"loss\":5.5,"
        "\"lossKnown\":true,\"gradientNorm\":0.5,\"clipFactor\":1,\"learningRate\":null,\"tokens\":0,"
        "\"stepNs\":0,\"rescaled\":0,\"dataWaitNs\":0,\"reduceNs\":0,\"reduceBytes\":0}";
    struct message got;
    struct error err = {0};
    cr_assert_eq(message_read(&got, text, strlen(text), &err), 0, "%s", err.text);
    cr_assert_eq(got.progress.step, 7);
    cr_assert(!got.progress.second.used && !got.progress.second.switches && !got.progress.second.failures);
}
