/* What is said and concluded of a second way for words: offers, phases, failures and whose they were. */
#include "trainer/core/second.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"

/* A rank's first word; its second one is its version. */
static const uint32_t said_present = 1, said_failed = 2, said_unwilling = 4, said_id = 8,
                      said_key_useless = 16, said_needs_key = 32, said_open = 64, said_stood_still = 128;

static const char *phase_name(enum second_phase phase)
{
    static const char *const names[] = {[SECOND_NONE] = "NONE",
                                        [SECOND_OFFERS] = "OFFERS",
                                        [SECOND_MAKES] = "MAKES",
                                        [SECOND_USES] = "USES",
                                        [SECOND_OVER] = "OVER"};
    RM_ASSERT((unsigned)phase < sizeof names / sizeof *names, "%d is the number of no phase", (int)phase);
    return names[phase];
}

static void phase_set(struct second *s, enum second_phase phase, rm_time now)
{
    RM_ASSERT(phase != SECOND_MAKES || s->phase == SECOND_OFFERS || s->phase == SECOND_USES,
              "phase %s after %s", phase_name(phase), phase_name(s->phase));
    RM_ASSERT(phase != SECOND_USES || s->phase == SECOND_MAKES, "phase %s after %s", phase_name(phase),
              phase_name(s->phase));
    s->phase = phase;
    s->since = now;
}

static void note_failure(struct second *s, rm_time now)
{
    RM_ASSERT(s->failures < INT32_MAX, "%d failures", s->failures);
    s->failed_at[s->failures++ % SECOND_FAILURES] = now;
}

static bool is_among(const struct second_member *members, int world, struct second_member who)
{
    RM_ASSERT(world >= 1 && world <= RM_WORKERS_MAX, "worker %d among %d", who.worker, world);
    for (int i = 0; i < world; i++)
        if (members[i].worker == who.worker)
            return members[i].trainer == who.trainer;
    return false;
}

/* Whoever is gone, or has another trainer, may have died in that sum, which then had to break off. */
static bool all_came_again(const struct second *s, const struct second_member *members, int world)
{
    RM_ASSERT(s->world > 1, "a sum of %d", s->world);
    for (int r = 0; r < s->world; r++)
        if (!is_among(members, world, s->member[r]))
            return false;
    return true;
}

void second_ring(struct second *s, const struct second_member *members, int rank, int world, bool offers,
                 rm_time now)
{
    RM_ASSERT(world > 0 && world <= RM_WORKERS_MAX && rank >= 0 && rank < world, "rank %d of %d", rank,
              world);
    if (*s->broke && !all_came_again(s, members, world))
        *s->broke = 0;
    *s->why = 0;
    s->first_hand = false;
    s->rank = rank;
    s->world = world;
    s->open = s->key != SECOND_KEY_FINE;
    s->open_for = -1;
    memcpy(s->member, members, (size_t)world * sizeof *members);
    phase_set(s, offers && world > 1 ? SECOND_OFFERS : SECOND_NONE, now);
}

bool second_offers(const struct second *s)
{
    return s->phase == SECOND_OFFERS || s->phase == SECOND_MAKES;
}

bool second_wants_id(const struct second *s)
{
    return s->phase == SECOND_OFFERS && s->rank == 0;
}

bool second_is_ready(const struct second *s, const struct second_own *own)
{
    return (s->phase == SECOND_MAKES || s->phase == SECOND_USES) && own->ready && !own->failed;
}

bool second_uses(const struct second *s)
{
    return s->phase == SECOND_USES;
}

/* ---- offers ---- */

static int recent_failures(const struct second *s, rm_time now)
{
    int recent = 0;
    RM_ASSERT(s->failures >= 0, "%d failures", s->failures);
    for (int i = 0; i < SECOND_FAILURES && i < s->failures; i++)
        recent += now - s->failed_at[i] < SECOND_REMEMBERS;
    return recent;
}

static bool takes_too_long(const struct second *s, const struct second_own *own, rm_time now)
{
    RM_ASSERT(now >= s->since, "phase %s began after now", phase_name(s->phase));
    bool waits = s->phase == SECOND_MAKES ? !own->ready : s->rank == 0 && !own->named;
    return waits && own->version && now - s->since >= SECOND_PATIENCE;
}

static uint32_t *slot_of(uint32_t *words, int rank)
{
    RM_ASSERT(rank >= 0 && rank < RM_WORKERS_MAX, "rank %d offers", rank);
    return words + SECOND_ID_WORDS + SECOND_RANK_WORDS * rank;
}

void second_say(const struct second *s, const struct second_own *own, rm_time now,
                uint32_t words[SECOND_WORDS])
{
    RM_ASSERT(second_offers(s), "an offer in phase %s", phase_name(s->phase));
    memset(words, 0, SECOND_WORDS * sizeof *words);
    uint32_t *slot = slot_of(words, s->rank);
    bool failed = own->failed || takes_too_long(s, own, now);
    bool names = s->rank == 0 && s->phase == SECOND_OFFERS && own->named && !failed;
    slot[0] = said_present | (failed ? said_failed : 0) | (names ? said_id : 0) |
              (names && own->open ? said_open : 0) |
              (recent_failures(s, now) == SECOND_FAILURES ? said_unwilling : 0) |
              (s->key != SECOND_KEY_FINE ? said_key_useless : 0) | (own->needs_key ? said_needs_key : 0) |
              (s->stood_still ? said_stood_still : 0);
    slot[1] = (uint32_t)own->version;
    if (names)
        memcpy(words, own->id, sizeof own->id);
}

static const uint32_t *heard_of(const uint32_t *sum, int rank)
{
    RM_ASSERT(rank >= 0 && rank < RM_WORKERS_MAX, "rank %d is heard", rank);
    return sum + SECOND_ID_WORDS + SECOND_RANK_WORDS * rank;
}

/* The first rank that says this; -1. */
static int rank_saying(const struct second *s, const uint32_t *sum, uint32_t what)
{
    RM_ASSERT(what, "%d ranks are asked whether they say nothing", s->world);
    for (int r = 0; r < s->world; r++)
        if (heard_of(sum, r)[0] & what)
            return r;
    return -1;
}

static int rank_without(const struct second *s, const uint32_t *sum)
{
    for (int r = 0; r < s->world; r++)
        if (!heard_of(sum, r)[1])
            return r;
    return -1;
}

static int rank_of_other_version(const struct second *s, const uint32_t *sum)
{
    for (int r = 1; r < s->world; r++)
        if (heard_of(sum, r)[1] != heard_of(sum, 0)[1])
            return r;
    return -1;
}

/* ---- what follows ---- */

static void version_text(uint32_t version, char out[32])
{
    snprintf(out, 32, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
}

static void why_none(struct second *s, const struct second_own *own, int r)
{
    RM_ASSERT(r >= 0 && r < s->world, "rank %d of %d has none", r, s->world);
    s->first_hand = r == s->rank;
    snprintf(s->why, sizeof s->why, "worker %d has none%s%s", s->member[r].worker, s->first_hand ? ": " : "",
             s->first_hand ? own->why : "");
}

static void why_versions_differ(struct second *s, const uint32_t *sum, int r)
{
    RM_ASSERT(r > 0 && r < s->world, "rank %d of %d has another version", r, s->world);
    char a[32], b[32];
    version_text(heard_of(sum, 0)[1], a);
    version_text(heard_of(sum, r)[1], b);
    s->first_hand = s->rank == r;
    snprintf(s->why, sizeof s->why, "worker %d has version %s and worker %d has %s", s->member[0].worker, a,
             s->member[r].worker, b);
}

/* Who knows how it failed the last time tells it; where nobody in this ring does, the first who is unwilling.
 */
static void why_unwilling(struct second *s, int r)
{
    RM_ASSERT(r >= 0 && r < s->world, "rank %d of %d is unwilling", r, s->world);
    char last[RM_WHY_MAX];
    bool knows = s->first_hand;
    text_copy(last, sizeof last, s->why);
    s->first_hand = knows || (r == s->rank && !*last);
    snprintf(s->why, sizeof s->why, "it failed %d times within ten minutes at worker %d%s%.120s",
             SECOND_FAILURES, s->member[knows ? s->rank : r].worker, knows ? ": " : "", knows ? last : "");
}

/* Who may not is the one to tell it. */
static void why_not_open(struct second *s, int useless, int needs)
{
    RM_ASSERT(useless >= 0 && useless < s->world && needs >= 0 && needs < s->world, "ranks %d and %d of %d",
              useless, needs, s->world);
    s->first_hand = needs == s->rank;
    snprintf(s->why, sizeof s->why,
             "worker %d may not go without the job's key (RINGMASTER_NCCL_NEEDS_KEY), and worker %d's makes "
             "no connection with it",
             s->member[needs].worker, s->member[useless].worker);
}

/* True: it is over. */
static bool is_refused(struct second *s, const struct second_own *own, const uint32_t *sum)
{
    RM_ASSERT(s->world > 1, "offers in a world of %d", s->world);
    int r = rank_without(s, sum);
    if (r >= 0) {
        why_none(s, own, r);
        return true;
    }
    r = rank_of_other_version(s, sum);
    if (r >= 0) {
        why_versions_differ(s, sum, r);
        return true;
    }
    r = rank_saying(s, sum, said_unwilling);
    if (r >= 0) {
        why_unwilling(s, r);
        return true;
    }
    int useless = rank_saying(s, sum, said_key_useless), needs = rank_saying(s, sum, said_needs_key);
    if (useless >= 0 && needs >= 0)
        why_not_open(s, useless, needs);
    return useless >= 0 && needs >= 0;
}

/* Of a connection that was not made. True: it was the first with the key for which that may have been why. */
static bool doubt_key(struct second *s, const struct second_own *own)
{
    enum second_key before = s->key;
    if (s->phase == SECOND_MAKES && s->open && s->key == SECOND_KEY_DOUBTED)
        s->key = SECOND_KEY_FINE;
    else if (s->phase == SECOND_MAKES && !s->open && own->failed && own->key_refused)
        s->key = SECOND_KEY_DOUBTED;
    s->open = s->key != SECOND_KEY_FINE;
    return s->key == SECOND_KEY_DOUBTED && before != SECOND_KEY_DOUBTED;
}

/* Another one is tried; whether all are willing shows in the next header. */
static enum second_order try_again(struct second *s, const struct second_own *own, int rank, rm_time now)
{
    RM_ASSERT(rank >= 0 && rank < s->world && s->phase != SECOND_NONE, "rank %d of %d failed in phase %s",
              rank, s->world, phase_name(s->phase));
    bool without = doubt_key(s, own) && !own->needs_key;
    s->first_hand = own->failed || rank == s->rank;
    if (own->failed)
        snprintf(s->why, sizeof s->why, "%.*s%s", without ? 150 : RM_WHY_MAX, own->why,
                 without ? ": one is tried without it" : "");
    else if (rank == s->rank)
        text_copy(s->why, sizeof s->why, "it was not made in two minutes");
    else
        snprintf(s->why, sizeof s->why, "it failed at worker %d", s->member[rank].worker);
    note_failure(s, now);
    phase_set(s, SECOND_OFFERS, now);
    return SECOND_DROP;
}

/* Rank 0 may have made its id before it heard what another one knows of the key. */
static enum second_order hear_id(struct second *s, const uint32_t *sum, rm_time now)
{
    const uint32_t said = heard_of(sum, 0)[0];
    const int useless = rank_saying(s, sum, said_key_useless);
    RM_ASSERT(s->phase == SECOND_OFFERS, "an id is heard in phase %s", phase_name(s->phase));
    s->open = useless >= 0;
    s->open_for = useless >= 0 ? s->member[useless].worker : -1;
    if (!(said & said_id))
        return SECOND_STAY;
    if (s->open != ((said & said_open) != 0))
        return s->rank == 0 ? SECOND_RENAME : SECOND_STAY;
    phase_set(s, SECOND_MAKES, now);
    return SECOND_CONNECT;
}

static enum second_order hear_offers(struct second *s, const struct second_own *own, const uint32_t *sum,
                                     rm_time now)
{
    RM_ASSERT(second_offers(s), "offers are heard in phase %s", phase_name(s->phase));
    if (is_refused(s, own, sum)) {
        phase_set(s, SECOND_OVER, now);
        return SECOND_DROP;
    }
    int failed = rank_saying(s, sum, said_failed);
    if (failed >= 0)
        return try_again(s, own, failed, now);
    return s->phase == SECOND_OFFERS ? hear_id(s, sum, now) : SECOND_STAY;
}

/* Why one is not ready any more it says with the next header. */
static enum second_order hear_use(struct second *s, bool all_ready, rm_time now)
{
    RM_ASSERT(s->world > 1, "words of a world of %d", s->world);
    if (!all_ready)
        phase_set(s, SECOND_MAKES, now);
    return SECOND_STAY;
}

bool second_judge(struct second *s, const uint32_t *sum, rm_time now)
{
    RM_ASSERT(second_offers(s), "a broken sum is judged in phase %s", phase_name(s->phase));
    bool failed = *s->broke && rank_saying(s, sum, said_stood_still) < 0;
    if (failed) {
        text_copy(s->why, sizeof s->why, s->broke);
        s->first_hand = true;
        note_failure(s, now);
    }
    *s->broke = 0;
    s->stood_still = false;
    return failed;
}

enum second_order second_hear(struct second *s, const struct second_own *own, const uint32_t *sum,
                              bool all_ready, rm_time now)
{
    RM_ASSERT(second_offers(s) == (sum != NULL), "offers are heard in phase %s", phase_name(s->phase));
    if (s->phase == SECOND_USES)
        return hear_use(s, all_ready, now);
    if (!second_offers(s))
        return SECOND_STAY;
    enum second_order order = hear_offers(s, own, sum, now);
    if (s->phase != SECOND_MAKES || order != SECOND_STAY || !all_ready)
        return order;
    phase_set(s, SECOND_USES, now);
    if (s->open)
        s->key = SECOND_KEY_USELESS;
    *s->why = 0;
    s->switches++;
    return SECOND_SWITCH;
}

void second_broke(struct second *s, const char *error, rm_time lasted, rm_time still, rm_time now)
{
    RM_ASSERT(lasted >= 0 && still >= 0, "a sum lasted %lld ns, %lld of them still", (long long)lasted,
              (long long)still);
    s->stood_still = still >= SECOND_STOOD_STILL;
    if (error)
        text_copy(s->broke, sizeof s->broke, error);
    else if (lasted >= SECOND_HANGS)
        snprintf(s->broke, sizeof s->broke, "a sum by it hung, and was broken off after %lld s",
                 (long long)(lasted / RM_S));
    phase_set(s, SECOND_OVER, now);
}
