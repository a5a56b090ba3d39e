/* ringmaster-trainer: the numbers of one worker (`work`, started by its agent), and what else can be done
 * with a model on this machine. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/descriptors.h"
#include "common/os/log.h"
#include "common/os/orphan.h"
#include "common/os/secret.h"
#include "trainer/backend/cpu/probe_cpu.h"
#include "trainer/bench_step.h"
#include "trainer/generate.h"
#include "trainer/memory.h"
#include "trainer/train_loop.h"

static const char usage[] =
    "usage: ringmaster-trainer work --link-fd N --state-fd N --snapshot-fd N [--data-fd N] [--parent PID]\n"
    "           [--program-fd N] [--alone 0|1]\n"
    "       ringmaster-trainer generate FOLDER [--prompt TEXT] [--tokens N] [--seed N] [--temperature X]\n"
    "       ringmaster-trainer fingerprint [--isa NAME] [--precision fp32|bf16] [--probe]\n"
    "       ringmaster-trainer memory --layers N --heads N --width N --context N --vocabulary N --sequences "
    "N\n"
    "           [--threads N] [--bf16 0|1] [--recompute 0|1] [--gpu 0|1]\n"
    "       ringmaster-trainer bench-step ...\n"
    "       ringmaster-trainer --version\n"
    "`work` is started by ringmaster-agent; people use `ringmaster`.\n"
    "For example:\n"
    "  ringmaster-trainer fingerprint --precision bf16 --probe\n"
    "  ringmaster-trainer generate checkpoints/final --prompt 'static int ' --tokens 200\n";

static int usage_error(void)
{
    fputs(usage, stderr);
    return EXIT_USAGE;
}

static int number(const char *text)
{
    char *rest;
    long value = strtol(text, &rest, 10);
    return *text && !*rest && value >= 0 && value <= 1 << 30 ? (int)value : -1;
}

static int work_main(int argc, char **argv)
{
    static const struct option names[] = {
        {"link-fd", required_argument, NULL, 'l'},     {"state-fd", required_argument, NULL, 's'},
        {"snapshot-fd", required_argument, NULL, 'm'}, {"data-fd", required_argument, NULL, 'd'},
        {"program-fd", required_argument, NULL, 'u'},  {"parent", required_argument, NULL, 'p'},
        {"alone", required_argument, NULL, 'a'},       {0},
    };
    struct train_loop_options options = {
        .link_fd = -1, .state_fd = -1, .snapshot_fd = -1, .data_fd = -1, .program_fd = -1};
    int parent = 0, option;
    struct error err;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        int *place = option == 'l'   ? &options.link_fd
                     : option == 's' ? &options.state_fd
                     : option == 'm' ? &options.snapshot_fd
                     : option == 'd' ? &options.data_fd
                     : option == 'u' ? &options.program_fd
                     : option == 'p' ? &parent
                     : option == 'a' ? &options.alone
                                     : NULL;
        if (!place || (*place = number(optarg)) < 0)
            return usage_error();
    }
    if (optind != argc || options.link_fd < 0 || options.state_fd < 0 || options.snapshot_fd < 0)
        return usage_error();
    if (orphan_guard(parent, &err) < 0)
        return error_exit_code(err.code);
    /* Ctrl-C reaches everybody in the terminal; what it means is decided by `ringmaster run`. */
    signal(SIGINT, SIG_IGN);
    return train_loop_run(&options);
}

static int print_probe(const char *isa, enum gpt_precision precision)
{
    uint8_t probe[RM_HASH_BYTES];
    char text[RM_HASH_HEX];
    struct pool *pool = NULL;
    struct error err;
    if (pool_open(&pool, 1, &err) < 0 || probe_cpu(isa, precision, pool, probe, &err) < 0) {
        pool_free(pool);
        fprintf(stderr, "ringmaster-trainer: %s\n", err.text);
        return error_exit_code(err.code);
    }
    pool_free(pool);
    hex_encode(probe, RM_HASH_BYTES, text);
    printf("probe %s\n", text);
    return 0;
}

static int fingerprint_main(int argc, char **argv)
{
    static const struct option names[] = {{"isa", required_argument, NULL, 'i'},
                                          {"precision", required_argument, NULL, 'p'},
                                          {"probe", no_argument, NULL, 'm'},
                                          {0}};
    const char *forced = config_get(CONFIG_TRAINER_ISA), *isa = "Auto";
    enum gpt_precision precision = GPT_FP32;
    char text[RM_FINGERPRINT_MAX];
    bool probe = false;
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        probe = probe || option == 'm';
        if (option == 'i')
            isa = optarg;
        else if (option != 'm' && (option != 'p' || gpt_precision_read(optarg, &precision) < 0))
            return usage_error();
    }
    if (optind != argc)
        return usage_error();
    gpt_fingerprint(forced ? forced : isa, precision, text);
    puts(text);
    return probe ? print_probe(forced ? forced : isa, precision) : 0;
}

static int print_version(void)
{
    const char *forced = config_get(CONFIG_TRAINER_ISA);
    char text[RM_FINGERPRINT_MAX];
    gpt_fingerprint(forced ? forced : "Auto", GPT_FP32, text);
    printf("ringmaster-trainer " RM_VERSION "\n  commit      " RM_COMMIT "\n  arithmetic  %s\n", text);
    return 0;
}

static bool is_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* Alone, or last: behind an option it may be that option's value, as in `generate FOLDER --prompt -h`. */
static bool asks_for_help(int argc, char **argv)
{
    return argc > 1 &&
           (is_help(argv[1]) || (is_help(argv[argc - 1]) && strncmp(argv[argc - 2], "--", 2) != 0));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"work", work_main},
                    {"generate", generate_main},
                    {"fingerprint", fingerprint_main},
                    {"memory", memory_main},
                    {"bench-step", bench_step_main}};
    secret_guard();
    descriptors_raise();
    log_name("trainer");
    if (asks_for_help(argc, argv)) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "--version"))
        return print_version();
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return usage_error();
}
