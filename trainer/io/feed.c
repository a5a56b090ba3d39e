/* Asks the agent for chunks of data that lie in a store, and maps what it hands over. */
#include "trainer/io/feed.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/storage/data/feed_wire.h"

enum { POLL_MS = 100 }; /* between two looks at the wish to give up */

enum place_state { PLACE_EMPTY, PLACE_ASKED, PLACE_HERE };

struct place {
    enum place_state state;
    int64_t file, chunk, bytes, used;
    uint8_t *map;
};

struct feed {
    struct feed_options options;
    atomic_int stop;
    struct listing listing;
    int64_t chunk_bytes, clock;
    int places, asked, asked_max;
    struct place place[FEED_PLACES_MAX];
};

static bool given_up(const struct feed *f)
{
    return atomic_load(&f->stop) || (f->options.abort && atomic_load(f->options.abort));
}

/* ---- packets ---- */

/* 1: an answer, with its descriptor or -1; 0: none yet. */
static int receive_answer(const struct feed *f, struct feed_answer *ret, int *ret_fd, struct error *err)
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
    *ret_fd = -1;
    ssize_t n = recvmsg(f->options.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n != (ssize_t)sizeof *ret)
        return err_set(err, ERR_MACHINE, "the agent gives no more data");
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(header), sizeof *ret_fd);
    ret->text[sizeof ret->text - 1] = 0;
    return 1;
}

static int wait_for_answer(const struct feed *f, struct error *err)
{
    struct pollfd fd = {.fd = f->options.fd, .events = POLLIN};
    if (given_up(f))
        return err_set(err, ERR_ABORTED, "reading data was given up");
    if (poll(&fd, 1, POLL_MS) <= 0 && f->options.pulse)
        atomic_fetch_add(f->options.pulse, 1);
    return 0;
}

/* ---- places ---- */

static struct place *find_chunk(struct feed *f, int64_t file, int64_t chunk)
{
    for (int i = 0; i < f->places; i++)
        if (f->place[i].state && f->place[i].chunk == chunk && f->place[i].file == file)
            return &f->place[i];
    return NULL;
}

static void empty_place(struct place *place)
{
    if (place->state == PLACE_HERE)
        munmap(place->map, (size_t)place->bytes);
    place->state = PLACE_EMPTY;
}

/* An empty one, or the one whose chunk was used longest ago: fewer are asked for than there are. */
static struct place *new_place(struct feed *f)
{
    struct place *oldest = NULL;
    for (int i = 0; i < f->places; i++) {
        struct place *place = &f->place[i];
        if (place->state == PLACE_EMPTY)
            return place;
        if (place->state == PLACE_HERE && (!oldest || place->used < oldest->used))
            oldest = place;
    }
    if (oldest)
        empty_place(oldest);
    return oldest;
}

static int ask_chunk(struct feed *f, int64_t file, int64_t chunk, struct error *err)
{
    struct feed_want want = {file, chunk};
    struct place *place = new_place(f);
    if (!place || send(f->options.fd, &want, sizeof want, MSG_NOSIGNAL) != (ssize_t)sizeof want)
        return err_set(err, ERR_MACHINE, "the agent can't be asked for data");
    *place = (struct place){.state = PLACE_ASKED, .file = file, .chunk = chunk, .used = f->clock};
    f->asked++;
    return 0;
}

/* Touching a mapping behind its file's end would be a signal. */
static bool holds(int fd, int64_t bytes)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_size >= bytes;
}

/* Whose fault it is decides whether this machine is left out, or all wait for a store. */
static int told(const struct feed_answer *answer, struct error *err)
{
    struct error why = {.code = (enum error_code)answer->code, .person = answer->person != 0};
    if (answer->class > CLASS_UNKNOWN && answer->class < FAULT_CLASSES)
        why.class = (enum fault_class)answer->class;
    return err_from(err, &why, "%s", answer->text);
}

static int take_answer(struct feed *f, struct place *place, const struct feed_answer *answer, int fd,
                       struct error *err)
{
    f->asked--;
    place->state = PLACE_EMPTY;
    if (answer->code)
        return told(answer, err);
    int64_t left = f->listing.file[place->file].bytes - place->chunk * f->chunk_bytes;
    if (answer->bytes != (left < f->chunk_bytes ? left : f->chunk_bytes) || !holds(fd, answer->bytes))
        return err_set(err, ERR_PROTOCOL, "the agent brings a chunk of another size");
    place->map = mmap(NULL, (size_t)answer->bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (place->map == MAP_FAILED)
        return err_errno(err, ERR_MACHINE, "map a chunk of the data");
    place->bytes = answer->bytes;
    place->used = f->clock;
    place->state = PLACE_HERE;
    return 0;
}

/* Takes what has come. An error is that of the chunk waited for; of others it will be told again. */
static int take_answers(struct feed *f, const struct place *waited_for, struct error *err)
{
    struct feed_answer answer;
    int fd, got;
    while ((got = receive_answer(f, &answer, &fd, err)) > 0) {
        struct error why = {0};
        struct place *place = find_chunk(f, answer.file, answer.chunk);
        bool asked = place && place->state == PLACE_ASKED;
        int status = asked ? take_answer(f, place, &answer, fd, &why) : 0;
        if (fd >= 0)
            close(fd);
        if (status < 0 && place == waited_for) {
            *err = why;
            return -1;
        }
    }
    return got;
}

static struct place *get_chunk(struct feed *f, int64_t file, int64_t chunk, struct error *err)
{
    struct place *place = find_chunk(f, file, chunk);
    while (!place && f->asked >= f->asked_max)
        if (wait_for_answer(f, err) < 0 || take_answers(f, NULL, err) < 0)
            return NULL;
    if (!place && ask_chunk(f, file, chunk, err) < 0)
        return NULL;
    place = find_chunk(f, file, chunk);
    while (place->state != PLACE_HERE)
        if (take_answers(f, place, err) < 0 || (place->state != PLACE_HERE && wait_for_answer(f, err) < 0))
            return NULL;
    return place;
}

/* ---- the corpus's source ---- */

static int read_bytes(void *ctx, int64_t file, int64_t from, uint8_t *out, int64_t count, struct error *err)
{
    struct feed *f = ctx;
    f->clock++;
    while (count > 0) {
        int64_t chunk = from / f->chunk_bytes, at = from % f->chunk_bytes;
        struct place *place = get_chunk(f, file, chunk, err);
        if (!place)
            return -1;
        int64_t here = place->bytes - at < count ? place->bytes - at : count;
        memcpy(out, place->map + at, (size_t)here);
        place->used = f->clock;
        out += here;
        from += here;
        count -= here;
    }
    return 0;
}

/* A wish: whatever goes wrong with it shows when the bytes are read. */
static void want_bytes(void *ctx, int64_t file, int64_t from, int64_t count)
{
    struct feed *f = ctx;
    struct error err;
    int64_t last = (from + count - 1) / f->chunk_bytes;
    f->clock++;
    if (count < 1 || take_answers(f, NULL, &err) < 0)
        return;
    for (int64_t chunk = from / f->chunk_bytes; chunk <= last; chunk++) {
        struct place *place = find_chunk(f, file, chunk);
        if (place)
            place->used = f->clock;
        else if (f->asked >= f->asked_max || ask_chunk(f, file, chunk, &err) < 0)
            return;
    }
}

struct corpus_source feed_source(struct feed *f)
{
    return (struct corpus_source){.listing = &f->listing, .read = read_bytes, .want = want_bytes, .ctx = f};
}

const struct listing *feed_listing(const struct feed *f)
{
    return &f->listing;
}

/* ---- beginning and end ---- */

static int read_listing(struct feed *f, const struct feed_answer *answer, int fd, struct error *err)
{
    if (answer->code)
        return told(answer, err);
    bool fits = answer->chunk > 0 && answer->places >= FEED_PLACES_LEAST && answer->places <= FEED_PLACES_MAX;
    if (answer->file != FEED_LISTING || !fits || answer->bytes < 1 || !holds(fd, answer->bytes))
        return err_set(err, ERR_PROTOCOL, "the agent does not begin with the data's listing");
    char *text = mmap(NULL, (size_t)answer->bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (text == MAP_FAILED)
        return err_errno(err, ERR_MACHINE, "map the data's listing");
    int status = listing_read(&f->listing, text, (size_t)answer->bytes, "the data's listing", err);
    munmap(text, (size_t)answer->bytes);
    f->chunk_bytes = answer->chunk;
    f->places = answer->places;
    f->asked_max = f->places / 2 < FEED_ASKED_MAX ? f->places / 2 : FEED_ASKED_MAX;
    return status;
}

static int await_listing(struct feed *f, struct error *err)
{
    struct feed_answer answer;
    int fd, got;
    while ((got = receive_answer(f, &answer, &fd, err)) == 0)
        if (wait_for_answer(f, err) < 0)
            return -1;
    int status = got < 0 ? -1 : read_listing(f, &answer, fd, err);
    if (fd >= 0)
        close(fd);
    return status;
}

int feed_open(struct feed **ret, const struct feed_options *options, struct error *err)
{
    struct feed *f = calloc(1, sizeof *f);
    if (!f)
        return err_set(err, ERR_MACHINE, "no memory for data");
    f->options = *options;
    if (await_listing(f, err) < 0) {
        feed_free(f);
        return -1;
    }
    *ret = f;
    return 0;
}

void feed_stop(struct feed *f)
{
    if (f)
        atomic_store(&f->stop, 1);
}

void feed_free(struct feed *f)
{
    if (!f)
        return;
    for (int i = 0; i < f->places; i++)
        empty_place(&f->place[i]);
    listing_clear(&f->listing);
    free(f);
}
