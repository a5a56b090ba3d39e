#include "common/pod/job_files.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/crypto.h"
#include "common/os/file.h"

struct desk {
    char folder[32], spec[64], key[64];
    struct job_files files;
    struct error err;
};

static const char good_key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";

static void put(const char *path, const char *text)
{
    cr_assert_eq(file_write(path, text, strlen(text), 0600, NULL), 0);
}

static void desk_open(struct desk *d)
{
    struct job_spec spec;
    struct str text = str_init(MSG_SPEC_MAX);
    *d = (struct desk){.folder = "/tmp/rm-job-XXXXXX"};
    cr_assert_not_null(mkdtemp(d->folder));
    snprintf(d->spec, sizeof d->spec, "%s/spec.json", d->folder);
    snprintf(d->key, sizeof d->key, "%s/key", d->folder);
    job_spec_defaults(&spec);
    spec.steps = 10;
    text_copy(spec.name, sizeof spec.name, "tiny");
    text_copy(spec.data.uri, sizeof spec.data.uri, "file:///data");
    text_copy(spec.checkpoint.uri, sizeof spec.checkpoint.uri, "file:///checkpoints");
    spec.workers.min = spec.workers.max = spec.workers.target = 1;
    spec.model.shape =
        (struct model_shape){.layers = 1, .heads = 1, .width = 4, .context = 4, .vocabulary = 256};
    spec.batch.lanes = spec.batch.lane_sequences = 1;
    job_spec_write(&spec, &text);
    put(d->spec, str_text(&text));
    put(d->key, good_key);
    str_clear(&text);
}

static int read_both(struct desk *d)
{
    return job_files_read(&d->files, &(struct job_paths){.spec = d->spec, .key = d->key}, &d->err);
}

static int read_bound(struct desk *d, const char *sha256)
{
    struct job_paths paths = {.spec = d->spec, .spec_sha256 = sha256, .key = d->key};
    return job_files_read(&d->files, &paths, &d->err);
}

static void desk_close(struct desk *d)
{
    unlink(d->spec);
    unlink(d->key);
    rmdir(d->folder);
}

Test(job_files, the_job_and_its_key_are_read)
{
    struct desk d;
    desk_open(&d);
    cr_assert_eq(read_both(&d), 0, "%s", d.err.text);
    cr_assert_str_eq(d.files.spec.name, "tiny");
    for (int i = 0; i < JOB_KEY_BYTES; i++)
        cr_assert_eq(d.files.key[i], i);
    job_files_clear(&d.files);
    cr_assert_eq(d.files.key[5], 0);
    desk_close(&d);
}

Test(job_files, a_key_of_another_form_is_refused_by_its_path)
{
    static const char *const wrong[] = {"", "\n", "00", "not hex", "0001020304050607\n08090a0b0c0d0e0f"};
    struct desk d;
    desk_open(&d);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put(d.key, wrong[i]);
        cr_assert_eq(read_both(&d), -1, "\"%s\"", wrong[i]);
        cr_assert(strstr(d.err.text, d.key), "%s", d.err.text);
        cr_assert_null(strstr(d.err.text, "0001"), "the sentence shows the key: %s", d.err.text);
    }
    char longer[80];
    snprintf(longer, sizeof longer, "%.64s00\n", good_key);
    put(d.key, longer);
    cr_assert_eq(read_both(&d), -1);
    desk_close(&d);
}

Test(job_files, a_spec_that_somebody_else_put_there_is_refused_before_it_is_looked_into)
{
    struct desk d;
    uint8_t sha256[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    struct str text = str_init(MSG_SPEC_MAX);
    desk_open(&d);
    cr_assert_eq(file_read(d.spec, &text, NULL), 0);
    sha256_once(str_text(&text), text.length, sha256);
    hex_encode(sha256, sizeof sha256, hex);
    cr_assert_eq(read_bound(&d, hex), 0, "%s", d.err.text);
    job_files_clear(&d.files);
    str_adds(&text, " "); /* as good a spec, but not that one */
    put(d.spec, str_text(&text));
    cr_assert_eq(read_bound(&d, hex), -1);
    cr_assert_eq(d.err.code, ERR_USAGE);
    cr_assert(strstr(d.err.text, d.spec) && strstr(d.err.text, "is not the job's spec"), "%s", d.err.text);
    put(d.spec, "{not even JSON");
    cr_assert_eq(read_bound(&d, hex), -1);
    cr_assert(strstr(d.err.text, "is not the job's spec"), "%s", d.err.text);
    str_clear(&text);
    desk_close(&d);
}

Test(job_files, a_broken_job_is_refused_by_its_path)
{
    struct desk d;
    desk_open(&d);
    put(d.spec, "{\"name\": ");
    cr_assert_eq(read_both(&d), -1);
    cr_assert(strstr(d.err.text, d.spec), "%s", d.err.text);
    unlink(d.spec);
    cr_assert_eq(read_both(&d), -1);
    cr_assert_eq(d.err.code, ERR_NOT_FOUND);
    desk_close(&d);
}
