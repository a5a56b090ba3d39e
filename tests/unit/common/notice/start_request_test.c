/* Which of a machine's events its cloud is told to begin with, and how. */
#include "common/notice/start_request.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"

static struct watch w;
static struct start_request request;

static void hear(enum watch_cloud cloud, enum notice_source source, const char *id, bool startable)
{
    struct notice told = {.source = source,
                          .cause = NOTICE_CAUSE_RECLAIM,
                          .certainty = NOTICE_WILL,
                          .until = RM_NEVER,
                          .startable = startable};
    text_copy(told.id, sizeof told.id, id);
    w.cloud = cloud;
    notices_take(&w.notices, &told);
}

static void arrange(void)
{
    watch_init(&w, 1, RM_S);
}

static void dismiss(void)
{
    str_clear(&request.body);
}

Test(start_request, what_names_this_machine_alone_is_asked_for_by_its_name_in_azures_words, .init = arrange,
     .fini = dismiss)
{
    hear(WATCH_AZURE, NOTICE_AZURE, "f020ba2e-3bc0-4c40-a10b-86575a9eabd5", true);
    cr_assert(start_request_write(&w, &request));
    cr_assert_str_eq(request.path, "/metadata/scheduledevents?api-version=2020-07-01");
    cr_assert_str_eq(request.header, "Metadata: true");
    cr_assert_str_eq(str_text(&request.body),
                     "{\"StartRequests\":[{\"EventId\":\"f020ba2e-3bc0-4c40-a10b-86575a9eabd5\"}]}");
    cr_assert_eq(request.events, 1);
}

Test(start_request, another_machines_event_beside_it_is_left_alone, .init = arrange, .fini = dismiss)
{
    hear(WATCH_AZURE, NOTICE_AZURE, "E-1", false);
    cr_assert_not(start_request_write(&w, &request));
    hear(WATCH_AZURE, NOTICE_AZURE, "E-2", true);
    cr_assert(start_request_write(&w, &request));
    cr_assert_str_eq(str_text(&request.body), "{\"StartRequests\":[{\"EventId\":\"E-2\"}]}");
}

Test(start_request, no_other_clouds_notice_is_begun, .init = arrange)
{
    hear(WATCH_AWS, NOTICE_AWS_SPOT, "E-1", true);
    cr_assert_not(start_request_write(&w, &request));
    w.cloud = WATCH_AZURE; /* it was another one's, and stands until that is heard to be over */
    cr_assert_not(start_request_write(&w, &request));
}

/* The newest word counts: a second machine was named, or it has begun. */
Test(start_request, what_is_told_again_of_an_event_counts, .init = arrange)
{
    hear(WATCH_AZURE, NOTICE_AZURE, "E-1", true);
    hear(WATCH_AZURE, NOTICE_AZURE, "E-1", false);
    cr_assert_not(start_request_write(&w, &request));
}

Test(start_request, as_many_as_there_may_be_have_room, .init = arrange, .fini = dismiss)
{
    for (int i = 0; i < NOTICES_MAX; i++) {
        char id[NOTICE_ID_MAX];
        snprintf(id, sizeof id, "%0*d", NOTICE_ID_MAX - 1, i);
        hear(WATCH_AZURE, NOTICE_AZURE, id, true);
    }
    cr_assert(start_request_write(&w, &request));
    cr_assert_eq(request.events, NOTICES_MAX);
    cr_assert_not(request.body.truncated);
}
