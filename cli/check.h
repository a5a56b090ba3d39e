/* `ringmaster check FILE`: what `run` looks at before it starts, told; nothing is started, made or locked. */
#ifndef RM_CLI_CHECK_H
#define RM_CLI_CHECK_H

#include "cli/run.h"

/* 0, or -1 with what run would have refused. Of the options file, sets and json count. */
int check_command(struct run_options *options, struct error *err);

#endif
