/* How a coordinator gets what is to be trained: its pod has it, whoever deletes what beside it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "common/os/crypto.h"
#include "common/wire/json.h"
#include "operator/core/pod.h"
#include "operator/core/read.h"

static void first_coordinator_comes_and_dies(struct cast *c)
{
    struct pod_view *pod = cast_pod(c, OP_COORDINATOR, -1, 1);
    cast_settle(c);
    pod->phase = OP_POD_FAILED;
    pod->terminated = true;
    pod->exit_code = 137;
    cast_settle(c);
    c->now_ms += 1000;
    cast_settle(c);
}

/* The pod that a plan makes for a coordinator. */
static struct js *coordinator_made(struct cast *c)
{
    struct js *pod = NULL;
    struct op_plan *plan = cast_plan(c);
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *action = &plan->action[i];
        if (action->kind == OP_CREATE && strstr(action->name, "-coordinator-"))
            pod = js_parse(str_text(&action->body), action->body.length, action->name, NULL);
    }
    plan_free(plan);
    cr_assert(pod, "no coordinator is made");
    return pod;
}

static void brings_its_spec_along(struct cast *c)
{
    struct js *pod = coordinator_made(c);
    struct str spec = str_init(OP_SPEC_TEXT_MAX), said = str_init(OP_POD_TEXT_MAX);
    uint8_t sha256[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    cr_assert_eq(job_effective_spec(&c->job, &spec, NULL), 0);
    cr_assert_str_eq(js_as_string(js_get(read_at(pod, "metadata.annotations"), OP_NOTE_SPEC)),
                     str_text(&spec));
    sha256_once(str_text(&spec), spec.length, sha256);
    hex_encode(sha256, sizeof sha256, hex);
    js_print(read_at(pod, "spec"), &said);
    cr_assert(strstr(str_text(&said), hex), "%s is not what it takes", hex);
    cr_assert(strstr(str_text(&said), "metadata.annotations['" OP_NOTE_SPEC "']"));
    str_clear(&spec);
    str_clear(&said);
    js_free(pod);
}

static void is_in_no_object_of_its_own(struct cast *c)
{
    struct str text = cast_text(c);
    cr_assert_not(strstr(str_text(&text), "configmaps"), "%s", str_text(&text));
    str_clear(&text);
}

/* In no object that somebody could lay there in advance, or take away before a successor needs it, and of
 * which old ones add up. */
Test(operator_spec, each_coordinator_brings_its_spec_along)
{
    struct cast *c = cast_open("{}");
    for (int i = 0; i < 3; i++)
        cast_settle(c);
    brings_its_spec_along(c);
    is_in_no_object_of_its_own(c);
    cast_settle(c);
    first_coordinator_comes_and_dies(c);
    cr_assert_eq(c->job.status.ring.coordinator.attempt, 2);
    brings_its_spec_along(c);
    is_in_no_object_of_its_own(c);
    cast_free(c);
}

/* As after `kubectl scale` while the pod is refused. */
Test(operator_spec, a_coordinator_that_could_not_be_made_at_first_gets_the_spec_as_it_is_by_then)
{
    struct cast *c = cast_open("{}");
    for (int i = 0; i < 3; i++)
        cast_settle(c);
    brings_its_spec_along(c);
    char *older = c->job.spec, *grown = strdup(older), *target = strstr(grown, "\"target\":3");
    cr_assert(target, "%s", older);
    target[strlen("\"target\":")] = '2';
    c->job.spec = grown;
    brings_its_spec_along(c);
    free(older);
    cast_free(c);
}
