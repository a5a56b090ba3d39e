#include "agent/job_files.h"

#include <string.h>

#include "common/os/file.h"

static int key_read(uint8_t key[JOB_KEY_BYTES], const char *path, struct error *err)
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

static int spec_parse(struct job_files *files, const char *path, struct error *err)
{
    if (job_spec_read(&files->spec, str_text(&files->spec_text), files->spec_text.length, err) < 0)
        return err_wrap(err, "%s", path);
    return 0;
}

int job_files_read(struct job_files *ret, const char *spec_path, const char *key_path, struct error *err)
{
    struct job_files files = {.spec_text = str_init(MSG_SPEC_MAX - 1)};
    bool given = !spec_path || (file_read(spec_path, &files.spec_text, err) == 0 &&
                                spec_parse(&files, spec_path, err) == 0);
    if (!given || key_read(files.key, key_path, err) < 0) {
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
