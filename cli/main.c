/* ringmaster: the command that people use. See usage below. */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/checkpoint.h"
#include "cli/programs.h"
#include "cli/run.h"
#include "common/os/descriptors.h"
#include "common/os/log.h"
#include "common/os/secret.h"

static const char usage[] =
    "Ringmaster trains a model over workers that may come and go, and ends with the same bits.\n"
    "\n"
    "  ringmaster run FILE                   train what the TrainingJob in FILE describes, on this machine\n"
    "      --set spec.x.y=VALUE              a field over the file's (again and again)\n"
    "      --drill D                         harm on order: kill:W@S, trainer:W@S, term:W@S, stop:W@S,\n"
    "                                        hang:W@S, join@S, coordinator@S, "
    "random:SEED\n"
    "      --output text|json                for people (default), or one event a line\n"
    "      --overwrite                       start anew: delete the checkpoints that are there\n"
    "      --port N                          of the coordinator (default: any free one)\n"
    "  ringmaster generate FOLDER            let a trained model write: --prompt TEXT --tokens N\n"
    "      [--seed N] [--temperature X]\n"
    "  ringmaster checkpoint list URI        what a run has saved (URI: a folder or s3://bucket/prefix)\n"
    "  ringmaster checkpoint verify URI      the same, with every byte checked\n"
    "  ringmaster checkpoint export URI TO   the weights of the newest (or --name step-00000200), checked, "
    "as a\n"
    "                                        model that transformers opens\n"
    "  ringmaster checkpoint delete URI      --name NAME or --all; tells what would go, does it with --yes\n"
    "      [--endpoint URL] [--region NAME]  of all four, where s3:// is not what the environment says\n"
    "  ringmaster --version\n"
    "\n"
    "Exit codes: 0 complete, 2 usage or job file, 3 data or checkpoint, 4 machine, 5 training failed,\n"
    "6 too few workers (checkpoint saved), 130 interrupted (checkpoint saved).\n";

static int read_port(const char *text, int *ret, struct error *err)
{
    char *end;
    long port = strtol(text, &end, 10);
    if (!*text || *end || port < 0 || port > 65535)
        return err_set(err, ERR_USAGE, "--port %.40s: write a number from 0 to 65535", text);
    *ret = (int)port;
    return 0;
}

static int read_output(const char *text, bool *json, struct error *err)
{
    *json = !strcmp(text, "json");
    if (!*json && strcmp(text, "text") != 0)
        return err_set(err, ERR_USAGE, "--output %.40s: write text or json", text);
    return 0;
}

static int take_option(struct run_options *options, int option, const char *value, struct error *err)
{
    switch (option) {
    case 's':
        if (options->sets_count == RUN_SETS_MAX)
            return err_set(err, ERR_USAGE, "more than %d times --set; write it into the file", RUN_SETS_MAX);
        options->sets[options->sets_count++] = value;
        return 0;
    case 'd':
        return drill_add(&options->drills, value, err);
    case 'o':
        return read_output(value, &options->json, err);
    case 'w':
        options->overwrite = true;
        return 0;
    default:
        return read_port(value, &options->port, err);
    }
}

static int read_run(struct run_options *options, int argc, char **argv, struct error *err)
{
    static const struct option known[] = {
        {"set", required_argument, NULL, 's'},    {"drill", required_argument, NULL, 'd'},
        {"output", required_argument, NULL, 'o'}, {"overwrite", no_argument, NULL, 'w'},
        {"port", required_argument, NULL, 'p'},   {NULL, 0, NULL, 0}};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", known, NULL)) != -1) {
        if (option == ':')
            return err_set(err, ERR_USAGE, "%.60s wants a value; ringmaster --help shows all",
                           argv[optind - 1]);
        if (option == '?')
            return err_set(err, ERR_USAGE, "%.60s is not an option of run; ringmaster --help shows all",
                           argv[optind - 1]);
        if (take_option(options, option, optarg, err) < 0)
            return -1;
    }
    if (optind + 1 != argc)
        return err_set(err, ERR_USAGE, "run wants one job file: ringmaster run FILE [options]");
    options->file = argv[optind];
    return 0;
}

static int run(int argc, char **argv, struct error *err)
{
    static struct run_options options;
    return read_run(&options, argc, argv, err) < 0 ? -1 : run_command(&options, err);
}

static int dispatch(int argc, char **argv, struct error *err)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (!strcmp(command, "run"))
        return run(argc - 1, argv + 1, err);
    if (!strcmp(command, "generate"))
        return trainer_generate(argv + 1, err);
    if (!strcmp(command, "checkpoint"))
        return checkpoint_command(argc - 1, argv + 1, err);
    if (!strcmp(command, "--help") || !strcmp(command, "-h") || !strcmp(command, "help")) {
        fputs(usage, stdout);
        return 0;
    }
    if (!strcmp(command, "--version")) {
        puts("ringmaster " RM_VERSION);
        return 0;
    }
    if (!*command)
        return err_set(err, ERR_USAGE, "what to do? ringmaster run FILE trains; ringmaster --help shows all");
    return err_set(err, ERR_USAGE, "%.60s is not a command; ringmaster --help shows all", command);
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

int main(int argc, char **argv)
{
    struct error err = {0};
    fill_standard_files();
    secret_guard();
    descriptors_raise();
    int code = dispatch(argc, argv, &err);
    if (code >= 0)
        return code;
    fprintf(stderr, "ringmaster: %s\n", err.text);
    return error_exit_code(err.code);
}
