#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "common/base/near.h"

enum { OPTION_WORD_MAX = 128 };

/* It is an option's whole name, and its value comes next. */
static bool wants_next(const struct manual_command *command, const char *word)
{
    if (strncmp(word, "--", 2) != 0)
        return false;
    for (int i = 0; command->option[i]; i++)
        if (command->option[i]->value && !strcmp(word + 2, command->option[i]->name))
            return true;
    return false;
}

bool options_ask_help(const struct manual_command *command, int argc, char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
        i += wants_next(command, argv[i]);
    }
    return false;
}

/* The word that getopt stopped at; of several letters behind one dash the letter. */
static void stopped_at(char *const *argv, char out[OPTION_WORD_MAX])
{
    if (optopt)
        snprintf(out, OPTION_WORD_MAX, "-%c", optopt);
    else
        snprintf(out, OPTION_WORD_MAX, "%s", argv[optind - 1]);
}

int options_output(const char *text, bool *ret_json, struct error *err)
{
    struct near near = near_to(text);
    *ret_json = !strcmp(text, "json");
    if (*ret_json || !strcmp(text, "text"))
        return 0;
    near_try(&near, "text", strlen("text"));
    near_try(&near, "json", strlen("json"));
    return err_set(err, ERR_USAGE, "--output %.40s: write text or json%s", text, near.question);
}

static void known_options(const struct manual_command *command, struct option out[MANUAL_OPTIONS_MAX + 1])
{
    int n = 0;
    for (const struct manual_option *o; (o = command->option[n]); n++)
        out[n] = (struct option){o->name, o->value ? required_argument : no_argument, NULL, o->key};
    out[n] = (struct option){0};
}

/* What takes a value may be cut short, as everywhere. What takes none (--overwrite, --yes) does something
 * that nobody should come to by less than its name. */
static bool is_cut_short(const struct manual_command *command, int key, const char *word)
{
    for (int i = 0; command->option[i]; i++) {
        const struct manual_option *o = command->option[i];
        if (o->key == key && !o->value)
            return !strncmp(word, "--", 2) && strcmp(word + 2, o->name) != 0;
    }
    return false;
}

char **options_read(const struct manual_command *command, int argc, char **argv,
                    const struct options_reader *reader, struct error *err)
{
    struct option known[MANUAL_OPTIONS_MAX + 1];
    char word[OPTION_WORD_MAX];
    int key;
    known_options(command, known);
    opterr = 0;
    optind = 0; /* anew */
    while ((key = getopt_long(argc, argv, ":", known, NULL)) != -1) {
        if (key == '?' || is_cut_short(command, key, argv[optind - 1])) {
            stopped_at(argv, word);
            manual_no_option(command, word, err);
            return NULL;
        }
        if (key == ':') {
            err_set(err, ERR_USAGE, "%.60s wants a value; ringmaster %s --help shows which", argv[optind - 1],
                    command->name);
            return NULL;
        }
        if (reader->take(reader->ctx, key, optarg, err) < 0)
            return NULL;
    }
    if (argc - optind == command->operands_count)
        return argv + optind;
    err_set(err, ERR_USAGE, "%s wants %s: ringmaster %s%s%s%s", command->name, command->wants, command->name,
            *command->operands ? " " : "", command->operands, command->option[0] ? " [options]" : "");
    return NULL;
}
