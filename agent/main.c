/* ringmaster-agent: one program for the two roles beside the trainer. See usage below. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/app.h"
#include "agent/coordinator.h"
#include "common/os/log.h"
#include "common/os/orphan.h"

static const char usage[] =
    "usage: ringmaster-agent coordinate --job SPEC.json --key-file FILE --term N [--port N] [--parent PID]\n"
    "                             [--told STEP] [--evaluated STEP] [--saved STEP] [--lost-at NS]\n"
    "                             [--spent-at NS --spent NS,NS,NS,NS,NS]\n"
    "       ringmaster-agent work --worker W --attempt A --coordinator HOST:PORT --job SPEC.json\n"
    "                             --key-file FILE [--parent PID]\n"
    "Both are started by `ringmaster run` and end when their standard input does.\n";

struct arguments {
    const char *job, *key_file, *coordinator;
    long worker, attempt, term, port, parent; /* -1: not given */
    long told, evaluated, saved, lost_at;     /* of the predecessor; -1: nothing */
    long spent_at, spent[5];                  /* in the order of struct rdzv_goodput */
};

static int number(const char *name, const char *text, long most, long *ret, struct error *err)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (!*text || *end || value < 0 || value > most)
        return err_set(err, ERR_USAGE, "--%s wants a number from 0 to %ld, not \"%s\"", name, most, text);
    *ret = value;
    return 0;
}

static int spent_read(struct arguments *out, const char *text, struct error *err)
{
    long *s = out->spent;
    int end = 0;
    int count = sscanf(text, "%ld,%ld,%ld,%ld,%ld%n", &s[0], &s[1], &s[2], &s[3], &s[4], &end);
    for (int i = 0; i < 5; i++)
        if (count != 5 || text[end] || s[i] < 0)
            return err_set(err, ERR_USAGE, "--spent wants five times in ns, not \"%s\"", text);
    return 0;
}

static int heritage_read(struct arguments *out, int option, struct error *err)
{
    switch (option) {
    case 'T':
        return number("told", optarg, LONG_MAX, &out->told, err);
    case 'E':
        return number("evaluated", optarg, LONG_MAX, &out->evaluated, err);
    case 'S':
        return number("saved", optarg, LONG_MAX, &out->saved, err);
    case 'L':
        return number("lost-at", optarg, LONG_MAX, &out->lost_at, err);
    case 'A':
        return number("spent-at", optarg, LONG_MAX, &out->spent_at, err);
    case 'P':
        return spent_read(out, optarg, err);
    default:
        return err_set(err, ERR_USAGE, "%s", usage);
    }
}

static int arguments_read(struct arguments *out, int argc, char **argv, struct error *err)
{
    static const struct option options[] = {
        {"job", required_argument, NULL, 'j'},
        {"key-file", required_argument, NULL, 'k'},
        {"coordinator", required_argument, NULL, 'c'},
        {"worker", required_argument, NULL, 'w'},
        {"attempt", required_argument, NULL, 'a'},
        {"term", required_argument, NULL, 't'},
        {"port", required_argument, NULL, 'p'},
        {"parent", required_argument, NULL, 'o'},
        {"told", required_argument, NULL, 'T'},
        {"evaluated", required_argument, NULL, 'E'},
        {"saved", required_argument, NULL, 'S'},
        {"lost-at", required_argument, NULL, 'L'},
        {"spent-at", required_argument, NULL, 'A'},
        {"spent", required_argument, NULL, 'P'},
        {NULL, 0, NULL, 0},
    };
    *out = (struct arguments){
        .worker = -1, .attempt = -1, .term = -1, .told = -1, .evaluated = -1, .saved = -1, .lost_at = -1};
    int c, result = 0;
    while (result == 0 && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'j')
            out->job = optarg;
        else if (c == 'k')
            out->key_file = optarg;
        else if (c == 'c')
            out->coordinator = optarg;
        else if (c == 'w')
            result = number("worker", optarg, RM_WORKERS_MAX - 1, &out->worker, err);
        else if (c == 'a')
            result = number("attempt", optarg, 1 << 30, &out->attempt, err);
        else if (c == 't')
            result = number("term", optarg, 1 << 30, &out->term, err);
        else if (c == 'p')
            result = number("port", optarg, 65535, &out->port, err);
        else if (c == 'o')
            result = number("parent", optarg, 1L << 30, &out->parent, err);
        else
            result = heritage_read(out, c, err);
    }
    if (result == 0 && (optind != argc || !out->job || !out->key_file))
        result = err_set(err, ERR_USAGE, "%s", usage);
    return result;
}

static int coordinate(const struct arguments *arguments, struct job_files *files, struct error *err)
{
    log_name("coordinator");
    if (arguments->term < 1)
        return err_set(err, ERR_USAGE, "%s", usage);
    struct coordinator_options options = {.files = files,
                                          .term = arguments->term,
                                          .port = (int)arguments->port,
                                          .watched = arguments->parent > 0};
    const long *spent = arguments->spent;
    options.heritage = (struct rdzv_heritage){.given = arguments->term > 1,
                                              .told = arguments->told,
                                              .evaluated = arguments->evaluated,
                                              .saved = arguments->saved,
                                              .lost_at = arguments->lost_at,
                                              .spent_at = arguments->spent_at,
                                              .spent = {.productive = spent[0],
                                                        .checkpoint = spent[1],
                                                        .recovery = spent[2],
                                                        .waiting = spent[3],
                                                        .rework = spent[4]}};
    return coordinator_run(&options, err);
}

static int work(const struct arguments *arguments, struct job_files *files, struct error *err)
{
    char name[32];
    if (arguments->worker < 0 || arguments->attempt < 0 || !arguments->coordinator)
        return err_set(err, ERR_USAGE, "%s", usage);
    snprintf(name, sizeof name, "agent %ld", arguments->worker);
    log_name(name);
    return app_run(&(struct app_options){.files = files,
                                         .worker = (int)arguments->worker,
                                         .attempt = (int)arguments->attempt,
                                         .coordinator = arguments->coordinator},
                   err);
}

static int run(int argc, char **argv, struct error *err)
{
    struct arguments arguments;
    struct job_files files;
    bool coordinates = argc > 1 && !strcmp(argv[1], "coordinate");
    if (!coordinates && (argc < 2 || strcmp(argv[1], "work") != 0))
        return err_set(err, ERR_USAGE, "%s", usage);
    if (arguments_read(&arguments, argc - 1, argv + 1, err) < 0 ||
        orphan_guard((int)arguments.parent, err) < 0 ||
        job_files_read(&files, arguments.job, arguments.key_file, err) < 0)
        return -1;
    int result = coordinates ? coordinate(&arguments, &files, err) : work(&arguments, &files, err);
    job_files_clear(&files);
    return result;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    int code = run(argc, argv, &err);
    if (code >= 0)
        return code;
    fprintf(stderr, "ringmaster-agent: %s\n", err.text);
    return error_exit_code(err.code);
}
