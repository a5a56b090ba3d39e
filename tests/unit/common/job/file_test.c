#include "common/job/file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "common/job/field.h"
#include "common/model/layout.h"

static const char good[] = "apiVersion: ringmaster.dev/v1alpha1\n"                      /* 1 */
                           "kind: TrainingJob\n"                                        /* 2 */
                           "metadata: {name: tiny}\n"                                   /* 3 */
                           "spec:\n"                                                    /* 4 */
                           "  workers: {target: 3}\n"                                   /* 5 */
                           "  trainer:\n"                                               /* 6 */
                           "    model: {layers: 2, heads: 4, width: 32, context: 32}\n" /* 7 */
                           "    data: {uri: ../books}\n"                                /* 8 */
                           "    steps: 40\n"                                            /* 9 */
                           "  checkpoint: {uri: out}\n";                                /* 10 */

struct outcome {
    int status;
    struct job_spec spec;
    struct error err;
    struct str notes;
};

static struct outcome read_with(const char *text, const char *const *sets, int count)
{
    struct outcome out = {.notes = str_init(4096)};
    struct job_file_source source = {
        .path = "job.yaml", .folder = "/home/me/jobs", .cwd = "/tmp/here", .sets = sets, .sets_count = count};
    out.status = job_file_parse(&out.spec, text, strlen(text), &source, &out.notes, &out.err);
    return out;
}

/* The good file with one line in place of another (from 1), or with text added at the end (line 0). */
static struct outcome read_changed(int line, const char *text)
{
    struct str whole = str_init(1 << 16);
    const char *at = good;
    for (int i = 1; *at; i++) {
        const char *end = strchr(at, '\n') + 1;
        if (i == line)
            str_addf(&whole, "%s\n", text);
        else
            str_add(&whole, at, (size_t)(end - at));
        at = end;
    }
    if (!line)
        str_addf(&whole, "%s\n", text);
    struct outcome out = read_with(str_text(&whole), NULL, 0);
    str_clear(&whole);
    return out;
}

static void refused(struct outcome out, const char *sentence)
{
    cr_assert_lt(out.status, 0, "accepted, wanted: %s", sentence);
    cr_assert_eq(out.err.code, ERR_USAGE);
    cr_assert_str_eq(out.err.text, sentence);
    str_clear(&out.notes);
}

Test(file, a_short_job_gets_every_default)
{
    struct outcome out = read_with(good, NULL, 0);
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    const struct job_spec *s = &out.spec;
    cr_assert_str_eq(s->name, "tiny");
    cr_assert_eq(s->workers.min, 1);
    cr_assert_eq(s->workers.max, 3);
    cr_assert_eq(s->batch.lanes, 64);
    cr_assert_eq(s->batch.lane_sequences, 1);
    cr_assert_eq(s->model.shape.vocabulary, 256);
    cr_assert_float_eq(s->optimizer.learning_rate, 6e-4, 0);
    cr_assert_float_eq(s->optimizer.clip_norm, 1, 0);
    cr_assert_eq(s->checkpoint.keep, 3);
    cr_assert(s->checkpoint.resume);
    cr_assert_eq(s->elasticity.join_window, 0);
    cr_assert_eq(job_join_window(s, false), 500 * RM_MS);
    cr_assert_eq(job_join_window(s, true), 10 * RM_S);
    cr_assert_eq(s->failure_policy.max_restarts, 5);
    cr_assert_str_eq(s->isa, "Auto");
    cr_assert_str_eq(s->data.uri, "file:///home/me/books");
    cr_assert_str_eq(s->checkpoint.uri, "file:///home/me/jobs/out");
    cr_assert_eq(out.notes.length, 0);
}

Test(file, a_preset_has_as_many_million_parameters_as_its_name_says)
{
    const char *names[] = {"gpt2-124m", "gpt2-355m", "gpt2-774m", "gpt2-1558m"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model_shape shape;
        struct model_layout layout;
        cr_assert(strstr(preset_names(), names[i]));
        cr_assert(preset_shape(names[i], &shape));
        model_layout_init(&layout, &shape);
        cr_assert_eq((layout.parameters + 500000) / 1000000, strtol(names[i] + 5, NULL, 10), "%s has %lld",
                     names[i], (long long)layout.parameters);
    }
}

Test(file, a_preset_gives_the_shape_and_fields_beside_it_win)
{
    struct outcome out = read_changed(7, "    model: {preset: gpt2-124m, context: 256}");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert_eq(out.spec.model.shape.layers, 12);
    cr_assert_eq(out.spec.model.shape.context, 256);
    cr_assert_eq(out.spec.model.shape.vocabulary, 50257);
    refused(read_changed(7, "    model: {preset: gpt3}"),
            "job.yaml:7: spec.trainer.model.preset is \"gpt3\"; there are gpt2-124m, gpt2-355m, gpt2-774m, "
            "gpt2-1558m");
}

Test(file, a_field_of_the_wrong_type_or_size_is_told_where_and_what_to_write)
{
    refused(read_changed(9, "    steps: many"),
            "job.yaml:9: spec.trainer.steps is \"many\"; write a whole number from 1 to 1000000000000");
    refused(read_changed(9, "    steps: 1.5"),
            "job.yaml:9: spec.trainer.steps is 1.5; write a whole number from 1 to 1000000000000");
    refused(read_changed(9, "    steps: \"40\""),
            "job.yaml:9: spec.trainer.steps is \"40\"; write a whole number from 1 to 1000000000000");
    refused(read_changed(9, "    steps: [40]"),
            "job.yaml:9: spec.trainer.steps is a list; write a whole number from 1 to 1000000000000");
    refused(read_changed(9, "    steps: 40\n    batch: {lanes: 5000}"),
            "job.yaml:10: spec.trainer.batch.lanes is 5000; write a whole number from 1 to 1024");
    refused(read_changed(9, "    steps: 40\n    optimizer:\n      beta1: 1"),
            "job.yaml:11: spec.trainer.optimizer.beta1 is 1; write a number from 0 to 0.9999999");
    refused(read_changed(0, "  elasticity: {lostAfter: 5}"),
            "job.yaml:11: spec.elasticity.lostAfter is 5; write a duration such as 500ms, 10s, 5m or 1h");
    refused(read_changed(5, "  workers: 3"),
            "job.yaml:5: spec.workers should be a group of fields, indented below it");
    refused(read_changed(8, "    data: {uri: }"),
            "job.yaml:8: spec.trainer.data.uri is empty; write a folder, as a path or file:// URI");
    refused(read_changed(8, "    data: {uri: gs://bucket/books}"),
            "job.yaml:8: spec.trainer.data.uri is gs://bucket/books; write a path, file:///path or "
            "s3://bucket/path");
    refused(read_changed(8, "    data: {uri: /x, tokenizer: \"http://x/tokenizer.json\"}"),
            "job.yaml:8: spec.trainer.data.tokenizer is http://x/tokenizer.json; write a path, "
            "file:///path or s3://bucket/path");
}

Test(file, an_unknown_field_is_told_its_nearest_name)
{
    refused(read_changed(9, "    step: 40"),
            "job.yaml:9: spec.trainer.step is not a field of a TrainingJob; did you mean steps?");
    refused(read_changed(5, "  workers: {targets: 3}"),
            "job.yaml:5: spec.workers.targets is not a field of a TrainingJob; did you mean target?");
    refused(read_changed(0, "  chekpoint: {}"),
            "job.yaml:11: spec.chekpoint is not a field of a TrainingJob; did you mean checkpoint?");
    refused(read_changed(0, "  entirelyElse: 1"),
            "job.yaml:11: spec.entirelyElse is not a field of a TrainingJob; remove it");
    refused(
        read_changed(0, "spce: 1"),
        "job.yaml:11: spce does not belong here; a TrainingJob has apiVersion, kind, metadata and spec; did "
        "you mean spec?");
    refused(
        read_changed(0, "workers: 1"),
        "job.yaml:11: workers does not belong here; a TrainingJob has apiVersion, kind, metadata and spec");
}

Test(file, what_is_missing_is_named_with_the_line_of_its_group)
{
    refused(read_changed(9, ""),
            "job.yaml:6: spec.trainer.steps is missing; set it (optimizer steps of the whole training)");
    refused(read_changed(7, ""),
            "job.yaml:6: spec.trainer.model.layers is missing; set it, or trainer.model.preset");
    refused(read_changed(10, ""),
            "job.yaml:4: spec.checkpoint.uri is missing; set it (folder, or s3://bucket/prefix, that "
            "checkpoints and the final weights go to)");
    refused(read_changed(3, ""), "job.yaml:1: metadata.name is missing; give the job a name");
    refused(read_changed(2, "kind: Job"), "job.yaml:2: kind is Job; write kind: TrainingJob");
    refused(read_changed(1, ""),
            "job.yaml:2: apiVersion is missing; write apiVersion: ringmaster.dev/v1alpha1");
}

Test(file, fields_that_contradict_each_other_are_refused)
{
    refused(read_changed(5, "  workers: {target: 3, min: 4}"),
            "job.yaml:5: spec.workers.min is 4, more than workers.target (3); lower it or raise the target");
    refused(read_changed(5, "  workers: {target: 3, max: 2}"),
            "job.yaml:5: spec.workers.max is 2, less than workers.target (3); raise it or lower the target");
    refused(read_changed(9, "    steps: 40\n    batch: {lanes: 2}"),
            "job.yaml:5: spec.workers.max is 3, but there are only 2 lanes to share out; set "
            "trainer.batch.lanes to 3 or more");
    refused(read_changed(9, "    steps: 40\n    batch: {lanes: 1}"),
            "job.yaml:5: spec.workers.max is 3, but there is only 1 lane to share out; set "
            "trainer.batch.lanes to 3 or more");
    refused(read_changed(7, "    model: {layers: 2, heads: 5, width: 32, context: 32}"),
            "job.yaml:7: spec.trainer.model.heads is 5, which does not divide trainer.model.width (32); "
            "choose a divisor of it");
    refused(read_changed(7, "    model: {layers: 2, heads: 4, width: 32, context: 32, vocabulary: 100}"),
            "job.yaml:7: spec.trainer.model.vocabulary is 100, but text has 256 kinds of bytes; set 256 or "
            "more, or leave it out");
    refused(read_changed(9, "    steps: 40\n    optimizer: {warmupSteps: 41}"),
            "job.yaml:10: spec.trainer.optimizer.warmupSteps is 41, more than trainer.steps (40); shorten "
            "the warm-up");
    refused(read_changed(9, "    steps: 40\n    evaluation: {everySteps: 10}"),
            "job.yaml:10: spec.trainer.evaluation.holdOut is 0, so there is nothing to evaluate on; set it "
            "to 0.02, say, "
            "or everySteps to 0");
    refused(read_changed(10, "  checkpoint: {uri: out, every: Auto, everySteps: 5}"),
            "job.yaml:10: spec.checkpoint.everySteps is 5 beside checkpoint.every: Auto, which chooses the "
            "time by what a save costs; leave it out, or write a time for every");
}

Test(file, the_time_between_checkpoints_may_be_auto_within_a_bound)
{
    struct outcome out = read_changed(10, "  checkpoint: {uri: out, every: Auto}");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert_eq(out.spec.checkpoint.every, JOB_AUTO);
    cr_assert_eq(out.spec.checkpoint.max_loss, 30 * 60 * RM_S);
    str_clear(&out.notes);
    out = read_changed(10, "  checkpoint: {uri: out, every: Auto, maxLoss: 90s}");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert_eq(out.spec.checkpoint.max_loss, 90 * RM_S);
    str_clear(&out.notes);
    static const struct {
        const char *said, *sentence;
    } rows[] = {
        {"every: auto", "every is \"auto\"; write Auto, or a duration such as 500ms, 10s, 5m or 1h"},
        {"every: 100ms", "every is \"100ms\"; write a duration from 1s to 8760h, Auto, or null"},
        {"every: 5", "every is 5; write Auto, or a duration such as 500ms, 10s, 5m or 1h"},
        {"maxLoss: 59s", "maxLoss is \"59s\"; write a duration from 1m to 8760h"},
        {"maxLoss: 0s", "maxLoss is \"0s\"; write a duration from 1m to 8760h"},
        {"maxLoss: 0", "maxLoss is 0; write a duration such as 500ms, 10s, 5m or 1h"},
        {"maxLoss: Auto", "maxLoss is \"Auto\"; write a duration such as 500ms, 10s, 5m or 1h"},
        {"maxLoss: much", "maxLoss is \"much\"; write a duration such as 500ms, 10s, 5m or 1h"},
        {"maxLoss: null", "maxLoss is empty; write a duration such as 500ms, 10s, 5m or 1h"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[80], wanted[200];
        snprintf(line, sizeof line, "  checkpoint: {uri: out, %s}", rows[i].said);
        snprintf(wanted, sizeof wanted, "job.yaml:10: spec.checkpoint.%s", rows[i].sentence);
        refused(read_changed(10, line), wanted);
    }
}

Test(file, what_can_not_be_meant_is_refused)
{
    refused(read_changed(0, "  launch: {mode: Elastic}"),
            "job.yaml:11: spec.launch is there beside spec.trainer; a job runs the built-in trainer or your "
            "program, so remove one");
    refused(read_changed(8, "    data: {uri: s3://bucket/x, cache: s3://bucket/y}"),
            "job.yaml:8: spec.trainer.data.cache is s3://bucket/y; write a folder of this machine");
}

static const char program[] = "apiVersion: ringmaster.dev/v1alpha1\n"
                              "kind: TrainingJob\n"
                              "metadata: {name: prog}\n"
                              "spec:\n"
                              "  workers: {target: 3}\n"
                              "  launch:\n"
                              "    command: [python, train.py, --lr, 0.1, \"two words\"]\n"
                              "    mode: Restart\n";

static struct outcome program_with(const char *more)
{
    struct str whole = str_init(1 << 16);
    str_addf(&whole, "%s%s\n", program, more);
    struct outcome out = read_with(str_text(&whole), NULL, 0);
    str_clear(&whole);
    return out;
}

Test(file, a_program_needs_neither_model_nor_data_nor_a_store)
{
    struct outcome out = program_with("");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    const struct job_spec *s = &out.spec;
    cr_assert(s->launched && s->launch.command.count == 5 && s->launch.processes == 1);
    cr_assert_eq(s->launch.grace_period, 30 * RM_S);
    const char *word = job_list_next(&s->launch.command, NULL);
    for (int i = 1; i < 4; i++)
        word = job_list_next(&s->launch.command, word);
    cr_assert_str_eq(word, "0.1", "a word stands as it was written");
    cr_assert_str_eq(job_list_next(&s->launch.command, word), "two words");
    cr_assert_not(job_has_store(s));
    cr_assert_eq(job_join_window(s, true), 30 * RM_S);
    cr_assert_eq(job_join_window(s, false), 500 * RM_MS);
    str_clear(&out.notes);
}

Test(file, a_program_that_does_not_fit_is_refused_by_its_field)
{
    refused(program_with("    numProcPerNode: gpu"), "job.yaml:9: spec.launch.numProcPerNode is gpu, which "
                                                     "differs from machine to machine, and the number "
                                                     "of ranks must not; write a whole number from 1 to 64");
    refused(program_with("  checkpoint: {keep: 2}"), "job.yaml:9: spec.checkpoint.keep does nothing in mode "
                                                     "Restart, where the program keeps its own checkpoints; "
                                                     "remove it");
    refused(program_with("  checkpoint: {region: r}"), "job.yaml:9: spec.checkpoint.uri is missing; set it "
                                                       "(folder, or s3://bucket/prefix, that checkpoints and "
                                                       "the final weights go to)");
    refused(read_with("apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: prog}\n"
                      "spec:\n  workers: {target: 3}\n  launch: {command: python train.py, mode: Restart}\n",
                      NULL, 0),
            "job.yaml:6: spec.launch.command is \"python train.py\"; write a list of words, as [python, "
            "train.py]");
    refused(read_with("apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: prog}\n"
                      "spec:\n  workers: {target: 3}\n  launch: {command: [], mode: Restart}\n",
                      NULL, 0),
            "job.yaml:6: spec.launch.command has 0 entries; write 1 to 64");
}

static const char elastic[] =
    "apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: prog}\n"
    "spec:\n  workers: {target: 3}\n  checkpoint: {uri: out}\n  launch: ";

static struct outcome read_elastic(const char *launch)
{
    char text[1024];
    snprintf(text, sizeof text, "%s%s\n", elastic, launch);
    return read_with(text, NULL, 0);
}

Test(file, a_program_that_stays_has_steps_a_seed_and_a_batch)
{
    struct outcome out =
        read_elastic("{command: [a], mode: Elastic, steps: 7, seed: 5, batch: {lanes: 4, laneSequences: 3}}");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert(job_is_elastic(&out.spec) && !job_restarts(&out.spec) && job_has_store(&out.spec));
    cr_assert_eq(out.spec.steps, 7);
    cr_assert_eq(out.spec.seed, 5);
    cr_assert_eq(out.spec.batch.lanes, 4);
    cr_assert_eq(out.spec.batch.lane_sequences, 3);
    str_clear(&out.notes);
    out = read_elastic("{command: [a], steps: 7, mode: Elastic}");
    cr_assert_eq(out.status, 0, "in any order: %s", out.err.text);
    cr_assert_eq(out.spec.batch.lanes, 64);
    cr_assert_eq(out.spec.seed, 1);
    str_clear(&out.notes);
}

Test(file, what_a_program_that_stays_can_not_have_is_refused)
{
    refused(read_elastic("{command: [a], mode: Elastic}"),
            "job.yaml:7: spec.launch.steps is missing; set it (Elastic: steps of the whole training)");
    refused(
        read_elastic("{command: [a], mode: Elastic, steps: 7, numProcPerNode: 2}"),
        "job.yaml:7: spec.launch.numProcPerNode is 2, but in mode Elastic a worker is one process; give each "
        "process a pod, or use Restart");
    refused(
        read_elastic("{command: [python, a.py], mode: Elastic, steps: 7, preload: [torch]}"),
        "job.yaml:7: spec.launch.preload means nothing in mode Elastic, whose processes stay; leave it out");
    refused(read_elastic("{command: [torchrun, a.py], mode: Elastic, steps: 7}"),
            "job.yaml:7: spec.launch.command is a launcher of ranks, but in mode Elastic a worker is one "
            "process; "
            "write the program itself, or use Restart");
    refused(read_elastic("{command: [a], mode: Elastic, steps: 7, batch: {lanes: 2}}"),
            "job.yaml:5: spec.workers.max is 3, but there are only 2 lanes to share out; set "
            "launch.batch.lanes to 3 "
            "or more");
    refused(read_elastic("{command: [a], mode: Restart, steps: 7}"),
            "job.yaml:7: spec.launch.steps belongs to mode Elastic; a program in mode Restart knows best "
            "itself, so "
            "leave it out");
    refused(read_elastic("{command: [a], mode: Restart, batch: {lanes: 7}}"),
            "job.yaml:7: spec.launch.batch.lanes belongs to mode Elastic; a program in mode Restart knows "
            "best itself, "
            "so leave it out");
    refused(read_with("apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: prog}\n"
                      "spec:\n  workers: {target: 3}\n  launch: {command: [a], mode: Elastic, steps: 7}\n",
                      NULL, 0),
            "job.yaml:4: spec.checkpoint.uri is missing; set it (folder, or s3://bucket/prefix, that "
            "checkpoints and "
            "the final weights go to)");
}

Test(file, precision_and_recomputing_are_chosen_by_word)
{
    struct outcome out = read_changed(9, "    steps: 40\n    precision: bf16\n    recompute: true");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert_eq(out.spec.precision, JOB_BF16);
    cr_assert(out.spec.recompute);
    str_clear(&out.notes);
    refused(read_changed(9, "    steps: 40\n    precision: fp16"),
            "job.yaml:10: spec.trainer.precision is \"fp16\"; write fp32 or bf16");
}

Test(file, a_device_is_chosen_by_word_and_a_gpu_computes_in_bf16)
{
    struct outcome out = read_changed(9, "    steps: 40");
    cr_assert_eq(out.spec.device, JOB_DEVICE_AUTO);
    str_clear(&out.notes);
    out = read_changed(9, "    steps: 40\n    device: gpu\n    precision: bf16\n    recompute: true");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert_eq(out.spec.device, JOB_DEVICE_GPU);
    str_clear(&out.notes);
    refused(read_changed(9, "    steps: 40\n    device: cuda"),
            "job.yaml:10: spec.trainer.device is \"cuda\"; write auto or cpu or gpu");
    refused(
        read_changed(9, "    steps: 40\n    device: gpu"),
        "job.yaml:10: spec.trainer.device is gpu, which computes in bf16 so far; set trainer.precision to "
        "bf16");
}

Test(file, what_means_nothing_without_a_cluster_is_a_note)
{
    struct outcome out = read_changed(0, "  spot: {prefer: true, price: {currency: USD}}\n  cleanPodPolicy: "
                                         "Running\n  cost: {budget: {limit: 20}}");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert_str_eq(str_text(&out.notes),
                     "job.yaml:11: spec.spot means nothing without a cluster and is left out\n"
                     "job.yaml:12: spec.cleanPodPolicy means nothing without a cluster and is left out\n"
                     "job.yaml:13: spec.cost means nothing without a cluster and is left out\n");
    str_clear(&out.notes);
}

Test(file, the_format_of_the_data_is_one_of_four_words)
{
    static const struct {
        const char *line;
        enum job_data_format format;
    } table[] = {{"    data: {uri: x}", JOB_DATA_AUTO},
                 {"    data: {uri: x, format: Auto}", JOB_DATA_AUTO},
                 {"    data: {uri: x, format: Text}", JOB_DATA_TEXT}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct outcome out = read_changed(8, table[i].line);
        cr_assert_eq(out.status, 0, "%s", out.err.text);
        cr_assert_eq(out.spec.data.format, table[i].format);
        cr_assert_eq(out.spec.model.shape.vocabulary, 256);
        str_clear(&out.notes);
    }
    refused(
        read_changed(8, "    data: {uri: x, format: Tokens8}"),
        "job.yaml:8: spec.trainer.data.format is \"Tokens8\"; write Text or Tokens16 or Tokens32 or Auto; "
        "did you mean Tokens16?");
}

Test(file, shards_need_a_vocabulary_that_is_said)
{
    static const char *const sets[] = {"spec.trainer.data.format=Tokens16",
                                       "spec.trainer.model.vocabulary=100"};
    refused(read_changed(8, "    data: {uri: x, format: Tokens32}"),
            "job.yaml:7: spec.trainer.model.vocabulary is missing; set it to the number of tokens that the "
            "tokenizer of the shards has");
    struct outcome out = read_with(good, sets, 2);
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert_eq(out.spec.data.format, JOB_DATA_TOKENS16);
    cr_assert_eq(out.spec.model.shape.vocabulary, 100, "fewer than a byte has is fine for tokens");
    str_clear(&out.notes);
}

Test(file, yaml_that_is_broken_is_told_by_line)
{
    refused(read_changed(9, "\tsteps: 40"), "job.yaml:9: a tab as indentation; use spaces");
    refused(read_changed(9, "    steps: 40\n    steps: 41"),
            "job.yaml:10: steps is here twice (first in line 9); remove one");
    refused(read_changed(9, "    steps: &n 40"),
            "job.yaml:9: anchors and aliases (&name, *name) are not read here; write the value out");
    refused(read_changed(9, "    steps: *n"),
            "job.yaml:9: anchors and aliases (&name, *name) are not read here; write the value out");
    refused(read_changed(9, "    steps: !!int 40"),
            "job.yaml:9: tags (!name) are not read here; leave it out");
    refused(read_changed(0, "---\nkind: TrainingJob"),
            "job.yaml:11: a second document (---); a job file holds one");
    refused(read_changed(9, "    <<: {steps: 40}"),
            "job.yaml:9: merge keys (<<) are not read here; write the fields out");
    refused(read_changed(9, "    ? [a, b]\n    : 40"), "job.yaml:9: a field's name must be plain text");
    struct outcome out = read_changed(9, "    steps: [40");
    cr_assert_lt(out.status, 0);
    cr_assert(strstr(out.err.text, "job.yaml:"), "%s", out.err.text);
    cr_assert(strstr(out.err.text, "not valid YAML"), "%s", out.err.text);
    refused(read_with("", NULL, 0),
            "job.yaml:1: not a job: it should begin with apiVersion, kind, metadata and spec");
    refused(read_with("- a\n", NULL, 0),
            "job.yaml:1: not a job: it should begin with apiVersion, kind, metadata and spec");
    out = read_with("a: \xff\xfe\n", NULL, 0);
    cr_assert(strstr(out.err.text, "job.yaml: not text"), "%s", out.err.text);
}

Test(file, a_text_with_a_line_break_or_a_nul_is_refused)
{
    refused(read_changed(10, "  checkpoint: {uri: \"a\\nb\"}"),
            "job.yaml:10: spec.checkpoint.uri holds a line break or another control character; write it in "
            "one line");
    refused(read_changed(10, "  checkpoint: {uri: \"a\\0b\"}"), "job.yaml:10: a NUL character in a text");
}

/* Nesting that would overflow the stack of a careless reader. */
Test(file, a_tower_of_brackets_is_refused)
{
    char tower[4096];
    memset(tower, '[', sizeof tower - 1);
    tower[sizeof tower - 1] = 0;
    struct str text = str_init(1 << 16);
    str_addf(&text, "spec: %s\n", tower);
    refused(read_with(str_text(&text), NULL, 0), "job.yaml:1: groups nested too deeply for a job file");
    str_clear(&text);
}

Test(file, set_puts_a_value_over_the_files)
{
    const char *const sets[] = {"spec.trainer.steps=7", "spec.trainer.optimizer.learningRate=1e30",
                                "spec.checkpoint.uri=mine", "metadata.name=other", "spec.workers.min=2"};
    struct outcome out = read_with(good, sets, 5);
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert_eq(out.spec.steps, 7);
    cr_assert_float_eq(out.spec.optimizer.learning_rate, 1e30, 0);
    cr_assert_str_eq(out.spec.checkpoint.uri, "file:///tmp/here/mine");
    cr_assert_str_eq(out.spec.name, "other");
    cr_assert_eq(out.spec.workers.min, 2);
}

static void set_refused(const char *set, const char *sentence)
{
    refused(read_with(good, &set, 1), sentence);
}

Test(file, a_wrong_set_is_told_as_such)
{
    set_refused("spec.trainer.steps=x",
                "--set spec.trainer.steps is \"x\"; write a whole number from 1 to 1000000000000");
    set_refused("spec.trainer.stepz=1",
                "--set spec.trainer.stepz is not a field of a TrainingJob; did you mean steps?");
    set_refused("spec.trainer.steps", "--set spec.trainer.steps: write --set spec.trainer.steps=100, say");
    set_refused("=1", "--set =1: write --set spec.trainer.steps=100, say");
    set_refused("spec..steps=1",
                "--set: \"spec..steps\" is not a field's path; write spec.trainer.steps=100, say");
    set_refused("spec.trainer.steps.x=1", "--set: spec.trainer.steps.x: steps is not a group of fields");
    set_refused("spec.workers=1", "--set spec.workers should be a group of fields, indented below it");
    set_refused("steps=1",
                "--set steps does not belong here; a TrainingJob has apiVersion, kind, metadata and spec");
    set_refused("spec.workers.min=9",
                "--set spec.workers.min is 9, more than workers.target (3); lower it or raise the target");
}

Test(file, paths_become_absolute_uris)
{
    static const char *const cases[][2] = {
        {"a/b", "file:///base/dir/a/b"},     {"./a/../b/", "file:///base/dir/b"}, {"../../../x", "file:///x"},
        {"/x//y/", "file:///x/y"},           {"file:///x/./y", "file:///x/y"},    {"/", "file:///"},
        {"a b#c", "file:///base/dir/a b#c"},
    };
    char out[RM_URI_MAX];
    struct error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(job_uri_resolve(cases[i][0], "/base/dir", out, &err), 0);
        cr_assert_str_eq(out, cases[i][1]);
    }
    static const char *const wrong[] = {"s3://",    "s3:///x",       "s3://../x", "s3://b/x?y",
                                        "http://x", "file://host/x", "~/x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_lt(job_uri_resolve(wrong[i], "/base", out, &err), 0, "%s", wrong[i]);
    char longest[RM_URI_MAX + 8];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    cr_assert_lt(job_uri_resolve(longest, "/base", out, &err), 0);
}

/* One to four bytes of a good file changed, dropped or doubled, from a seed: whatever comes of it, it is a
 * spec that holds the rules or a sentence that names the file. */
Test(file, a_mangled_file_is_read_or_refused_but_does_no_harm)
{
    static const char marks[] = "{}[]:,-&*!|>'\"%@`#\t\n ?~0x\0\xff";
    uint64_t rng = 1;
    for (int round = 0; round < 5000; round++) {
        char text[sizeof good + 8];
        size_t length = sizeof good - 1;
        memcpy(text, good, length);
        for (uint64_t n = 1 + prng_below(&rng, 4); n; n--) {
            size_t at = prng_below(&rng, length);
            uint64_t how = prng_below(&rng, 3);
            if (how == 0)
                text[at] = marks[prng_below(&rng, sizeof marks - 1)];
            else if (how == 1)
                memmove(text + at, text + at + 1, --length - at);
            else
                memmove(text + at + 1, text + at, length++ - at);
        }
        struct outcome out = {.notes = str_init(4096)};
        struct job_file_source source = {.path = "job.yaml", .folder = "/home/me/jobs", .cwd = "/tmp/here"};
        out.status = job_file_parse(&out.spec, text, length, &source, &out.notes, &out.err);
        const char *at;
        if (out.status < 0)
            cr_assert(!strncmp(out.err.text, "job.yaml:", 9) && out.err.code == ERR_USAGE, "%s",
                      out.err.text);
        else
            cr_assert_eq(job_spec_check(&out.spec, &at, &out.err), 0);
        str_clear(&out.notes);
    }
}

static struct outcome program_with_set(const char *set)
{
    return read_with(program, &set, 1);
}

Test(file, a_list_is_set_as_json_or_yaml_has_it)
{
    static const char *const sets[] = {"spec.launch.command=[\"python\", \"x.py\", \"two words\"]",
                                       "spec.launch.command=[python, x.py, two words]"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct outcome out = program_with_set(sets[i]);
        cr_assert_eq(out.status, 0, "%s", out.err.text);
        const struct job_list *command = &out.spec.launch.command;
        cr_assert_eq(command->count, 3);
        cr_assert_str_eq(job_list_next(command, job_list_next(command, job_list_next(command, NULL))),
                         "two words");
        str_clear(&out.notes);
    }
    static const char wanted[] = "--set spec.launch.command is a list: write --set "
                                 "'spec.launch.command=[\"a\", \"b\"]', in quotes for the shell";
    refused(program_with_set("spec.launch.command=python x.py"), wanted);
    refused(program_with_set("spec.launch.command=[python"), wanted);
    refused(program_with_set("spec.launch.command="), wanted);
    refused(program_with_set("spec.launch.command=[]"),
            "--set spec.launch.command has 0 entries; write 1 to 64");
}

Test(file, what_does_nothing_for_a_program_is_refused)
{
    static const char *const fields[] = {
        "everySteps=3", "keep=2",      "resume=Never",  "every=1m",
        "every=Auto",   "maxLoss=10m", "endTimeout=1m", "onPreemption=false"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char set[64], wanted[200];
        const char *const sets[] = {"spec.checkpoint.uri=checkpoints", set};
        snprintf(set, sizeof set, "spec.checkpoint.%s", fields[i]);
        snprintf(wanted, sizeof wanted,
                 "--set spec.checkpoint.%.*s does nothing in mode Restart, where the program keeps its own "
                 "checkpoints; remove it",
                 (int)strcspn(fields[i], "="), fields[i]);
        refused(read_with(program, sets, 2), wanted);
    }
    const char *const place[] = {"spec.checkpoint.uri=checkpoints"};
    struct outcome out = read_with(program, place, 1);
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    str_clear(&out.notes);
}

/* A program of one pod, whose processes are frozen, but for what the row has. */
static struct outcome read_frozen(const char *launch, const char *workers, const char *checkpoint)
{
    char text[1024];
    snprintf(text, sizeof text,
             "apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: prog}\nspec:\n"
             "  workers: {target: 1%s}\n  launch: {command: [python3, a.py], mode: %s}\n"
             "  checkpoint: {uri: out, process: CRIU%s}\n",
             workers, launch, checkpoint);
    return read_with(text, NULL, 0);
}

Test(file, a_program_that_saves_nothing_may_be_frozen_and_then_what_is_about_checkpoints_means_something)
{
    struct outcome out = read_frozen("Restart, numProcPerNode: 3", "",
                                     ", every: Auto, maxLoss: 2m, keep: 5, hash: sha256, resume: Never, "
                                     "processPaths: [/tmp/work, /var/log/a..b]");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert(job_freezes(&out.spec) && out.spec.checkpoint.every == JOB_AUTO &&
              out.spec.checkpoint.keep == 5 && out.spec.checkpoint.process_paths.count == 2);
    str_clear(&out.notes);
    out = read_frozen("Restart", "", ", processKeyRef: {name: older}");
    cr_assert_eq(out.status, 0, "%s", out.err.text);
    cr_assert_str_eq(str_text(&out.notes),
                     "job.yaml:7: spec.checkpoint.processKeyRef means nothing without a "
                     "cluster and is left out\n");
    str_clear(&out.notes);
    out = program_with("  checkpoint: {uri: out, process: None}");
    cr_assert(out.status == 0 && !job_freezes(&out.spec), "%s", out.err.text);
    str_clear(&out.notes);
}

Test(file, who_can_not_be_frozen_is_told_why_and_what_instead)
{
    refused(read_changed(10, "  checkpoint: {uri: out, process: CRIU}"),
            "job.yaml:10: spec.checkpoint.process is CRIU, for programs that save nothing; the built-in "
            "trainer saves its state itself: leave it out, or use launch.mode: Restart");
    refused(read_frozen("Elastic, steps: 7", "", ""),
            "job.yaml:7: spec.checkpoint.process is CRIU, for programs that save nothing; a job of mode "
            "Elastic saves its state itself: leave it out, or use launch.mode: Restart");
    refused(
        read_frozen("Restart", ", max: 2", ""),
        "job.yaml:7: spec.checkpoint.process is CRIU, but workers.max is 2: connections between pods lead "
        "to machines that will be gone; set workers.max to 1, or have the program save by itself");
    refused(read_frozen("Restart", "", ", everySteps: 5"),
            "job.yaml:7: spec.checkpoint.everySteps is 5 beside checkpoint.process: CRIU, but who freezes a "
            "program knows no steps; write a time for every");
    refused(
        read_frozen("Restart, preload: [json]", "", ""),
        "job.yaml:6: spec.launch.preload does nothing beside checkpoint.process: CRIU, whose program lives "
        "again with its modules; leave it out");
    refused(program_with("  checkpoint: {process: CRIU}"),
            "job.yaml:9: spec.checkpoint.uri is missing; set it (folder, or s3://bucket/prefix, that "
            "checkpoints and "
            "the final weights go to)");
    refused(read_changed(10, "  checkpoint: {uri: out, process: criu}"),
            "job.yaml:10: spec.checkpoint.process is \"criu\"; write None or CRIU; did you mean CRIU?");
}

Test(file, what_travels_with_a_snapshot_is_named_from_the_root)
{
    static const char *const paths[] = {"tmp/work", "/", "/tmp/../etc", "/tmp/.."};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char more[80], wanted[200];
        snprintf(more, sizeof more, ", processPaths: [/tmp/a, %s]", paths[i]);
        snprintf(
            wanted, sizeof wanted,
            "job.yaml:7: spec.checkpoint.processPaths has \"%s\"; write files and folders of the pod from "
            "its root, as [/tmp/work]",
            paths[i]);
        refused(read_frozen("Restart", "", more), wanted);
    }
    refused(
        program_with("  checkpoint: {uri: out, processPaths: [/tmp/work]}"),
        "job.yaml:9: spec.checkpoint.processPaths does nothing without checkpoint.process: CRIU; leave it "
        "out");
}
