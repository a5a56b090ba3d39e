#include "common/os/command_line.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/near.h"
#include "common/base/str.h"

static int refuse_option(const struct option *known, const char *word, struct error *err)
{
    struct near near = near_to_option(word);
    for (; known->name; known++)
        near_try(&near, known->name, strlen(known->name));
    err_set(err, ERR_USAGE, "%.60s is not an option%s", word,
            *near.best ? near.question : "; --help lists all");
    return 0;
}

/* -h only where there is a --help, which the others look for by themselves. */
static const char *short_options(const struct option *known)
{
    for (; known->name; known++)
        if (known->val == 'h')
            return ":h";
    return ":";
}

int command_line_option(int argc, char **argv, const struct option *known, struct error *err)
{
    opterr = 0; /* one sentence, ours */
    int option = getopt_long(argc, argv, short_options(known), known, NULL);
    if (option == '?')
        return refuse_option(known, argv[optind - 1], err);
    if (option != ':')
        return option;
    err_set(err, ERR_USAGE, "%.60s wants a value; --help says which", argv[optind - 1]);
    return 0;
}

int command_line_number(const char *name, const char *text, long least, long most, long *ret,
                        struct error *err)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (!*text || *end || value < least || value > most)
        return err_set(err, ERR_USAGE, "--%s wants a number from %ld to %ld, not \"%.40s\"", name, least,
                       most, text);
    *ret = value;
    return 0;
}

int command_line_refuse(const char *word, const char *const *known, struct error *err)
{
    struct str all = str_init(256);
    struct near near = near_to(word);
    for (int i = 0; known[i]; i++) {
        near_try(&near, known[i], strlen(known[i]));
        str_addf(&all, "%s%s", i ? ", " : "", known[i]);
    }
    err_set(err, ERR_USAGE, "%.60s is none of %s%s", word, str_text(&all), near.question);
    str_clear(&all);
    return -1;
}
