#include "common/pod/pod.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/wire/json.h"
#include "common/wire/status.h"

enum { LAST_WORD_MAX = 4096 };

static const rm_time reserve = 5 * RM_S;

rm_time pod_leave_within(const struct pod *pod)
{
    return pod->grace > 2 * reserve ? pod->grace - reserve : pod->grace / 2;
}

int pod_last_word(const struct pod *pod, const char *text, struct error *err)
{
    size_t length = strlen(text);
    int fd = open(pod->termination_log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "%s", pod->termination_log);
    if (length > LAST_WORD_MAX)
        length = LAST_WORD_MAX;
    ssize_t written = write(fd, text, length);
    int result = written == (ssize_t)length ? 0 : err_errno(err, ERR_MACHINE, "%s", pod->termination_log);
    close(fd);
    return result;
}

static int say_word(const struct pod *pod, const struct status_word *word, struct error *err)
{
    struct str text = str_init(2 * LAST_WORD_MAX);
    struct js *object = js_object();
    status_set_word(object, word);
    js_print(object, &text);
    js_free(object);
    int result = pod_last_word(pod, str_text(&text), err);
    str_clear(&text);
    return result;
}

int pod_say_left(const struct pod *pod, struct error *err)
{
    return say_word(pod, &(struct status_word){.left = true}, err);
}

int pod_say_why(const struct pod *pod, int exit_code, const char *reason, struct error *err)
{
    return say_word(pod, &(struct status_word){.over = true, .exit_code = exit_code, .reason = reason}, err);
}

int pod_say_elsewhere(const struct pod *pod, int exit_code, const char *reason, struct error *err)
{
    const struct status_word word = {
        .over = true, .exit_code = exit_code, .reason = reason, .elsewhere = true};
    return say_word(pod, &word, err);
}

static bool is_waited_for(const int *own, int count, int pid)
{
    for (int i = 0; i < count; i++)
        if (own[i] == pid)
            return true;
    return false;
}

/* One that somebody else waits for hides those behind it; they are found when that one is gone. */
void pod_reap(const int *own, int count)
{
    for (;;) {
        siginfo_t ended = {0};
        if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 || !ended.si_pid)
            return;
        if (is_waited_for(own, count, ended.si_pid))
            return;
        waitpid(ended.si_pid, NULL, WNOHANG);
    }
}
