/* Keeps two runs from saving in one place: a lock on a folder, and in a bucket small objects with growing
 * numbers, of which the highest names the owner. */
#include "common/storage/checkpoint/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/job/spec.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/uri.h"
#include "common/wire/json.h"

enum {
    NUMBER_MAX = 99999999,
    NAME_CHARS = 32,
    TEXT_MAX = 4096,
    HOST_MAX = 128,
    TAKE_TRIES = 8,
};

static const rm_time look_every = RM_S; /* at another's object */
static const char stem[] = ".owner-", asks[] = "-asks";

struct owner {
    int lock_fd; /* of a folder; -1 in a bucket */
    struct object_options place;
    struct object_store *store; /* the thread's, once it runs */
    char run[OWNER_RUN_MAX];
    int number;
    int64_t beats;
    bool fenced;
    bool threaded;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ending_now;
    bool ending;
    atomic_int cancel;
};

void owner_run(const void *key, size_t length, char out[OWNER_RUN_MAX])
{
    static const char salt[] = "owner of checkpoints";
    uint8_t hash[RM_HASH_BYTES];
    hmac_sha256(key, length, salt, sizeof salt, hash);
    hex_encode(hash, (OWNER_RUN_MAX - 1) / 2, out);
}

/* --- a folder --- */

static int make_folder(const char *path, struct error *err)
{
    char part[RM_URI_MAX];
    text_copy(part, sizeof part, path);
    for (char *at = part + 1;; at++) {
        char here = *at;
        if (here && here != '/')
            continue;
        *at = 0;
        if (mkdir(part, 0777) < 0 && errno != EEXIST)
            return err_errno(err, ERR_MACHINE, "checkpoints %s: the folder can't be made", part);
        if (!here)
            return 0;
        *at = here;
    }
}

static int lock_folder(const char *uri, int *ret_fd, struct error *err)
{
    char path[RM_URI_MAX], file[RM_URI_MAX + 8];
    if (uri_path(uri, path, sizeof path, err) < 0)
        return err_wrap(err, "checkpoint");
    if (make_folder(path, err) < 0)
        return -1;
    snprintf(file, sizeof file, "%s/.lock", path);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "checkpoints %s", file);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *ret_fd = fd;
        return 0;
    }
    if (errno == EWOULDBLOCK)
        err_set(err, ERR_MACHINE,
                "checkpoints %s: another run uses this folder; wait for its end, or use another folder",
                path);
    else
        err_errno(err, ERR_MACHINE, "checkpoints %s can't be locked", path);
    close(fd);
    return -1;
}

/* --- a bucket --- */

/* What an owner says of itself. */
struct said {
    int number; /* 0: nobody has ever owned it */
    char run[OWNER_RUN_MAX], host[HOST_MAX];
    int64_t pid;
    bool released;
    char tag[OBJECT_TAG_MAX];
};

static void owner_name(char out[NAME_CHARS], int number)
{
    snprintf(out, NAME_CHARS, "%s%08d", stem, number);
}

static void question_name(char out[NAME_CHARS], int number)
{
    snprintf(out, NAME_CHARS, "%s%08d%s", stem, number, asks);
}

/* The machine as it has run since its last start: a process number means something only there. */
static void this_host(char out[HOST_MAX])
{
    char boot[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, boot, sizeof boot - 1);
    if (fd >= 0)
        close(fd);
    boot[n > 0 ? n : 0] = 0;
    boot[strcspn(boot, "\n")] = 0;
    char space[32] = "";
    ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[length > 0 ? length : 0] = 0;
    snprintf(out, HOST_MAX, "%s %s", boot, space);
}

static int note_highest(void *ctx, const struct object_entry *entry, struct error *err)
{
    struct said *highest = ctx;
    (void)err;
    char *end;
    long number = strtol(entry->name + sizeof stem - 1, &end, 10);
    if (*end || number <= highest->number || number > NUMBER_MAX)
        return 0; /* a question is no owner */
    highest->number = (int)number;
    text_copy(highest->tag, sizeof highest->tag, entry->info.tag);
    return 0;
}

static void read_said(struct said *said, const char *text, size_t length)
{
    struct js *top = js_parse(text, length, "owner", NULL);
    const char *run = top ? js_as_string(js_get(top, "run")) : NULL;
    const char *host = top ? js_as_string(js_get(top, "host")) : NULL;
    text_copy(said->run, sizeof said->run, run ? run : "");
    text_copy(said->host, sizeof said->host, host ? host : "");
    if (!top || !js_get(top, "pid") || !js_as_int(js_get(top, "pid"), &said->pid))
        said->pid = 0;
    said->released = top && js_get(top, "released");
    js_free(top);
}

/* Who owns it now. */
static int look(struct object_store *store, struct said *ret, struct error *err)
{
    char name[NAME_CHARS];
    struct str text = str_init(TEXT_MAX);
    struct error why = {0};
    *ret = (struct said){0};
    if (object_list(store, stem, note_highest, ret, err) < 0)
        return -1;
    if (!ret->number)
        return 0;
    owner_name(name, ret->number);
    int result = object_get(store, name, TEXT_MAX, &text, &why);
    if (result == 0)
        read_said(ret, str_text(&text), text.length);
    str_clear(&text);
    if (result == 0 || why.code == ERR_NOT_FOUND || why.code == ERR_DATA)
        return 0;
    return err_from(err, &why, "%s", why.text);
}

static int say(struct owner *o, bool released, enum object_mode mode, struct error *err)
{
    char name[NAME_CHARS], host[HOST_MAX];
    struct js *top = js_object();
    struct str text = str_init(TEXT_MAX);
    this_host(host);
    js_set_string(top, "run", o->run);
    js_set_string(top, "host", host);
    js_set_int(top, "pid", getpid());
    js_set_int(top, "beat", ++o->beats);
    if (released)
        js_set_bool(top, "released", true);
    js_print(top, &text);
    js_free(top);
    owner_name(name, o->number);
    struct object_body body = {.runs = 1, .run = {{str_text(&text), text.length}}};
    int result = object_put(o->store, name, &body, mode, err);
    str_clear(&text);
    return result;
}

static bool is_dead(const struct said *said)
{
    char host[HOST_MAX];
    this_host(host);
    if (!said->pid || strcmp(host, said->host) != 0)
        return false;
    return kill((pid_t)said->pid, 0) < 0 && errno == ESRCH;
}

/* false: the end has come. */
static bool pause_for(struct owner *o, rm_time length)
{
    rm_time until = clock_now() + length;
    struct timespec at = {(time_t)(until / RM_S), (long)(until % RM_S)};
    pthread_mutex_lock(&o->mutex);
    while (!o->ending && pthread_cond_timedwait(&o->ending_now, &o->mutex, &at) == 0)
        continue;
    bool ending = o->ending;
    pthread_mutex_unlock(&o->mutex);
    return !ending;
}

/* Asks the owner of that number whether it lives. */
static int ask(struct owner *o, int number, struct error *err)
{
    char name[NAME_CHARS];
    struct object_body body = {.runs = 1, .run = {{o->run, strlen(o->run)}}};
    question_name(name, number);
    return object_put(o->store, name, &body, OBJECT_REPLACE, err);
}

static int refuse(const struct owner *o, struct error *err)
{
    return err_set(err, ERR_MACHINE,
                   "checkpoints %.200s: another run uses this place; wait for its end, or use another one",
                   o->place.uri);
}

/* 0: the owner has died (or gone, or has been followed by another: look again); -1: it lives. */
static int wait_for_end(struct owner *o, const struct owner_options *options, const struct said *seen,
                        struct error *err)
{
    rm_time since = clock_now();
    char text[RM_URI_MAX + 128];
    snprintf(text, sizeof text, "%.512s has an owner; looking for %d s whether it lives", o->place.uri,
             (int)(OWNER_LEASE / RM_S));
    if (options->waiting)
        options->waiting(options->ctx, text);
    if (ask(o, seen->number, err) < 0)
        return -1;
    while (clock_now() - since < OWNER_LEASE) {
        struct said now;
        pause_for(o, look_every);
        if (look(o->store, &now, err) < 0)
            return -1;
        if (now.number != seen->number || now.released)
            return 0;
        if (strcmp(now.tag, seen->tag) != 0)
            return refuse(o, err);
    }
    return 0;
}

static void remove_older(struct owner *o)
{
    for (int number = o->number - 1; number > 0 && number >= o->number - 2; number--) {
        char name[NAME_CHARS], question[NAME_CHARS];
        owner_name(name, number);
        question_name(question, number);
        object_delete(o->store, (const char *const[]){name, question}, 2, NULL);
    }
}

/* Does the store refuse to create what is there? Another beat makes it other bytes: the same ones would count
 * as an earlier try of ours. */
static int probe(struct owner *o, struct error *err)
{
    struct error why = {0};
    o->fenced = say(o, false, OBJECT_CREATE, &why) < 0;
    if (!o->fenced || why.code == ERR_EXISTS)
        return 0;
    return err_from(err, &why, "%s", why.text);
}

/* Where a creation may have been overwritten by another one of the same moment: who wrote last? */
static int is_still_ours(struct owner *o, bool *ret_ours, struct error *err)
{
    struct said now;
    *ret_ours = true;
    if (o->fenced)
        return 0;
    pause_for(o, look_every);
    if (look(o->store, &now, err) < 0)
        return -1;
    *ret_ours = now.number == o->number && !strcmp(now.run, o->run);
    return 0;
}

/* 1: the number is this owner's; 0: another one's. */
static int take_number(struct owner *o, int number, struct error *err)
{
    struct error why = {0};
    bool ours;
    o->number = number;
    if (say(o, false, OBJECT_CREATE, &why) < 0)
        return why.code == ERR_EXISTS ? 0 : err_from(err, &why, "%s", why.text);
    if (probe(o, err) < 0 || is_still_ours(o, &ours, err) < 0)
        return -1;
    if (ours)
        remove_older(o);
    return ours;
}

/* Two that looked away at the same time both reach for the next number; only one gets it. */
static int take_bucket(struct owner *o, const struct owner_options *options, struct error *err)
{
    for (int i = 0; i < TAKE_TRIES; i++) {
        struct said seen, again;
        if (look(o->store, &seen, err) < 0)
            return -1;
        bool mine = !strcmp(seen.run, o->run); /* of a process of this run before this one */
        if (seen.number && !seen.released && !mine && !is_dead(&seen)) {
            if (wait_for_end(o, options, &seen, err) < 0 || look(o->store, &again, err) < 0)
                return -1;
            if (again.number != seen.number || (!again.released && strcmp(again.tag, seen.tag) != 0))
                continue;
        }
        int taken = take_number(o, seen.number + 1, err);
        if (taken)
            return taken < 0 ? -1 : 0;
    }
    return refuse(o, err);
}

/* While it is still ours: nobody took over, nobody removed it. */
static bool is_ours(struct owner *o)
{
    struct said now;
    return look(o->store, &now, NULL) == 0 && now.number == o->number && !strcmp(now.run, o->run);
}

/* Whoever asked sees another content, and goes. A question that can't be removed is answered once more. */
static void answer(struct owner *o)
{
    char question[NAME_CHARS];
    const char *names = question;
    struct object_info info;
    question_name(question, o->number);
    if (object_head(o->store, question, &info, NULL) < 0 || !is_ours(o))
        return;
    if (say(o, false, OBJECT_REPLACE, NULL) == 0)
        object_delete(o->store, &names, 1, NULL);
}

static void *answer_questions(void *ctx)
{
    struct owner *o = ctx;
    while (pause_for(o, OWNER_LOOK))
        answer(o);
    return NULL;
}

static int own_bucket(struct owner *o, const struct owner_options *options, struct error *err)
{
    o->place = *options->place;
    o->place.cancel = &o->cancel;
    if (object_open(&o->store, &o->place, err) < 0 || take_bucket(o, options, err) < 0)
        return -1;
    if (pthread_create(&o->thread, NULL, answer_questions, o) != 0)
        return err_set(err, ERR_MACHINE, "a thread can't be started");
    o->threaded = true;
    return 0;
}

int owner_open(struct owner **ret, const struct owner_options *options, struct error *err)
{
    struct owner *o = calloc(1, sizeof *o);
    if (!o)
        return err_set(err, ERR_MACHINE, "checkpoints: out of memory");
    o->lock_fd = -1;
    o->fenced = true;
    pthread_mutex_init(&o->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&o->ending_now, &monotonic);
    pthread_condattr_destroy(&monotonic);
    text_copy(o->run, sizeof o->run, options->run);
    int result = job_uri_is_bucket(options->place->uri) ? own_bucket(o, options, err)
                                                        : lock_folder(options->place->uri, &o->lock_fd, err);
    if (result < 0) {
        owner_free(o);
        return -1;
    }
    *ret = o;
    return 0;
}

/* The number stays, said to be free: numbers only grow, so that a late refresh of an old one changes nothing.
 */
static void release_bucket(struct owner *o)
{
    pthread_mutex_lock(&o->mutex);
    o->ending = true;
    pthread_cond_signal(&o->ending_now);
    pthread_mutex_unlock(&o->mutex);
    pthread_join(o->thread, NULL);
    if (is_ours(o))
        say(o, true, OBJECT_REPLACE, NULL);
}

void owner_free(struct owner *owner)
{
    if (!owner)
        return;
    if (owner->threaded)
        release_bucket(owner);
    if (owner->lock_fd >= 0)
        close(owner->lock_fd);
    object_free(owner->store);
    pthread_cond_destroy(&owner->ending_now);
    pthread_mutex_destroy(&owner->mutex);
    free(owner);
}

bool owner_is_fenced(const struct owner *owner)
{
    return owner->fenced;
}

void owner_unfenced_sentence(const struct owner *owner, char *out, size_t size)
{
    snprintf(
        out, size,
        "%.200s: the store overwrites what is to be created only where nothing is (If-None-Match: *); a run "
        "that goes on after another one took the place over is found out a moment late, so start no second "
        "one here while the first may still live",
        owner->place.uri);
}

int owner_check(struct object_store *store, const char *run, struct error *err)
{
    struct said now;
    if (object_is_local(store))
        return 0;
    if (look(store, &now, err) < 0)
        return -1;
    if (!now.number || !strcmp(now.run, run))
        return 0;
    err_set(err, ERR_EXISTS, "%.200s belongs to another run now; nothing is saved from this one",
            object_uri(store));
    return err_class(err, CLASS_JOB);
}
