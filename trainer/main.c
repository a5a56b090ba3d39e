/* ringmaster-trainer: the numbers of one worker (`work`, started by its agent), and what else can be done
 * with a model on this machine. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/os/command_line.h"
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
    "           [--program-fd N] [--shelf-fd N] [--alone 0|1]\n"
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

static int say_error(const struct error *err)
{
    fprintf(stderr, "ringmaster-trainer: %s\n", err->text);
    return error_exit_code(err->code);
}

static int int_read(const char *name, const char *text, int *ret, struct error *err)
{
    long value = 0;
    if (command_line_number(name, text, 0, 1 << 30, &value, err) < 0)
        return -1;
    *ret = (int)value;
    return 0;
}

static int refuse_operand(const char *verb, const char *word, struct error *err)
{
    return err_set(err, ERR_USAGE, "%s: %.60s is no option, and there is nothing else to say", verb, word);
}

static int read_work(struct train_loop_options *options, int *parent, int argc, char **argv,
                     struct error *err)
{
    int *const places[] = {&options->link_fd, &options->state_fd,   &options->snapshot_fd,
                           &options->data_fd, &options->program_fd, parent,
                           &options->alone,   &options->shelf_fd};
    enum { PLACES = sizeof places / sizeof *places };
    static const struct option names[] = {
        {"link-fd", required_argument, NULL, 1},
        {"state-fd", required_argument, NULL, 2},
        {"snapshot-fd", required_argument, NULL, 3},
        {"data-fd", required_argument, NULL, 4},
        {"program-fd", required_argument, NULL, 5},
        {"parent", required_argument, NULL, 6},
        {"alone", required_argument, NULL, 7},
        {"shelf-fd", required_argument, NULL, 8},
        {0},
    };
    int option;
    _Static_assert(sizeof names / sizeof *names == PLACES + 1, "each option has its place");
    while ((option = command_line_option(argc, argv, names, err)) != -1)
        if (option < 1 || option > PLACES ||
            int_read(names[option - 1].name, optarg, places[option - 1], err) < 0)
            return -1;
    if (optind != argc)
        return refuse_operand("work", argv[optind], err);
    if (options->link_fd < 0 || options->state_fd < 0 || options->snapshot_fd < 0)
        return err_set(
            err, ERR_USAGE,
            "work wants --link-fd N, --state-fd N and --snapshot-fd N, which ringmaster-agent gives it");
    return 0;
}

static int work_main(int argc, char **argv)
{
    struct train_loop_options options = {
        .link_fd = -1, .state_fd = -1, .snapshot_fd = -1, .data_fd = -1, .program_fd = -1, .shelf_fd = -1};
    int parent = 0;
    struct error err;
    if (read_work(&options, &parent, argc, argv, &err) < 0)
        return say_error(&err);
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
        return say_error(&err);
    }
    pool_free(pool);
    hex_encode(probe, RM_HASH_BYTES, text);
    printf("probe %s\n", text);
    return 0;
}

struct fingerprint_wish {
    const char *isa;
    enum gpt_precision precision;
    bool probe;
};

static int read_fingerprint(struct fingerprint_wish *wish, int argc, char **argv, struct error *err)
{
    static const struct option names[] = {{"isa", required_argument, NULL, 'i'},
                                          {"precision", required_argument, NULL, 'p'},
                                          {"probe", no_argument, NULL, 'm'},
                                          {0}};
    int option;
    while ((option = command_line_option(argc, argv, names, err)) != -1) {
        if (!option)
            return -1;
        wish->probe = wish->probe || option == 'm';
        if (option == 'i')
            wish->isa = optarg;
        else if (option == 'p' && gpt_precision_read(optarg, &wish->precision) < 0)
            return err_set(err, ERR_USAGE, "--precision is \"%.40s\"; write fp32 or bf16", optarg);
    }
    return optind == argc ? 0 : refuse_operand("fingerprint", argv[optind], err);
}

static int fingerprint_main(int argc, char **argv)
{
    const char *forced = config_get(CONFIG_TRAINER_ISA);
    struct fingerprint_wish wish = {.isa = "Auto", .precision = GPT_FP32};
    struct error err;
    char text[RM_FINGERPRINT_MAX];
    if (read_fingerprint(&wish, argc, argv, &err) < 0)
        return say_error(&err);
    gpt_fingerprint(forced ? forced : wish.isa, wish.precision, text);
    puts(text);
    return wish.probe ? print_probe(forced ? forced : wish.isa, wish.precision) : 0;
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

static int refuse_command(const char *word)
{
    static const char *const people_type[] = {"generate", "fingerprint", "memory", "bench-step", NULL};
    struct error err;
    if (!*word) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    command_line_refuse(word, people_type, &err);
    return say_error(&err);
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
    return refuse_command(argc > 1 ? argv[1] : "");
}
