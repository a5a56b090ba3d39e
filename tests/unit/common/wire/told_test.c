/* What the codec carries of rings and data, up to the manifest and the metrics. */
#include <criterion/criterion.h>

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
    message_write(&sent, &text);
    cr_assert_eq(message_read(&got, text.data, text.length, &err), 0, "%s", err.text);
    cr_assert_eq(got.progress.data_wait, 1500 * RM_MS);
    cr_assert_eq(got.progress.reduce_time, 20 * RM_MS);
    cr_assert_eq(got.progress.reduce_bytes, (int64_t)1 << 40);
    str_clear(&text);
}
