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

#include "common/base/date.h"
#include "common/job/spec.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/uri.h"
#include "common/storage/checkpoint/owner_rule.h"
#include "common/wire/json.h"

enum {
    NUMBER_MAX = 99999999,
    NAME_CHARS = 32,
    TEXT_MAX = 4096,
    HOST_MAX = 128,
    TITLE_MAX = 64, /* as much of another's name as is told */
    HOLDER_MAX = TITLE_MAX + 64,
    PROCESS_MAX = 17, /* hex, with its NUL */
    TAKE_TRIES = 8,
    LOOKS_FASTER = 3, /* while another's answer is waited for */
};

static const char stem[] = ".owner-", asks[] = "-asks";

struct owner {
    int lock_fd; /* of a folder; -1 in a bucket */
    struct object_options place;
    char run[OWNER_RUN_MAX], process[PROCESS_MAX], title[TITLE_MAX];
    rm_time look; /* how often */
    void (*changed)(void *ctx);
    void *ctx;
    atomic_bool fenced;
    bool threaded;
    pthread_t thread;
    /* the thread's, once it runs */
    struct object_store *store;
    struct owner_rule rule;
    int64_t beats, since_ms;
    bool holds;
    rm_time looked_at;     /* when it was last seen whose the place is */
    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t ending_now;
    bool ending, away;
    struct error why;
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

static int refuse_held(const char *path, struct error *err)
{
    if (errno == EWOULDBLOCK)
        return err_set(
            err, ERR_MACHINE,
            "checkpoints %s: another run uses this folder; wait for its end, or use another folder", path);
    return err_errno(err, ERR_MACHINE, "checkpoints %s can't be locked", path);
}

/* The folder, or the nearest above it that is there, in which it would be made. */
static int look_at_folder(const char *path, struct error *err)
{
    char above[RM_URI_MAX];
    struct stat st;
    text_copy(above, sizeof above, path);
    while (stat(above, &st) < 0) {
        char *slash = strrchr(above, '/');
        if (errno == ENOTDIR && slash)
            errno = ENOENT; /* what is above tells */
        if (errno != ENOENT || !slash)
            return err_errno(err, ERR_MACHINE, "checkpoints %s: the folder can't be made", path);
        slash[slash == above] = 0;
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_USAGE,
                       "checkpoints %.200s: this is a file, not a folder; name another spec.checkpoint.uri",
                       above);
    return access(above, W_OK | X_OK) == 0 ? 0 : err_errno(err, ERR_MACHINE, "checkpoints %s", above);
}

int owner_look(const char *uri, struct error *err)
{
    char path[RM_URI_MAX], file[RM_URI_MAX + 8];
    if (job_uri_is_bucket(uri))
        return 0;
    if (uri_path(uri, path, sizeof path, err) < 0)
        return err_wrap(err, "checkpoint");
    if (look_at_folder(path, err) < 0)
        return -1;
    snprintf(file, sizeof file, "%s/.lock", path);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    int result = flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : refuse_held(path, err);
    close(fd);
    return result;
}

static int lock_folder(const char *uri, int *ret_fd, struct error *err)
{
    char path[RM_URI_MAX], file[RM_URI_MAX + 8];
    if (uri_path(uri, path, sizeof path, err) < 0)
        return err_wrap(err, "checkpoint");
    if (look_at_folder(path, err) < 0 || make_folder(path, err) < 0)
        return -1;
    snprintf(file, sizeof file, "%s/.lock", path);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "checkpoints %s", file);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *ret_fd = fd;
        return 0;
    }
    refuse_held(path, err);
    close(fd);
    return -1;
}

/* --- a bucket --- */

/* What an owner says of itself. */
struct said {
    int number; /* 0: nobody has ever owned it */
    char run[OWNER_RUN_MAX], process[PROCESS_MAX], title[TITLE_MAX], host[HOST_MAX];
    int64_t pid, since_ms; /* 0: not said */
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

static void take_text(char *out, size_t size, const struct js *top, const char *key)
{
    const char *text = top ? js_as_string(js_get(top, key)) : NULL;
    text_copy(out, size, text ? text : "");
}

static int64_t take_number(const struct js *top, const char *key)
{
    int64_t number = 0;
    const struct js *member = top ? js_get(top, key) : NULL;
    return member && js_as_int(member, &number) ? number : 0;
}

static void read_said(struct said *said, const char *text, size_t length)
{
    struct js *top = js_parse(text, length, "owner", NULL);
    take_text(said->run, sizeof said->run, top, "run");
    take_text(said->process, sizeof said->process, top, "process");
    take_text(said->title, sizeof said->title, top, "job");
    take_text(said->host, sizeof said->host, top, "host");
    said->pid = take_number(top, "pid");
    said->since_ms = take_number(top, "since");
    said->released = top && js_get(top, "released");
    js_free(top);
}

/* Who owns it now. */
static int look_at_owner(struct object_store *store, struct said *ret, struct error *err)
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

static int say_claim(struct owner *o, int number, bool released, enum object_mode mode, struct error *err)
{
    char name[NAME_CHARS], host[HOST_MAX];
    struct js *top = js_object();
    struct str text = str_init(TEXT_MAX);
    this_host(host);
    js_set_string(top, "run", o->run);
    js_set_string(top, "process", o->process);
    js_set_string(top, "job", o->title);
    js_set_int(top, "since", o->since_ms);
    js_set_string(top, "host", host);
    js_set_int(top, "pid", getpid());
    js_set_int(top, "beat", ++o->beats);
    if (released)
        js_set_bool(top, "released", true);
    js_print(top, &text);
    js_free(top);
    owner_name(name, number);
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

static bool is_own(const struct owner *o, const struct said *said)
{
    return said->number && !strcmp(said->process, o->process);
}

static struct owner_claim claim_of(const struct owner *o, const struct said *said)
{
    struct owner_claim claim = {.number = said->number,
                                .own = is_own(o, said),
                                .of_run = said->number && !strcmp(said->run, o->run),
                                .released = said->released,
                                .dead = is_dead(said)};
    text_copy(claim.tag, sizeof claim.tag, said->tag);
    return claim;
}

/* Another's words: "job gpt-2, there since 2026-11-25T10:15:00Z (.owner-00000003)". */
static void name_holder(const struct said *said, char out[HOLDER_MAX])
{
    char since[DATE_ISO] = "", title[TITLE_MAX];
    size_t n = 0;
    for (; said->title[n]; n++)
        title[n] = (unsigned char)said->title[n] < ' ' ? ' ' : said->title[n];
    title[n] = 0;
    if (said->since_ms > 0)
        date_iso(said->since_ms / 1000, since);
    snprintf(out, HOLDER_MAX, "%s%s%s%s (%s%08d)", *title ? "job " : "another run", title,
             *since ? ", there since " : "", since, stem, said->number);
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
static int ask_owner(struct owner *o, const struct owner_claim *claim, struct error *err)
{
    char name[NAME_CHARS];
    struct object_body body = {.runs = 1, .run = {{o->run, strlen(o->run)}}};
    question_name(name, claim->number);
    if (object_put(o->store, name, &body, OBJECT_REPLACE, err) < 0)
        return -1;
    owner_rule_asked(&o->rule, claim, clock_now());
    return 0;
}

static int refuse_owner(const struct owner *o, const struct said *seen, struct error *err)
{
    char holder[HOLDER_MAX];
    name_holder(seen, holder);
    return err_set(
        err, ERR_MACHINE,
        "checkpoints %.200s: another run uses this place: %s; wait for its end, or use another one",
        o->place.uri, holder);
}

static void remove_older(struct owner *o, int than)
{
    for (int number = than - 1; number > 0 && number >= than - 2; number--) {
        char name[NAME_CHARS], question[NAME_CHARS];
        owner_name(name, number);
        question_name(question, number);
        object_delete(o->store, (const char *const[]){name, question}, 2, NULL);
    }
}

/* Does the store refuse to create what is there? Another beat makes it other bytes: the same ones would count
 * as an earlier try of ours. */
static int probe(struct owner *o, int number, struct error *err)
{
    struct error why = {0};
    bool fenced = say_claim(o, number, false, OBJECT_CREATE, &why) < 0;
    atomic_store(&o->fenced, fenced);
    if (!fenced || why.code == ERR_EXISTS)
        return 0;
    return err_from(err, &why, "%s", why.text);
}

/* Where a creation may have been overwritten by another one of the same moment: who wrote last? */
static int is_still_ours(struct owner *o, bool *ret_ours, struct error *err)
{
    struct said now;
    *ret_ours = true;
    if (atomic_load(&o->fenced))
        return 0;
    pause_for(o, o->look / LOOKS_FASTER);
    if (look_at_owner(o->store, &now, err) < 0)
        return -1;
    *ret_ours = is_own(o, &now);
    return 0;
}

/* 1: the number is this owner's; 0: another one's. */
static int claim_number(struct owner *o, int number, struct error *err)
{
    struct error why = {0};
    bool ours;
    o->since_ms = clock_wall_ms();
    if (say_claim(o, number, false, OBJECT_CREATE, &why) < 0)
        return why.code == ERR_EXISTS ? 0 : err_from(err, &why, "%s", why.text);
    if (probe(o, number, err) < 0 || is_still_ours(o, &ours, err) < 0)
        return -1;
    if (!ours)
        return 0;
    owner_rule_taken(&o->rule, number);
    o->holds = true;
    remove_older(o, number);
    return 1;
}

static void say_waiting(const struct owner *o, const struct owner_options *options)
{
    char text[RM_URI_MAX + 128];
    snprintf(text, sizeof text, "%.512s has an owner; looking for %d s whether it lives", o->place.uri,
             (int)(o->rule.lease / RM_S));
    if (options->waiting)
        options->waiting(options->ctx, text);
}

/* Two that looked away at the same time both reach for the next number; only one gets it. */
static int take_bucket(struct owner *o, const struct owner_options *options, struct error *err)
{
    struct said seen;
    for (int tries = 0, taken = 0; tries < TAKE_TRIES;) {
        rm_time now = clock_now();
        if (look_at_owner(o->store, &seen, err) < 0)
            return -1;
        struct owner_claim claim = claim_of(o, &seen);
        switch (owner_rule_step(&o->rule, &claim, now)) {
        case OWNER_TAKES:
            tries++;
            taken = claim_number(o, owner_rule_next(&o->rule, &claim), err);
            if (taken)
                return taken < 0 ? -1 : 0;
            break;
        case OWNER_ASKS:
            tries++;
            say_waiting(o, options);
            if (ask_owner(o, &claim, err) < 0)
                return -1;
            break;
        case OWNER_WAITS:
            pause_for(o, o->look / LOOKS_FASTER);
            break;
        default:
            return refuse_owner(o, &seen, err);
        }
    }
    return refuse_owner(o, &seen, err);
}

/* --- while it lives --- */

/* NULL: the place is this owner's. Told only where it is another word than before. */
static void tell_owner(struct owner *o, const struct error *why)
{
    pthread_mutex_lock(&o->mutex);
    bool news = o->away != (why != NULL) || (why && strcmp(why->text, o->why.text) != 0);
    o->away = why != NULL;
    o->why = why ? *why : (struct error){0};
    pthread_mutex_unlock(&o->mutex);
    if (news && o->changed)
        o->changed(o->ctx);
}

/* A store that heals by itself, or by who ends one of two that live. */
static void tell_lost(struct owner *o, const struct said *seen)
{
    char holder[HOLDER_MAX];
    struct error why = {0};
    bool lives = seen->number == o->rule.asked && o->rule.lives && !seen->released;
    name_holder(seen, holder);
    /* where it is shown there may be room for its beginning alone */
    if (lives)
        err_set(
            &why, ERR_MACHINE,
            "end one of two runs: %s took %.120s while this one was cut off from it, and lives; nothing is "
            "saved from here until then",
            holder, o->place.uri);
    else
        err_set(
            &why, ERR_MACHINE,
            "%s took %.120s while this run was cut off from it; taken again if that one has ended, or does "
            "not answer for %d s",
            holder, o->place.uri, (int)(o->rule.lease / RM_S));
    err_class(&why, CLASS_PASSING);
    if (lives)
        err_person(&why);
    tell_owner(o, &why);
}

/* Whoever asked sees another content, and goes. A question that can't be removed is answered once more. */
static void answer_question(struct owner *o)
{
    char question[NAME_CHARS];
    const char *names = question;
    question_name(question, o->rule.number);
    if (say_claim(o, o->rule.number, false, OBJECT_REPLACE, NULL) == 0)
        object_delete(o->store, &names, 1, NULL);
}

/* Does somebody ask? Who is asked here in time has the place still: nobody takes it sooner than a lease.
 * False where that can't be said: the store is away, or this process stood still. */
static bool is_safe(struct owner *o, bool *ret_asked)
{
    char question[NAME_CHARS];
    struct object_info info;
    struct error why = {0};
    rm_time begin = clock_now();
    question_name(question, o->rule.number);
    *ret_asked = object_head(o->store, question, &info, &why) == 0;
    bool answered = *ret_asked || why.code == ERR_NOT_FOUND;
    rm_time now = clock_now();
    return answered && now - begin < o->look && now - o->looked_at < o->rule.lease;
}

/* What the newest claim says about this one. */
static void settle_claim(struct owner *o, const struct said *seen, rm_time now, bool asked)
{
    struct owner_claim claim = claim_of(o, seen);
    enum owner_step step = owner_rule_step(&o->rule, &claim, now);
    o->holds = step == OWNER_HOLDS || step == OWNER_FOLLOWED;
    if (step == OWNER_HOLDS && asked)
        answer_question(o);
    if (step == OWNER_ASKS)
        ask_owner(o, &claim, NULL);
    if (step == OWNER_TAKES)
        claim_number(o, owner_rule_next(&o->rule, &claim), NULL);
    if (o->holds)
        tell_owner(o, NULL);
    else
        tell_lost(o, seen);
}

/* A store that does not say whose the place is changes nothing: it is looked at again. */
static void watch_claims(struct owner *o)
{
    struct said seen;
    bool asked = false;
    if (o->holds && is_safe(o, &asked) && !asked)
        return;
    rm_time now = clock_now();
    if (look_at_owner(o->store, &seen, NULL) < 0)
        return;
    o->looked_at = now;
    settle_claim(o, &seen, now, asked);
}

static void *keep_place(void *ctx)
{
    struct owner *o = ctx;
    while (pause_for(o, o->rule.waits ? o->look / LOOKS_FASTER : o->look))
        watch_claims(o);
    return NULL;
}

static int own_bucket(struct owner *o, const struct owner_options *options, struct error *err)
{
    o->place = *options->place;
    o->place.cancel = &o->cancel;
    if (object_open(&o->store, &o->place, err) < 0 || take_bucket(o, options, err) < 0)
        return -1;
    o->looked_at = clock_now();
    if (pthread_create(&o->thread, NULL, keep_place, o) != 0)
        return err_set(err, ERR_MACHINE, "a thread can't be started");
    o->threaded = true;
    return 0;
}

static void name_process(char out[PROCESS_MAX])
{
    uint8_t chance[(PROCESS_MAX - 1) / 2];
    crypto_random(chance, sizeof chance);
    hex_encode(chance, sizeof chance, out);
}

int owner_open(struct owner **ret, const struct owner_options *options, struct error *err)
{
    struct owner *o = calloc(1, sizeof *o);
    if (!o)
        return err_set(err, ERR_MACHINE, "checkpoints: out of memory");
    o->lock_fd = -1;
    atomic_store(&o->fenced, true);
    o->look = options->look ? options->look : OWNER_LOOK;
    o->rule.lease = options->lease ? options->lease : OWNER_LEASE;
    o->changed = options->changed;
    o->ctx = options->ctx;
    name_process(o->process);
    pthread_mutex_init(&o->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&o->ending_now, &monotonic);
    pthread_condattr_destroy(&monotonic);
    text_copy(o->run, sizeof o->run, options->run);
    text_copy(o->title, sizeof o->title, options->title ? options->title : "");
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
    struct said now;
    pthread_mutex_lock(&o->mutex);
    o->ending = true;
    pthread_cond_signal(&o->ending_now);
    pthread_mutex_unlock(&o->mutex);
    pthread_join(o->thread, NULL);
    if (look_at_owner(o->store, &now, NULL) == 0 && is_own(o, &now))
        say_claim(o, now.number, true, OBJECT_REPLACE, NULL);
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
    return atomic_load(&owner->fenced);
}

bool owner_is_away(struct owner *owner, struct error *ret_why)
{
    pthread_mutex_lock(&owner->mutex);
    bool away = owner->away;
    if (away)
        *ret_why = owner->why;
    pthread_mutex_unlock(&owner->mutex);
    return away;
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
    if (look_at_owner(store, &now, err) < 0)
        return -1;
    if (!now.number || !strcmp(now.run, run))
        return 0;
    char holder[HOLDER_MAX];
    name_holder(&now, holder);
    err_set(err, ERR_EXISTS,
            "%.120s belongs to another run now: %s%s; nothing is saved from this one until %s",
            object_uri(store), holder, now.released ? ", which has ended" : "",
            now.released ? "it has the place again" : "that one ends");
    return err_class(err, CLASS_PASSING);
}
