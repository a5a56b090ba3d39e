/* One program's snapshots, one thing at a time: ringmaster-snapshot as a child, the store on a thread. */
#include "agent/freeze/freezing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/freeze/ground.h"
#include "agent/freeze/images.h"
#include "agent/freeze/snapshot_tool.h"
#include "common/base/assert.h"
#include "common/net/session.h"
#include "common/os/clock.h"
#include "common/os/config.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/storage/checkpoint/frozen.h"
#include "common/storage/checkpoint/owner.h"
#include "common/storage/checkpoint/place.h"

enum doing {
    DOING_NOTHING,
    DOING_CHECK,   /* the program tries it out */
    DOING_LOOK,    /* at the store */
    DOING_FETCH,   /* the newest whole one */
    DOING_RESTORE, /* what was fetched */
    DOING_DUMP,
    DOING_SEND, /* what was dumped, and the manifest */
};

/* What is asked for: one snapshot. */
struct wish_to_freeze {
    bool set;
    long pid;
    bool last;
    rm_time until; /* RM_NEVER: it has time */
};

struct freezing {
    struct freezing_options options;
    struct loop *loop;
    struct object_store *place;                       /* the thread's while it works */
    uint8_t key[RM_HASH_BYTES], older[RM_HASH_BYTES]; /* of snapshots; older: where the options have it */
    char run[OWNER_RUN_MAX];
    struct snapshot_tool *tool;
    struct frozen_ground here;
    enum doing doing;
    atomic_int cancel;
    struct images images;      /* the files on this disk, while there are any */
    struct frozen_manifest *m; /* the thread's while it works */
    int out[2];
    struct wish_to_freeze now, next;
    struct freezing_made making;
    rm_time began, dumped, fetched;
    int64_t memory;          /* of what is dumped */
    int64_t room;            /* for it and the files that travel along; -1: not known */
    struct freeze_cost last; /* of the newest that was published */
    int64_t newest;          /* highest number that is there, be it whole or not */
    int64_t whole;           /* newest that is known to be whole; 0: none */
    bool followed;           /* somebody else publishes in this one's place */
    int64_t tried;           /* number that one was to have which failed; nobody knows how far it came */
    char tried_object[FROZEN_OBJECT_MAX]; /* its */
    bool given_up;                        /* what its program does is of no use any more */
    bool working, closing;
    int64_t found;         /* what the thread found; 0: none */
    char passed_over[160]; /* of what it found damaged the newest, and why; "": nothing */
    int status;            /* of the thread's work, and why */
    struct error err;
};

static void begin_work(struct freezing *f, enum doing what);

/* ---- what is told ---- */

static void finish_work(struct freezing *f)
{
    f->doing = DOING_NOTHING;
    images_remove(&f->images);
}

static void tell_ready(struct freezing *f, const struct error *why)
{
    finish_work(f);
    f->options.ready(f->options.ctx, why);
}

static void tell_back(struct freezing *f, long pid, const struct error *why)
{
    struct freezing_back back = {
        .pid = pid, .number = pid ? f->found : 0, .took = clock_now() - f->began, .why = why};
    if (pid) /* by which a person sees whether the store or this machine takes the time */
        log_info("a snapshot lives again", "number=%lld bytes=%lld fetch_ms=%.0f restore_ms=%.0f",
                 (long long)f->found, (long long)f->m->bytes, rm_ms(f->fetched - f->began),
                 rm_ms(clock_now() - f->fetched));
    finish_work(f);
    f->options.back(f->options.ctx, &back);
}

static void make_now(struct freezing *f, const struct wish_to_freeze *wish);

/* One that is made in the place of this one is what was asked for. */
static void tell_made(struct freezing *f, const char *why)
{
    struct freezing_made made = f->making;
    struct wish_to_freeze next = f->next;
    made.why = next.set ? "" : why;
    made.took = clock_now() - f->began;
    made.more = next.set;
    finish_work(f);
    f->next = (struct wish_to_freeze){.set = false};
    f->options.made(f->options.ctx, &made);
    if (next.set)
        make_now(f, &next);
}

/* With what stands in the place of the one that is not made. */
static void tell_not_made(struct freezing *f, const char *why)
{
    char text[sizeof f->err.text + 80], name[CHECKPOINT_NAME_MAX];
    frozen_name(name, f->whole);
    snprintf(text, sizeof text, "%s; %s%s", why, f->whole ? "the newest is " : "there is none yet",
             f->whole ? name : "");
    tell_made(f, text);
}

/* ---- the store, on its thread ---- */

static void pass_over(struct freezing *f, const char *name, const char *why)
{
    log_warn("a snapshot can't be used", "name=%s why=\"%s\"", name, why);
    if (!*f->passed_over)
        text_print_ends(f->passed_over, sizeof f->passed_over, "%s: %s", name, why);
}

/* A start from nothing would be without a word about what was lost. */
static int refuse_damaged(struct freezing *f)
{
    err_set(
        &f->err, ERR_DATA,
        "no snapshot in %.80s is whole (%s); delete them (ringmaster checkpoint delete), or choose another "
        "checkpoint.uri",
        object_uri(f->place), f->passed_over);
    return err_person(&f->err);
}

static struct frozen_keys keys_of(const struct freezing *f)
{
    return (struct frozen_keys){.own = f->key, .older = f->options.older ? f->older : NULL};
}

/* 1: f->m is one that can live here; 0: there is none; -1: not. */
static int choose_snapshot(struct freezing *f, int64_t below)
{
    struct frozen_choice *choice = calloc(1, sizeof *choice);
    const struct frozen_keys keys = keys_of(f);
    if (!choice)
        return err_set(&f->err, ERR_MACHINE, "no memory to look for snapshots");
    int result = frozen_choose(f->place, &keys, below, f->m, choice, &f->err);
    if (result == 0) {
        f->newest = choice->newest > f->newest ? choice->newest : f->newest;
        for (int i = 0; i < choice->skipped; i++)
            pass_over(f, choice->skip[i].name, choice->skip[i].why);
    }
    if (result == 0 && choice->found)
        result = frozen_refuse_ground(&f->m->ground, &f->here, &f->err) < 0 ? -1 : 1;
    else if (result == 0 && *f->passed_over)
        result = refuse_damaged(f);
    free(choice);
    return result;
}

static void look_at_store(struct freezing *f)
{
    int found = choose_snapshot(f, 0);
    f->status = found < 0 ? -1 : 0;
    f->whole = found > 0 ? f->m->number : f->whole;
}

static int fetch_one(struct freezing *f)
{
    if (images_make(&f->images, &f->err) < 0)
        return -1;
    return frozen_fetch(f->place, f->m, f->images.fd, &f->cancel, &f->err);
}

/* The next older one of what is damaged. */
static void fetch_newest(struct freezing *f)
{
    char name[CHECKPOINT_NAME_MAX];
    int64_t below = 0;
    f->found = 0;
    f->status = -1;
    for (;;) {
        int found = choose_snapshot(f, below);
        if (found <= 0) {
            f->status = found;
            return;
        }
        if (fetch_one(f) == 0)
            break;
        if (f->err.code != ERR_DATA)
            return;
        below = f->m->number;
        frozen_name(name, below);
        pass_over(f, name, f->err.text);
        images_remove(&f->images);
    }
    f->found = f->whole = f->m->number;
    f->status = 0;
    FAULT("frozen-fetched");
}

/* What is older than it is to be goes, or stays until the next one. */
static void settle_older(struct freezing *f)
{
    struct error why = {0};
    if (frozen_settle(&(struct frozen_settling){.store = f->place,
                                                .run = f->run,
                                                .keys = keys_of(f),
                                                .number = f->m->number,
                                                .keep = f->options.spec->checkpoint.keep},
                      &why) < 0)
        log_warn("older snapshots stay", "why=\"%s\"", why.text);
}

static int publish_as(struct freezing *f, int64_t number)
{
    struct frozen_publication p = {
        .store = f->place, .run = f->run, .key = f->key, .chance = crypto_seed(), .folder = f->images.fd};
    memset(f->m, 0, sizeof *f->m);
    f->m->number = number;
    f->m->ground = f->here;
    text_copy(f->m->job, sizeof f->m->job, f->options.spec->name);
    return frozen_publish(&p, f->m, &f->err);
}

/* It was given up, or cut off, and has come there all the same. */
static bool came_there(struct freezing *f, int64_t number)
{
    char name[CHECKPOINT_NAME_MAX];
    frozen_name(name, number);
    return number == f->tried && frozen_manifest(f->place, name, f->m, NULL) == 0 &&
           !strcmp(f->m->object, f->tried_object);
}

static void send_image(struct freezing *f)
{
    int64_t number = f->newest + 1;
    f->status = publish_as(f, number);
    if (f->status < 0 && f->err.code == ERR_EXISTS && came_there(f, number))
        f->status = publish_as(f, ++number);
    if (f->status < 0) {
        f->tried = number;
        text_copy(f->tried_object, sizeof f->tried_object, f->m->object);
    } else if (!f->now.last) {
        settle_older(f);
    }
}

static void store_work(void *ctx)
{
    struct freezing *f = ctx;
    if (f->doing == DOING_LOOK)
        look_at_store(f);
    else if (f->doing == DOING_FETCH)
        fetch_newest(f);
    else
        send_image(f);
}

/* ---- what comes of it ---- */

static void restore_now(struct freezing *f)
{
    struct error err;
    const char *const words[] = {"restore", "--images", f->images.path, "--stdout-fd", "3", "--stderr-fd",
                                 "4",       NULL};
    f->doing = DOING_RESTORE;
    if (snapshot_tool_start(f->tool, words, f->out, &err) < 0)
        tell_back(f, 0, &err);
}

static void fetched(struct freezing *f)
{
    bool there = f->status == 0 && f->found;
    f->fetched = clock_now();
    if (there && f->given_up)
        f->status = err_set(&f->err, ERR_ABORTED, "told to stop before it lived again");
    if (f->status < 0)
        tell_back(f, 0, &f->err);
    else if (there)
        restore_now(f);
    else
        tell_back(f, 0, NULL);
}

static void sent(struct freezing *f)
{
    if (f->status < 0) {
        f->followed = f->followed || f->err.code == ERR_EXISTS;
        if (f->err.code == ERR_ABORTED) /* by those who ask */
            tell_made(f, "");
        else
            tell_not_made(f, f->err.text);
        return;
    }
    f->making.ok = true;
    f->making.number = f->newest = f->whole = f->m->number;
    f->making.bytes = f->m->bytes;
    f->last = (struct freeze_cost){.memory = f->memory,
                                   .frozen = f->making.frozen,
                                   .dump = f->dumped - f->began,
                                   .send = clock_now() - f->dumped};
    log_info("a snapshot is published", "number=%lld bytes=%lld frozen_ms=%.1f dump_ms=%.0f send_ms=%.0f",
             (long long)f->newest, (long long)f->making.bytes, rm_ms(f->last.frozen), rm_ms(f->last.dump),
             rm_ms(f->last.send));
    tell_made(f, "");
}

static void worked(void *ctx)
{
    struct freezing *f = ctx;
    f->working = false;
    if (f->closing)
        return;
    if (f->doing == DOING_LOOK)
        tell_ready(f, f->status < 0 ? &f->err : NULL);
    else if (f->doing == DOING_FETCH)
        fetched(f);
    else
        sent(f);
}

static void begin_work(struct freezing *f, enum doing what)
{
    f->doing = what;
    f->err = (struct error){0};
    *f->passed_over = 0;
    f->working = true;
    if (loop_work(f->loop, store_work, worked, f, &f->err) < 0) {
        f->status = -1;
        worked(f);
    }
}

static void dumped(struct freezing *f, const struct snapshot_said *said)
{
    f->dumped = clock_now();
    f->making.frozen = said->frozen;
    FAULT("frozen-dumped");
    if (f->next.set) /* it comes in the place of this one, and is of a moment from now */
        tell_made(f, "");
    else
        begin_work(f, DOING_SEND);
}

static void tool_ended(void *ctx, const struct snapshot_said *said)
{
    struct freezing *f = ctx;
    bool ok = !said->why;
    if (ok && f->doing == DOING_CHECK) {
        f->here.criu = said->criu;
        begin_work(f, DOING_LOOK);
    } else if (f->doing == DOING_CHECK) {
        tell_ready(f, said->why);
    } else if (f->doing == DOING_RESTORE) {
        bool unsaid = ok && said->pid <= 0;
        if (unsaid)
            err_set(&f->err, ERR_MACHINE, "ringmaster-snapshot does not say which process lives again");
        tell_back(f, said->pid, unsaid ? &f->err : said->why);
    } else if (ok) {
        dumped(f, said);
    } else if (said->gone || f->given_up) { /* the program ended by itself before, or is to */
        tell_made(f, "");
    } else {
        tell_not_made(f, said->why->text);
    }
}

/* ---- what is asked for ---- */

void freezing_probe(struct freezing *f)
{
    struct error err;
    f->doing = DOING_CHECK;
    if (snapshot_tool_start(f->tool, (const char *const[]){"check", NULL}, NULL, &err) < 0)
        tell_ready(f, &err);
}

void freezing_bring_back(struct freezing *f, const int out[2])
{
    f->out[0] = out[0];
    f->out[1] = out[1];
    f->began = clock_now();
    f->given_up = false;
    atomic_store(&f->cancel, 0);
    begin_work(f, DOING_FETCH);
}

static int refuse_now(struct freezing *f, const struct wish_to_freeze *wish, struct error *err)
{
    struct statvfs disk;
    struct freeze_want want = {.memory = ground_memory(wish->pid), .room = -1, .within = RM_NEVER};
    if (f->followed)
        return err_set(err, ERR_EXISTS, "another pod of this job publishes snapshots in this one's place");
    if (images_make(&f->images, err) < 0)
        return -1;
    if (fstatvfs(f->images.fd, &disk) == 0)
        want.room = (int64_t)(disk.f_bavail * disk.f_frsize);
    const char *told = config_get(CONFIG_POD_IMAGES_BYTES);
    int64_t most = told ? strtoll(told, NULL, 10) : 0;
    if (most > 0 && (want.room < 0 || most < want.room))
        want.room = most; /* of more the kubelet would evict the pod */
    if (wish->until != RM_NEVER)
        want.within = wish->until - f->began;
    f->memory = want.memory;
    f->room = want.room;
    return freeze_refuse(&f->last, &want, err);
}

static int start_dump(struct freezing *f, struct error *err)
{
    const struct job_list *paths = &f->options.spec->checkpoint.process_paths;
    const char *words[SNAPSHOT_TOOL_WORDS_MAX + 1] = {"dump", "--images", f->images.path, "--pid"};
    char pid[24], room[24];
    int n = 4;
    snprintf(pid, sizeof pid, "%ld", f->now.pid);
    words[n++] = pid;
    if (!f->now.last)
        words[n++] = "--leave-running";
    if (f->room >= 0) {
        int64_t left = f->memory > 0 ? f->room - f->memory : f->room;
        snprintf(room, sizeof room, "%lld", (long long)(left > 0 ? left : 0));
        words[n++] = "--room";
        words[n++] = room;
    }
    for (const char *path = NULL; (path = job_list_next(paths, path));) {
        RM_ASSERT(n + 2 <= SNAPSHOT_TOOL_WORDS_MAX, "%d paths travel", paths->count);
        words[n++] = "--path";
        words[n++] = path;
    }
    return snapshot_tool_start(f->tool, words, NULL, err);
}

static void make_now(struct freezing *f, const struct wish_to_freeze *wish)
{
    struct error err;
    f->now = *wish;
    f->doing = DOING_DUMP;
    f->making = (struct freezing_made){.why = ""};
    f->began = clock_now();
    f->given_up = false;
    atomic_store(&f->cancel, 0);
    if (refuse_now(f, wish, &err) < 0) {
        tell_not_made(f, err.text);
        return;
    }
    if (start_dump(f, &err) < 0)
        tell_not_made(f, err.text);
}

void freezing_make(struct freezing *f, long pid, bool last, rm_time within)
{
    rm_time until = within == RM_NEVER ? RM_NEVER : rm_sum(clock_now(), within);
    struct wish_to_freeze wish = {.set = true, .pid = pid, .last = last, .until = until};
    if (f->doing == DOING_NOTHING) {
        make_now(f, &wish);
        return;
    }
    f->next = wish;
    if (f->doing == DOING_SEND)
        atomic_store(&f->cancel, 1);
}

void freezing_give_up(struct freezing *f)
{
    atomic_store(&f->cancel, 1);
    f->next = (struct wish_to_freeze){.set = false};
    freezing_end_tool(f);
}

void freezing_end_tool(struct freezing *f)
{
    f->given_up = true;
    snapshot_tool_kill(f->tool);
}

bool freezing_is_idle(const struct freezing *f)
{
    return f->doing == DOING_NOTHING;
}

long freezing_pid(const struct freezing *f)
{
    return snapshot_tool_pid(f->tool);
}

bool freezing_brings_back(const struct freezing *f)
{
    return f->doing == DOING_RESTORE;
}

rm_time freezing_every(const struct freezing *f)
{
    bool chosen = f->options.spec->checkpoint.every == JOB_AUTO;
    return chosen && f->last.memory ? freeze_every(&f->last, f->options.spec->checkpoint.max_loss) : 0;
}

/* ---- start and end ---- */

int freezing_open(struct freezing **ret, struct loop *loop, const struct freezing_options *options,
                  struct error *err)
{
    struct freezing *f = calloc(1, sizeof *f);
    struct frozen_manifest *m = calloc(1, sizeof *m);
    if (!f || !m) {
        free(f);
        free(m);
        return err_set(err, ERR_MACHINE, "no memory for snapshots");
    }
    *f = (struct freezing){.options = *options, .loop = loop, .m = m, .images = {.fd = -1}};
    frozen_key(options->key, JOB_KEY_BYTES, f->key);
    owner_run(options->key, JOB_KEY_BYTES, f->run);
    if (options->older)
        frozen_key(options->older, JOB_KEY_BYTES, f->older);
    int result = ground_refuse_paths(&options->spec->checkpoint.process_paths, err);
    if (result == 0)
        result = ground_read(&f->here, err);
    if (result == 0)
        result = snapshot_tool_open(&f->tool, loop, tool_ended, f, err);
    if (result == 0)
        result = place_open_checkpoints(&f->place, options->spec, &f->cancel, err);
    if (result < 0) {
        freezing_free(f);
        return -1;
    }
    *ret = f;
    return 0;
}

/* The thread's call is given up, and comes back before the rest goes. */
void freezing_free(struct freezing *f)
{
    if (!f)
        return;
    f->closing = true;
    atomic_store(&f->cancel, 1);
    while (f->working)
        loop_turn(f->loop, true);
    snapshot_tool_free(f->tool);
    images_remove(&f->images);
    object_free(f->place);
    explicit_bzero(f->key, sizeof f->key);
    explicit_bzero(f->older, sizeof f->older);
    free(f->m);
    free(f);
}
