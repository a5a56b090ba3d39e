#include "common/storage/checkpoint/owner_rule.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"

enum { PAUSE_LEASES_MOST = 16 }; /* between two questions to one that lives */

static enum owner_step has_answered(struct owner_rule *rule, rm_time now)
{
    rule->waits = false;
    rule->again_at = now + rm_backoff(rule->lease, PAUSE_LEASES_MOST * rule->lease, rule->lives++);
    return OWNER_STAYS_OUT;
}

/* Another run has it, and does not say that it is free. */
static enum owner_step find_out(struct owner_rule *rule, const struct owner_claim *seen, rm_time now)
{
    if (rule->asked != seen->number)
        return OWNER_ASKS;
    if (!rule->waits)
        return now >= rule->again_at ? OWNER_ASKS : OWNER_STAYS_OUT;
    if (strcmp(rule->tag, seen->tag) != 0)
        return has_answered(rule, now);
    return now - rule->asked_at >= rule->lease ? OWNER_TAKES : OWNER_WAITS;
}

enum owner_step owner_rule_step(struct owner_rule *rule, const struct owner_claim *seen, rm_time now)
{
    RM_ASSERT(rule->lease > 0, "a lease of %lld ns", (long long)rule->lease);
    if (seen->own) {
        owner_rule_taken(rule, seen->number);
        return OWNER_HOLDS;
    }
    if (!seen->number || seen->released || seen->dead)
        return OWNER_TAKES;
    if (seen->of_run)
        return rule->number && seen->number > rule->number ? OWNER_FOLLOWED : OWNER_TAKES;
    return find_out(rule, seen, now);
}

void owner_rule_asked(struct owner_rule *rule, const struct owner_claim *seen, rm_time now)
{
    if (rule->asked != seen->number)
        rule->lives = 0;
    rule->asked = seen->number;
    rule->waits = true;
    rule->asked_at = now;
    text_copy(rule->tag, sizeof rule->tag, seen->tag);
}

void owner_rule_taken(struct owner_rule *rule, int number)
{
    rule->number = number;
    rule->asked = 0;
    rule->waits = false;
}

int owner_rule_next(const struct owner_rule *rule, const struct owner_claim *seen)
{
    return (seen->number > rule->number ? seen->number : rule->number) + 1;
}
