#include "common/pod/job_files.h"

#include <string.h>

#include "common/os/crypto.h"
#include "common/os/file.h"

int job_key_read(uint8_t key[JOB_KEY_BYTES], const char *path, struct error *err)
{
    struct str text = str_init(4 * JOB_KEY_BYTES);
    int result = file_read(path, &text, err);
    if (result == 0) {
        char hex[2 * JOB_KEY_BYTES + 1];
        size_t length = strcspn(str_text(&text), "\r\n");
        bool good = length == 2 * JOB_KEY_BYTES && text.length - length <= 2;
        if (good)
            memcpy(hex, text.data, length);
        hex[good ? length : 0] = 0;
        if (!good || !hex_decode(hex, key, JOB_KEY_BYTES))
            result = err_set(err, ERR_USAGE, "%s: the job's key is %d hex digits", path, 2 * JOB_KEY_BYTES);
        explicit_bzero(hex, sizeof hex);
    }
    if (text.data)
        explicit_bzero(text.data, text.length);
    str_clear(&text);
    return result;
}

/* Before it is parsed: what a stranger wrote is not looked into. */
static int spec_check(const struct job_files *files, const struct job_paths *paths, struct error *err)
{
    uint8_t sha256[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    if (!paths->spec_sha256)
        return 0;
    sha256_once(str_text(&files->spec_text), files->spec_text.length, sha256);
    hex_encode(sha256, sizeof sha256, hex);
    if (!strcmp(hex, paths->spec_sha256))
        return 0;
    return err_set(
        err, ERR_USAGE,
        "%s is not the job's spec: its SHA-256 is %.12s..., that of what the operator wrote %.12s...; "
        "somebody has changed it on its way: see who may change pods (or, of an operator of before, "
        "ConfigMaps) in this namespace, then make the job anew",
        paths->spec, hex, paths->spec_sha256);
}

static int spec_parse(struct job_files *files, const char *path, struct error *err)
{
    if (job_spec_read(&files->spec, str_text(&files->spec_text), files->spec_text.length, err) < 0)
        return err_wrap(err, "%s", path);
    return 0;
}

int job_files_read(struct job_files *ret, const struct job_paths *paths, struct error *err)
{
    struct job_files files = {.spec_text = str_init(MSG_SPEC_MAX - 1)};
    job_spec_defaults(&files.spec); /* until it is read, or learnt */
    bool given =
        !paths->spec || (file_read(paths->spec, &files.spec_text, err) == 0 &&
                         spec_check(&files, paths, err) == 0 && spec_parse(&files, paths->spec, err) == 0);
    if (!given || job_key_read(files.key, paths->key, err) < 0) {
        job_files_clear(&files);
        return -1;
    }
    *ret = files;
    return 0;
}

int job_files_learn(struct job_files *files, const char *spec_text, struct error *err)
{
    str_reset(&files->spec_text);
    str_adds(&files->spec_text, spec_text);
    return spec_parse(files, "the job that the coordinator sent", err);
}

void job_files_clear(struct job_files *files)
{
    str_clear(&files->spec_text);
    explicit_bzero(files->key, sizeof files->key);
}
