/* ringmaster-agent: one program for the two roles beside the trainer, of a folder each (coordinator, agent).
 * They meet here alone. See usage below. */
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/app.h"
#include "agent/bundle/install.h"
#include "agent/launch/exec.h"
#include "agent/launch/launcher.h"
#include "agent/launch/pair.h"
#include "agent/notice/node.h"
#include "agent/storage/worker_settle.h"
#include "common/base/time.h"
#include "common/loop/loop.h"
#include "common/notice/metadata.h"
#include "common/os/command_line.h"
#include "common/os/config.h"
#include "common/os/descriptors.h"
#include "common/os/log.h"
#include "common/os/orphan.h"
#include "common/os/secret.h"
#include "coordinator/coordinator.h"

static const char usage[] =
    "usage: ringmaster-agent coordinate --job SPEC.json --key-file FILE --term N [--listen IP] [--port N]\n"
    "                             [--parent PID] [--told STEP] [--evaluated STEP] [--saved STEP]\n"
    "                             [--lost-at NS] [--spent-at NS --spent NS,NS,NS,NS,NS]\n"
    "                             [--saves LOSSES,STEP,NS,NS,NS]\n"
    "       ringmaster-agent work --worker W --attempt A --coordinator HOST:PORT --job SPEC.json\n"
    "                             --key-file FILE [--listen IP] [--port N] [--parent PID]\n"
    "Both are started by `ringmaster run` and end when their standard input does.\n"
    "In a pod both take --pod [--grace SECONDS] [--termination-log FILE], `coordinate`\n"
    "[--coordinator HOST:PORT], and `work` no --job: its standard input means nothing then, and SIGTERM\n"
    "is all it is told. RINGMASTER_POD_JOB, RINGMASTER_POD_SPEC_SHA256, RINGMASTER_POD_GENERATION,\n"
    "RINGMASTER_POD_SAVES and RINGMASTER_POD_METRICS_PORT are for `coordinate` in a pod.\n"
    "       ringmaster-agent install DIR [--termination-log FILE]\n"
    "copies the bundle that it is started from to that folder, as an init container does.\n"
    "       ringmaster-agent node --listen IP [--port N] [--metadata URL]\n"
    "tells the pods of this machine what its cloud's metadata says of its end, at "
    "http://IP:7072/v1/notices.\n"
    "IP is this machine's own, as pods know it; the metadata's address is http://169.254.169.254, or what\n"
    "RINGMASTER_METADATA says.\n"
    "       ringmaster-agent --version\n"
    "`launch` and `exec` are started by `work` alone.\n"
    "For example:\n"
    "  ringmaster-agent node --listen 10.0.0.7\n"
    "  ringmaster-agent install /ringmaster\n"
    "Exit codes: 0 done, or told to go; 2 the command line; 4 the port is taken, or the machine fails.\n";

/* The usage is longer than an error may be: a command line that lacks something gets one whole sentence. */
static int want_words(const char *verb, const char *what, struct error *err)
{
    return err_set(err, ERR_USAGE, "%s wants %s; see `ringmaster-agent --help`", verb, what);
}

#define TERMINATION_LOG "/dev/termination-log"

enum {
    AGENT_PORT = 7071, /* of a worker's pages in a pod */
    WORK_GRACE = 120,
    COORDINATE_GRACE = 135,
    GRACE_MAX = 7 * 24 * 3600,
    MAPPED_FROM = 1 << 20 /* bytes that malloc takes from the kernel by themselves */
};

struct arguments {
    const char *job, *key_file, *coordinator, *listen, *termination_log;
    bool pod;
    long worker, attempt, term, port, parent, grace; /* -1: not given */
    long told, evaluated, saved, lost_at;            /* of the predecessor; -1: nothing */
    long spent_at, spent[5];                         /* in the order of struct rdzv_goodput */
    long saves[5];                                   /* in the order of struct rdzv_saves */
};

/* Five whole numbers from 0 on, with commas between. */
static bool five_read(const char *text, long ret[5])
{
    int end = 0;
    bool good = sscanf(text, "%ld,%ld,%ld,%ld,%ld%n", &ret[0], &ret[1], &ret[2], &ret[3], &ret[4], &end) == 5;
    for (int i = 0; i < 5 && good; i++)
        good = ret[i] >= 0;
    return good && !text[end];
}

static int spent_read(struct arguments *out, const char *text, struct error *err)
{
    return five_read(text, out->spent)
               ? 0
               : err_set(err, ERR_USAGE, "--spent wants five times in ns, not \"%s\"", text);
}

static int saves_read(const char *name, const char *text, long ret[5], struct error *err)
{
    return five_read(text, ret)
               ? 0
               : err_set(err, ERR_USAGE, "%s wants losses, a step and three times in ns, not \"%.100s\"",
                         name, text);
}

static int predecessor_read(struct arguments *out, int option, struct error *err)
{
    switch (option) {
    case 'T':
        return command_line_number("told", optarg, 0, LONG_MAX, &out->told, err);
    case 'E':
        return command_line_number("evaluated", optarg, 0, LONG_MAX, &out->evaluated, err);
    case 'S':
        return command_line_number("saved", optarg, 0, LONG_MAX, &out->saved, err);
    case 'L':
        return command_line_number("lost-at", optarg, 0, LONG_MAX, &out->lost_at, err);
    case 'A':
        return command_line_number("spent-at", optarg, 0, LONG_MAX, &out->spent_at, err);
    case 'P':
        return spent_read(out, optarg, err);
    case 'V':
        return saves_read("--saves", optarg, out->saves, err);
    default:
        return -1; /* said already: it is no option, or lacks its value */
    }
}

/* Options that take a text, and are kept as they are. NULL: it is none of those. */
static const char **text_option(struct arguments *out, int option)
{
    switch (option) {
    case 'j':
        return &out->job;
    case 'k':
        return &out->key_file;
    case 'c':
        return &out->coordinator;
    case 'l':
        return &out->listen;
    case 'm':
        return &out->termination_log;
    default:
        return NULL;
    }
}

static int option_read(struct arguments *out, int option, struct error *err)
{
    const char **text = text_option(out, option);
    if (text) {
        *text = optarg;
        return 0;
    }
    switch (option) {
    case 'w':
        return command_line_number("worker", optarg, 0, RM_WORKERS_MAX - 1, &out->worker, err);
    case 'a':
        return command_line_number("attempt", optarg, 0, 1 << 30, &out->attempt, err);
    case 't':
        return command_line_number("term", optarg, 0, 1 << 30, &out->term, err);
    case 'p':
        return command_line_number("port", optarg, 0, 65535, &out->port, err);
    case 'o':
        return command_line_number("parent", optarg, 0, 1L << 30, &out->parent, err);
    case 'g':
        return command_line_number("grace", optarg, 0, GRACE_MAX, &out->grace, err);
    case 'd':
        out->pod = true;
        return 0;
    default:
        return predecessor_read(out, option, err);
    }
}

static int arguments_read(struct arguments *out, int argc, char **argv, struct error *err)
{
    static const struct option options[] = {
        {"job", required_argument, NULL, 'j'},         {"key-file", required_argument, NULL, 'k'},
        {"coordinator", required_argument, NULL, 'c'}, {"worker", required_argument, NULL, 'w'},
        {"attempt", required_argument, NULL, 'a'},     {"term", required_argument, NULL, 't'},
        {"listen", required_argument, NULL, 'l'},      {"port", required_argument, NULL, 'p'},
        {"parent", required_argument, NULL, 'o'},      {"pod", no_argument, NULL, 'd'},
        {"grace", required_argument, NULL, 'g'},       {"termination-log", required_argument, NULL, 'm'},
        {"told", required_argument, NULL, 'T'},        {"evaluated", required_argument, NULL, 'E'},
        {"saved", required_argument, NULL, 'S'},       {"lost-at", required_argument, NULL, 'L'},
        {"spent-at", required_argument, NULL, 'A'},    {"spent", required_argument, NULL, 'P'},
        {"saves", required_argument, NULL, 'V'},       {NULL, 0, NULL, 0},
    };
    *out = (struct arguments){.listen = "127.0.0.1",
                              .termination_log = TERMINATION_LOG,
                              .worker = -1,
                              .attempt = -1,
                              .term = -1,
                              .port = -1,
                              .grace = -1,
                              .told = -1,
                              .evaluated = -1,
                              .saved = -1,
                              .lost_at = -1};
    int c, result = 0;
    while (result == 0 && (c = command_line_option(argc, argv, options, err)) != -1)
        result = option_read(out, c, err);
    if (result == 0 && optind != argc)
        return err_set(err, ERR_USAGE, "%s: %.60s is no option, and there is nothing else to say", argv[0],
                       argv[optind]);
    if (result == 0 && !out->key_file)
        result = want_words(argv[0], "--key-file FILE", err);
    return result;
}

/* -1 where nobody gives one. */
static int metrics_port_read(bool pod, int *ret, struct error *err)
{
    const char *text = pod ? config_get(CONFIG_POD_METRICS_PORT) : NULL;
    long port = -1;
    if (text && command_line_number("port", text, 0, 65535, &port, NULL) < 0)
        return err_set(err, ERR_USAGE, "%s wants a port, not \"%.40s\"", config_name(CONFIG_POD_METRICS_PORT),
                       text);
    *ret = (int)port;
    return 0;
}

/* Where nobody says it, a coordinator that is not the first one takes it that the job has begun. */
static int begun_read(const struct arguments *arguments, int64_t *ret, struct error *err)
{
    const char *text = arguments->pod ? config_get(CONFIG_POD_GENERATION) : NULL;
    long begun = arguments->term > 1;
    if (text && command_line_number("generation", text, 0, LONG_MAX, &begun, NULL) < 0)
        return err_set(err, ERR_USAGE, "%s wants a number, not \"%.40s\"", config_name(CONFIG_POD_GENERATION),
                       text);
    *ret = begun;
    return 0;
}

/* From whoever started it: `run` on the command line, the operator in the environment. */
static int known_saves(const struct arguments *arguments, struct rdzv_saves *ret, struct error *err)
{
    const char *text = arguments->pod ? config_get(CONFIG_POD_SAVES) : NULL;
    long of_pod[5];
    if (text && saves_read(config_name(CONFIG_POD_SAVES), text, of_pod, err) < 0)
        return -1;
    const long *s = text ? of_pod : arguments->saves;
    *ret =
        (struct rdzv_saves){.losses = s[0], .reached = s[1], .observed = s[2], .stall = s[3], .safe = s[4]};
    return 0;
}

static int coordinate(const struct arguments *arguments, const struct pod *pod, struct job_files *files,
                      struct error *err)
{
    log_name("coordinator");
    log_term(arguments->term);
    if (arguments->term < 1)
        return want_words("coordinate", "--term N, a number from 1 on", err);
    struct coordinator_options options = {.files = files,
                                          .term = arguments->term,
                                          .listen = arguments->listen,
                                          .port = arguments->port < 0 ? 0 : (int)arguments->port,
                                          .watched = arguments->parent > 0,
                                          .pod = pod,
                                          .identity = arguments->pod ? config_get(CONFIG_POD_JOB) : NULL,
                                          .name = arguments->coordinator};
    int64_t begun = 0;
    struct rdzv_saves saves;
    if (metrics_port_read(arguments->pod, &options.metrics_port, err) < 0 ||
        begun_read(arguments, &begun, err) < 0 || known_saves(arguments, &saves, err) < 0)
        return -1;
    const long *spent = arguments->spent;
    options.predecessor = (struct rdzv_predecessor){.given = arguments->term > 1,
                                                    .told = arguments->told,
                                                    .evaluated = arguments->evaluated,
                                                    .saved = arguments->saved,
                                                    .lost_at = arguments->lost_at,
                                                    .spent_at = arguments->spent_at,
                                                    .begun = begun,
                                                    .saves = saves,
                                                    .spent = {.productive = spent[0],
                                                              .checkpoint = spent[1],
                                                              .recovery = spent[2],
                                                              .waiting = spent[3],
                                                              .rework = spent[4]}};
    return coordinator_run(&options, err);
}

static int run_worker(const struct arguments *arguments, const struct pod *pod, struct job_files *files,
                      struct error *err)
{
    char name[32];
    if (arguments->worker < 0 || arguments->attempt < 0 || !arguments->coordinator)
        return want_words("work", "--worker W, --attempt A and --coordinator HOST:PORT", err);
    int port = arguments->port < 0 && pod ? AGENT_PORT : (int)arguments->port;
    snprintf(name, sizeof name, "agent %ld", arguments->worker);
    log_name(name);
    log_worker((int)arguments->worker);
    return app_run(&(struct app_options){.files = files,
                                         .worker = (int)arguments->worker,
                                         .attempt = (int)arguments->attempt,
                                         .coordinator = arguments->coordinator,
                                         .listen = arguments->listen,
                                         .port = port,
                                         .pod = pod},
                   err);
}

/* Reads the files and does the work. A worker in a pod learns the job from the coordinator. */
static int start_with_files(const struct arguments *arguments, const struct pod *pod, bool coordinates,
                            struct error *err)
{
    struct job_files files;
    bool needs_job = coordinates || !pod;
    struct job_paths paths = {.spec = needs_job ? arguments->job : NULL,
                              .spec_sha256 = arguments->pod ? config_get(CONFIG_POD_SPEC_SHA256) : NULL,
                              .key = arguments->key_file};
    if (needs_job && !arguments->job)
        return want_words(coordinates ? "coordinate" : "work", "--job SPEC.json", err);
    if (orphan_guard((int)arguments->parent, err) < 0 || job_files_read(&files, &paths, err) < 0)
        return -1;
    int result =
        coordinates ? coordinate(arguments, pod, &files, err) : run_worker(arguments, pod, &files, err);
    job_files_clear(&files);
    return result;
}

/* Why it did not start is left behind, too. */
static int start_in_pod(const struct arguments *arguments, bool coordinates, struct error *err)
{
    long grace = arguments->grace >= 0 ? arguments->grace : coordinates ? COORDINATE_GRACE : WORK_GRACE;
    struct pod pod = {.termination_log = arguments->termination_log, .grace = grace * RM_S};
    log_as_json();
    int result = start_with_files(arguments, &pod, coordinates, err);
    if (result < 0)
        pod_say_why(&pod, error_exit_code(err->code), err->text, NULL);
    return result;
}

/* Started by `work` alone: launch --link-fd N --shared 0|1 [--state-fd N --snapshot-fd N], those two for a
 * program that computes for a trainer. */
static int launch(int argc, char **argv, struct error *err)
{
    long link_fd = -1, shared = 0, state_fd = -1, snapshot_fd = -1;
    bool given = argc >= 6 && !strcmp(argv[2], "--link-fd") && !strcmp(argv[4], "--shared");
    bool pair = given && argc == 10 && !strcmp(argv[6], "--state-fd") && !strcmp(argv[8], "--snapshot-fd");
    if (!given || (argc != 6 && !pair) ||
        command_line_number("link-fd", argv[3], 0, INT_MAX, &link_fd, err) < 0 ||
        command_line_number("shared", argv[5], 0, 1, &shared, err) < 0)
        return want_words("launch", "what `work` alone gives it", err);
    log_name("launcher");
    if (!pair)
        return launcher_run((int)link_fd, shared == 1);
    if (command_line_number("state-fd", argv[7], 0, INT_MAX, &state_fd, err) < 0 ||
        command_line_number("snapshot-fd", argv[9], 0, INT_MAX, &snapshot_fd, err) < 0)
        return want_words("launch", "what `work` alone gives it", err);
    return pair_run(&(struct pair_options){.link_fd = (int)link_fd,
                                           .state_fd = (int)state_fd,
                                           .snapshot_fd = (int)snapshot_fd,
                                           .shared = shared == 1});
}

/* install DIR [--termination-log FILE]: in an init container, where why it failed is left behind as a worker
 * would. A disk that is full is that machine's affair alone. */
static int install(int argc, char **argv, struct error *err)
{
    struct pod pod = {.termination_log = TERMINATION_LOG};
    const char *bundle = config_get(CONFIG_BUNDLE);
    bool named = argc == 5 && !strcmp(argv[3], "--termination-log");
    if (argc != 3 && !named)
        return want_words("install", "one folder: install DIR [--termination-log FILE]", err);
    if (named)
        pod.termination_log = argv[4];
    if (bundle && bundle_install(bundle, argv[2], err) == 0)
        return EXIT_DONE;
    if (!bundle)
        err_set(err, ERR_USAGE, "this one is of no bundle; start bin/ringmaster-agent of one");
    if (!named && access(TERMINATION_LOG, F_OK) < 0) /* by hand */
        return -1;
    if (err->class == CLASS_MACHINE)
        pod_say_elsewhere(&pod, error_exit_code(err->code), err->text, NULL);
    else
        pod_say_why(&pod, error_exit_code(err->code), err->text, NULL);
    return -1;
}

/* node --listen IP [--port N] [--metadata URL] */
static int node(int argc, char **argv, struct error *err)
{
    static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"metadata", required_argument, NULL, 'm'},
                                            {NULL, 0, NULL, 0}};
    const char *given = config_get(CONFIG_METADATA);
    struct node_options node = {.metadata = given ? given : METADATA_BASE};
    long port = NODE_PORT;
    int c;
    while ((c = command_line_option(argc, argv, options, err)) != -1) {
        if (c == 'l')
            node.listen = optarg;
        else if (c == 'm')
            node.metadata = optarg;
        else if (c != 'p' || command_line_number("port", optarg, 0, 65535, &port, err) < 0)
            return -1;
    }
    if (optind != argc || !node.listen)
        return err_set(err, ERR_USAGE,
                       "node wants --listen IP: the address of this machine that its pods know");
    node.port = (int)port;
    log_name("node");
    return node_run(&node, err);
}

static int run_words(int argc, char **argv, struct error *err)
{
    static const char *const people_type[] = {"coordinate", "work", "install", "node", NULL};
    struct arguments arguments;
    bool coordinates = argc > 1 && !strcmp(argv[1], "coordinate");
    if (argc > 1 && !strcmp(argv[1], "install"))
        return install(argc, argv, err);
    if (argc > 1 && !strcmp(argv[1], "launch"))
        return launch(argc, argv, err);
    if (argc > 1 && !strcmp(argv[1], "node"))
        return node(argc - 1, argv + 1, err);
    if (argc < 2)
        return err_set(err, ERR_USAGE,
                       "which of coordinate, work, install, node? See `ringmaster-agent --help`");
    if (!coordinates && strcmp(argv[1], "work") != 0)
        return command_line_refuse(argv[1], people_type, err);
    if (arguments_read(&arguments, argc - 1, argv + 1, err) < 0)
        return -1;
    return arguments.pod ? start_in_pod(&arguments, coordinates, err)
                         : start_with_files(&arguments, NULL, coordinates, err);
}

static bool is_among(int argc, char **argv, const char *word, const char *brief)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], word) || !strcmp(argv[i], brief))
            return true;
    return false;
}

/* What is asked about the program itself. NULL: nothing. */
static const char *words_about_program(int argc, char **argv)
{
    if (is_among(argc, argv, "--help", "-h"))
        return usage;
    if (argc > 1 && !strcmp(argv[1], "--version"))
        return "ringmaster-agent " RM_VERSION "\n  commit      " RM_COMMIT "\n";
    return NULL;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    if (argc > 1 && !strcmp(argv[1], "exec")) /* the words behind it are a user's */
        return launch_exec(argc - 1, argv + 1);
    const char *told = words_about_program(argc, argv);
    if (told) {
        fputs(told, stdout);
        return EXIT_DONE;
    }
    /* Else malloc keeps buffers that were freed, some MB of each thread, once the first of them was. */
    mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
    loop_signal_hold(SIGTERM);
    secret_guard();
    descriptors_raise();
    int code = run_words(argc, argv, &err);
    if (code < 0) {
        fprintf(stderr, "ringmaster-agent: %s\n", err.text);
        code = error_exit_code(err.code);
    }
    worker_settle_end_process(code);
    return code;
}
