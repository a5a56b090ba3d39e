/* How long a program may be at one task before its worker looks like one that hangs, where the job leaves
 * that to us (stepTimeout: Auto). Its first steps may compile, and later ones may evaluate: nothing shows of
 * either from outside. Pure. */
#ifndef RM_BACKEND_PROGRAM_SLACK_H
#define RM_BACKEND_PROGRAM_SLACK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/time.h"

/* What one program has shown; all 0 when it begins. */
struct slack {
    int64_t updates; /* that it made */
    rm_time longest; /* that a task took */
};

void slack_task_took(struct slack *s, bool update, rm_time took);
/* 5 minutes until it has made 3 updates; then 10 times what its longest task took, 30 s to 5 minutes. */
rm_time slack_of(const struct slack *s);

#endif
