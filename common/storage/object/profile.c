#include "common/storage/object/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/secret.h"

enum { FILE_MAX = 1 << 20, LINE_MAX_BYTES = 16 << 10, PATH_BYTES = 4096 };

struct field {
    const char *name;
    size_t offset, size;
};
#define FIELD(key, member)                                                                                   \
    {                                                                                                        \
        key, offsetof(struct profile, member), sizeof((struct profile *)0)->member                           \
    }
static const struct field fields[] = {
    FIELD("aws_access_key_id", access_key),
    FIELD("aws_secret_access_key", secret_key),
    FIELD("aws_session_token", token),
    FIELD("region", region),
    FIELD("endpoint_url", endpoint),
    FIELD("ca_bundle", ca_file),
    FIELD("s3.addressing_style", style),
    FIELD("s3.payload_signing_enabled", signing),
    FIELD("role_arn", role_arn),
    FIELD("role_session_name", role_session),
    FIELD("web_identity_token_file", token_file),
};

/* Cuts white space off both ends, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    for (size_t n = strlen(text); n && strchr(" \t\r", text[n - 1]); n--)
        text[n - 1] = 0;
    return text;
}

static int set_entry(struct profile *profile, const char *name, const char *value, struct error *err)
{
    static const char *const others[] = {"credential_process", "sso_session", "sso_start_url",
                                         "source_profile", "credential_source"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        profile->by_command |= !strcmp(name, others[i]);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char *out = (char *)profile + fields[i].offset;
        if (strcmp(name, fields[i].name) != 0 || out[0])
            continue;
        if (strlen(value) >= fields[i].size)
            return err_set(err, ERR_USAGE, "%s is too long", name);
        memcpy(out, value, strlen(value) + 1);
    }
    return 0;
}

/* The name in "[profile x]" or "[x]", or NULL where the line is no such section. */
static const char *section(char *line, bool config)
{
    char *end = strchr(line, ']');
    if (line[0] != '[' || !end)
        return NULL;
    *end = 0;
    char *name = trim(line + 1);
    if (!config || !strcmp(name, "default"))
        return name;
    if (strncmp(name, "profile", 7) != 0 || !strchr(" \t", name[7]))
        return NULL;
    return trim(name + 7);
}

struct parsing {
    struct profile *profile;
    const char *name;
    bool config, inside;
    char group[32]; /* "s3" while its indented lines last */
};

static int parse_line(struct parsing *p, char *line, struct error *err)
{
    char key[96];
    bool indented = strchr(" \t", line[0]) && line[0];
    line = trim(line);
    if (!*line || strchr("#;", *line))
        return 0;
    if (*line == '[') {
        const char *found = section(line, p->config);
        p->inside = found && !strcmp(found, p->name);
        p->profile->found |= p->inside;
        p->group[0] = 0;
        return 0;
    }
    char *equals = strchr(line, '=');
    if (!p->inside || !equals)
        return 0;
    *equals = 0;
    const char *name = trim(line), *value = trim(equals + 1);
    if (!indented)
        text_copy(p->group, sizeof p->group, *value ? "" : name);
    snprintf(key, sizeof key, "%s%s%s", p->group, p->group[0] ? "." : "", name);
    return *value ? set_entry(p->profile, key, value, err) : 0;
}

int profile_parse(struct profile *profile, const char *name, bool config, const char *text, struct error *err)
{
    char *line = secret_open(LINE_MAX_BYTES);
    struct parsing p = {.profile = profile, .name = name, .config = config};
    int result = line ? 0 : err_set(err, ERR_MACHINE, "no memory");
    while (*text && result == 0) {
        size_t length = strcspn(text, "\n");
        if (length < LINE_MAX_BYTES) {
            memcpy(line, text, length);
            line[length] = 0;
            result = parse_line(&p, line, err);
        }
        text += length + (text[length] == '\n');
    }
    secret_free(line, LINE_MAX_BYTES);
    return result;
}

/* Absent: an empty text. */
static int read_file(const char *path, char *out, size_t size, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t n = 0;
    out[0] = 0;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return err_errno(err, ERR_USAGE, "%s", path);
    while (length + 1 < size && (n = read(fd, out + length, size - 1 - length)) > 0)
        length += (size_t)n;
    int why = errno;
    close(fd);
    errno = why;
    if (n < 0)
        return err_errno(err, ERR_USAGE, "%s", path);
    out[length] = 0;
    return length + 1 < size ? 0 : err_set(err, ERR_USAGE, "%s: longer than 1 MiB", path);
}

static int read_one(struct profile *profile, const char *name, bool config, char *text, struct error *err)
{
    char path[PATH_BYTES];
    const char *given = config_get(config ? CONFIG_AWS_CONFIG_FILE : CONFIG_AWS_SHARED_CREDENTIALS_FILE);
    const char *home = config_get(CONFIG_HOME);
    if (!given && !home)
        return 0;
    if (given)
        text_copy(path, sizeof path, given);
    else
        snprintf(path, sizeof path, "%s/.aws/%s", home, config ? "config" : "credentials");
    if (read_file(path, text, FILE_MAX, err) < 0)
        return -1;
    if (profile_parse(profile, name, config, text, err) < 0)
        return err_wrap(err, "%s", path);
    return 0;
}

int profile_read(struct profile *profile, const char **name, struct error *err)
{
    char *text = secret_open(FILE_MAX);
    int result = -1;
    *name = config_get(CONFIG_AWS_PROFILE) ? config_get(CONFIG_AWS_PROFILE) : "default";
    if (!text)
        return err_set(err, ERR_MACHINE, "no memory to read the AWS profile");
    if (read_one(profile, *name, false, text, err) == 0 && read_one(profile, *name, true, text, err) == 0)
        result = 0;
    secret_free(text, FILE_MAX);
    return result;
}
