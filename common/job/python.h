/* What a command that begins with a Python runs: how far the interpreter's own words go. Pure.
 *
 * The words are those of python(1): options without a value may share a dash (-uO), -W and -X take a value,
 * with it or in the next word; -c and -m end the options, and so does the first word that is none. */
#ifndef RM_JOB_PYTHON_H
#define RM_JOB_PYTHON_H

#include <stdbool.h>

#include "common/job/spec.h"

enum python_what {
    PYTHON_FILE,   /* script: a file, or a folder or archive with a __main__ */
    PYTHON_MODULE, /* -m; script: the module's name */
    PYTHON_CODE,   /* -c; script: the code */
};

struct python_command {
    enum python_what what;
    int options; /* words before what is run, the interpreter's among them, -c and -m not */
    int script;  /* index of the word that says what is run */
    bool near;   /* the script's folder (-m: the working one) is first on the path: no -P, no -I */
};

/* False: the first word is no Python, or nothing is run (it would read standard input, which is closed). */
bool python_command_read(const struct job_list *command, struct python_command *ret);
const char *python_script(const struct job_list *command, const struct python_command *python);

/* It is torchrun, by its name or as a module (python -m torch.distributed.run): it starts the ranks itself.
 */
bool python_starts_ranks(const struct job_list *command);

/* A word of such a command, before its script, that says where torchrun's nodes meet or how many they are.
 * That Ringmaster says, and a word of the command would go before it. NULL: there is none. */
const char *python_own_meeting(const struct job_list *command);

#endif
