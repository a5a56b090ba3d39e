/* A stand-in for libnccl.so.2, found by its path, over the stand-in driver's streams. It is built three
 * times, as versions 2.26, 2.28.9 and 2.32 (STANDIN_NCCL); the last has a key for its sockets.
 *
 * Ranks meet in a folder of files, so they may be of one process or of several: NAME/init.RANK says that a
 * rank connects, NAME/RANK.N is what it adds to the N-th sum, and NAME is the beginning of the id. A sum is
 * an entry of a stream that waits for its peers: where one of them is dead, it is stuck until the abort, as
 * the real one is.
 *
 * Its rules are NCCL's, strictly; whoever breaks one is ended with a sentence: an id used by two of a rank or
 * by ranks of another world or version; a sum on a communicator that is not made yet, or with another type,
 * size or number than its peers'; anything after an abort; two threads inside of one communicator; a key that
 * is short, or changes while there is a communicator.
 *
 * RINGMASTER_STANDIN_NCCL (words, with commas between them):
 *     dir=PATH             where ranks meet (needed)
 *     init-hangs           a communicator is never made
 *     init-hangs@N         the N-th of this process is not
 *     init-fails           nor by another try
 *     init-fails@N         the N-th of this process fails
 *     async-error@N        the N-th sum of this process has an error, and takes no part
 *     error-after@N        behind it the communicator has one
 *     sum-hangs            a sum never ends, and nobody has an error
 *     sum-hangs@N          the N-th of this process does not
 *     rests                behind each sum the communicator is in progress for two questions
 *     death-shows          a communicator has an error once a process of its ranks is dead
 *     abort-hangs          an abort never returns
 *     duplicate            no communicator is made: two ranks have one GPU
 *     no-tls               as built without TLS: a key is taken, and then no communicator is made
 *     version=22805        what it says it is */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/backend/cuda/nccl/calls.h"

#define EXPORT                               __attribute__((visibility("default")))
#define EXPORTED_CALL(type, name, arguments) EXPORT type name arguments;
NCCL_CALLS(EXPORTED_CALL)

enum { PATH_MOST = 512, NAME_BYTES = 16, VERSION_WITH_KEY = 23200, WORLD_MOST = 64 };

/* The stand-in driver's, in this process already (standin.h). */
typedef int hand_over_fn(CUstream stream, bool (*ready)(const void *arguments),
                         void (*run)(const void *arguments), const void *arguments, size_t bytes);
typedef void check_fn(const char *what, CUdeviceptr at, size_t bytes);

struct ncclComm {
    struct ncclComm *next; /* all that there ever were: none is forgotten */
    atomic_flag busy;
    atomic_bool made, aborted, failed;
    atomic_int rests; /* for so many questions it is in progress */
    int rank, world, sums;
    bool hangs, unusable;
    char at[PATH_MOST]; /* folder */
};

/* What a rank adds, as it begins in its file. */
struct share {
    int64_t count;
    int type, op, world, version;
};

struct sum {
    struct ncclComm *comm;
    const uint32_t *from;
    uint32_t *to;
    size_t count;
    int n;
    bool lost; /* it takes no part */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over what follows */
static struct ncclComm *comms;
static int inits, living, all_sums;
static atomic_bool keyed;

static _Noreturn void misuse(const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "stand-in NCCL: MISUSE: %s\n", text);
    abort();
}

/* ---- script ---- */

/* What stands behind a word, up to the next comma; NULL: it is not there. */
static const char *setting(const char *word)
{
    const char *text = getenv("RINGMASTER_STANDIN_NCCL");
    const size_t length = strlen(word);
    while (text && *text) {
        if (!strncmp(text, word, length) && strchr("=@,", text[length]))
            return text + length + (text[length] != 0 && text[length] != ',');
        text = strchr(text, ',');
        text += text ? 1 : 0;
    }
    return NULL;
}

static bool is_turn(const char *word, int number)
{
    const char *turn = setting(word);
    return turn && (!*turn || *turn == ',' || strtol(turn, NULL, 10) == number);
}

static int version_said(void)
{
    const char *version = setting("version");
    return version ? (int)strtol(version, NULL, 10) : STANDIN_NCCL;
}

static void folder_of(const char *name, char out[PATH_MOST])
{
    const char *dir = setting("dir");
    if (!dir)
        misuse("RINGMASTER_STANDIN_NCCL has no dir=");
    snprintf(out, PATH_MOST, "%.*s/%s", (int)strcspn(dir, ","), dir, name);
}

/* ---- entering ---- */

static void comm_enter(struct ncclComm *comm, const char *what)
{
    if (!comm)
        misuse("%s of no communicator", what);
    if (atomic_load(&comm->aborted))
        misuse("%s after the communicator's abort", what);
    if (atomic_flag_test_and_set(&comm->busy))
        misuse("%s while another thread is inside of the communicator", what);
}

static void comm_leave(struct ncclComm *comm)
{
    atomic_flag_clear(&comm->busy);
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = version_said();
    return NCCL_SUCCESS;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && result <= NCCL_IN_PROGRESS ? texts[result] : "unknown result code";
}

#if STANDIN_NCCL >= 23200
NCCL_NEWER_CALLS(EXPORTED_CALL)
ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config)
{
    pthread_mutex_lock(&lock);
    bool late = living > 0;
    pthread_mutex_unlock(&lock);
    if (late)
        misuse("a key, or none, while there is a communicator");
    if (config->magic != (unsigned)NCCL_MAGIC || config->size < sizeof *config)
        misuse("a key without its magic number");
    if (config->mode == NCCL_ENCRYPTION_PSK && strlen(config->psk) < NCCL_PSK_LEAST)
        return NCCL_INVALID_ARGUMENT;
    atomic_store(&keyed, config->mode == NCCL_ENCRYPTION_PSK);
    return NCCL_SUCCESS;
}
#endif

/* ---- making and ending ---- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    unsigned char bytes[NAME_BYTES];
    char at[PATH_MOST];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return NCCL_SYSTEM_ERROR;
    memset(id, 0x5a, sizeof *id); /* no byte of it may be lost on its way */
    for (int i = 0; i < NAME_BYTES; i++)
        snprintf(id->internal + 2 * (size_t)i, 3, "%02x", bytes[i]);
    folder_of(id->internal, at);
    return mkdir(at, 0700) == 0 ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}

static void init_path(const struct ncclComm *comm, int rank, char out[PATH_MOST + 32])
{
    snprintf(out, PATH_MOST + 32, "%s/init.%d", comm->at, rank);
}

static void life_path(const struct ncclComm *comm, int rank, char out[PATH_MOST + 32])
{
    snprintf(out, PATH_MOST + 32, "%s/lives.%d", comm->at, rank);
}

/* The lock is let go by the process's end alone. */
static void show_life(const struct ncclComm *comm)
{
    char path[PATH_MOST + 32];
    life_path(comm, comm->rank, path);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
        misuse("%s: %s", path, strerror(errno));
}

/* Of one that has come. */
static bool is_dead(const struct ncclComm *comm, int rank)
{
    char path[PATH_MOST + 32];
    init_path(comm, rank, path);
    if (access(path, F_OK) != 0)
        return false;
    life_path(comm, rank, path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool dead = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return dead;
}

static bool sees_death(const struct ncclComm *comm)
{
    for (int r = 0; r < comm->world && setting("death-shows"); r++)
        if (r != comm->rank && is_dead(comm, r))
            return true;
    return false;
}

static bool id_is_whole(const ncclUniqueId *id)
{
    for (size_t i = 2 * NAME_BYTES + 1; i < sizeof id->internal; i++)
        if (id->internal[i] != 0x5a)
            return false;
    return id->internal[2 * NAME_BYTES] == 0;
}

/* Appears whole or not at all. */
static void write_share(const char *path, const struct share *share, const void *words, size_t bytes)
{
    char before[PATH_MOST + 8];
    snprintf(before, sizeof before, "%s.new", path);
    FILE *f = fopen(before, "wx");
    if (!f)
        misuse("%s: %s", before, strerror(errno));
    if (fwrite(share, sizeof *share, 1, f) != 1 || (bytes && fwrite(words, bytes, 1, f) != 1) ||
        fclose(f) != 0 || rename(before, path) != 0)
        misuse("%s can't be written", path);
}

static FILE *open_share(const char *path, struct share *ret)
{
    FILE *f = fopen(path, "r");
    if (f && fread(ret, sizeof *ret, 1, f) != 1)
        misuse("%s is cut off", path);
    return f;
}

static bool all_have_come(const struct ncclComm *comm)
{
    char path[PATH_MOST + 32];
    for (int r = 0; r < comm->world; r++) {
        struct share said;
        init_path(comm, r, path);
        FILE *f = open_share(path, &said);
        if (!f)
            return false;
        fclose(f);
        if (said.world != comm->world)
            misuse("ranks of one id are in worlds of %d and %d", comm->world, said.world);
        if (said.version != version_said())
            misuse("ranks of one id are of versions %d and %d", version_said(), said.version);
    }
    return true;
}

static void check_config(const ncclConfig_t *config)
{
    if (config->magic != (unsigned)NCCL_MAGIC || config->size != sizeof *config)
        misuse("a config without its magic number or size");
    if (config->blocking != 0)
        misuse("a communicator that blocks");
}

static int count_init(struct ncclComm *comm)
{
    pthread_mutex_lock(&lock);
    int number = ++inits;
    living++;
    comm->next = comms;
    comms = comm;
    pthread_mutex_unlock(&lock);
    return number;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret, int world, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    char path[PATH_MOST + 32];
    struct ncclComm *comm = calloc(1, sizeof *comm);
    check_config(config);
    if (!id_is_whole(&id))
        misuse("an id that nobody made");
    if (rank < 0 || rank >= world || world > WORLD_MOST)
        return NCCL_INVALID_ARGUMENT;
    comm->rank = rank;
    comm->world = world;
    folder_of(id.internal, comm->at);
    int number = count_init(comm);
    comm->hangs = is_turn("init-hangs", number);
    init_path(comm, rank, path);
    if (access(path, F_OK) == 0)
        misuse("rank %d of one id twice", rank);
    const struct share said = {.world = world, .version = version_said()};
    show_life(comm);
    if (!comm->hangs)
        write_share(path, &said, NULL, 0);
    comm->unusable = setting("duplicate") || (atomic_load(&keyed) && setting("no-tls"));
    atomic_store(&comm->failed, comm->unusable || is_turn("init-fails", number));
    *ret = comm;
    return NCCL_IN_PROGRESS;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    comm_enter(comm, "ncclCommGetAsyncError");
    if (!atomic_load(&comm->made) && !comm->hangs && !atomic_load(&comm->failed))
        atomic_store(&comm->made, all_have_come(comm));
    if (sees_death(comm))
        atomic_store(&comm->failed, true);
    bool rests = atomic_load(&comm->rests) > 0 && atomic_fetch_sub(&comm->rests, 1) > 0;
    *error = comm->unusable                       ? NCCL_INVALID_USAGE
             : atomic_load(&comm->failed)         ? NCCL_REMOTE_ERROR
             : atomic_load(&comm->made) && !rests ? NCCL_SUCCESS
                                                  : NCCL_IN_PROGRESS;
    comm_leave(comm);
    return NCCL_SUCCESS;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm_enter(comm, "ncclCommAbort");
    while (setting("abort-hangs"))
        poll(NULL, 0, 1000);
    atomic_store(&comm->aborted, true);
    pthread_mutex_lock(&lock);
    living--;
    pthread_mutex_unlock(&lock);
    comm_leave(comm);
    return NCCL_SUCCESS;
}

/* ---- sums ---- */

static void share_path(const struct sum *s, int rank, int n, char out[PATH_MOST + 32])
{
    snprintf(out, PATH_MOST + 32, "%s/%d.%d", s->comm->at, rank, n);
}

/* Nobody reads what is two sums old. */
static void give_share(const struct sum *s)
{
    char path[PATH_MOST + 32];
    const struct share share = {(int64_t)s->count, NCCL_UINT32, NCCL_SUM, s->comm->world, version_said()};
    share_path(s, s->comm->rank, s->n, path);
    if (access(path, F_OK) == 0)
        return;
    write_share(path, &share, s->from, s->count * sizeof *s->from);
    share_path(s, s->comm->rank, s->n - 2, path);
    unlink(path);
}

/* The stream has come to it: with the driver's lock held, and the device's memory open. */
static bool sum_ready(const void *arguments)
{
    const struct sum *s = arguments;
    char path[PATH_MOST + 32];
    if (atomic_load(&s->comm->aborted))
        return true;
    if (s->lost)
        return false;
    give_share(s);
    for (int r = 0; r < s->comm->world; r++) {
        share_path(s, r, s->n, path);
        if (access(path, F_OK) != 0)
            return false;
    }
    return true;
}

static void add_share(const struct sum *s, int rank)
{
    char path[PATH_MOST + 32];
    struct share share = {0};
    uint32_t word;
    share_path(s, rank, s->n, path);
    FILE *f = open_share(path, &share);
    if (!f || share.count != (int64_t)s->count || share.type != NCCL_UINT32 || share.op != NCCL_SUM)
        misuse("sum %d: rank %d adds %lld elements, rank %d %zu", s->n, rank, (long long)share.count,
               s->comm->rank, s->count);
    for (size_t i = 0; i < s->count; i++) {
        if (fread(&word, sizeof word, 1, f) != 1)
            misuse("%s is cut off", path);
        s->to[i] += word;
    }
    fclose(f);
}

/* What an abort leaves in `to` is anything. */
static void sum_run(const void *arguments)
{
    const struct sum *s = arguments;
    bool aborted = atomic_load(&s->comm->aborted);
    memset(s->to, aborted ? 0xa5 : 0, s->count * sizeof *s->to);
    for (int i = 0; i < s->comm->world && !aborted; i++)
        add_share(s, (s->comm->rank + i) % s->comm->world);
    atomic_store(&s->comm->rests, setting("rests") ? 2 : 0);
}

static void *of_driver(const char *name)
{
    const char *path = getenv("RINGMASTER_CUDA_LIBRARY");
    void *driver = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *found = driver ? dlsym(driver, name) : NULL;
    if (!found)
        misuse("without the stand-in driver");
    return found;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, CUstream stream)
{
    hand_over_fn *hand_over = (hand_over_fn *)of_driver("standin_hand_over_when");
    check_fn *check = (check_fn *)of_driver("standin_check");
    comm_enter(comm, "ncclAllReduce");
    if (!atomic_load(&comm->made) || atomic_load(&comm->failed))
        misuse("a sum on a communicator that is not there yet, or has failed");
    if (atomic_load(&comm->rests) > 0)
        misuse("a sum while the communicator is in progress");
    if (type != NCCL_UINT32 || op != NCCL_SUM)
        misuse("a sum of another type");
    check("ncclAllReduce", (CUdeviceptr)(uintptr_t)from, count * 4);
    check("ncclAllReduce", (CUdeviceptr)(uintptr_t)to, count * 4);
    pthread_mutex_lock(&lock);
    int number = ++all_sums;
    pthread_mutex_unlock(&lock);
    bool fails = is_turn("async-error", number);
    const struct sum s = {comm, from, to, count, comm->sums++, fails || is_turn("sum-hangs", number)};
    int handed = hand_over(stream, sum_ready, sum_run, &s, sizeof s);
    if (fails || is_turn("error-after", number))
        atomic_store(&comm->failed, true);
    comm_leave(comm);
    return handed == 0 ? NCCL_SUCCESS : 1;
}
