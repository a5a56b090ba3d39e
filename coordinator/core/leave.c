#include "coordinator/core/leave.h"

#include <inttypes.h>
#include <stdio.h>

/* A store is not always as fast as it was, and what is not whole in time is of no use. */
static const double margin = 1.25;

rm_time leave_takes(const struct leave_facts *f)
{
    if (!f->bytes || !f->going || f->writer <= 0 || f->publisher <= 0)
        return 0;
    double bytes = (double)f->bytes;
    return (rm_time)((bytes / (f->writer * f->going) + bytes / f->publisher) * RM_S);
}

enum leave_choice leave_decide(const struct leave_facts *f)
{
    if (f->step <= f->saved)
        return LEAVE_IS_SAVED;
    if (f->staying > 0)
        return LEAVE_HAND_OVER;
    if (!f->wanted)
        return LEAVE_OFF;
    bool late = f->left != RM_NEVER && margin * (double)leave_takes(f) > (double)f->left;
    return late ? LEAVE_TOO_LATE : LEAVE_SAVE;
}

static int what_stands(const struct leave_facts *f, char *out, size_t size)
{
    if (f->saved < 0)
        return snprintf(out, size, "there is no checkpoint");
    return snprintf(out, size, "the checkpoint of step %" PRId64 " stands", f->saved);
}

void leave_sentence(const struct leave_facts *f, enum leave_choice choice, char *out, size_t size)
{
    char stands[64];
    what_stands(f, stands, sizeof stands);
    if (choice == LEAVE_OFF)
        snprintf(out, size, "all who hold step %" PRId64 " leave, and checkpoint.onPreemption is false; %s",
                 f->step, stands);
    else
        snprintf(out, size,
                 "all who hold step %" PRId64 " leave within %.1f s, and saving it takes about %.1f s; %s",
                 f->step, (double)f->left / RM_S, (double)leave_takes(f) / RM_S, stands);
}
