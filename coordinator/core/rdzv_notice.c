/* Keeps each worker's newest notice and tells what is new of it; acts on none. */
#include "coordinator/core/rdzv_notice.h"

#include "common/base/assert.h"
#include "common/notice/notice.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_out.h"

/* False: it is none that anybody knows. */
static bool take_word(const struct msg_noticed *said, rm_time now, struct notice *ret)
{
    enum notice_source source = notice_source_named(said->source);
    enum notice_cause cause = notice_cause_named(said->cause);
    if (source == NOTICE_SOURCES || cause == NOTICE_CAUSES)
        return false;
    *ret = (struct notice){.source = source,
                           .cause = cause,
                           .certainty = said->word == NOTICED_WILL ? NOTICE_WILL : NOTICE_MAY,
                           .until = RM_NEVER};
    if (said->left >= 0)
        ret->until = notice_until(source, said->left / RM_MS, 0, now);
    RM_ASSERT(ret->until >= 0, "a notice of cause %d ends at %lld", (int)cause, (long long)ret->until);
    return true;
}

static void tell_notice(const struct turn *turn, const struct rdzv_worker *w, enum rdzv_tell_kind kind,
                        const struct notice *notice)
{
    struct rdzv_tell *t =
        rdzv_tell_worker(turn, kind, rdzv_index(turn->st, w), notice_cause_name(notice->cause));
    t->notice = *notice;
    t->left = notice->until == RM_NEVER ? -1 : rm_later(notice->until - turn->now, 0);
    RM_ASSERT(t->left >= -1, "%lld ns are left", (long long)t->left);
}

/* What was too late to be saved by who goes is in time by who stays. */
static void need_not_go(struct rdzv *st, struct rdzv_worker *w)
{
    if (w->goes)
        st->given_up = -1;
    w->goes = false;
}

static void withdraw(const struct turn *turn, struct rdzv_worker *w)
{
    if (w->noticed)
        tell_notice(turn, w, TELL_NOTICE_WITHDRAWN, &w->notice);
    w->noticed = false;
    need_not_go(turn->st, w);
}

static void hear_notice(const struct turn *turn, struct rdzv_worker *w, const struct notice *is)
{
    enum notice_news news = notice_change(w->noticed ? &w->notice : NULL, is);
    RM_ASSERT(!w->released, "worker %d is let go, and its notices are told", rdzv_index(turn->st, w));
    if (news == NOTICE_SAME)
        return;
    if (news == NOTICE_MILDER || news == NOTICE_INSTEAD)
        tell_notice(turn, w, TELL_NOTICE_WITHDRAWN, &w->notice);
    if (news != NOTICE_SOONER && news != NOTICE_LATER)
        tell_notice(turn, w, TELL_NOTICE_RECEIVED, is);
    w->noticed = true;
    w->notice = *is;
    if (is->certainty != NOTICE_WILL)
        need_not_go(turn->st, w);
}

void rdzv_noticed(const struct turn *turn, struct rdzv_worker *w, const struct msg_noticed *said)
{
    struct notice is;
    if (w->released)
        return;
    if (said->word == NOTICED_GONE)
        withdraw(turn, w);
    else if (take_word(said, turn->now, &is)) {
        text_copy(w->pool, sizeof w->pool, said->pool);
        text_copy(w->machine, sizeof w->machine, said->machine);
        hear_notice(turn, w, &is);
    }
}
