/* The canonical JSON of a job. What is accepted is written and read back the same, and equals itself. */
#include <stdlib.h>

#include "common/job/spec.h"
#include "tests/fuzz/fuzz.h"

static void check_accepted(const struct job_spec *spec)
{
    struct str first = str_init(1 << 20), second = str_init(1 << 20), compared = str_init(1 << 20);
    struct job_spec again;
    struct error err = {0};
    job_spec_write(spec, &first);
    if (job_spec_read(&again, str_text(&first), first.length, &err) < 0)
        fuzz_broken(err.text);
    job_spec_write(&again, &second);
    fuzz_same(&first, &second, "an accepted spec is written and read back the same");
    job_spec_write_compared(spec, &compared);
    if (job_spec_compare(&again, str_text(&compared), compared.length, &err) < 0)
        fuzz_broken(err.text);
    str_clear(&first);
    str_clear(&second);
    str_clear(&compared);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct job_spec defaults;
    struct job_spec spec;
    struct error err = {0};
    char *text = fuzz_text(data, size);
    if (job_spec_read(&spec, text, size, &err) == 0)
        check_accepted(&spec);
    else
        fuzz_refused(&err);
    job_spec_defaults(&defaults);
    job_spec_compare(&defaults, text, size, &err); /* a checkpoint's text is foreign, too */
    free(text);
    return 0;
}
