/* A job file, and behind a line "%%" each a --set. What is accepted is written and read back the same. */
#include <stdlib.h>

#include "common/job/file.h"
#include "tests/fuzz/fuzz.h"

enum { SETS = 4 };

static void check_accepted(const struct job_spec *spec)
{
    struct str first = str_init(1 << 20), second = str_init(1 << 20);
    struct job_spec again;
    struct error err = {0};
    job_spec_write(spec, &first);
    if (job_spec_read(&again, str_text(&first), first.length, &err) < 0)
        fuzz_broken(err.text);
    job_spec_write(&again, &second);
    fuzz_same(&first, &second, "an accepted job is written and read back the same");
    str_clear(&first);
    str_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_part part[1 + SETS];
    char *text[1 + SETS];
    int parts = fuzz_split(data, size, part, 1 + SETS);
    for (int i = 0; i < parts; i++)
        text[i] = fuzz_text(part[i].data, part[i].size);
    struct job_file_source source = {.path = "job.yaml",
                                     .folder = "/home/me/jobs",
                                     .cwd = "/tmp/here",
                                     .sets = (const char *const *)(text + 1),
                                     .sets_count = parts - 1};
    struct str notes = str_init(1 << 16);
    struct job_spec spec;
    struct error err = {0};
    if (job_file_parse(&spec, text[0], part[0].size, &source, &notes, &err) == 0)
        check_accepted(&spec);
    else
        fuzz_refused(&err);
    str_clear(&notes);
    for (int i = 0; i < parts; i++)
        free(text[i]);
    return 0;
}
