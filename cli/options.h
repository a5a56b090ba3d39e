/* A command's words, read by its row in the manual: options in any order, `--` ends them. */
#ifndef RM_CLI_OPTIONS_H
#define RM_CLI_OPTIONS_H

#include "cli/core/manual.h"

struct options_reader {
    int (*take)(void *ctx, int key, const char *value, struct error *err); /* key: as in the manual */
    void *ctx;
};

/* argv[0] is the last word of the command's name, argv[argc] NULL; the words are put in another order.
 * Returns the operands, of which there are as many as the command has; NULL with err (ERR_USAGE). */
char **options_read(const struct manual_command *command, int argc, char **argv,
                    const struct options_reader *reader, struct error *err);

/* The value of --output. */
int options_output(const char *text, bool *ret_json, struct error *err);

/* --help or -h is among them. */
bool options_ask_help(const struct manual_command *command, int argc, char *const *argv);

#endif
