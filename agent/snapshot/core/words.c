/* Refusals and causes: tables of what is known to stand in the way, and the error of a log that the others
 * came from. */
#include "agent/snapshot/core/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *start; /* of a link's target */
    const char *why;
} refused_descriptors[] = {
    {"/dev/nvidia", "a GPU's state cannot be in a snapshot; remove checkpoint.process from the job, and have "
                    "the program save by itself"},
    {"/dev/dri/", "a GPU's state cannot be in a snapshot; remove checkpoint.process from the job, and have "
                  "the program save by itself"},
    {"anon_inode:[io_uring]", "io_uring cannot be in a snapshot; tell the program to do without it (for "
                              "libuv: UV_USE_IO_URING=0)"},
};

int snapshot_refuse_descriptor(long pid, const char *target, struct error *err)
{
    enum { ROWS = sizeof refused_descriptors / sizeof *refused_descriptors };
    for (int i = 0; i < ROWS; i++)
        if (!strncmp(target, refused_descriptors[i].start, strlen(refused_descriptors[i].start)))
            return err_set(err, ERR_MACHINE, "process %ld has %.80s open: %s", pid, target,
                           refused_descriptors[i].why);
    return 0;
}

int snapshot_refuse_version(int version, struct error *err)
{
    if (version >= SNAPSHOT_CRIU_LEAST)
        return 0;
    return err_set(err, ERR_MACHINE,
                   "criu is %d.%d, which is too old: a snapshot wants 4.1 or later, as Debian 13 has it",
                   version / 10000, version / 100 % 100);
}

/* The kernel's numbers of capabilities. */
static const struct {
    int bit;
    const char *name;
} rights[] = {{6, "SETGID"}, {7, "SETUID"}, {8, "SETPCAP"}, {19, "SYS_PTRACE"}, {40, "CHECKPOINT_RESTORE"}};

int snapshot_refuse_rights(uint64_t effective, struct error *err)
{
    char missing[96] = "";
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
        if (!(effective >> rights[i].bit & 1))
            snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s%s",
                     *missing ? ", " : "", rights[i].name);
    if (!*missing)
        return 0;
    return err_set(err, ERR_MACHINE,
                   "this container may not freeze processes: it lacks the capabilities %s, which its "
                   "securityContext has to add, to a container that runs as uid 0",
                   missing);
}

bool snapshot_effective_rights(const char *status, uint64_t *ret)
{
    static const char name[] = "\nCapEff:";
    const char *line = strstr(status, name);
    char *end = NULL;
    if (!line)
        return false;
    *ret = strtoull(line + sizeof name - 1, &end, 16);
    return *end == '\n' && end > line + sizeof name - 1;
}

/* Where a line's text starts, behind "(00.123456)" and spaces; the line's length goes along. */
static const char *behind_time(const char *line, size_t *length)
{
    const char *start = line, *end = line + *length;
    if (*start == '(') {
        while (start < end && *start != ')')
            start++;
        start += start < end;
    }
    while (start < end && *start == ' ')
        start++;
    *length = (size_t)(end - start);
    return start;
}

/* The text behind "Error (file:line): " of a line that has it, as in "pie: 48: Error (FILE:LINE): what".
 */
static const char *error_text(const char *line, size_t *length)
{
    static const char mark[] = "Error (";
    const char *found = memmem(line, *length, mark, sizeof mark - 1);
    const char *end = line + *length;
    const char *behind = found ? memmem(found, (size_t)(end - found), "): ", 3) : NULL;
    if (!behind)
        return NULL;
    *length = (size_t)(end - behind - 3);
    return behind + 3;
}

/* What CRIU calls an error and goes on from: it looks at what the machine can do, and wants more than it
 * needs. */
static bool is_harmless(const char *text, size_t length)
{
    static const char *const known[] = {"rlimit: Can't setup",
                                        "reported by netlink",
                                        "Unable to create a veth",
                                        "Can't open sysctl",
                                        "Unable to set socket SO_SNDBUFFORCE",
                                        "net: Unexpected error"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (memmem(text, length, known[i], strlen(known[i])))
            return true;
    return false;
}

bool snapshot_cause(const char *log, char out[static SNAPSHOT_CAUSE_MAX])
{
    for (const char *line = log; line && *line;) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : strlen(line);
        const char *text = behind_time(line, &length);
        text = error_text(text, &length);
        if (text && length && !is_harmless(text, length)) {
            snprintf(out, SNAPSHOT_CAUSE_MAX, "%.*s", (int)(length < 300 ? length : 300), text);
            return true;
        }
        line = end ? end + 1 : NULL;
    }
    return false;
}
