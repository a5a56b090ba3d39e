/* The agent's side of data in an object store, asked by hand over its socket; the store is a stub. */
#include "agent/storage/data_feed.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/data_listing.h"
#include "common/storage/data/feed_wire.h"
#include "tests/unit/common/net/stub.h"

enum { LARGE = 700 << 10, SMALL = 1000, CHUNK = 256 << 10, WAIT_MS = 60000 };

enum harm {
    NO_HARM,
    GONE,
    CHANGED,
    FLIPPED_ONCE,
    FLIPPED_ALWAYS,
    OTHER_EACH_TIME,
    AWAY_ONCE,
    DENIED_ONCE,
    SILENT
};

struct desk {
    struct stub *stub;
    struct data_feed *feed;
    struct job_spec spec;
    char folder[64];
    uint8_t large[LARGE], small[SMALL];
    char small_tag[40]; /* its MD5, as S3 has it */
    enum harm harm;     /* to the small file */
    atomic_int small_reads, flips;
    int fd; /* the trainer's end */
};

/* --- the store --- */

static enum stub_then harmed(struct desk *d, const char *bytes, int64_t count, struct str *answer)
{
    char copy[SMALL];
    memcpy(copy, bytes, (size_t)count);
    copy[count / 2] =
        (char)(copy[count / 2] ^ (d->harm == OTHER_EACH_TIME ? atomic_fetch_add(&d->flips, 1) + 1 : 1));
    str_add(answer, copy, (size_t)count);
    return STUB_KEEP;
}

static enum stub_then refuse(struct str *answer, int status, const char *code)
{
    char body[200];
    int length = snprintf(body, sizeof body, "<Error><Code>%s</Code></Error>", code);
    stub_say(answer, status, "", body, (size_t)length);
    return STUB_KEEP;
}

static enum stub_then give(void *ctx, const struct stub_request *request, struct str *answer)
{
    struct desk *d = ctx;
    long from = 0, to = 0;
    bool small = strstr(request->target, "small") != NULL;
    const char *tag = stub_header(request, "If-Match");
    const char *bytes = (const char *)(small ? d->small : d->large);
    int reads = small ? atomic_fetch_add(&d->small_reads, 1) : 0;
    enum harm harm = small ? d->harm : NO_HARM;
    if (harm == GONE)
        return refuse(answer, 404, "NoSuchKey");
    if (harm == CHANGED || strcmp(tag, small ? d->small_tag : "\"large-2\"") != 0)
        return refuse(answer, 412, "PreconditionFailed");
    if (harm == AWAY_ONCE && reads == 0)
        return refuse(answer, 503, "SlowDown");
    if (harm == DENIED_ONCE && reads == 0)
        return refuse(answer, 403, "InvalidAccessKeyId");
    if (harm == SILENT)
        return STUB_HANG;
    cr_assert_eq(sscanf(stub_header(request, "Range"), "bytes=%ld-%ld", &from, &to), 2);
    str_addf(
        answer,
        "HTTP/1.1 206 Some\r\nContent-Length: %ld\r\nContent-Range: bytes %ld-%ld/%d\r\nETag: %s\r\n\r\n",
        to + 1 - from, from, to, small ? SMALL : LARGE, small ? d->small_tag : "\"large-2\"");
    if (harm == FLIPPED_ALWAYS || harm == OTHER_EACH_TIME || (harm == FLIPPED_ONCE && reads == 0))
        return harmed(d, bytes + from, to + 1 - from, answer);
    str_add(answer, bytes + from, (size_t)(to + 1 - from));
    return STUB_KEEP;
}

/* --- the job --- */

static void tag_small(struct desk *d)
{
    uint8_t md5[MD5_BYTES];
    char hex[2 * MD5_BYTES + 1];
    cr_assert(md5_once(d->small, SMALL, md5));
    hex_encode(md5, sizeof md5, hex);
    snprintf(d->small_tag, sizeof d->small_tag, "\"%s\"", hex);
}

static void keep_listing(struct desk *d)
{
    struct listing listing = {.width = 1};
    struct object_store *place;
    struct error err = {0};
    uint8_t hash[RM_HASH_BYTES];
    cr_assert_eq(listing_add(&listing, "large", LARGE, "\"large-2\"", &err), 0);
    cr_assert_eq(listing_add(&listing, "small", SMALL, d->small_tag, &err), 0);
    cr_assert_eq(object_open(&place, &(struct object_options){.uri = d->spec.checkpoint.uri}, &err), 0);
    cr_assert_eq(data_listing_keep(place, &listing, hash, &err), 0, "%s", err.text);
    hex_encode(hash, sizeof hash, d->spec.data.listing);
    object_free(place);
    listing_clear(&listing);
}

static struct desk *desk_open(int64_t cache_bytes)
{
    struct desk *d = calloc(1, sizeof *d);
    struct error err = {0};
    d->fd = -1;
    crypto_random(d->large, sizeof d->large);
    crypto_random(d->small, sizeof d->small);
    tag_small(d);
    d->stub = stub_open(give, d);
    text_copy(d->folder, sizeof d->folder, "/tmp/rm-feed-XXXXXX");
    cr_assert_not_null(mkdtemp(d->folder));
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "a-secret", 1);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    text_copy(d->spec.data.uri, sizeof d->spec.data.uri, "s3://bucket/data");
    snprintf(d->spec.data.endpoint, sizeof d->spec.data.endpoint, "http://127.0.0.1:%d", stub_port(d->stub));
    snprintf(d->spec.data.cache, sizeof d->spec.data.cache, "file://%s/cache", d->folder);
    snprintf(d->spec.checkpoint.uri, sizeof d->spec.checkpoint.uri, "file://%s/checkpoints", d->folder);
    d->spec.data.cache_bytes = cache_bytes;
    keep_listing(d);
    cr_assert_eq(data_feed_open(&d->feed, &d->spec, &err), 0, "%s", err.text);
    return d;
}

static void desk_close(struct desk *d)
{
    char command[128];
    data_feed_free(d->feed);
    if (d->fd >= 0)
        close(d->fd);
    stub_free(d->stub);
    snprintf(command, sizeof command, "rm -rf %s", d->folder);
    cr_assert_eq(system(command), 0);
    free(d);
}

/* --- a trainer by hand --- */

/* The next answer and its file; false: the agent has hung up. */
static bool hear(struct desk *d, struct feed_answer *ret, int *ret_fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec bytes = {ret, sizeof *ret};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct pollfd fd = {.fd = d->fd, .events = POLLIN};
    *ret_fd = -1;
    cr_assert_eq(poll(&fd, 1, WAIT_MS), 1, "no answer");
    ssize_t n = recvmsg(d->fd, &message, MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return false;
    cr_assert_eq(n, (ssize_t)sizeof *ret);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header)
        memcpy(ret_fd, CMSG_DATA(header), sizeof *ret_fd);
    return true;
}

static struct feed_answer begin(struct desk *d)
{
    struct feed_answer answer;
    struct error err = {0};
    int file;
    if (d->fd >= 0)
        close(d->fd);
    cr_assert_eq(data_feed_start(d->feed, &d->fd, &err), 0, "%s", err.text);
    cr_assert(hear(d, &answer, &file));
    cr_assert_eq(answer.file, FEED_LISTING);
    if (file >= 0)
        close(file);
    return answer;
}

static void ask(struct desk *d, int64_t file, int64_t chunk)
{
    struct feed_want want = {file, chunk};
    cr_assert_eq(send(d->fd, &want, sizeof want, MSG_NOSIGNAL), (ssize_t)sizeof want);
}

static void expect_chunk(struct desk *d)
{
    struct feed_answer answer;
    int file;
    cr_assert(hear(d, &answer, &file));
    cr_assert_eq(answer.code, ERR_NONE, "%s", answer.text);
    const uint8_t *bytes = answer.file ? d->small : d->large + answer.chunk * CHUNK;
    uint8_t *map = mmap(NULL, (size_t)answer.bytes, PROT_READ, MAP_SHARED, file, 0);
    cr_assert_neq(map, MAP_FAILED);
    cr_assert_arr_eq(map, bytes, (size_t)answer.bytes);
    munmap(map, (size_t)answer.bytes);
    close(file);
}

static void expect_error(struct desk *d, enum error_code code, const char *words)
{
    struct feed_answer answer;
    int file;
    cr_assert(hear(d, &answer, &file));
    cr_assert_eq(answer.code, (int32_t)code, "%s", answer.text);
    cr_assert(strstr(answer.text, words), "%s", answer.text);
    cr_assert_eq(file, -1);
}

/* --- stories --- */

Test(data_feed, begins_with_the_listing_and_brings_what_is_asked_for)
{
    struct desk *d = desk_open(CHUNK);
    struct feed_answer answer = begin(d);
    cr_assert_eq(answer.code, ERR_NONE, "%s", answer.text);
    cr_assert_eq(answer.chunk, CHUNK);
    cr_assert_geq(answer.places, FEED_PLACES_LEAST);
    for (int i = 0; i < 3; i++)
        ask(d, 0, i);
    ask(d, 1, 0);
    for (int i = 0; i < 4; i++)
        expect_chunk(d);
    desk_close(d);
}

Test(data_feed, a_second_trainer_gets_from_the_cache_what_the_first_one_had)
{
    struct desk *d = desk_open(64 << 20);
    cr_assert_gt(begin(d).chunk, LARGE);
    ask(d, 1, 0);
    expect_chunk(d);
    begin(d);
    ask(d, 1, 0);
    expect_chunk(d);
    cr_assert_eq(atomic_load(&d->small_reads), 1);
    desk_close(d);
}

Test(data_feed, whoever_asks_for_what_there_is_not_is_hung_up_on)
{
    static const struct feed_want wrong[] = {{-1, 0}, {2, 0}, {0, -1},
                                             {0, 3},  {1, 1}, {INT64_MAX, INT64_MIN}};
    struct desk *d = desk_open(CHUNK);
    struct feed_answer answer;
    int file;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        begin(d);
        ask(d, wrong[i].file, wrong[i].chunk);
        cr_assert(!hear(d, &answer, &file));
    }
    begin(d);
    cr_assert_eq(send(d->fd, wrong, 3, MSG_NOSIGNAL), 3);
    cr_assert(!hear(d, &answer, &file));
    desk_close(d);
}

static void one_bad_file(enum harm harm, const char *words)
{
    struct desk *d = desk_open(64 << 20);
    d->harm = harm;
    begin(d);
    ask(d, 1, 0);
    expect_error(d, ERR_DATA, words);
    ask(d, 0, 0);
    expect_chunk(d);
    desk_close(d);
}

Test(data_feed, a_file_that_is_gone_or_has_changed_is_told_and_the_others_still_come)
{
    one_bad_file(GONE, "gone");
    one_bad_file(CHANGED, "small");
}

Test(data_feed, a_store_that_turns_one_away_is_asked_again)
{
    struct desk *d = desk_open(64 << 20);
    d->harm = AWAY_ONCE;
    begin(d);
    ask(d, 1, 0);
    expect_chunk(d);
    desk_close(d);
}

static void is_read_twice(enum harm harm)
{
    struct desk *d = desk_open(64 << 20);
    d->harm = harm;
    begin(d);
    ask(d, 1, 0);
    expect_chunk(d);
    cr_assert_eq(atomic_load(&d->small_reads), 2);
    desk_close(d);
}

Test(data_feed, a_store_that_refuses_the_key_is_asked_again_as_somebody_may_mend_it)
{
    is_read_twice(DENIED_ONCE);
}

Test(data_feed, a_byte_that_was_changed_on_its_way_is_found_by_the_tag)
{
    is_read_twice(FLIPPED_ONCE);
}

Test(data_feed, what_comes_twice_the_same_is_believed_as_tags_need_be_no_md5s)
{
    struct desk *d = desk_open(64 << 20);
    struct feed_answer answer;
    int file;
    d->harm = FLIPPED_ALWAYS;
    begin(d);
    ask(d, 1, 0);
    cr_assert(hear(d, &answer, &file));
    cr_assert_eq(answer.code, ERR_NONE);
    cr_assert_eq(atomic_load(&d->small_reads), 2);
    close(file);
    desk_close(d);
}

Test(data_feed, what_comes_otherwise_each_time_is_never_given_on)
{
    struct desk *d = desk_open(64 << 20);
    d->harm = OTHER_EACH_TIME;
    begin(d);
    ask(d, 1, 0);
    expect_error(d, ERR_MACHINE, "small: it comes with other bytes each time");
    desk_close(d);
}

Test(data_feed, a_listing_that_is_not_there_is_told)
{
    struct desk *d = desk_open(64 << 20);
    memset(d->spec.data.listing, 'a', RM_HASH_HEX - 1);
    struct feed_answer answer = begin(d);
    cr_assert_eq(answer.code, ERR_NOT_FOUND, "%s", answer.text);
    desk_close(d);
}

/* The trainer dies, and its agent ends, while a store says nothing. */
Test(data_feed, a_read_that_hangs_keeps_nobody)
{
    struct desk *d = desk_open(64 << 20);
    d->harm = SILENT;
    begin(d);
    ask(d, 1, 0);
    begin(d);
    desk_close(d);
}
