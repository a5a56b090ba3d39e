/* The thread that answers the trainer's requests for chunks of data: from the cache where they are there,
 * else from the store, checked and kept in the cache on the way. */
#include "agent/storage/data_feed.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/file.h"
#include "common/os/log.h"
#include "common/storage/checkpoint/data_listing.h"
#include "common/storage/checkpoint/place.h"
#include "common/storage/data/cache.h"
#include "common/storage/data/feed_wire.h"

enum {
    CHUNK_LARGE = 4 << 20,   /* where all data has room in the cache */
    CHUNK_SMALL = 256 << 10, /* where it hasn't: a sample brings less along that is thrown away unread */
    NAP_MS = 10,             /* while another program fetches a chunk */
    AWAY_MS = 1000,          /* between two tries at a store that is away */
    LOOKS_MOST = 8,          /* at a file that comes with other bytes each time */
};

/* One chunk on its way. */
struct fetch {
    struct feed_want want;
    int64_t bytes;
    char key[CACHE_KEY_MAX];
    uint8_t *into;
    int claim; /* the cache's; -1: fetched without it */
};

struct data_feed {
    const struct job_spec *spec;
    pthread_t thread;
    bool started;
    atomic_int cancel;
    int fd; /* ours; the thread's while it runs */

    /* the thread's */
    struct object_store *data;
    struct cache *cache; /* NULL: it can't be used */
    struct listing listing;
    struct str text;
    bool listed;
    int64_t chunk_bytes;
    int64_t *first;     /* (files + 1): number of each file's first chunk */
    uint8_t *verified;  /* a bit for each chunk: taken up by us before */
    rm_time away_since; /* 0: the store answers */
    uint8_t *room;      /* (FEED_BATCH_BYTES) */
    struct feed_want waiting[FEED_ASKED_MAX];
    int waiting_count;
    struct fetch fetch[FEED_ASKED_MAX];
    int fetch_count;
};

/* ---- answers ---- */

/* Takes over file_fd. -1: the trainer is gone. */
static int answer_trainer(struct data_feed *f, const struct feed_answer *what, int file_fd)
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
    ssize_t n;
    do
        n = sendmsg(f->fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (file_fd >= 0)
        close(file_fd);
    return n == (ssize_t)sizeof *what ? 0 : -1;
}

static int answer_chunk(struct data_feed *f, const struct fetch *fetch, int file_fd)
{
    struct feed_answer what = {
        .file = fetch->want.file, .chunk = fetch->want.chunk, .bytes = fetch->bytes, .code = ERR_NONE};
    return answer_trainer(f, &what, file_fd);
}

static int answer_error(struct data_feed *f, struct feed_want want, const struct error *why)
{
    struct feed_answer what = {.file = want.file,
                               .chunk = want.chunk,
                               .code = (int32_t)why->code,
                               .class = (int32_t)why->class,
                               .person = why->person};
    text_copy(what.text, sizeof what.text, why->text);
    return answer_trainer(f, &what, -1);
}

/* ---- a store that is away ---- */

/* By itself, or because somebody mends a key while training waits. */
static bool may_heal(const struct error *why)
{
    return why->code == ERR_MACHINE || why->class == CLASS_PASSING;
}

/* Is it worth another try, a moment from now? */
static bool try_again(struct data_feed *f, const struct error *why)
{
    struct pollfd gone = {.fd = f->fd, .events = 0};
    if (!may_heal(why) || atomic_load(&f->cancel))
        return false;
    rm_time now = clock_now();
    if (!f->away_since)
        f->away_since = now;
    if (now - f->away_since > DATA_AWAY_MAX)
        return false;
    log_warn("training waits for its data", "away_s=%lld why=\"%s\"",
             (long long)((now - f->away_since) / RM_S), why->text);
    return poll(&gone, 1, AWAY_MS) == 0;
}

static void is_back(struct data_feed *f)
{
    if (f->away_since)
        log_warn("the data's store answers again", "away_s=%lld",
                 (long long)((clock_now() - f->away_since) / RM_S));
    f->away_since = 0;
}

/* ---- the listing ---- */

static int fetch_listing(struct data_feed *f, struct error *err)
{
    uint8_t sha256[RM_HASH_BYTES];
    struct object_store *place;
    int status;
    if (!hex_decode(f->spec->data.listing, sha256, sizeof sha256))
        return err_set(err, ERR_USAGE, "spec.trainer.data.listing is no hash");
    if (place_open_checkpoints(&place, f->spec, &f->cancel, err) < 0)
        return -1;
    while ((status = data_listing_fetch(place, sha256, &f->listing, &f->text, err)) < 0) {
        listing_clear(&f->listing);
        if (!try_again(f, err))
            break;
    }
    object_free(place);
    if (status == 0)
        is_back(f);
    return status;
}

static int number_chunks(struct data_feed *f, struct error *err)
{
    int64_t count = 0, files = f->listing.count;
    f->chunk_bytes = listing_bytes(&f->listing) <= f->spec->data.cache_bytes ? CHUNK_LARGE : CHUNK_SMALL;
    f->first = calloc((size_t)files + 1, sizeof *f->first);
    f->room = malloc(FEED_BATCH_BYTES);
    for (int64_t i = 0; f->first && i < files; i++) {
        f->first[i] = count;
        count += (f->listing.file[i].bytes + f->chunk_bytes - 1) / f->chunk_bytes;
    }
    f->verified = calloc((size_t)count / 8 + 1, 1);
    if (!f->first || !f->room || !f->verified)
        return err_set(err, ERR_MACHINE, "no memory for the data's chunks");
    f->first[files] = count;
    return 0;
}

static void open_cache(struct data_feed *f)
{
    char folder[RM_URI_MAX];
    struct error err;
    cache_folder(f->spec->data.cache, folder);
    if (cache_open(&f->cache, folder, f->spec->data.cache_bytes, &err) == 0)
        return;
    f->cache = NULL;
    log_warn("data is not cached", "why=\"%s\"", err.text);
}

static int open_all(struct data_feed *f, struct error *err)
{
    struct object_store *data;
    if (f->listed)
        return 0;
    if (place_open_data(&data, f->spec, &f->cancel, err) < 0)
        return -1;
    if (fetch_listing(f, err) < 0 || number_chunks(f, err) < 0) {
        object_free(data);
        return -1;
    }
    f->data = data;
    open_cache(f);
    f->listed = true;
    return 0;
}

/* What a trainer has mapped stays on the disk when the cache deletes it: as much again as the cache, at most.
 */
static int32_t places(const struct data_feed *f)
{
    int64_t fit = f->spec->data.cache_bytes / f->chunk_bytes;
    return (int32_t)(fit < FEED_PLACES_LEAST ? FEED_PLACES_LEAST
                     : fit > FEED_PLACES_MAX ? FEED_PLACES_MAX
                                             : fit);
}

static int answer_listing(struct data_feed *f)
{
    struct feed_answer what = {
        .file = FEED_LISTING, .chunk = f->chunk_bytes, .places = places(f), .bytes = (int64_t)f->text.length};
    struct error err;
    int fd;
    if (file_memory(&fd, "ringmaster-listing", 0, &err) < 0)
        return answer_error(f, (struct feed_want){FEED_LISTING, 0}, &err);
    for (size_t at = 0; at < f->text.length;) {
        ssize_t n = write(fd, f->text.data + at, f->text.length - at);
        if (n <= 0) {
            close(fd);
            return -1;
        }
        at += (size_t)n;
    }
    return answer_trainer(f, &what, fd);
}

/* ---- chunks ---- */

static int64_t number_of(const struct data_feed *f, struct feed_want want)
{
    return f->first[want.file] + want.chunk;
}

static bool is_known(const struct data_feed *f, struct feed_want want)
{
    return want.file >= 0 && want.file < f->listing.count && want.chunk >= 0 &&
           want.chunk < f->first[want.file + 1] - f->first[want.file];
}

static void describe_fetch(const struct data_feed *f, struct feed_want want, struct fetch *ret)
{
    const struct listing_file *file = &f->listing.file[want.file];
    int64_t left = file->bytes - want.chunk * f->chunk_bytes;
    uint8_t hash[RM_HASH_BYTES];
    char numbers[64];
    *ret = (struct fetch){.want = want, .bytes = left < f->chunk_bytes ? left : f->chunk_bytes, .claim = -1};
    struct sha256 *sum = sha256_open();
    snprintf(numbers, sizeof numbers, "%lld %lld %lld", (long long)file->bytes, (long long)f->chunk_bytes,
             (long long)want.chunk);
    sha256_add(sum, f->spec->data.uri, strlen(f->spec->data.uri) + 1);
    sha256_add(sum, file->name, strlen(file->name) + 1);
    sha256_add(sum, file->tag, strlen(file->tag) + 1);
    sha256_add(sum, numbers, strlen(numbers));
    sha256_finish(sum, hash);
    hex_encode(hash, RM_HASH_BYTES / 2, ret->key);
}

static int from_cache(struct data_feed *f, const struct fetch *fetch)
{
    int64_t number = number_of(f, fetch->want);
    uint8_t bit = (uint8_t)(1 << number % 8), *byte = &f->verified[number / 8];
    int fd = f->cache ? cache_take(f->cache, fetch->key, fetch->bytes, !(*byte & bit)) : -1;
    if (fd >= 0)
        *byte |= bit;
    return fd;
}

/* The bytes without the cache. */
static int in_memory(const struct fetch *fetch, struct error *err)
{
    int fd;
    if (file_memory(&fd, "ringmaster-chunk", (uint64_t)fetch->bytes, err) < 0)
        return -1;
    for (int64_t at = 0; at < fetch->bytes;) {
        ssize_t n = pwrite(fd, fetch->into + at, (size_t)(fetch->bytes - at), at);
        if (n <= 0) {
            close(fd);
            return err_errno(err, ERR_MACHINE, "no memory for a chunk of data");
        }
        at += n;
    }
    return fd;
}

static int deliver(struct data_feed *f, struct fetch *fetch)
{
    struct error err;
    int fd = fetch->claim;
    fetch->claim = -1;
    if (fd >= 0 && cache_put(f->cache, fetch->key, fd, fetch->into, fetch->bytes, &err) < 0) {
        log_warn("data is not cached any more", "why=\"%s\"", err.text);
        fd = -1; /* the next ones are claimed in vain as well, and say so */
    }
    if (fd < 0 && (fd = in_memory(fetch, &err)) < 0)
        return answer_error(f, fetch->want, &err);
    return answer_chunk(f, fetch, fd);
}

static int read_objects(struct data_feed *f, struct fetch *fetch, int count, struct error *err)
{
    struct object_range range[FEED_ASKED_MAX];
    int status;
    for (int i = 0; i < count; i++) {
        const struct listing_file *file = &f->listing.file[fetch[i].want.file];
        range[i] = (struct object_range){.name = file->name,
                                         .offset = fetch[i].want.chunk * f->chunk_bytes,
                                         .bytes = fetch[i].bytes,
                                         .into = fetch[i].into,
                                         .tag = file->tag};
    }
    while ((status = object_read(f->data, range, count, err)) < 0 && try_again(f, err))
        continue;
    if (status == 0)
        is_back(f);
    return status;
}

/* Does the store say what the bytes' MD5 is? Of a whole file it does, mostly: as its tag. */
static bool says_md5(const struct data_feed *f, const struct fetch *fetch, uint8_t ret[MD5_BYTES])
{
    const struct listing_file *file = &f->listing.file[fetch->want.file];
    char hex[2 * MD5_BYTES + 1];
    if (!object_is_clear(f->data) || fetch->bytes != file->bytes || file->tag[0] != '"' ||
        strlen(file->tag) != 2 * MD5_BYTES + 2)
        return false;
    text_copy(hex, sizeof hex, file->tag + 1);
    return hex_decode(hex, ret, MD5_BYTES);
}

/* In clear, what a wire has done to a file is found by its tag, and the file read again. A tag may be no MD5
 * (of an encrypted object): what comes twice the same is what lies in the store. */
static int check_file(struct data_feed *f, struct fetch *fetch, struct error *err)
{
    uint8_t said[MD5_BYTES], is[MD5_BYTES], before[MD5_BYTES] = {0};
    if (!says_md5(f, fetch, said))
        return 0;
    for (int look = 0; look < LOOKS_MOST; look++) {
        if (look && read_objects(f, fetch, 1, err) < 0)
            return -1;
        if (!md5_once(fetch->into, (size_t)fetch->bytes, is) || !memcmp(is, said, sizeof is) ||
            (look && !memcmp(is, before, sizeof is)))
            return 0;
        memcpy(before, is, sizeof is);
        log_warn("data came with other bytes than the store has; reading it again", "file=\"%s\"",
                 f->listing.file[fetch->want.file].name);
    }
    return err_set(err, ERR_MACHINE, "%s: it comes with other bytes each time it is read",
                   f->listing.file[fetch->want.file].name);
}

static int read_checked(struct data_feed *f, struct fetch *fetch, int count, struct error *err)
{
    if (read_objects(f, fetch, count, err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (check_file(f, &fetch[i], err) < 0)
            return -1;
    return 0;
}

static int give_up(struct data_feed *f, struct fetch *fetch, const struct error *why)
{
    struct error err = *why;
    if (err.code == ERR_NOT_FOUND)
        err_set(&err, ERR_DATA, "the file is gone");
    else if (err.class == CLASS_PASSING)
        err.code = ERR_MACHINE; /* tried for long enough: what it means is not this agent's to say */
    if (fetch->claim >= 0)
        cache_drop(f->cache, fetch->key, fetch->claim);
    fetch->claim = -1;
    return answer_error(f, fetch->want, &err);
}

/* One bad file must not be told of others: after a failure each is read alone. */
static int fetch_and_deliver(struct data_feed *f, struct fetch *fetch, int count)
{
    struct error err;
    if (read_checked(f, fetch, count, &err) < 0) {
        if (count == 1 || err.code == ERR_ABORTED || may_heal(&err)) {
            int status = 0;
            for (int i = 0; i < count; i++)
                status |= give_up(f, &fetch[i], &err);
            return status;
        }
        for (int i = 0; i < count; i++)
            if (fetch_and_deliver(f, &fetch[i], 1) < 0)
                return -1;
        return 0;
    }
    for (int i = 0; i < count; i++)
        if (deliver(f, &fetch[i]) < 0)
            return -1;
    return 0;
}

/* ---- what is wanted ---- */

/* From the cache, or into the batch; -1: the trainer is gone, 0: another program is fetching it. */
static int take_up(struct data_feed *f, struct feed_want want, int64_t *used)
{
    struct fetch *next = &f->fetch[f->fetch_count];
    struct error err;
    describe_fetch(f, want, next);
    int fd = from_cache(f, next);
    if (fd >= 0)
        return answer_chunk(f, next, fd) < 0 ? -1 : 1;
    int claim = f->cache ? cache_claim(f->cache, next->key, &err) : -1;
    if (claim == CACHE_BUSY)
        return 0;
    /* Between our look and our claim it may have come. */
    fd = claim >= 0 ? from_cache(f, next) : -1;
    if (fd >= 0) {
        cache_drop(f->cache, next->key, claim);
        return answer_chunk(f, next, fd) < 0 ? -1 : 1;
    }
    next->claim = claim;
    next->into = f->room + *used;
    *used += next->bytes;
    f->fetch_count++;
    return 1;
}

/* In the order of the asking, as much as a batch holds; what waits for others stays. */
static int serve_trainer(struct data_feed *f)
{
    struct feed_want left[FEED_ASKED_MAX];
    int count = 0;
    int64_t used = 0;
    f->fetch_count = 0;
    for (int i = 0; i < f->waiting_count; i++) {
        int done = used + f->chunk_bytes > FEED_BATCH_BYTES ? 0 : take_up(f, f->waiting[i], &used);
        if (done < 0)
            return -1;
        if (!done)
            left[count++] = f->waiting[i];
    }
    memcpy(f->waiting, left, (size_t)count * sizeof *left);
    f->waiting_count = count;
    int status = f->fetch_count ? fetch_and_deliver(f, f->fetch, f->fetch_count) : 0;
    for (int i = 0; i < f->fetch_count; i++) /* of a trainer that has gone meanwhile */
        if (f->fetch[i].claim >= 0)
            cache_drop(f->cache, f->fetch[i].key, f->fetch[i].claim);
    return status;
}

static int take_wishes(struct data_feed *f)
{
    struct feed_want want;
    while (f->waiting_count < FEED_ASKED_MAX) {
        ssize_t n = recv(f->fd, &want, sizeof want, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n != (ssize_t)sizeof want || !is_known(f, want))
            return -1;
        f->waiting[f->waiting_count++] = want;
    }
    return 0;
}

static void attend(struct data_feed *f)
{
    struct pollfd fd = {.fd = f->fd, .events = POLLIN};
    struct error err;
    f->waiting_count = 0;
    f->away_since = 0;
    if (open_all(f, &err) < 0) {
        answer_error(f, (struct feed_want){FEED_LISTING, 0}, &err);
        return;
    }
    if (answer_listing(f) < 0)
        return;
    while (!atomic_load(&f->cancel)) {
        if (poll(&fd, 1, f->waiting_count ? NAP_MS : -1) < 0 && errno != EINTR)
            break;
        if (take_wishes(f) < 0 || serve_trainer(f) < 0)
            break;
    }
}

/* Whatever ends it, a trainer that still asks has to be told so; the descriptor itself stays until stop(). */
static void *feed_main(void *ctx)
{
    struct data_feed *f = ctx;
    attend(f);
    shutdown(f->fd, SHUT_RDWR);
    return NULL;
}

/* ---- beginning and end ---- */

int data_feed_open(struct data_feed **ret, const struct job_spec *spec, struct error *err)
{
    *ret = NULL;
    if (!job_data_is_remote(spec))
        return 0;
    struct data_feed *f = calloc(1, sizeof *f);
    if (!f)
        return err_set(err, ERR_MACHINE, "no memory for data");
    f->spec = spec;
    f->fd = -1;
    f->text = str_init(LISTING_TEXT_MAX);
    *ret = f;
    return 0;
}

static void stop_feed(struct data_feed *f)
{
    if (!f->started)
        return;
    atomic_store(&f->cancel, 1);
    shutdown(f->fd, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    atomic_store(&f->cancel, 0);
    close(f->fd);
    f->fd = -1;
    f->started = false;
}

int data_feed_start(struct data_feed *f, int *ret_fd, struct error *err)
{
    int pair[2];
    *ret_fd = -1;
    if (!f)
        return 0;
    stop_feed(f);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(err, ERR_MACHINE, "no socket for data");
    f->fd = pair[0];
    if (pthread_create(&f->thread, NULL, feed_main, f) != 0) {
        close(pair[0]);
        close(pair[1]);
        f->fd = -1;
        return err_set(err, ERR_MACHINE, "no thread for data");
    }
    f->started = true;
    *ret_fd = pair[1];
    return 0;
}

void data_feed_free(struct data_feed *f)
{
    if (!f)
        return;
    stop_feed(f);
    object_free(f->data);
    cache_free(f->cache);
    listing_clear(&f->listing);
    str_clear(&f->text);
    free(f->first);
    free(f->verified);
    free(f->room);
    free(f);
}
