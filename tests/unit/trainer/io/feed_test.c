/* A trainer's end of its data: what it asks for, and what it makes of whatever comes back. */
#include "trainer/io/feed.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/storage/data/feed_wire.h"

enum { CHUNK = 1000, PLACES = 4, FIRST = 2500, SECOND = 700 };

static const char listing[] =
    "{\"files\":[{\"bytes\":2500,\"name\":\"a\",\"skip\":0,\"tag\":\"x\"},"
    "{\"bytes\":700,\"name\":\"b\",\"skip\":0,\"tag\":\"y\"}],\"version\":1,\"width\":1}";

/* --- an agent that says what a test wants said --- */

struct agent {
    int fd, feed_fd; /* its end and the trainer's */
    pthread_t thread;
    bool running;
    void (*answer)(struct agent *agent, struct feed_want want);
    int asked;
    atomic_int hung;
    struct feed *feed;
};

static uint8_t byte_at(int64_t file, int64_t at)
{
    return (uint8_t)(at * 7 + file * 31 + at / 256);
}

static int file_of(const void *bytes, size_t count)
{
    int fd = memfd_create("answer", MFD_CLOEXEC);
    cr_assert(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
    return fd;
}

static void say(const struct agent *agent, const struct feed_answer *what, int file_fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec bytes = {(void *)(uintptr_t)what, sizeof *what};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (file_fd >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(&control.header), &file_fd, sizeof file_fd);
    }
    sendmsg(agent->fd, &message, MSG_NOSIGNAL);
    if (file_fd >= 0)
        close(file_fd);
}

static void say_listing(const struct agent *agent)
{
    struct feed_answer what = {
        .file = FEED_LISTING, .chunk = CHUNK, .places = PLACES, .bytes = sizeof listing - 1};
    say(agent, &what, file_of(listing, sizeof listing - 1));
}

static int64_t bytes_of(struct feed_want want)
{
    int64_t left = (want.file ? SECOND : FIRST) - want.chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static void say_chunk(struct agent *agent, struct feed_want want)
{
    uint8_t bytes[CHUNK];
    struct feed_answer what = {.file = want.file, .chunk = want.chunk, .bytes = bytes_of(want)};
    for (int64_t i = 0; i < what.bytes; i++)
        bytes[i] = byte_at(want.file, want.chunk * CHUNK + i);
    say(agent, &what, file_of(bytes, (size_t)what.bytes));
}

static void *agent_main(void *ctx)
{
    struct agent *agent = ctx;
    struct feed_want want;
    while (recv(agent->fd, &want, sizeof want, 0) == (ssize_t)sizeof want) {
        agent->asked++;
        agent->answer(agent, want);
    }
    return NULL;
}

static void agent_open(struct agent *agent, void (*answer)(struct agent *agent, struct feed_want want))
{
    int pair[2];
    *agent = (struct agent){.answer = answer};
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    agent->fd = pair[0];
    agent->feed_fd = pair[1];
}

static void agent_close(struct agent *agent)
{
    feed_free(agent->feed);
    shutdown(agent->fd, SHUT_RDWR);
    if (agent->running)
        pthread_join(agent->thread, NULL);
    close(agent->fd);
    close(agent->feed_fd);
}

/* With the listing said, and its thread at work. */
static void serve(struct agent *agent, void (*answer)(struct agent *agent, struct feed_want want))
{
    struct error err = {0};
    agent_open(agent, answer);
    say_listing(agent);
    cr_assert_eq(feed_open(&agent->feed, &(struct feed_options){.fd = agent->feed_fd}, &err), 0, "%s",
                 err.text);
    cr_assert_eq(pthread_create(&agent->thread, NULL, agent_main, agent), 0);
    agent->running = true;
}

static int read_at(struct agent *agent, int64_t file, int64_t from, uint8_t *out, int64_t count,
                   struct error *err)
{
    struct corpus_source source = feed_source(agent->feed);
    return source.read(source.ctx, file, from, out, count, err);
}

static void expect_bytes(struct agent *agent, int64_t file, int64_t from, int64_t count)
{
    uint8_t out[FIRST];
    struct error err = {0};
    cr_assert_eq(read_at(agent, file, from, out, count, &err), 0, "%s", err.text);
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(out[i], byte_at(file, from + i), "byte %lld of %lld", (long long)(from + i),
                     (long long)file);
}

static void expect_error(struct agent *agent, int64_t from, enum error_code code, const char *words)
{
    uint8_t out[10];
    struct error err = {0};
    cr_assert_eq(read_at(agent, 0, from, out, sizeof out, &err), -1);
    cr_assert_eq(err.code, code, "%s", err.text);
    cr_assert(strstr(err.text, words), "%s", err.text);
}

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    cr_assert_not_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* --- what is good --- */

Test(feed, bytes_come_from_wherever_they_lie)
{
    struct agent a;
    serve(&a, say_chunk);
    cr_assert_eq(feed_listing(a.feed)->count, 2);
    expect_bytes(&a, 0, 0, FIRST);
    expect_bytes(&a, 0, 990, 20);
    expect_bytes(&a, 1, 699, 1);
    cr_assert_eq(a.asked, 4, "each chunk was asked for once");
    agent_close(&a);
}

Test(feed, what_is_wanted_early_is_asked_for_once)
{
    struct agent a;
    serve(&a, say_chunk);
    struct corpus_source source = feed_source(a.feed);
    source.want(source.ctx, 0, 0, 1500);
    source.want(source.ctx, 0, 500, 100);
    source.want(source.ctx, 0, 0, 0);
    expect_bytes(&a, 0, 0, 1500);
    cr_assert_eq(a.asked, 2);
    agent_close(&a);
}

static void twice(struct agent *agent, struct feed_want want)
{
    say_chunk(agent, (struct feed_want){1 - want.file, 0}); /* nobody asked */
    say(agent, &(struct feed_answer){.file = 77, .chunk = 77, .bytes = 1}, file_of("x", 1));
    say_chunk(agent, want);
    say_chunk(agent, want);
}

Test(feed, what_nobody_asked_for_is_put_away)
{
    struct agent a;
    int before = open_files();
    serve(&a, twice);
    expect_bytes(&a, 0, 0, FIRST);
    expect_bytes(&a, 1, 0, SECOND);
    expect_bytes(&a, 0, 0, FIRST);
    agent_close(&a);
    cr_assert_eq(open_files(), before);
}

/* --- what is not --- */

static void expect_no_beginning(struct feed_answer what, int fd, enum error_code code, const char *words)
{
    struct agent a;
    struct error err = {0};
    agent_open(&a, NULL);
    say(&a, &what, fd);
    cr_assert_eq(feed_open(&a.feed, &(struct feed_options){.fd = a.feed_fd}, &err), -1);
    cr_assert_eq(err.code, code, "%s", err.text);
    cr_assert(strstr(err.text, words), "%s", err.text);
    agent_close(&a);
}

static int listing_file(void)
{
    return file_of(listing, sizeof listing - 1);
}

Test(feed, an_agent_that_begins_otherwise_is_refused)
{
    const char *no = "does not begin with the data's listing";
    struct feed_answer good = {
        .file = FEED_LISTING, .chunk = CHUNK, .places = PLACES, .bytes = sizeof listing - 1};
    struct feed_answer what = good;
    what.file = 0;
    expect_no_beginning(what, listing_file(), ERR_PROTOCOL, no);
    what = good;
    what.chunk = 0;
    expect_no_beginning(what, listing_file(), ERR_PROTOCOL, no);
    what = good;
    what.places = FEED_PLACES_LEAST - 1;
    expect_no_beginning(what, listing_file(), ERR_PROTOCOL, no);
    what.places = FEED_PLACES_MAX + 1;
    expect_no_beginning(what, listing_file(), ERR_PROTOCOL, no);
    what = good;
    expect_no_beginning(what, -1, ERR_PROTOCOL, no);
    what.bytes = 1 << 20; /* more than the file has */
    expect_no_beginning(what, listing_file(), ERR_PROTOCOL, no);
    what = good;
    expect_no_beginning(what, file_of(listing + 1, sizeof listing - 1), ERR_DATA, "the data's listing");
}

Test(feed, why_there_is_no_data_comes_from_the_agent)
{
    struct feed_answer what = {.file = FEED_LISTING, .code = ERR_USAGE, .text = "no such bucket"};
    expect_no_beginning(what, -1, ERR_USAGE, "no such bucket");
}

Test(feed, whose_fault_it_is_comes_from_the_agent_too)
{
    struct feed_answer what = {
        .file = FEED_LISTING, .code = ERR_MACHINE, .class = CLASS_PASSING, .person = 1, .text = "denied"};
    struct error err = {0};
    struct agent a;
    agent_open(&a, NULL);
    say(&a, &what, -1);
    cr_assert_eq(feed_open(&a.feed, &(struct feed_options){.fd = a.feed_fd}, &err), -1);
    cr_assert(err.class == CLASS_PASSING && err.person, "%s", err.text);
    agent_close(&a);
}

Test(feed, half_a_message_is_no_message)
{
    struct agent a;
    struct error err = {0};
    agent_open(&a, NULL);
    cr_assert_eq(send(a.fd, listing, 10, 0), 10);
    cr_assert_eq(feed_open(&a.feed, &(struct feed_options){.fd = a.feed_fd}, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    agent_close(&a);
}

static void refuse_second_chunk(struct agent *agent, struct feed_want want)
{
    struct feed_answer no = {
        .file = want.file, .chunk = want.chunk, .code = ERR_DATA, .text = "a: it has changed"};
    if (want.chunk == 1)
        say(agent, &no, -1);
    else
        say_chunk(agent, want);
}

Test(feed, an_error_is_that_of_who_needs_the_bytes)
{
    struct agent a;
    serve(&a, refuse_second_chunk);
    struct corpus_source source = feed_source(a.feed);
    source.want(source.ctx, 0, 1000, 10);
    expect_bytes(&a, 0, 0, 100);
    expect_error(&a, 1000, ERR_DATA, "a: it has changed");
    expect_bytes(&a, 0, 2000, 100);
    agent_close(&a);
}

static void of_another_size(struct agent *agent, struct feed_want want)
{
    struct feed_answer what = {.file = want.file, .chunk = want.chunk, .bytes = CHUNK - 1};
    say(agent, &what, file_of("x", 1));
}

static void cut_short(struct agent *agent, struct feed_want want)
{
    struct feed_answer what = {.file = want.file, .chunk = want.chunk, .bytes = bytes_of(want)};
    say(agent, &what, file_of("x", 1));
}

static void without_a_file(struct agent *agent, struct feed_want want)
{
    struct feed_answer what = {.file = want.file, .chunk = want.chunk, .bytes = bytes_of(want)};
    say(agent, &what, -1);
}

Test(feed, a_chunk_that_is_not_all_there_is_refused_and_never_a_signal)
{
    static void (*const wrong[])(struct agent * agent, struct feed_want want) = {of_another_size, cut_short,
                                                                                 without_a_file};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct agent a;
        serve(&a, wrong[i]);
        expect_error(&a, 0, ERR_PROTOCOL, "a chunk of another size");
        agent_close(&a);
    }
}

static void die(struct agent *agent, struct feed_want want)
{
    (void)want;
    shutdown(agent->fd, SHUT_RDWR);
}

Test(feed, an_agent_that_dies_is_the_machines_trouble)
{
    struct agent a;
    serve(&a, die);
    expect_error(&a, 0, ERR_MACHINE, "the agent gives no more data");
    expect_error(&a, 0, ERR_MACHINE, "the agent");
    agent_close(&a);
}

static void hang(struct agent *agent, struct feed_want want)
{
    (void)want;
    atomic_store(&agent->hung, 1);
    feed_stop(agent->feed);
}

Test(feed, a_read_that_waits_is_given_up_on_demand)
{
    struct agent a;
    serve(&a, hang);
    expect_error(&a, 0, ERR_ABORTED, "given up");
    cr_assert(atomic_load(&a.hung));
    agent_close(&a);
}
