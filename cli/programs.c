/* Finds ringmaster-agent and ringmaster-trainer beside the program that runs, and asks the trainer, as a
 * child, for its fingerprint and its needs of memory, before anything is started (check.c, prepare.c);
 * `generate` becomes that trainer. */
#include "cli/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/cores.h"
#include "common/os/file.h"

extern char **environ;

enum { GENERATE_ARGUMENTS_MAX = 64 };

int program_agent(char *out, size_t size, struct error *err)
{
    return file_sibling("ringmaster-agent", out, size, err);
}

/* Beside the running program, or RINGMASTER_TRAINER. */
static int program_trainer(char *out, size_t size, struct error *err)
{
    const char *named = config_get(CONFIG_TRAINER);
    if (!named)
        return file_sibling("ringmaster-trainer", out, size, err);
    if (!text_copy(out, size, named))
        return err_set(err, ERR_USAGE, "RINGMASTER_TRAINER is longer than %zu bytes", size - 1);
    return 0;
}

/* All that the program writes to its standard output, and its exit status. */
static int capture(const char *path, char *const *args, struct str *out, int *ret_status, struct error *err)
{
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_MACHINE, "make a pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    int code = posix_spawn(&pid, path, &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    char block[512];
    for (ssize_t n; code == 0 && (n = read(ends[0], block, sizeof block)) != 0;) {
        if (n > 0)
            str_add(out, block, (size_t)n);
        else if (errno != EINTR)
            break;
    }
    close(ends[0]);
    errno = code;
    if (code)
        return err_errno(err, ERR_MACHINE, "start %s", path);
    while (waitpid(pid, ret_status, 0) < 0)
        if (errno != EINTR)
            return err_errno(err, ERR_MACHINE, "wait for %s", path);
    return 0;
}

/* A folder may be entered, and is no program. */
static enum program_found look_at(const char *path)
{
    struct stat found;
    if (stat(path, &found) < 0 || S_ISDIR(found.st_mode))
        return PROGRAM_MISSING;
    return access(path, X_OK) == 0 ? PROGRAM_FOUND : PROGRAM_NOT_EXECUTABLE;
}

enum program_found program_find(const char *name)
{
    char path[RM_URI_MAX];
    const char *folders = config_get(CONFIG_PATH);
    enum program_found found = PROGRAM_MISSING;
    if (strchr(name, '/'))
        return look_at(name);
    for (size_t n; folders && *folders; folders += n + (folders[n] == ':')) {
        n = strcspn(folders, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, folders, name);
        enum program_found here = look_at(path);
        if (here == PROGRAM_FOUND)
            return here;
        found = here == PROGRAM_NOT_EXECUTABLE ? here : found;
    }
    return found;
}

int trainer_fingerprint(const struct job_spec *spec, char *out, size_t size, struct error *err)
{
    char path[RM_URI_MAX];
    struct str said = str_init(2 * RM_FINGERPRINT_MAX);
    int status = 0;
    bool forced = strcmp(spec->isa, "Auto") != 0;
    char *args[] = {"ringmaster-trainer",
                    "fingerprint",
                    "--precision",
                    spec->precision == JOB_BF16 ? "bf16" : "fp32",
                    forced ? "--isa" : NULL,
                    (char *)(uintptr_t)spec->isa,
                    NULL};
    if (program_trainer(path, sizeof path, err) < 0)
        return -1;
    int result = capture(path, args, &said, &status, err);
    if (result == 0 && (!WIFEXITED(status) || WEXITSTATUS(status)))
        result = err_set(err, ERR_MACHINE, "%s fingerprint failed; its own words are above", path);
    char line[2 * RM_FINGERPRINT_MAX + 1];
    text_copy(line, sizeof line, str_text(&said));
    line[strcspn(line, "\r\n")] = 0;
    if (result == 0 && (!*line || !text_copy(out, size, line)))
        result = err_set(err, ERR_MACHINE, "%s fingerprint gave no fingerprint", path);
    str_clear(&said);
    return result;
}

/* Auto: the trainers of a run share this machine. */
static int threads_of(const struct job_spec *spec)
{
    return spec->threads > 0 ? spec->threads : cores_share(spec->workers.target);
}

int trainer_memory(const struct job_spec *spec, struct trainer_needs *ret, struct error *err)
{
    enum { NUMBERS = 10, NUMBER_MAX = 16 };
    const struct model_shape *m = &spec->model.shape;
    const struct {
        const char *name;
        int value;
    } number[NUMBERS] = {
        {"--layers", m->layers},
        {"--heads", m->heads},
        {"--width", m->width},
        {"--context", m->context},
        {"--vocabulary", m->vocabulary},
        {"--sequences", spec->batch.lane_sequences},
        {"--bf16", spec->precision == JOB_BF16},
        {"--recompute", spec->recompute},
        {"--threads", threads_of(spec)},
        {"--gpu", spec->device == JOB_DEVICE_GPU},
    };
    char path[RM_URI_MAX], text[NUMBERS][NUMBER_MAX];
    char *args[2 * NUMBERS + 3] = {"ringmaster-trainer", "memory"};
    struct str said = str_init(512);
    long long lane, state, gpu = 0;
    int status = 0;
    for (int i = 0; i < NUMBERS; i++) {
        snprintf(text[i], sizeof text[i], "%d", number[i].value);
        args[2 + 2 * i] = (char *)(uintptr_t)number[i].name;
        args[3 + 2 * i] = text[i];
    }
    if (program_trainer(path, sizeof path, err) < 0)
        return -1;
    int result = capture(path, args, &said, &status, err);
    if (result == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) ||
                        sscanf(str_text(&said), "lane %lld state %lld gpu %lld", &lane, &state, &gpu) != 3))
        result = err_set(err, ERR_MACHINE, "%s memory failed; its own words are above", path);
    str_clear(&said);
    if (result < 0)
        return -1;
    *ret = (struct trainer_needs){lane, state, gpu};
    return 0;
}

int trainer_generate(char **arguments, struct error *err)
{
    char path[RM_URI_MAX];
    char *args[GENERATE_ARGUMENTS_MAX] = {"ringmaster-trainer"};
    int count = 0;
    for (; arguments[count]; count++) {
        if (count + 2 >= GENERATE_ARGUMENTS_MAX)
            return err_set(err, ERR_USAGE, "generate: too many arguments");
        args[count + 1] = arguments[count];
    }
    if (program_trainer(path, sizeof path, err) < 0)
        return -1;
    execv(path, args);
    return err_errno(err, ERR_MACHINE, "start %s", path);
}
