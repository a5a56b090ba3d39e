/* failurePolicy.rules, from JSON and back, and from job files. */
#include "common/job/rules.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/job/file.h"
#include "common/wire/json.h"

static int read_text(const char *text, struct job_rules *ret, struct error *err)
{
    struct js *list = js_parse(text, strlen(text), "rules", err);
    int status = list ? job_rules_read(ret, list, err) : -1;
    js_free(list);
    return status;
}

Test(rules, the_first_that_fits_counts)
{
    struct job_rules rules;
    struct error err = {0};
    static const char text[] = "[{\"onExitCodes\":[3,42],\"action\":\"FailJob\"},"
                               "{\"action\":\"Restart\",\"onExitCodes\":[42,143,255]}]";
    cr_assert_eq(read_text(text, &rules, &err), 0, "%s", err.text);
    static const struct {
        int code;
        enum job_rule_action action;
    } cases[] = {{3, JOB_RULE_FAIL_JOB},  {42, JOB_RULE_FAIL_JOB}, {143, JOB_RULE_RESTART},
                 {255, JOB_RULE_RESTART}, {4, JOB_RULE_NONE},      {0, JOB_RULE_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(job_rule_of(&rules, cases[i].code), cases[i].action, "code %d", cases[i].code);
}

Test(rules, what_is_none_is_refused_with_a_sentence)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"{}", "is no list"},
        {"[3]", "has a rule 1 that is no group of onExitCodes and action"},
        {"[{\"onExitCodes\":[3]}]", "has a rule 1 without action"},
        {"[{\"action\":\"FailJob\"}]", "has a rule 1 without onExitCodes"},
        {"[{}]", "has a rule 1 without onExitCodes"},
        {"[{\"onExitCodes\":[3],\"action\":\"FailJob\",\"more\":1}]",
         "has more in rule 1; a rule has onExitCodes"},
        {"[{\"onExitcode\":[3],\"action\":\"FailJob\"}]",
         "has onExitcode in rule 1; did you mean onExitCodes?"},
        {"[{\"onExitCodes\":[3],\"actoin\":\"FailJob\"}]", "has actoin in rule 1; did you mean action?"},
        {"[{\"onExitCodes\":[3],\"action\":\"failJob\"}]", "is failJob; did you mean FailJob?"},
        {"[{\"onExitCodes\":[3],\"action\":\"Restrat\"}]", "is Restrat; did you mean Restart?"},
        {"[{\"onExitCodes\":[3],\"action\":\"Ignore\"}]", "is Ignore; write FailJob or Restart"},
        {"[{\"onExitCodes\":[3],\"action\":3}]", "is no word; write FailJob or Restart"},
        {"[{\"onExitCodes\":[],\"action\":\"FailJob\"}]", "without onExitCodes; write 1 to 32"},
        {"[{\"onExitCodes\":3,\"action\":\"FailJob\"}]", "without onExitCodes"},
        {"[{\"onExitCodes\":[0],\"action\":\"FailJob\"}]", "that is none; write 1 to 255"},
        {"[{\"onExitCodes\":[256],\"action\":\"FailJob\"}]", "that is none; write 1 to 255"},
        {"[{\"onExitCodes\":[\"3\"],\"action\":\"FailJob\"}]", "that is none; write 1 to 255"},
        {"[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]", "has 17 rules; write 16 at most"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job_rules rules;
        struct error err = {0};
        cr_assert_eq(read_text(cases[i].text, &rules, &err), -1, "%s", cases[i].text);
        cr_assert_eq(err.code, ERR_USAGE);
        cr_assert(strstr(err.text, cases[i].sentence), "%s: %s", cases[i].text, err.text);
    }
}

static int parse(const char *group, const char *rules, struct job_spec *spec, struct str *notes,
                 struct error *err)
{
    struct str file = str_init(4096);
    str_addf(&file,
             "apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"
             "  workers: {target: 2}\n%s  failurePolicy:\n%s",
             group, rules);
    struct job_file_source source = {.path = "j.yaml", .folder = "/jobs", .cwd = "/jobs"};
    int status = job_file_parse(spec, str_text(&file), file.length, &source, notes, err);
    str_clear(&file);
    return status;
}

static const char program[] = "  launch: {command: [train], mode: Restart}\n";
static const char trainer[] =
    "  trainer: {model: {preset: gpt2-124m}, data: {uri: data}, steps: 3}\n  checkpoint: {uri: c}\n";

Test(rules, a_job_file_has_them_for_a_program_and_its_spec_carries_them)
{
    static struct job_spec spec, back;
    struct error err = {0};
    struct str notes = str_init(4096), json = str_init(16384);
    static const char block[] = "    rules:\n    - onExitCodes: [3, 42]\n      action: FailJob\n"
                                "    - {action: Restart, onExitCodes: [143]}\n";
    cr_assert_eq(parse(program, block, &spec, &notes, &err), 0, "%s", err.text);
    job_spec_write(&spec, &json);
    cr_assert(strstr(str_text(&json), "\"rules\":[{\"action\":\"FailJob\",\"onExitCodes\":[3,42]},"), "%s",
              str_text(&json));
    cr_assert_eq(job_spec_read(&back, str_text(&json), json.length, &err), 0, "%s", err.text);
    cr_assert_eq(job_rule_of(&back.failure_policy.rules, 143), JOB_RULE_RESTART);
    cr_assert_eq(notes.length, 0, "%s", str_text(&notes));
    str_clear(&notes);
    str_clear(&json);
}

Test(rules, a_job_without_any_says_nothing_of_them)
{
    static struct job_spec spec, back;
    struct error err = {0};
    struct str notes = str_init(4096), json = str_init(16384);
    cr_assert_eq(parse(program, "    maxRestarts: 3\n", &spec, &notes, &err), 0, "%s", err.text);
    job_spec_write(&spec, &json);
    cr_assert_null(strstr(str_text(&json), "rules"));
    cr_assert_eq(job_spec_read(&back, str_text(&json), json.length, &err), 0, "%s", err.text);
    cr_assert_eq(back.failure_policy.rules.count, 0);
    str_clear(&notes);
    str_clear(&json);
}

Test(rules, beside_the_built_in_trainer_they_are_a_note)
{
    static struct job_spec spec;
    struct error err = {0};
    struct str notes = str_init(4096);
    static const char rules[] = "    rules: [{onExitCodes: [3], action: FailJob}]\n";
    cr_assert_eq(parse(trainer, rules, &spec, &notes, &err), 0, "%s", err.text);
    cr_assert(strstr(str_text(&notes), "spec.failurePolicy.rules means nothing without a cluster"), "%s",
              str_text(&notes));
    str_clear(&notes);
}

Test(rules, a_wrong_one_in_a_job_file_is_refused_with_its_line)
{
    static struct job_spec spec;
    struct error err = {0};
    struct str notes = str_init(4096);
    cr_assert_eq(
        parse(program, "    rules:\n    - onExitCodes: [3]\n      action: Stop\n", &spec, &notes, &err), -1);
    cr_assert(strstr(err.text, "spec.failurePolicy.rules has a rule 1 whose action is Stop"), "%s", err.text);
    cr_assert(strstr(err.text, "j.yaml:"), "%s", err.text);
    str_clear(&notes);
}
