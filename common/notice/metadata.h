/* What a machine's metadata server says of its end, for the three clouds that have one: bodies of answers
 * with status 200 in, words out. Paths and headers are the caller's (docs name them). Pure.
 *
 * A body that is not what the vendor writes is ERR_PROTOCOL, with a sentence that names the source; nothing
 * in *ret is to be used then. Bodies come from a link-local address that others could answer at: texts are
 * bounded, and a word about another machine is no word. */
#ifndef RM_NOTICE_METADATA_H
#define RM_NOTICE_METADATA_H

#include <stddef.h>

#include "common/base/error.h"
#include "common/notice/notice.h"

enum { METADATA_BODY_MAX = 65536, METADATA_WORDS_MAX = 8 };

/* Where all three answer, and how IMDSv2 is asked for a token and then with it. */
#define METADATA_BASE             "http://169.254.169.254"
#define METADATA_AWS_TOKEN_PATH   "/latest/api/token"
#define METADATA_AWS_TOKEN_TTL    "X-aws-ec2-metadata-token-ttl-seconds: 21600"
#define METADATA_AWS_TOKEN_HEADER "X-aws-ec2-metadata-token: "

/* Where Azure tells of its events, and is told to begin with them. */
#define METADATA_AZURE_EVENTS_PATH "/metadata/scheduledevents?api-version=2020-07-01"

/* A moment by the source's clock, where one is told: until_ms is milliseconds since the epoch. A `will`
 * without one is under way. */
struct metadata_word {
    enum notice_certainty certainty;
    enum notice_cause cause;
    bool timed;
    int64_t until_ms;
    char id[NOTICE_ID_MAX];
    bool startable; /* Azure's, that has not begun, names no other machine and has an id that is whole */
};

/* What stands there now. None: count 0. Of more than there is room for, the first ones. */
struct metadata_words {
    int count;
    struct metadata_word word[METADATA_WORDS_MAX];
};

/* text (length): a copy is made, NUL bytes are refused. */

/* .../spot/instance-action: {"action": "terminate", "time": "2017-09-18T08:22:00Z"}; hibernate is
 * under way as soon as it is told. */
int metadata_read_aws_spot(const char *text, size_t length, struct metadata_words *ret, struct error *err);
/* .../events/recommendations/rebalance: {"noticeTime": "..."}: when it was told, which is no deadline. */
int metadata_read_aws_rebalance(const char *text, size_t length, struct metadata_words *ret,
                                struct error *err);
/* .../events/maintenance/scheduled: a list; those that are over or cancelled are none. They may come:
 * NotBefore is the earliest time alone, up to hours before NotAfter, and nothing is told when one begins. */
int metadata_read_aws_maintenance(const char *text, size_t length, struct metadata_words *ret,
                                  struct error *err);
/* instance/preempted: TRUE or FALSE. */
int metadata_read_gce_preempted(const char *text, size_t length, struct metadata_words *ret,
                                struct error *err);
/* instance/maintenance-event: NONE, TERMINATE_ON_HOST_MAINTENANCE; who is migrated stays. */
int metadata_read_gce_maintenance(const char *text, size_t length, struct metadata_words *ret,
                                  struct error *err);
/* Scheduled Events 2020-07-01, of all machines of a group: what names `machine` counts. Freeze only pauses.
 * What is scheduled begins at NotBefore or later: until then it will come, with that time, and after it may,
 * until it has started, which is under way. now_ms: the source's clock. */
int metadata_read_azure(const char *text, size_t length, const char *machine, int64_t now_ms,
                        struct metadata_words *ret, struct error *err);

#endif
