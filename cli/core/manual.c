/* The table of commands, and each text that is made of it. */
#include "cli/core/manual.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/near.h"

enum { NAME_TEXT = 64, COLUMN = 28 };

static const struct manual_option set = {"set", "spec.x.y=VALUE",
                                         "sets a field, whatever the file says; may be repeated", 's'};
static const struct manual_option drill = {
    "drill", "D",
    "causes a fault, to see what it costs. W is a worker, S a step or a\n"
    "time like 1.5s: kill:W@S (it dies), trainer:W@S (its trainer dies),\n"
    "term:W@S (it is asked to leave), stop:W@S (it freezes),\n"
    "hang:W@S (its trainer freezes), corrupt:W@S (a bit flips in its sums),\n"
    "join@S (one more comes),\n"
    "coordinator@S (the coordinator dies), random:SEED (several, by chance)",
    'd'};
static const struct manual_option output = {"output", "text|json",
                                            "for people (default), or one JSON event a line", 'o'};
static const struct manual_option plain_output = {"output", "text|json",
                                                  "for people (default), or one JSON object", 'o'};
static const struct manual_option overwrite = {"overwrite", NULL,
                                               "start anew: deletes the checkpoints that are there", 'w'};
static const struct manual_option port = {"port", "N", "the coordinator's (default: any free one)", 'p'};
static const struct manual_option prompt = {"prompt", "TEXT",
                                            "what the text begins with (default: a new line)", 'P'};
static const struct manual_option tokens = {"tokens", "N", "how many tokens to write (default 200)", 't'};
static const struct manual_option seed = {"seed", "N", "another number gives another text (default 1)", 'S'};
static const struct manual_option temperature = {
    "temperature", "X", "0: always the likeliest token; 1: as the model says (default 0.8)", 'T'};
static const struct manual_option name = {"name", "NAME",
                                          "only the checkpoint of this name: final, or step-00000200", 'n'};
static const struct manual_option all = {"all", NULL, "all checkpoints", 'a'};
static const struct manual_option yes = {"yes", NULL,
                                         "really delete; without it only list what would be deleted", 'y'};
static const struct manual_option wide = {"wide", NULL, "whole hashes, and the time of each", 'W'};
static const struct manual_option listing = {"output", "text|json", "for people (default), or one JSON list",
                                             'o'};
static const struct manual_option endpoint = {"endpoint", "URL",
                                              "of the object store, where the environment names none", 'e'};
static const struct manual_option region = {"region", "NAME",
                                            "of the bucket, where the environment names none", 'r'};

static const char one_place[] = "one place with checkpoints, a folder or s3://bucket/prefix";

const struct manual_command manual[] = {
    {"run",
     "FILE",
     1,
     "one job file",
     "trains what FILE describes, or runs its program, here.",
     {&set, &drill, &output, &overwrite, &port},
     "ringmaster run job.yaml --set spec.workers.target=4 --drill kill:1@100"},
    {"check",
     "FILE",
     1,
     "one job file",
     "says what a job needs and would do; starts nothing.",
     {&set, &plain_output},
     "ringmaster check job.yaml --set spec.trainer.steps=2000"},
    {"generate",
     "FOLDER",
     1,
     "one folder with a model",
     "writes text with a trained model.",
     {&prompt, &tokens, &seed, &temperature},
     "ringmaster generate checkpoints/final --prompt 'static int ' --tokens 200"},
    {"checkpoint list",
     "URI",
     1,
     one_place,
     "lists the checkpoints in a folder or bucket.",
     {&name, &wide, &listing, &endpoint, &region},
     "ringmaster checkpoint list checkpoints"},
    {"checkpoint verify",
     "URI",
     1,
     one_place,
     "reads every byte of each and says whether it is whole.",
     {&name, &wide, &listing, &endpoint, &region},
     "ringmaster checkpoint verify s3://bucket/run-7"},
    {"checkpoint export",
     "URI TARGET",
     2,
     "a place with checkpoints, and where to",
     "writes the newest weights, for transformers to open.",
     {&name, &endpoint, &region},
     "ringmaster checkpoint export checkpoints model --name step-00000200"},
    {"checkpoint delete",
     "URI",
     1,
     one_place,
     "deletes one checkpoint, or all.",
     {&name, &all, &yes, &endpoint, &region},
     "ringmaster checkpoint delete checkpoints --name step-00000200 --yes"},
    {"data index",
     "FOLDER",
     1,
     "one folder of training data",
     "reads all data once, for starts that trust times.",
     {NULL},
     "ringmaster data index books"},
    {"completion",
     "bash|zsh|fish",
     1,
     "one shell",
     "prints what makes this shell complete commands.",
     {NULL},
     "source <(ringmaster completion bash)"},
    {"manual",
     "",
     0,
     "nothing more",
     "prints the manual page, for man.",
     {NULL},
     "ringmaster manual | man -l -"},
    {.name = NULL},
};

/* ---- finding ---- */

/* How many of the words are the name of it; 0: they are another's. */
static int words_of(const struct manual_command *c, int count, char *const *words)
{
    const char *second = strchr(c->name, ' ');
    size_t first = second ? (size_t)(second - c->name) : strlen(c->name);
    if (strlen(words[0]) != first || strncmp(words[0], c->name, first) != 0)
        return 0;
    if (!second)
        return 1;
    return count > 1 && !strcmp(words[1], second + 1) ? 2 : 0;
}

static bool is_group(const char *word)
{
    size_t length = strlen(word);
    for (const struct manual_command *c = manual; c->name; c++)
        if (!strncmp(c->name, word, length) && c->name[length] == ' ')
            return true;
    return false;
}

/* group: "" for first words, else for those that follow it. */
static struct near nearest_word(const char *group, const char *word)
{
    struct near near = near_to(word);
    size_t above = *group ? strlen(group) + 1 : 0;
    for (const struct manual_command *c = manual; c->name; c++) {
        const char *known = c->name + above;
        if (!above || (!strncmp(c->name, group, above - 1) && c->name[above - 1] == ' '))
            near_try(&near, known, strcspn(known, " "));
    }
    return near;
}

static void list_verbs(const char *group, char *out, size_t size)
{
    size_t used = 0, above = strlen(group) + 1;
    *out = 0;
    for (const struct manual_command *c = manual; c->name; c++)
        if (!strncmp(c->name, group, above - 1) && c->name[above - 1] == ' ' && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "|" : "", c->name + above);
}

/* Words that may stand in a command's place (cli/main.c). */
static const char *const beside[] = {"--help", "--version", "help", "version"};

static int nothing_found(int count, char *const *words, struct error *err)
{
    char verbs[NAME_TEXT];
    bool group = is_group(words[0]);
    list_verbs(words[0], verbs, sizeof verbs);
    if (group && count == 1)
        return err_set(err, ERR_USAGE, "%s wants %s%s; ringmaster %s --help shows more", words[0],
                       strchr(verbs, '|') ? "one of " : "", verbs, words[0]);
    const char *word = words[group];
    struct near near = nearest_word(group ? words[0] : "", word);
    for (size_t i = 0; !group && i < sizeof beside / sizeof *beside; i++)
        near_try(&near, beside[i], strlen(beside[i]));
    if (*near.best)
        return err_set(err, ERR_USAGE, "%s%s%.60s is not a command%s", group ? words[0] : "",
                       group ? " " : "", word, near.question);
    if (group)
        return err_set(err, ERR_USAGE, "%s %.60s is not a command; write %s%s", words[0], word,
                       strchr(verbs, '|') ? "one of " : "", verbs);
    return err_set(err, ERR_USAGE, "%.60s is not a command; ringmaster --help shows all", word);
}

const struct manual_command *manual_find(int count, char *const *words, int *ret_words, struct error *err)
{
    RM_ASSERT(count > 0, "%d words are no command", count);
    for (const struct manual_command *c = manual; c->name; c++)
        if ((*ret_words = words_of(c, count, words)))
            return c;
    nothing_found(count, words, err);
    return NULL;
}

int manual_no_option(const struct manual_command *command, const char *word, struct error *err)
{
    struct near near = near_to_option(word);
    for (int i = 0; command->option[i]; i++)
        near_try(&near, command->option[i]->name, strlen(command->option[i]->name));
    near_try(&near, "help", strlen("help"));
    if (*near.best)
        return err_set(err, ERR_USAGE, "%.60s is not an option of %s%s", word, command->name, near.question);
    return err_set(err, ERR_USAGE, "%.60s is not an option of %s; ringmaster %s --help shows all", word,
                   command->name, command->name);
}

/* ---- help ---- */

static void add_heading(const struct manual_command *c, struct str *out)
{
    str_addf(out, "ringmaster %s", c->name);
    if (*c->operands)
        str_addf(out, " %s", c->operands);
    str_adds(out, c->option[0] ? " [options]\n" : "\n");
}

/* Lines of help beside a column of `width`. */
static void add_beside(const char *left, int width, const char *help, struct str *out)
{
    str_addf(out, "  %-*s", width, left);
    for (size_t n; *help; help += n + (help[n] == '\n')) {
        n = strcspn(help, "\n");
        str_addf(out, "%.*s\n", (int)n, help);
        if (help[n])
            str_addf(out, "  %-*s", width, "");
    }
}

static void option_text(const struct manual_option *o, char text[NAME_TEXT])
{
    snprintf(text, NAME_TEXT, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
}

void manual_help(const struct manual_command *command, struct str *out)
{
    char text[NAME_TEXT];
    add_heading(command, out);
    str_addf(out, "\n  %s %s\n\n", command->name, command->help);
    for (int i = 0; command->option[i]; i++) {
        option_text(command->option[i], text);
        add_beside(text, COLUMN, command->option[i]->help, out);
    }
    add_beside("--help", COLUMN, "this text", out);
    str_addf(out, "\nFor example:\n  %s\n", command->example);
}

static void add_line(const struct manual_command *c, struct str *out)
{
    char text[NAME_TEXT];
    snprintf(text, sizeof text, "ringmaster %s %s", c->name, c->operands);
    add_beside(text, 40, c->help, out);
}

void manual_group(const char *group, struct str *out)
{
    size_t length = strlen(group);
    const char *example = NULL;
    for (const struct manual_command *c = manual; c->name; c++)
        if (!strncmp(c->name, group, length) && c->name[length] == ' ') {
            add_line(c, out);
            example = example ? example : c->example;
        }
    RM_ASSERT(example, "%s has no verbs", group);
    str_addf(out, "\nringmaster %s VERB --help shows the options of each, and an example.\n", group);
    str_addf(out, "\nFor example:\n  %s\n", example);
}

static const char exit_codes[] =
    "Exit codes: 0 complete, 2 usage or job file, 3 data or checkpoint, 4 machine, 5 training failed,\n"
    "6 too few workers (checkpoint saved), 130 interrupted (checkpoint saved).\n";

void manual_overview(struct str *out)
{
    str_adds(
        out,
        "Ringmaster trains a model on workers that may come and go; the weights are always the same.\n\n");
    for (const struct manual_command *c = manual; c->name; c++)
        add_line(c, out);
    str_addf(out, "  %-40s%s\n\n", "ringmaster --version", "says which version this is.");
    str_adds(out, "ringmaster COMMAND --help shows the options of each, and an example.\n\n"
                  "For example:\n  ringmaster run job.yaml\n\n");
    str_adds(out, exit_codes);
}

/* ---- manual page ---- */

/* roff takes a line that begins with a dot or a quote for a request, and a dash for a hyphen. */
static void add_roff(const char *text, struct str *out)
{
    for (; *text; text++)
        if (*text == '-' || *text == '\\')
            str_addf(out, "\\%s", *text == '-' ? "-" : "e");
        else
            str_add(out, text, 1);
}

static void add_command_page(const struct manual_command *c, struct str *out)
{
    str_adds(out, ".SS \"ringmaster ");
    add_roff(c->name, out);
    str_addf(out, "%s%s\"\n%s ", *c->operands ? " " : "", c->operands, c->name);
    add_roff(c->help, out);
    str_adds(out, "\n");
    for (int i = 0; c->option[i]; i++) {
        char text[NAME_TEXT];
        option_text(c->option[i], text);
        str_adds(out, ".TP\n.B ");
        add_roff(text, out);
        str_adds(out, "\n");
        add_roff(c->option[i]->help, out);
        str_adds(out, "\n");
    }
    str_adds(out, ".PP\nFor example:\n.PP\n.EX\n");
    add_roff(c->example, out);
    str_adds(out, "\n.EE\n");
}

void manual_page(const char *version, struct str *out)
{
    str_addf(out,
             ".TH RINGMASTER 1 \"\" \"ringmaster %s\"\n.SH NAME\nringmaster \\- elastic training on machines "
             "that come and go\n",
             version);
    str_adds(out, ".SH SYNOPSIS\n.B ringmaster\n.I COMMAND\n[options]\n.SH OPTIONS\n"
                  ".TP\n.B \\-\\-help, \\-h\n"
                  "lists the commands; after a command: its options, and an example\n"
                  ".TP\n.B \\-\\-version\nversion, commit, arithmetic and libraries\n.SH COMMANDS\n");
    for (const struct manual_command *c = manual; c->name; c++)
        add_command_page(c, out);
    str_adds(out, ".SH EXIT STATUS\n");
    add_roff(exit_codes, out);
}

/* ---- completion ---- */

/* First words that verbs follow. */
static const char *const groups[] = {"checkpoint", "data"};

enum { GROUPS = sizeof groups / sizeof *groups };

static void add_words(const char *group, const char *between, struct str *out)
{
    const char *last = "";
    size_t above = *group ? strlen(group) + 1 : 0, last_length = 0;
    for (const struct manual_command *c = manual; c->name; c++) {
        if (above && (strncmp(c->name, group, above - 1) != 0 || c->name[above - 1] != ' '))
            continue;
        const char *word = c->name + above;
        size_t length = strcspn(word, " ");
        if (length == last_length && !strncmp(word, last, length))
            continue;
        str_addf(out, "%s%.*s", *last ? between : "", (int)length, word);
        last = word;
        last_length = length;
    }
}

static void add_options(const struct manual_command *c, struct str *out)
{
    for (int i = 0; c->option[i]; i++)
        str_addf(out, "--%s ", c->option[i]->name);
    str_adds(out, "--help");
}

/* Where one of several words is wanted they stand as "text|json". */
static bool is_choice(const char *value)
{
    return strchr(value, '|');
}

static void add_choices(const char *value, struct str *out)
{
    for (; *value; value++)
        str_add(out, *value == '|' ? " " : value, 1);
}

/* The options with a value: what may stand behind each, where that is known. */
static void add_bash_values(const struct manual_command *c, struct str *out)
{
    for (int i = 0; c->option[i]; i++) {
        const struct manual_option *o = c->option[i];
        if (!o->value)
            continue;
        str_addf(out, "        --%s) known='", o->name);
        if (is_choice(o->value))
            add_choices(o->value, out);
        str_adds(out, "' ;;\n");
    }
}

static void add_bash_command(const struct manual_command *c, struct str *out)
{
    str_addf(out, "    '%s'|'%s '*)\n        case \"$last\" in\n", c->name, c->name);
    add_bash_values(c, out);
    str_adds(out, "        *) known='");
    if (is_choice(c->operands)) {
        add_choices(c->operands, out);
        str_adds(out, " ");
    }
    add_options(c, out);
    str_adds(out, "' ;;\n        esac ;;\n");
}

/* What begins with no dash, and is none of the words known, may be a file: the shell completes it. Bash
 * takes `words` for a sum in a slice, zsh only within $(( )). */
static void add_bash(struct str *out)
{
    str_adds(out, "_ringmaster() {\n"
                  "    local word=\"${COMP_WORDS[COMP_CWORD]}\" last=\"${COMP_WORDS[COMP_CWORD-1]}\" known=\n"
                  "    local said=\"${COMP_WORDS[*]:1:$((COMP_CWORD-1))}\"\n"
                  "    COMPREPLY=()\n"
                  "    case \"$said\" in\n"
                  "    '') known='");
    add_words("", " ", out);
    str_adds(out, " --help --version' ;;\n");
    for (size_t i = 0; i < GROUPS; i++) {
        str_addf(out, "    %s) known='", groups[i]);
        add_words(groups[i], " ", out);
        str_adds(out, " --help' ;;\n");
    }
    for (const struct manual_command *c = manual; c->name; c++)
        add_bash_command(c, out);
    str_adds(out, "    esac\n"
                  "    [[ -z $word && $known == --* ]] || COMPREPLY=($(compgen -W \"$known\" -- \"$word\"))\n"
                  "}\n"
                  "complete -o default -F _ringmaster ringmaster\n");
}

/* zsh reads the same by its bashcompinit: sourced, or as the file _ringmaster of its fpath, whose first line
 * compinit looks for and whose text is the function, the first time that it is called. */
static void add_zsh(struct str *out)
{
    str_adds(out, "#compdef ringmaster\nautoload -U +X bashcompinit && bashcompinit\n");
    add_bash(out);
    str_adds(out, "[[ ${funcstack[1]} != _ringmaster ]] || _bash_complete -o default -F _ringmaster\n");
}

static void add_fish_option(const char *verb, const struct manual_option *o, struct str *out)
{
    str_addf(out, "complete -c ringmaster -n '__fish_seen_subcommand_from %s' -l %s%s", verb, o->name,
             o->value ? " -x" : "");
    if (o->value && is_choice(o->value)) {
        str_adds(out, " -a '");
        add_choices(o->value, out);
        str_adds(out, "'");
    }
    str_adds(out, "\n");
}

static void add_fish_command(const struct manual_command *c, struct str *out)
{
    const char *space = strchr(c->name, ' '), *verb = space ? space + 1 : c->name;
    for (int i = 0; c->option[i]; i++)
        add_fish_option(verb, c->option[i], out);
    if (!is_choice(c->operands))
        return;
    str_addf(out, "complete -c ringmaster -n '__fish_seen_subcommand_from %s' -f -a '", verb);
    add_choices(c->operands, out);
    str_adds(out, "'\n");
}

static void add_fish_verbs(const char *group, struct str *out)
{
    str_addf(
        out,
        "complete -c ringmaster -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from ",
        group);
    add_words(group, " ", out);
    str_adds(out, "' -f -a '");
    add_words(group, " ", out);
    str_adds(out, "'\n");
}

static void add_fish(struct str *out)
{
    str_adds(out, "complete -c ringmaster -l help\n"
                  "complete -c ringmaster -n __fish_use_subcommand -l version\n"
                  "complete -c ringmaster -n __fish_use_subcommand -f -a '");
    add_words("", " ", out);
    str_adds(out, "'\n");
    for (size_t i = 0; i < GROUPS; i++)
        add_fish_verbs(groups[i], out);
    for (const struct manual_command *c = manual; c->name; c++)
        add_fish_command(c, out);
}

int manual_completion(const char *shell, struct str *out, struct error *err)
{
    static const struct {
        const char *name;
        void (*add)(struct str *out);
    } shells[] = {{"bash", add_bash}, {"zsh", add_zsh}, {"fish", add_fish}};
    struct near near = near_to(shell);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        near_try(&near, shells[i].name, strlen(shells[i].name));
        if (strcmp(shells[i].name, shell) != 0)
            continue;
        shells[i].add(out);
        return 0;
    }
    return err_set(err, ERR_USAGE, "completion %.40s: there are bash, zsh and fish%s", shell, near.question);
}
