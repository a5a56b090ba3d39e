/* Who fits the job: its protocol and name, its data, and the arithmetic in which its bits are made. The job's
 * own are those of who holds its state, else of the checkpoint that it goes on from, else of the first
 * trainer that comes.
 *
 * Arithmetic is compared by name (fingerprint) and by what it computes (probe). Two of one name that compute
 * otherwise are not both sound, and a probe does not say which: whose bits the job has stays, and where it
 * has none yet the majority. So it is with two that see other data; but what a checkpoint was trained on is
 * known, and where many see something else it is the data that have changed. */
#include "coordinator/core/rdzv_fit.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/software.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_out.h"
#include "coordinator/core/rdzv_stop.h"

static bool must_fit(const struct rdzv *st)
{
    return st->settings.exact && !st->settings.allow_mixed_hardware;
}

static bool other_bits_matter(const struct rdzv *st, const char *fingerprint)
{
    return must_fit(st) && strcmp(fingerprint, st->fingerprint) != 0;
}

/* No machine is to blame, then: on this very one the job's own programs would fit. */
static bool is_other_software(const struct rdzv *st, int worker, const char *fingerprint,
                              struct msg_abandon *ret)
{
    char own[RM_FINGERPRINT_MAX], jobs[RM_FINGERPRINT_MAX];
    if (!software_differs(fingerprint, st->fingerprint, own, jobs))
        return false;
    if (st->fits_checkpoint) {
        snprintf(ret->why, sizeof ret->why,
                 "worker %d computes other bits than the checkpoint: '%.50s', not '%.50s'; use its image, or "
                 "set trainer.allowMixedHardware (the result is then not exact)",
                 worker, own, jobs);
        return true;
    }
    snprintf(
        ret->why, sizeof ret->why,
        "worker %d computes other bits: it runs other software than the job, '%.110s' instead of '%.110s'; "
        "give all of a job's workers the same image",
        worker, own, jobs);
    return true;
}

/* "": not measured, which nothing follows from. */
static bool other_probe(const struct rdzv *st, const char *probe)
{
    return *probe && st->job_probe[0] && strcmp(probe, st->job_probe) != 0;
}

/* Of a user's program nobody knows what it computes, but what runs it is of one build (agent/launch/build.h).
 */
static bool is_other_bundle(const struct rdzv *st, int worker, const char *fingerprint,
                            struct msg_abandon *ret)
{
    static const char program[] = "launch";
    if (strncmp(fingerprint, program, sizeof program - 1) != 0)
        return false;
    snprintf(ret->why, sizeof ret->why,
             "worker %d runs other software than the job: it is '%.60s', the job's is '%.60s'; give all of a "
             "job's workers one bundle",
             worker, fingerprint, st->fingerprint);
    return true;
}

/* Whether bits computed there may not be mixed with the job's. */
static bool computes_other_bits(const struct rdzv *st, int worker, const char *fingerprint, const char *probe,
                                struct msg_abandon *ret)
{
    RM_ASSERT(worker >= 0 && worker < RM_WORKERS_MAX, "the bits of worker %d", worker);
    bool other_kind = other_bits_matter(st, fingerprint);
    if (!other_kind && !(must_fit(st) && other_probe(st, probe)))
        return false;
    ret->exit_code = EXIT_DATA;
    ret->elsewhere = true;
    if (!other_kind) {
        snprintf(ret->why, sizeof ret->why,
                 "worker %d computes other bits although its machine is of the job's kind: its probe is %s, "
                 "the job's is %s; one of the machines is faulty (ringmaster-trainer fingerprint --probe)",
                 worker, probe, st->job_probe);
        return true;
    }
    if (is_other_bundle(st, worker, fingerprint, ret) || is_other_software(st, worker, fingerprint, ret))
        return true;
    if (st->settings.brought) {
        snprintf(
            ret->why, sizeof ret->why,
            "worker %d's program computes otherwise than the job's: it is '%.110s', the job's is '%.110s'; "
            "give all workers one image, with the same libraries and threads, or train anew with another "
            "checkpoint.uri",
            worker, fingerprint, st->fingerprint);
        return true;
    }
    snprintf(ret->why, sizeof ret->why,
             "worker %d computes other bits: its fingerprint is '%.110s', the job's is '%.110s'; set "
             "trainer.allowMixedHardware to train without exactness",
             worker, fingerprint, st->fingerprint);
    return true;
}

/* One machine may have last week's copy: another may see the job's. */
static bool sees_other_data(const struct rdzv *st, int worker, const char *sha256, struct msg_abandon *ret)
{
    if (!strcmp(sha256, st->data_sha256))
        return false;
    ret->exit_code = EXIT_DATA;
    ret->elsewhere = true;
    snprintf(ret->why, sizeof ret->why,
             "worker %d sees other training data (sha256 %.12s) than the %s (%.12s)", worker, sha256,
             st->data_of_checkpoint ? "checkpoint was trained on" : "job's", st->data_sha256);
    return true;
}

/* Newcomers who were heard before anybody who knew better. True: there were some. */
static bool send_misfits_away(const struct turn *turn)
{
    struct rdzv *st = turn->st;
    bool any = false;
    struct msg_abandon no = {0};
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        bool may_take_part = w->presence == PRESENT && w->trainer_pid && !w->state.held;
        if (!may_take_part || !(sees_other_data(st, i, w->data_sha256, &no) ||
                                computes_other_bits(st, i, w->fingerprint, w->probe, &no)))
            continue;
        RM_ASSERT(no.why[0] && no.exit_code != EXIT_DONE, "worker %d does not fit, and is told '%s'", i,
                  no.why);
        rdzv_tell_worker(turn, TELL_WORKER_REFUSED, i, no.why);
        rdzv_send_one(turn, w, MSG_ABANDON)->abandon = no;
        rdzv_lose(turn, w, no.why);
        any = true;
    }
    return any;
}

/* Another one whose bits are the job's: of those who hold a state, or of any that are here. */
static bool somebody_counts(const struct rdzv *st, int but, bool holders)
{
    RM_ASSERT(but >= -1 && but < RM_WORKERS_MAX, "others than worker %d", but);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        /* by its memory, also while it has no trainer that could say so */
        bool held = w->state.held || w->old_rank != INT_MAX || w->ring.n > 0;
        if (i != but && w->presence != ABSENT && (held || (w->trainer_pid && !holders)))
            return true;
    }
    return false;
}

static void take_data(struct rdzv *st, const struct msg_hello *h)
{
    st->data_of_checkpoint = false;
    text_copy(st->data_sha256, sizeof st->data_sha256, h->data_sha256);
    st->data_files = h->data_files;
    st->data_bytes = h->data_bytes;
}

/* A successor may hear a newcomer on another kind of machine first: the first who holds the state knows
 * better. Of a machine that went away before anything was trained nothing is left that others would have to
 * fit. What a checkpoint was made by stands whoever comes and goes: only a held state is more than that. */
static void learn_hello(const struct turn *turn, const struct msg_hello *h)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(h->worker >= 0 && h->worker < RM_WORKERS_MAX, "a hello of worker %d", h->worker);
    if (!h->trainer_pid || (st->fingerprint[0] && somebody_counts(st, h->worker, h->state.held)))
        return;
    if (h->state.held || !st->data_of_checkpoint)
        take_data(st, h);
    if (h->state.held || !st->fits_checkpoint) {
        st->fits_checkpoint = false;
        text_copy(st->fingerprint, sizeof st->fingerprint, h->fingerprint);
        text_copy(st->job_probe, sizeof st->job_probe, h->probe);
        send_misfits_away(turn);
    } else
        st->job_probe[0] = 0; /* its machine is none of them any more */
}

static const char *probe_of(const struct rdzv_worker *w)
{
    return w->probe;
}

static const char *data_of(const struct rdzv_worker *w)
{
    return w->data_sha256;
}

static int how_many_say(const struct rdzv *st, const char *this,
                        const char *(*says)(const struct rdzv_worker *w))
{
    int count = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        count += w->presence == PRESENT && w->trainer_pid && !strcmp(says(w), this);
    }
    RM_ASSERT(count <= RM_WORKERS_MAX, "%d workers say the same", count);
    return count;
}

/* True: more than so many say this. Of workers that were refused each counts by its newest word. */
static bool outvotes(struct rdzv_doubt *doubt, int worker, const char *says, int more_than)
{
    RM_ASSERT(more_than >= 0, "worker %d outvotes %d others", worker, more_than);
    if (strcmp(says, doubt->says) != 0)
        doubt->by = (struct worker_set){0};
    text_copy(doubt->says, sizeof doubt->says, says);
    set_add(&doubt->by, worker);
    bool won = set_count(doubt->by) > more_than;
    if (won)
        doubt->by = (struct worker_set){0};
    return won;
}

/* The first who comes may be the faulty one. As long as nobody holds a state nothing rests on its bits, and
 * who was refused for it is remembered: once more machines say the same the job's probe is theirs. */
static void weigh(const struct turn *turn, const struct msg_hello *h)
{
    struct rdzv *st = turn->st;
    if (!must_fit(st) || other_bits_matter(st, h->fingerprint) || !h->probe[0])
        return;
    if (!st->job_probe[0])
        text_copy(st->job_probe, sizeof st->job_probe, h->probe);
    if (!other_probe(st, h->probe)) {
        set_remove(&st->other_probe.by, h->worker);
        return;
    }
    if (somebody_counts(st, -1, true))
        return;
    RM_ASSERT(strcmp(h->probe, st->job_probe) != 0, "the job's own probe %s is doubted", h->probe);
    if (!outvotes(&st->other_probe, h->worker, h->probe, how_many_say(st, st->job_probe, probe_of)))
        return;
    text_copy(st->job_probe, sizeof st->job_probe, h->probe);
    send_misfits_away(turn);
}

/* One worker may have a machine with something else on it, `min` of them have not. */
static int who_are_believed(const struct rdzv *st)
{
    const struct rdzv_settings *s = &st->settings;
    int least = s->workers_min > 2 ? s->workers_min : 2;
    least = least < s->workers_max ? least : s->workers_max;
    RM_ASSERT(least >= 1 && least <= RM_WORKERS_MAX, "%d workers are believed", least);
    return least;
}

static void weigh_data(const struct turn *turn, const struct msg_hello *h)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(h->trainer_pid, "worker %d has no trainer that sees data", h->worker);
    if (!strcmp(h->data_sha256, st->data_sha256)) {
        set_remove(&st->other_data.by, h->worker);
        st->data_files = h->data_files;
        st->data_bytes = h->data_bytes;
        return;
    }
    int see_it = how_many_say(st, st->data_sha256, data_of);
    if (somebody_counts(st, -1, true) || (st->data_of_checkpoint && see_it))
        return; /* as long as one is there who can go on, others may be on one machine that is wrong */
    int more_than = st->data_of_checkpoint ? who_are_believed(st) - 1 : see_it;
    if (!outvotes(&st->other_data, h->worker, h->data_sha256, more_than))
        return;
    if (st->data_of_checkpoint) {
        rdzv_give_up(st, EXIT_DATA,
                     "the training data (sha256 %.12s) is not what the checkpoint was trained on (%.12s); "
                     "bring it back, or train anew with another checkpoint.uri; but where that checkpoint is "
                     "of a release before trees, set trainer.data.hash: Chain",
                     h->data_sha256, st->data_sha256);
        return;
    }
    take_data(st, h);
    send_misfits_away(turn);
}

static void fit_data(struct rdzv *st, const char *trained_on)
{
    if (!*trained_on || !st->settings.reads_files)
        return;
    text_copy(st->data_sha256, sizeof st->data_sha256, trained_on);
    st->data_of_checkpoint = true;
}

static void fit_arithmetic(struct rdzv *st, const char *made)
{
    if (!*made || !must_fit(st))
        return;
    text_copy(st->fingerprint, sizeof st->fingerprint, made);
    st->fits_checkpoint = true;
}

bool rdzv_fit_checkpoint(const struct turn *turn, const struct msg_checkpoint *newest)
{
    if (!newest)
        return true;
    fit_data(turn->st, newest->data_sha256);
    fit_arithmetic(turn->st, newest->fingerprint);
    return !send_misfits_away(turn);
}

/* Of another job or kind, so that nothing is to be learnt from it. One of another protocol is the job's all
 * the same: made anew with the coordinator's image it fits. */
static bool is_foreign(const struct rdzv *st, const struct msg_hello *h, struct msg_abandon *ret)
{
    ret->elsewhere = h->protocol != MSG_PROTOCOL;
    if (ret->elsewhere)
        snprintf(
            ret->why, sizeof ret->why,
            "worker %d runs other software than the coordinator: it speaks protocol %d instead of %d; give "
            "all of a job's programs the same image",
            h->worker, h->protocol, MSG_PROTOCOL);
    else if (*h->job && strcmp(h->job, st->settings.job) != 0) /* "": it has the key, and learns the rest */
        snprintf(ret->why, sizeof ret->why, "worker %d belongs to job %s, this is job %s", h->worker, h->job,
                 st->settings.job);
    else
        return false;
    ret->exit_code = EXIT_MACHINE;
    return true;
}

/* The order matters: what a stranger computes with is nothing to learn from. */
bool rdzv_is_unfit(const struct turn *turn, const struct msg_hello *h, struct msg_abandon *ret)
{
    struct rdzv *st = turn->st;
    RM_ASSERT(!ret->why[0], "worker %d is refused before it is looked at: %s", h->worker, ret->why);
    if (is_foreign(st, h, ret))
        return true;
    learn_hello(turn, h);
    if (!h->trainer_pid)
        return false;
    weigh_data(turn, h);
    if (sees_other_data(st, h->worker, h->data_sha256, ret))
        return true;
    weigh(turn, h);
    if (computes_other_bits(st, h->worker, h->fingerprint, h->probe, ret))
        return true;
    st->exact = st->exact && !strcmp(h->fingerprint, st->fingerprint) && !other_probe(st, h->probe);
    return false;
}

bool rdzv_is_mixed(const struct rdzv *st)
{
    return st->settings.exact && !st->exact;
}
