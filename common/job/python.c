#include "common/job/python.h"

#include <string.h>

/* The word behind its folders: "torchrun" of "/opt/venv/bin/torchrun". */
static const char *last_part(const char *word)
{
    const char *slash = strrchr(word, '/');
    return slash ? slash + 1 : word;
}

/* python, python3, python3.11 in whatever folder; not python-config. */
static bool is_python(const char *word)
{
    const char *name = last_part(word);
    return !strncmp(name, "python", 6) && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

/* One word of options. *ret_at: "c" or "m" and what follows it, where it ends them; *takes_next: its value is
 * the next word. */
static void read_options(const char *word, struct python_command *out, const char **ret_at, bool *takes_next)
{
    *ret_at = NULL;
    *takes_next = !strcmp(word, "--check-hash-based-pycs");
    if (word[1] == '-')
        return;
    for (const char *p = word + 1; *p; p++) {
        if (*p == 'P' || *p == 'I')
            out->near = false;
        if (*p == 'c' || *p == 'm')
            *ret_at = p;
        if (*p == 'W' || *p == 'X')
            *takes_next = !p[1];
        if (strchr("cmWX", *p))
            return; /* the rest of the word is its value */
    }
}

bool python_command_read(const struct job_list *command, struct python_command *ret)
{
    const char *word = job_list_next(command, NULL), *ending;
    *ret = (struct python_command){.what = PYTHON_FILE, .near = true};
    if (!word || !is_python(word))
        return false;
    int at = 1;
    for (; (word = job_list_next(command, word)) && word[0] == '-' && word[1]; at++) {
        bool takes_next;
        read_options(word, ret, &ending, &takes_next);
        if (ending) {
            ret->what = *ending == 'c' ? PYTHON_CODE : PYTHON_MODULE;
            ret->options = at;
            ret->script = at + 1;
            return ending == word + 1 && !ending[1] && ret->script < command->count;
        }
        if (takes_next) {
            word = job_list_next(command, word);
            at++;
        }
        if (!word)
            return false;
    }
    ret->options = ret->script = at;
    return word && strcmp(word, "-") != 0;
}

const char *python_script(const struct job_list *command, const struct python_command *python)
{
    const char *word = NULL;
    for (int i = 0; i <= python->script; i++)
        word = job_list_next(command, word);
    return word ? word : "";
}

bool python_starts_ranks(const struct job_list *command)
{
    struct python_command python;
    const char *first = job_list_next(command, NULL);
    if (first && !strcmp(last_part(first), "torchrun"))
        return true;
    if (!python_command_read(command, &python) || python.what != PYTHON_MODULE)
        return false;
    const char *module = python_script(command, &python);
    return !strcmp(module, "torch.distributed.run") || !strcmp(module, "torch.distributed.launch");
}

/* Dashes and underscores are the same to torchrun, and a value may follow behind "=". */
static bool is_option(const char *word, const char *name)
{
    if (strncmp(word, "--", 2) != 0)
        return false;
    for (word += 2; *name; word++, name++)
        if (*word != *name && !(*word == '_' && *name == '-'))
            return false;
    return !*word || *word == '=';
}

const char *python_own_meeting(const struct job_list *command)
{
    static const char *const names[] = {"standalone",  "nnodes",       "node-rank",     "master-addr",
                                        "master-port", "rdzv-backend", "rdzv-endpoint", "rdzv-id",
                                        "rdzv-conf",   "max-restarts"};
    for (const char *word = NULL; (word = job_list_next(command, word));) {
        size_t length = strlen(word);
        if (length > 3 && !strcmp(word + length - 3, ".py"))
            return NULL; /* what follows is the script's */
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (is_option(word, names[i]))
                return word;
    }
    return NULL;
}
