#include "common/base/exit_code.h"

#include <stddef.h>

#include "common/base/str.h"

static const struct {
    enum exit_code code;
    const char *meaning;
} rows[] = {
    {EXIT_DONE, "complete"},
    {EXIT_USAGE, "the command line or the job file is wrong, or contradicts the checkpoint"},
    {EXIT_DATA, "training data or a checkpoint: absent, changed, damaged, made by other arithmetic"},
    {EXIT_MACHINE,
     "the machine: a port or folder in use, no disk or memory, a coordinator that died, or too few "
     "workers that can reach each other"},
    {EXIT_TRAINING,
     "training failed: numbers that are not finite, workers that compute the same lane differently with "
     "nobody to decide, more failures than `failurePolicy.maxRestarts`, a program's exit code that "
     "`failurePolicy.rules` end the job at, or fewer workers than `workers.min` because of one in "
     "quarantine; a checkpoint is saved"},
    {EXIT_TOO_FEW, "fewer workers than `workers.min`, and none on its way; a checkpoint is saved"},
    {EXIT_INTERRUPTED,
     "interrupted; a checkpoint is saved (a second Ctrl-C, 0.3 s later or more, ends at once "
     "without one)"},
};

void exit_codes_markdown(struct str *out)
{
    str_adds(out, "| code | meaning |\n|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        str_addf(out, "| %d | %s |\n", rows[i].code, rows[i].meaning);
}
