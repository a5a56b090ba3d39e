#include "common/job/spec.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/job/field.h"

static struct job_spec example(void)
{
    struct job_spec spec;
    job_spec_defaults(&spec);
    text_copy(spec.name, sizeof spec.name, "tiny");
    spec.workers.target = 3;
    spec.model.shape = (struct model_shape){.layers = 2, .heads = 4, .width = 32, .context = 32};
    spec.steps = 40;
    text_copy(spec.data.uri, sizeof spec.data.uri, "file:///data");
    text_copy(spec.checkpoint.uri, sizeof spec.checkpoint.uri, "file:///out");
    job_spec_fill(&spec);
    return spec;
}

Test(spec, every_default_fits_its_own_field)
{
    for (int i = 0; i < job_fields_count; i++) {
        struct job_spec spec = {0};
        struct error err = {0};
        if (!job_fields[i].fallback)
            continue;
        struct job_value value = value_of_plain(job_fields[i].fallback);
        cr_assert_eq(field_assign(&job_fields[i], &spec, &value, &err), 0, "%s %s", job_fields[i].path,
                     err.text);
    }
}

Test(spec, canonical_json_comes_back_as_the_same_spec_and_the_same_text)
{
    struct job_spec spec = example(), again;
    spec.optimizer.learning_rate = 0.1 + 0.2;
    spec.seed = INT64_MAX / 3;
    spec.elasticity.join_window = 1500 * RM_MS;
    struct str first = str_init(1 << 16), second = str_init(1 << 16);
    struct error err = {0};
    job_spec_write(&spec, &first);
    cr_assert_eq(job_spec_read(&again, str_text(&first), first.length, &err), 0, "%s", err.text);
    job_spec_write(&again, &second);
    cr_assert_str_eq(str_text(&first), str_text(&second));
    cr_assert_eq(again.optimizer.learning_rate, 0.1 + 0.2);
    cr_assert_eq(again.seed, (uint64_t)INT64_MAX / 3);
    cr_assert_eq(again.elasticity.join_window, 1500 * RM_MS);
    cr_assert_eq(again.workers.max, 3);
    cr_assert_eq(again.model.shape.vocabulary, 256);
    cr_assert_eq(again.threads, 0);
    str_clear(&first);
    str_clear(&second);
}

Test(spec, a_bound_that_bounds_nothing_is_not_written_and_one_that_is_not_there_is_not_missed)
{
    struct job_spec spec = example(), again;
    struct error err = {0};
    struct str text = str_init(1 << 16);
    job_spec_write(&spec, &text);
    cr_assert_null(strstr(str_text(&text), "maxLoss"));
    cr_assert_eq(job_spec_read(&again, str_text(&text), text.length, &err), 0, "%s", err.text);
    cr_assert_eq(again.checkpoint.max_loss, 30 * 60 * RM_S);
    str_clear(&text);
    text = str_init(1 << 16);
    spec.checkpoint.every = JOB_AUTO;
    spec.checkpoint.max_loss = 90 * RM_S;
    job_spec_write(&spec, &text);
    cr_assert(strstr(str_text(&text), "\"every\":\"Auto\""), "%s", str_text(&text));
    cr_assert_eq(job_spec_read(&again, str_text(&text), text.length, &err), 0, "%s", err.text);
    cr_assert_eq(again.checkpoint.every, JOB_AUTO);
    cr_assert_eq(again.checkpoint.max_loss, 90 * RM_S);
    str_clear(&text);
}

Test(spec, what_travels_with_a_snapshot_is_written_where_there_is_any)
{
    struct job_spec spec, again;
    struct error err = {0};
    struct str text = str_init(1 << 16);
    job_spec_defaults(&spec);
    text_copy(spec.name, sizeof spec.name, "prog");
    text_copy(spec.checkpoint.uri, sizeof spec.checkpoint.uri, "s3://bucket/prog");
    spec.workers.target = 1;
    spec.launched = true;
    cr_assert(job_list_add(&spec.launch.command, "sh"));
    job_spec_fill(&spec);
    job_spec_write(&spec, &text);
    cr_assert(strstr(str_text(&text), "\"process\":\"None\"") && !strstr(str_text(&text), "processPaths"));
    str_clear(&text);
    text = str_init(1 << 16);
    spec.checkpoint.process = JOB_PROCESS_CRIU;
    cr_assert(job_list_add(&spec.checkpoint.process_paths, "/tmp/work"));
    job_spec_write(&spec, &text);
    cr_assert_eq(job_spec_read(&again, str_text(&text), text.length, &err), 0, "%s", err.text);
    cr_assert(job_freezes(&again) && again.checkpoint.process_paths.count == 1);
    cr_assert_str_eq(job_list_next(&again.checkpoint.process_paths, NULL), "/tmp/work");
    str_clear(&text);
}

Test(spec, a_program_comes_back_from_its_json_without_a_trainer)
{
    struct job_spec spec, again;
    struct str first = str_init(1 << 16), second = str_init(1 << 16);
    struct error err = {0};
    job_spec_defaults(&spec);
    text_copy(spec.name, sizeof spec.name, "prog");
    spec.workers.target = 2;
    spec.launched = true;
    cr_assert(job_list_add(&spec.launch.command, "sh") && job_list_add(&spec.launch.command, "a \"b\"\nc"));
    job_spec_fill(&spec);
    job_spec_write(&spec, &first);
    cr_assert_null(strstr(str_text(&first), "trainer"));
    cr_assert_null(strstr(str_text(&first), "checkpoint"));
    cr_assert_eq(job_spec_read(&again, str_text(&first), first.length, &err), 0, "%s", err.text);
    job_spec_write(&again, &second);
    cr_assert_str_eq(str_text(&first), str_text(&second));
    cr_assert(again.launched && again.launch.command.count == 2);
    cr_assert_str_eq(job_list_next(&again.launch.command, again.launch.command.text), "a \"b\"\nc");
    str_clear(&first);
    str_clear(&second);
}

Test(spec, a_program_refuses_json_that_lacks_a_field_or_breaks_a_bound)
{
    struct job_spec spec = example(), again;
    struct str text = str_init(1 << 16);
    struct error err = {0};
    cr_assert_lt(job_spec_read(&again, "{}", 2, &err), 0);
    cr_assert_str_eq(err.text, "metadata.name is missing");
    spec.batch.lanes = 5000;
    job_spec_write(&spec, &text);
    cr_assert_lt(job_spec_read(&again, str_text(&text), text.length, &err), 0);
    cr_assert(strstr(err.text, "spec.trainer.batch.lanes is 5000"), "%s", err.text);
    str_clear(&text);
}

Test(spec, a_resume_with_the_same_training_agrees_whatever_else_changed)
{
    struct job_spec spec = example();
    struct str compared = str_init(1 << 16);
    struct error err = {0};
    job_spec_write_compared(&spec, &compared);
    spec.workers.target = 5;
    spec.threads = 2;
    spec.checkpoint.keep = 9;
    text_copy(spec.data.uri, sizeof spec.data.uri, "file:///elsewhere");
    cr_assert_eq(job_spec_compare(&spec, str_text(&compared), compared.length, &err), 0, "%s", err.text);
    str_clear(&compared);
}

Test(spec, a_resume_with_another_training_is_refused_by_the_fields_name)
{
    struct job_spec spec = example();
    struct str compared = str_init(1 << 16);
    struct error err = {0};
    spec.batch.lanes = 4;
    job_spec_write_compared(&spec, &compared);
    spec.batch.lanes = 8;
    cr_assert_lt(job_spec_compare(&spec, str_text(&compared), compared.length, &err), 0);
    cr_assert_str_eq(err.text, "spec.trainer.batch.lanes is 8 here and 4 in the checkpoint");
    cr_assert_eq(err.code, ERR_USAGE);
    str_clear(&compared);
}

/* Every field that is compared must be noticed, not only the one above. */
Test(spec, each_compared_field_is_noticed)
{
    struct job_spec any = example();
    for (int i = 0; i < job_fields_count; i++) {
        if (!job_fields[i].compared || job_fields[i].kind == JOB_FIELD_FIXED ||
            job_fields[i].kind == JOB_FIELD_URI || !job_field_applies(&job_fields[i], &any))
            continue;
        if (job_fields[i].kind == JOB_FIELD_CHOICE && !job_fields[i].words[1])
            continue;
        struct job_spec spec = example();
        struct str compared = str_init(1 << 16);
        job_spec_write_compared(&spec, &compared);
        unsigned char *at = (unsigned char *)&spec + job_fields[i].offset;
        if (job_fields[i].kind == JOB_FIELD_REAL)
            *(double *)(void *)at += 0.25;
        else
            at[0] ^= 1;
        struct error err = {0};
        cr_assert_lt(job_spec_compare(&spec, str_text(&compared), compared.length, &err), 0, "%s",
                     job_fields[i].path);
        cr_assert(strstr(err.text, job_fields[i].path), "%s", err.text);
        str_clear(&compared);
    }
}

Test(spec, durations_are_read_as_the_api_writes_them)
{
    rm_time t;
    cr_assert(duration_parse("500ms", &t) && t == 500 * RM_MS);
    cr_assert(duration_parse("1h30m", &t) && t == 5400 * RM_S);
    cr_assert(duration_parse("10s", &t) && t == 10 * RM_S);
    const char *const wrong[] = {
        "", "10", "s", "10 s", "-1s", "1.5s", "10x", "999999999999h", "10sm", "99999999999999999999s"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_not(duration_parse(wrong[i], &t), "%s", wrong[i]);
}

Test(spec, plain_scalars_are_read_as_yaml_1_2_reads_them)
{
    cr_assert_eq(value_of_plain("6e-4").kind, VALUE_REAL);
    cr_assert_float_eq(value_of_plain("6e-4").real, 6e-4, 0);
    cr_assert_eq(value_of_plain("12").kind, VALUE_INT);
    cr_assert_eq(value_of_plain("-3").whole, -3);
    cr_assert_eq(value_of_plain("0x1f").whole, 31);
    cr_assert_eq(value_of_plain("010").whole, 10);
    cr_assert_eq(value_of_plain("no").kind, VALUE_TEXT);
    cr_assert_eq(value_of_plain("true").kind, VALUE_BOOL);
    cr_assert_eq(value_of_plain("~").kind, VALUE_NULL);
    cr_assert_eq(value_of_plain("1.2.3").kind, VALUE_TEXT);
    cr_assert_eq(value_of_plain("--1").kind, VALUE_TEXT);
    cr_assert_eq(value_of_plain("nan").kind, VALUE_TEXT);
    cr_assert_eq(value_of_plain("99999999999999999999").kind, VALUE_REAL);
}
