/* What the programs that people rarely start say to a word of a command line that they don't know: one
 * sentence, with the one that was meant. `ringmaster` itself has its own (cli/options.h). */
#ifndef RM_OS_COMMAND_LINE_H
#define RM_OS_COMMAND_LINE_H

#include <getopt.h>

#include "common/base/error.h"

/* getopt_long without its own sentences. The key of the next option, -1 behind the last one; 0, and *err set
 * (ERR_USAGE), for a word that is no option, and for one that lacks its value. */
int command_line_option(int argc, char **argv, const struct option *known, struct error *err);

/* A whole number from least to most, as the value of --name; ERR_USAGE for anything else. */
int command_line_number(const char *name, const char *text, long least, long most, long *ret,
                        struct error *err);

/* ERR_USAGE for a word that is none of `known`, which ends with NULL: "frob is none of work, generate". */
int command_line_refuse(const char *word, const char *const *known, struct error *err);

#endif
