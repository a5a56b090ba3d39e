/* Shares a member's time out between its steps and those who want its state. */
#include "trainer/io/pull_pace.h"

#include "common/base/assert.h"

void pull_pace_begin(struct pull_pace *p)
{
    *p = (struct pull_pace){.step = -1,
                            .committed = RM_NEVER,
                            .still_since = RM_NEVER,
                            .percent = PULL_LEAST,
                            .rests_until = p->rests_until,
                            .turn = p->turn};
    RM_ASSERT(p->percent > 0 && p->percent <= PULL_MOST, "%d percent are given", p->percent);
}

static void note_step(struct pull_steps *s, rm_time took)
{
    RM_ASSERT(s->count >= 0 && s->count <= PULL_STEPS, "%d steps are known", s->count);
    if (s->count == PULL_STEPS)
        s->count--;
    for (int i = s->count; i > 0; i--)
        s->took[i] = s->took[i - 1];
    s->took[0] = took;
    s->count++;
}

/* All but the longest are added up. */
static rm_time time_of(const struct pull_steps *s)
{
    rm_time sum = 0, longest = 0;
    RM_ASSERT(s->count == PULL_STEPS, "%d steps are known", s->count);
    for (int i = 0; i < s->count; i++) {
        sum += s->took[i];
        longest = s->took[i] > longest ? s->took[i] : longest;
    }
    return sum - longest;
}

/* A few steps with one share are enough to choose the next one. */
static void choose_share(struct pull_pace *p)
{
    if (p->alone.count < PULL_STEPS || p->beside.count < PULL_STEPS)
        return;
    double longer = (double)time_of(&p->beside) * 100 - (double)time_of(&p->alone) * 100;
    double alone = (double)time_of(&p->alone);
    if (longer > alone * PULL_LOSS)
        p->percent = p->percent / 2 < PULL_LEAST ? PULL_LEAST : p->percent / 2;
    else if (longer <= alone * PULL_ROOM)
        p->percent = p->percent * 2 > PULL_MOST ? PULL_MOST : p->percent * 2;
    p->beside.count = 0;
    RM_ASSERT(p->percent >= PULL_LEAST && p->percent <= PULL_MOST, "%d percent are given", p->percent);
}

void pull_pace_stands(struct pull_pace *p, int64_t step, rm_time now)
{
    RM_ASSERT(step >= 0, "a state of step %lld stands", (long long)step);
    if (p->still_since == RM_NEVER)
        p->still_since = now;
    if (step == p->step)
        return;
    bool made = p->step >= 0 && step == p->step + 1;
    if (made && p->committed != RM_NEVER) {
        note_step(p->gave ? &p->beside : &p->alone, now - p->committed);
        choose_share(p);
    }
    p->step = step;
    p->committed = made ? now : RM_NEVER;
    p->gave = p->taken;
}

void pull_pace_moves(struct pull_pace *p)
{
    p->still_since = RM_NEVER;
}

rm_time pull_pace_take(struct pull_pace *p, rm_time now, uint64_t *ret_turn)
{
    bool still = p->still_since != RM_NEVER && now - p->still_since >= PULL_STILL;
    RM_ASSERT(p->percent >= PULL_LEAST, "%d percent are given", p->percent);
    if (!still && p->taken && now - p->taken_at < PULL_TURN_MOST)
        return PULL_TURN_MOST - (now - p->taken_at);
    if (!still && now < p->rests_until)
        return p->rests_until - now;
    p->taken = p->gave = true;
    p->taken_at = now;
    *ret_turn = ++p->turn;
    return 0;
}

void pull_pace_gave(struct pull_pace *p, uint64_t turn, rm_time begun, rm_time now)
{
    RM_ASSERT(now >= begun && turn <= p->turn, "turn %llu of %llu ends before it begins",
              (unsigned long long)turn, (unsigned long long)p->turn);
    rm_time busy = now - begun < PULL_TURN_MOST ? now - begun : PULL_TURN_MOST;
    rm_time rest = busy * (PULL_MOST - p->percent) / p->percent;
    rest = rest < PULL_REST_MOST ? rest : PULL_REST_MOST;
    p->rests_until = now + rest > p->rests_until ? now + rest : p->rests_until;
    if (turn == p->turn)
        p->taken = false;
}
