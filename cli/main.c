/* ringmaster: the command that people use. cli/core/manual.c has all of its words. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/checkpoint.h"
#include "cli/data.h"
#include "cli/options.h"
#include "cli/programs.h"
#include "cli/run.h"
#include "common/os/descriptors.h"
#include "common/os/log.h"
#include "common/os/secret.h"

enum { TEXT_MAX = 1 << 16, GENERATE_OPTIONS_MAX = 16, OPTION_NAME_MAX = 32 };

static int read_port(const char *text, int *ret, struct error *err)
{
    char *end;
    long port = strtol(text, &end, 10);
    if (!*text || *end || port < 0 || port > 65535)
        return err_set(err, ERR_USAGE, "--port %.40s: write a number from 0 to 65535", text);
    *ret = (int)port;
    return 0;
}

static int take_option(void *ctx, int key, const char *value, struct error *err)
{
    struct run_options *options = ctx;
    switch (key) {
    case 's':
        if (options->sets_count == RUN_SETS_MAX)
            return err_set(err, ERR_USAGE, "more than %d times --set; write it into the file", RUN_SETS_MAX);
        options->sets[options->sets_count++] = value;
        return 0;
    case 'd':
        return drill_add(&options->drills, value, err);
    case 'o':
        return options_output(value, &options->json, err);
    case 'w':
        options->overwrite = true;
        return 0;
    default:
        return read_port(value, &options->port, err);
    }
}

static int on_job(const struct manual_command *command, int argc, char **argv,
                  int (*work)(struct run_options *options, struct error *err), struct error *err)
{
    static struct run_options options;
    const struct options_reader reader = {.take = take_option, .ctx = &options};
    char **operands = options_read(command, argc, argv, &reader, err);
    if (!operands)
        return -1;
    options.file = operands[0];
    return work(&options, err);
}

static int run_job(const struct manual_command *command, int argc, char **argv, struct error *err)
{
    return on_job(command, argc, argv, run_command, err);
}

static int check_job(const struct manual_command *command, int argc, char **argv, struct error *err)
{
    return on_job(command, argc, argv, check_command, err);
}

static int take_any(void *ctx, int key, const char *value, struct error *err)
{
    (void)ctx, (void)key, (void)value, (void)err;
    return 0;
}

/* What the trainer is told: an option's whole name, then its value. */
struct handed_over {
    const struct manual_command *command;
    char name[GENERATE_OPTIONS_MAX][OPTION_NAME_MAX];
    char *word[2 * GENERATE_OPTIONS_MAX + 3]; /* "generate", the folder, the options, NULL */
    int count;
};

static int hand_over(void *ctx, int key, const char *value, struct error *err)
{
    struct handed_over *h = ctx;
    const struct manual_option *const *option = h->command->option;
    if (h->count == GENERATE_OPTIONS_MAX)
        return err_set(err, ERR_USAGE, "generate: more than %d options", GENERATE_OPTIONS_MAX);
    while ((*option)->key != key)
        option++;
    snprintf(h->name[h->count], OPTION_NAME_MAX, "--%s", (*option)->name);
    h->word[2 + 2 * h->count] = h->name[h->count];
    h->word[3 + 2 * h->count++] = (char *)(uintptr_t)value;
    return 0;
}

/* What may stand where is seen here; values are the trainer's affair, which knows what they are for. */
static int generate(const struct manual_command *command, int argc, char **argv, struct error *err)
{
    struct handed_over handed = {.command = command, .word = {argv[0]}};
    const struct options_reader reader = {.take = hand_over, .ctx = &handed};
    char **operands = options_read(command, argc, argv, &reader, err);
    if (!operands)
        return -1;
    handed.word[1] = operands[0];
    return trainer_generate(handed.word, err);
}

static int show_text(void (*make)(struct str *out))
{
    struct str text = str_init(TEXT_MAX);
    make(&text);
    fputs(str_text(&text), stdout);
    str_clear(&text);
    return 0;
}

static int show_help(const struct manual_command *command)
{
    struct str text = str_init(TEXT_MAX);
    manual_help(command, &text);
    fputs(str_text(&text), stdout);
    str_clear(&text);
    return 0;
}

static void make_page(struct str *out)
{
    manual_page(RM_VERSION, out);
}

static void make_checkpoint_help(struct str *out)
{
    manual_group("checkpoint", out);
}

static void make_data_help(struct str *out)
{
    manual_group("data", out);
}

static int complete(const struct manual_command *command, int argc, char **argv, struct error *err)
{
    const struct options_reader none = {.take = take_any};
    char **operands = options_read(command, argc, argv, &none, err);
    struct str text = str_init(TEXT_MAX);
    int result = operands ? manual_completion(operands[0], &text, err) : -1;
    if (result == 0)
        fputs(str_text(&text), stdout);
    str_clear(&text);
    return result;
}

static int print_page(const struct manual_command *command, int argc, char **argv, struct error *err)
{
    const struct options_reader none = {.take = take_any};
    return options_read(command, argc, argv, &none, err) ? show_text(make_page) : -1;
}

static int start_command(const struct manual_command *command, int argc, char **argv, struct error *err)
{
    static const struct {
        const char *name;
        int (*work)(const struct manual_command *command, int argc, char **argv, struct error *err);
    } works[] = {{"run", run_job},         {"check", check_job},
                 {"generate", generate},   {"data index", data_command},
                 {"completion", complete}, {"manual", print_page}};
    if (options_ask_help(command, argc, argv))
        return show_help(command);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (!strcmp(works[i].name, command->name))
            return works[i].work(command, argc, argv, err);
    return checkpoint_command(command, argc, argv, err);
}

/* The arithmetic is the trainer's, which is another program, and may not be there. */
static int print_version(void)
{
    struct error err = {0};
    struct job_spec *spec = calloc(1, sizeof *spec);
    char arithmetic[RM_FINGERPRINT_MAX];
    puts("ringmaster " RM_VERSION "\n  commit      " RM_COMMIT);
    if (!spec)
        return EXIT_MACHINE;
    text_copy(spec->isa, sizeof spec->isa, "Auto");
    if (trainer_fingerprint(spec, arithmetic, sizeof arithmetic, &err) == 0)
        printf("  arithmetic  %s\n", arithmetic);
    else
        printf("  arithmetic  not known: %s\n", err.text);
    puts("  built with  " RM_BUILT_WITH);
    free(spec);
    return 0;
}

static bool is(const char *word, const char *a, const char *b)
{
    return !strcmp(word, a) || !strcmp(word, b);
}

static int dispatch(int argc, char **argv, struct error *err)
{
    const char *first = argc > 1 ? argv[1] : "", *second = argc > 2 ? argv[2] : "";
    int words;
    if (argc < 2 || is(first, "--help", "-h") || !strcmp(first, "help"))
        return show_text(manual_overview);
    if (is(first, "--version", "version"))
        return print_version();
    if (!strcmp(first, "checkpoint") && is(second, "--help", "-h"))
        return show_text(make_checkpoint_help);
    if (!strcmp(first, "data") && is(second, "--help", "-h"))
        return show_text(make_data_help);
    const struct manual_command *command = manual_find(argc - 1, argv + 1, &words, err);
    return command ? start_command(command, argc - words, argv + words, err) : -1;
}

/* A scheduler may start us without some of these: then the next files opened would be taken for them. */
static void fill_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
    if (fd >= 0)
        close(fd);
}

/* Whoever reads no further (`| head`) has what it wanted. */
static int end_output(struct error *err)
{
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE)
        return 0;
    return err_set(err, ERR_MACHINE, "standard output can't be written%s%s", errno ? ": " : "",
                   errno ? strerror(errno) : "");
}

int main(int argc, char **argv)
{
    struct error err = {0};
    fill_standard_files();
    secret_guard();
    descriptors_raise();
    int code = dispatch(argc, argv, &err);
    if (code == 0)
        code = end_output(&err);
    if (code >= 0)
        return code;
    fprintf(stderr, "ringmaster: %s\n", err.text);
    return error_exit_code(err.code);
}
