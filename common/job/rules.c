#include "common/job/rules.h"

#include <string.h>

#include "common/base/near.h"
#include "common/wire/json.h"

enum { CODE_MAX = 255 };

static const char *const actions[] = {
    [JOB_RULE_NONE] = "", [JOB_RULE_FAIL_JOB] = "FailJob", [JOB_RULE_RESTART] = "Restart"};

enum job_rule_action job_rule_of(const struct job_rules *rules, int exit_code)
{
    for (int i = 0; i < rules->count; i++)
        for (int k = 0; k < rules->rule[i].codes_count; k++)
            if (rules->rule[i].code[k] == exit_code)
                return rules->rule[i].action;
    return JOB_RULE_NONE;
}

/* The member that is none, as a person may have meant it. */
static int refuse_member(const struct js *from, int number, struct error *err)
{
    static const char *const known[] = {"onExitCodes", "action"};
    for (void *it = js_first(from); it; it = js_next(from, it)) {
        const char *key = js_key(it);
        if (!strcmp(key, known[0]) || !strcmp(key, known[1]))
            continue;
        struct near near = near_to(key);
        for (int i = 0; i < 2; i++)
            near_try(&near, known[i], strlen(known[i]));
        return err_set(err, ERR_USAGE, "has %.40s in rule %d%s", key, number,
                       *near.best ? near.question : "; a rule has onExitCodes and action alone");
    }
    return err_set(err, ERR_USAGE, "has a rule %d without %s", number, known[js_get(from, known[0]) != NULL]);
}

static int refuse_action(const char *action, int number, struct error *err)
{
    struct near near = near_to(action ? action : "");
    for (int i = JOB_RULE_FAIL_JOB; action && i <= JOB_RULE_RESTART; i++)
        near_try(&near, actions[i], strlen(actions[i]));
    return err_set(err, ERR_USAGE, "has a rule %d whose action is %.40s%s", number,
                   action ? action : "no word", *near.best ? near.question : "; write FailJob or Restart");
}

static int read_codes(struct job_rule *rule, const struct js *list, int number, struct error *err)
{
    int64_t code;
    if (js_kind(list) != JS_ARRAY || !js_size(list) || js_size(list) > JOB_RULE_CODES_MAX)
        return err_set(err, ERR_USAGE, "has a rule %d without onExitCodes; write 1 to %d of them, as [3, 42]",
                       number, JOB_RULE_CODES_MAX);
    for (size_t i = 0; i < js_size(list); i++) {
        if (!js_as_int(js_at(list, i), &code) || code < 1 || code > CODE_MAX)
            return err_set(err, ERR_USAGE, "has a rule %d with an exit code that is none; write 1 to %d",
                           number, CODE_MAX);
        rule->code[rule->codes_count++] = (uint8_t)code;
    }
    return 0;
}

static int read_rule(struct job_rule *rule, const struct js *from, int number, struct error *err)
{
    *rule = (struct job_rule){0};
    const struct js *codes = js_get(from, "onExitCodes"), *word = js_get(from, "action");
    const char *action = word ? js_as_string(word) : NULL;
    if (from && js_kind(from) == JS_OBJECT && (js_size(from) != 2 || !codes || !word))
        return refuse_member(from, number, err);
    if (!from || js_kind(from) != JS_OBJECT)
        return err_set(err, ERR_USAGE, "has a rule %d that is no group of onExitCodes and action", number);
    if (action && !strcmp(action, actions[JOB_RULE_FAIL_JOB]))
        rule->action = JOB_RULE_FAIL_JOB;
    else if (action && !strcmp(action, actions[JOB_RULE_RESTART]))
        rule->action = JOB_RULE_RESTART;
    else
        return refuse_action(action, number, err);
    return read_codes(rule, codes, number, err);
}

int job_rules_read(struct job_rules *ret, const struct js *list, struct error *err)
{
    struct job_rules rules = {0};
    if (!list || js_kind(list) != JS_ARRAY)
        return err_set(err, ERR_USAGE, "is no list; write [{onExitCodes: [3], action: FailJob}], say");
    if (js_size(list) > JOB_RULES_MAX)
        return err_set(err, ERR_USAGE, "has %zu rules; write %d at most", js_size(list), JOB_RULES_MAX);
    for (; rules.count < (int)js_size(list); rules.count++)
        if (read_rule(&rules.rule[rules.count], js_at(list, (size_t)rules.count), rules.count + 1, err) < 0)
            return -1;
    *ret = rules;
    return 0;
}

struct js *job_rules_json(const struct job_rules *rules)
{
    struct js *list = js_array();
    for (int i = 0; i < rules->count; i++) {
        const struct job_rule *rule = &rules->rule[i];
        struct js *made = js_object(), *codes = js_array();
        for (int k = 0; k < rule->codes_count; k++)
            js_push(codes, js_new_int(rule->code[k]));
        js_set(made, "onExitCodes", codes);
        js_set_string(made, "action", actions[rule->action]);
        js_push(list, made);
    }
    return list;
}
