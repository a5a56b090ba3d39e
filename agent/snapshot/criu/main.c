/* ringmaster-snapshot: freezes a tree of processes into a folder and has it live again, by CRIU. A program of
 * its own with one thread, since libcriu forks and waits. Its words are told in docs/process-snapshots.md. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/snapshot/criu/snapshot.h"
#include "common/os/command_line.h"
#include "common/os/file.h"
#include "common/os/log.h"

static const char usage[] =
    "usage: ringmaster-snapshot check [--criu FILE]\n"
    "       ringmaster-snapshot dump --pid N --images FOLDER [--leave-running] [--path PATH]... [--room "
    "BYTES]\n"
    "                                [--criu FILE]\n"
    "       ringmaster-snapshot restore --images FOLDER [--stdout-fd N] [--stderr-fd N] [--criu FILE]\n"
    "       ringmaster-snapshot --version\n"
    "PATH is a file or a folder that travels with the snapshot, as does what the program has open for "
    "writing\n"
    "beside a container's volumes; BYTES, that all of these may take.\n"
    "FILE is CRIU's program: without it the one beside this program, or else the one in PATH.\n"
    "ringmaster-agent starts it for jobs with checkpoint.process: CRIU.\n"
    "For example:\n"
    "  ringmaster-snapshot check\n";

struct wish {
    const char *criu, *images;           /* criu: NULL for the one in PATH */
    const char *paths[TRAVEL_NAMED_MAX]; /* that travel */
    int path_count;
    long pid, out, err, room;
    bool leave_running;
};

static int say_error(const struct error *err)
{
    fprintf(stderr, "ringmaster-snapshot: %s\n", err->text);
    return error_exit_code(err->code);
}

enum { MOST_PID = 1 << 22 };

static int take_path(struct wish *wish, const char *path, struct error *err)
{
    if (wish->path_count == TRAVEL_NAMED_MAX)
        return err_set(err, ERR_USAGE, "--path: a snapshot takes %d at most", TRAVEL_NAMED_MAX);
    if (!travel_path_holds(path, strlen(path)))
        return err_set(err, ERR_USAGE, "--path %.100s: write it from the root, as /tmp/work", path);
    wish->paths[wish->path_count++] = path;
    return 0;
}

static int take_option(struct wish *wish, int option, struct error *err)
{
    switch (option) {
    case 'c':
        wish->criu = optarg;
        return 0;
    case 'i':
        wish->images = optarg;
        return 0;
    case 'l':
        wish->leave_running = true;
        return 0;
    case 'f':
        return take_path(wish, optarg, err);
    case 'r':
        return command_line_number("room", optarg, 0, LONG_MAX, &wish->room, err);
    case 'p':
        return command_line_number("pid", optarg, 2, MOST_PID, &wish->pid, err);
    case 'o':
        return command_line_number("stdout-fd", optarg, 0, MOST_PID, &wish->out, err);
    case 'e':
        return command_line_number("stderr-fd", optarg, 0, MOST_PID, &wish->err, err);
    default:
        return -1;
    }
}

/* The bundle has one beside this program: it goes before what an image of somebody else's may have. */
static const char *criu_beside(void)
{
    static char criu_path[PATH_MAX];
    bool there = file_sibling("criu", criu_path, sizeof criu_path, NULL) == 0 && access(criu_path, X_OK) == 0;
    return there ? criu_path : NULL;
}

static int read_wish(struct wish *wish, int argc, char **argv, struct error *err)
{
    static const struct option names[] = {
        {"criu", required_argument, NULL, 'c'},
        {"images", required_argument, NULL, 'i'},
        {"leave-running", no_argument, NULL, 'l'},
        {"pid", required_argument, NULL, 'p'},
        {"path", required_argument, NULL, 'f'},
        {"room", required_argument, NULL, 'r'},
        {"stdout-fd", required_argument, NULL, 'o'},
        {"stderr-fd", required_argument, NULL, 'e'},
        {0},
    };
    int option;
    *wish = (struct wish){.out = -1, .err = -1, .room = -1};
    while ((option = command_line_option(argc, argv, names, err)) != -1)
        if (take_option(wish, option, err) < 0)
            return -1;
    if (optind != argc)
        return err_set(err, ERR_USAGE, "%s: %.60s is no option, and there is nothing else to say", argv[0],
                       argv[optind]);
    if (!wish->criu)
        wish->criu = criu_beside();
    return 0;
}

/* Nothing closes the folder: the program ends soon after. */
static int open_images(const struct wish *wish, struct snapshot *ret, struct error *err)
{
    if (!wish->images)
        return err_set(err, ERR_USAGE, "--images FOLDER is missing: where the snapshot lies");
    *ret = (struct snapshot){
        .binary = wish->criu,
        .pid = wish->pid,
        .leave_running = wish->leave_running,
        .travel = {.named = wish->paths, .named_count = wish->path_count, .room = wish->room},
        .out = (int)wish->out,
        .err = (int)wish->err};
    ret->folder = open(wish->images, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return ret->folder < 0 ? err_errno(err, ERR_MACHINE, "can't open %.200s", wish->images) : 0;
}

static int dump_main(int argc, char **argv)
{
    struct wish wish;
    struct snapshot_stats stats;
    struct snapshot snapshot;
    struct error err;
    if (read_wish(&wish, argc, argv, &err) < 0)
        return say_error(&err);
    if (!wish.pid) {
        err_set(&err, ERR_USAGE, "--pid N is missing: the process whose tree is dumped");
        return say_error(&err);
    }
    if (open_images(&wish, &snapshot, &err) < 0 || snapshot_refuse_ground(wish.criu, &err) < 0 ||
        snapshot_dump(&snapshot, &stats, &err) < 0)
        return say_error(&err);
    printf("{\"frozenUs\":%llu,\"freezingUs\":%llu,\"writtenUs\":%llu,\"bytes\":%llu}\n",
           (unsigned long long)stats.frozen_us, (unsigned long long)stats.freezing_us,
           (unsigned long long)stats.written_us,
           (unsigned long long)stats.pages_written * (unsigned long long)sysconf(_SC_PAGESIZE));
    return EXIT_DONE;
}

static int restore_main(int argc, char **argv)
{
    struct wish wish;
    struct snapshot snapshot;
    struct error err;
    long pid = -1;
    if (read_wish(&wish, argc, argv, &err) < 0 || open_images(&wish, &snapshot, &err) < 0 ||
        snapshot_refuse_ground(wish.criu, &err) < 0 || (pid = snapshot_restore(&snapshot, &err)) < 0)
        return say_error(&err);
    printf("{\"pid\":%ld}\n", pid);
    return EXIT_DONE;
}

static int check_main(int argc, char **argv)
{
    struct wish wish;
    struct error err;
    if (read_wish(&wish, argc, argv, &err) < 0 || snapshot_refuse_ground(wish.criu, &err) < 0 ||
        snapshot_try(wish.criu, &err) < 0)
        return say_error(&err);
    int version = snapshot_version(wish.criu);
    printf("a process was frozen and lives again: snapshots work here (criu %d.%d.%d)\n", version / 10000,
           version / 100 % 100, version % 100);
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"check", check_main}, {"dump", dump_main}, {"restore", restore_main}};
    static const char *const known[] = {"check", "dump", "restore", NULL};
    struct error err;
    log_name("snapshot");
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        puts("ringmaster-snapshot " RM_VERSION "\n  commit      " RM_COMMIT);
        return EXIT_DONE;
    }
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(usage, stdout);
        return EXIT_DONE;
    }
    if (argc < 2) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    command_line_refuse(argv[1], known, &err);
    return say_error(&err);
}
