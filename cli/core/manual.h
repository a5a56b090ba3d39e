/* The commands of `ringmaster` and their options: one table behind parsing, `--help`, "did you mean",
 * completion in shells and the manual pages. Pure. */
#ifndef RM_CLI_MANUAL_H
#define RM_CLI_MANUAL_H

#include "common/base/error.h"
#include "common/base/str.h"

enum { MANUAL_OPTIONS_MAX = 8 };

struct manual_option {
    const char *name;  /* without its dashes */
    const char *value; /* what a value stands for: "N"; NULL: it takes none */
    const char *help;  /* one line, or lines that end with '\n' but the last */
    char key;          /* what the parser calls it */
};

struct manual_command {
    const char *name;     /* "run", or "checkpoint list" */
    const char *operands; /* "FILE", "URI TARGET" */
    int operands_count;
    const char *wants; /* the same in words: "one job file" */
    const char *help;  /* one sentence: what it does */
    const struct manual_option
        *option[MANUAL_OPTIONS_MAX + 1]; /* NULL behind the last; not --help, which all have */
    const char *example;
};

/* The table; a NULL name behind the last. */
extern const struct manual_command manual[];

/* The command that these words, one at least, begin with; *ret_words: how many of them are its name. NULL:
 * none, and err (ERR_USAGE) says what there is, or what was nearly written. "checkpoint" alone is none. */
const struct manual_command *manual_find(int count, char *const *words, int *ret_words, struct error *err);

/* ERR_USAGE: this is no option of that command; what it may have been, and where all are shown. */
int manual_no_option(const struct manual_command *command, const char *word, struct error *err);

void manual_overview(struct str *out);                 /* `ringmaster --help` */
void manual_group(const char *group, struct str *out); /* all whose name begins with that word */
void manual_help(const struct manual_command *command, struct str *out); /* `ringmaster run --help` */
void manual_page(const char *version, struct str *out);                  /* ringmaster(1), for man */

/* shell: "bash", "zsh" or "fish". ERR_USAGE: another one. */
int manual_completion(const char *shell, struct str *out, struct error *err);

#endif
