/* Looks for keys in the places that the header names, in that order, and keeps what was found until it is
 * about to end or is doubted. object_s3.c owns one, the threads that send (s3_engine.c) ask it before they
 * sign; what is fetched from a service is in credentials_remote.c. */
#include "common/storage/object/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/secret.h"

enum { RENEW_BEFORE_S = 300, RENEW_EVERY_S = 30, PATH_BYTES = 4096 };

struct credentials_store {
    struct credentials_options options;
    struct credentials *now, *next; /* memory for secrets */
    bool have, asked, doubted;
    int64_t tried_s, refused_s; /* when renewing was last tried, and for a server's refusal */
};

int credentials_open(struct credentials_store **ret, const struct credentials_options *options,
                     struct error *err)
{
    struct credentials_store *store = calloc(1, sizeof *store);
    if (!store)
        return err_set(err, ERR_MACHINE, "no memory for credentials");
    store->options = *options;
    store->now = secret_open(sizeof *store->now);
    store->next = secret_open(sizeof *store->next);
    if (!store->now || !store->next) {
        credentials_free(store);
        return err_set(err, ERR_MACHINE, "no memory for credentials");
    }
    *ret = store;
    return 0;
}

void credentials_free(struct credentials_store *store)
{
    if (!store)
        return;
    secret_free(store->now, sizeof *store->now);
    secret_free(store->next, sizeof *store->next);
    free(store);
}

static int take_keys(struct credentials *ret, const char *access, const char *secret, const char *token,
                     const char *source, struct error *err)
{
    ret->source = source;
    ret->ends_s = 0;
    if (!text_copy(ret->access_key, sizeof ret->access_key, access) ||
        !text_copy(ret->secret_key, sizeof ret->secret_key, secret) ||
        !text_copy(ret->token, sizeof ret->token, token))
        return err_set(err, ERR_USAGE, "the access key, its secret or its token in %s is too long", source);
    return 0;
}

int credentials_read_file(const char *path, char *out, size_t size, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, ERR_USAGE, "%s", path);
    ssize_t n = read(fd, out, size);
    int why = errno;
    close(fd);
    errno = why;
    if (n < 0)
        return err_errno(err, ERR_USAGE, "%s", path);
    if ((size_t)n == size)
        return err_set(err, ERR_USAGE, "%s: too long", path);
    out[n] = 0;
    out[strcspn(out, "\r\n")] = 0;
    return out[0] ? 0 : err_set(err, ERR_USAGE, "%s: empty", path);
}

/* One key of the Secret that a pod has as a folder of files; "": it has no such key. */
static int read_key(enum config_key key, char *out, size_t size, struct error *err)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", config_get(CONFIG_POD_CREDENTIALS), config_name(key));
    out[0] = 0;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    return credentials_read_file(path, out, size, err);
}

/* Environment that was made of a Secret stays as it was when the pod began; its files are mended with it. */
static int from_secret(struct credentials *ret, struct error *err)
{
    if (!config_get(CONFIG_POD_CREDENTIALS))
        return err_set(err, ERR_NOT_FOUND, "not in a pod");
    if (read_key(CONFIG_AWS_ACCESS_KEY_ID, ret->access_key, sizeof ret->access_key, err) < 0 ||
        read_key(CONFIG_AWS_SECRET_ACCESS_KEY, ret->secret_key, sizeof ret->secret_key, err) < 0 ||
        read_key(CONFIG_AWS_SESSION_TOKEN, ret->token, sizeof ret->token, err) < 0)
        return err_wrap(err, "the Secret of checkpoint.secretRef");
    if (!ret->access_key[0] && !ret->secret_key[0])
        return err_set(err, ERR_NOT_FOUND, "no keys in the Secret");
    if (!ret->access_key[0] || !ret->secret_key[0])
        return err_set(
            err, ERR_USAGE, "the Secret of checkpoint.secretRef has %s and no %s: give it both",
            config_name(ret->access_key[0] ? CONFIG_AWS_ACCESS_KEY_ID : CONFIG_AWS_SECRET_ACCESS_KEY),
            config_name(ret->access_key[0] ? CONFIG_AWS_SECRET_ACCESS_KEY : CONFIG_AWS_ACCESS_KEY_ID));
    ret->source = "the Secret of checkpoint.secretRef";
    ret->ends_s = 0;
    return 0;
}

static int from_environment(struct credentials *ret, struct error *err)
{
    const char *access = config_get(CONFIG_AWS_ACCESS_KEY_ID);
    const char *secret = config_get(CONFIG_AWS_SECRET_ACCESS_KEY);
    const char *token = config_get(CONFIG_AWS_SESSION_TOKEN);
    if (!access && !secret)
        return err_set(err, ERR_NOT_FOUND, "not in the environment");
    if (!access || !secret)
        return err_set(err, ERR_USAGE, "%s is set and %s is not: set both or none",
                       config_name(access ? CONFIG_AWS_ACCESS_KEY_ID : CONFIG_AWS_SECRET_ACCESS_KEY),
                       config_name(access ? CONFIG_AWS_SECRET_ACCESS_KEY : CONFIG_AWS_ACCESS_KEY_ID));
    return take_keys(ret, access, secret, token ? token : "", "the environment", err);
}

static int from_web_identity(const struct credentials_options *options, struct credentials *ret,
                             struct error *err)
{
    const char *file = config_get(CONFIG_AWS_WEB_IDENTITY_TOKEN_FILE),
               *role = config_get(CONFIG_AWS_ROLE_ARN);
    if (!file || !role)
        return err_set(err, ERR_NOT_FOUND, "no web identity");
    return credentials_web_identity(options, role, config_get(CONFIG_AWS_ROLE_SESSION_NAME), file, ret, err);
}

static int from_profile(const struct credentials_options *options, struct credentials *ret, struct error *err)
{
    const struct profile *profile = options->profile;
    const char *name = config_get(CONFIG_AWS_PROFILE);
    if (name && (!profile || !profile->found))
        return err_set(err, ERR_USAGE, "AWS_PROFILE is %s, which is in neither of the shared files", name);
    if (!profile || !profile->found)
        return err_set(err, ERR_NOT_FOUND, "no profile");
    if (profile->access_key[0] && profile->secret_key[0])
        return take_keys(ret, profile->access_key, profile->secret_key, profile->token, "the profile", err);
    if (profile->role_arn[0] && profile->token_file[0])
        return credentials_web_identity(options, profile->role_arn,
                                        profile->role_session[0] ? profile->role_session : NULL,
                                        profile->token_file, ret, err);
    if (profile->by_command)
        return err_set(
            err, ERR_USAGE,
            "the profile gets its credentials by a command, by SSO or by another profile, which is "
            "not done here: export them with `aws configure export-credentials --format env`");
    return err_set(err, ERR_NOT_FOUND, "no keys in the profile");
}

/* Who runs this machine or pod. A key of EC2's is none at Google, and a token of Google's for nobody else. */
static int from_surroundings(const struct credentials_options *options, int64_t now_s,
                             struct credentials *ret, struct error *err)
{
    return options->google ? credentials_google(options, now_s, ret, err)
                           : credentials_machine(options, ret, err);
}

/* *err: what the last source says of why there is none. */
static void say_none(bool google, struct error *err)
{
    struct error last = *err;
    if (google)
        err_set(
            err, ERR_USAGE,
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to an HMAC key of Google's, or "
            "give this machine or pod a Google service account (%.160s)",
            last.text);
    else
        err_set(err, ERR_USAGE,
                "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give "
                "this machine or container a role");
}

/* The first source that is there. */
static int find_source(const struct credentials_options *options, int64_t now_s, struct credentials *ret,
                       struct error *err)
{
    struct error failed = {0};
    ret->bearer = false;
    if (from_secret(ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND && from_environment(ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND && from_web_identity(options, ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND && from_profile(options, ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND && credentials_container(options, ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND && from_surroundings(options, now_s, ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND)
        say_none(options->google, &failed);
    if (failed.code == ERR_ABORTED)
        return err_from(err, &failed, "%s", failed.text);
    if (failed.class == CLASS_UNKNOWN)
        failed.person = true; /* nothing that time alone would heal */
    failed.class = CLASS_PASSING;
    return err_from(err, &failed, "%s", failed.text);
}

/* Somebody may have mended the shared files since they were read. */
static int find_again(const struct credentials_store *store, int64_t now_s, struct credentials *ret,
                      struct error *err)
{
    struct credentials_options options = store->options;
    struct profile *fresh = options.profile ? secret_open(sizeof *fresh) : NULL;
    const char *name;
    if (fresh && profile_read(fresh, &name, NULL) == 0)
        options.profile = fresh;
    int result = find_source(&options, now_s, ret, err);
    secret_free(fresh, sizeof *fresh);
    return result;
}

void credentials_doubt(struct credentials_store *store)
{
    store->doubted = true;
}

int credentials_get(struct credentials_store *store, int64_t now_s, bool anew, const struct credentials **ret,
                    bool *renewed, struct error *err)
{
    struct error failed = {0};
    bool ending = store->have && store->now->ends_s && now_s >= store->now->ends_s - RENEW_BEFORE_S;
    bool holds = store->have && (!store->now->ends_s || now_s < store->now->ends_s);
    anew = anew || store->doubted;
    int64_t *last = anew ? &store->refused_s : &store->tried_s;
    bool soon = holds && now_s < *last + RENEW_EVERY_S; /* asked just now */
    *renewed = false;
    *ret = store->now;
    if (store->have && ((!ending && !anew) || soon))
        return 0;
    *last = store->tried_s = now_s;
    store->doubted = false;
    int found = store->asked ? find_again(store, now_s, store->next, &failed)
                             : find_source(&store->options, now_s, store->next, &failed);
    store->asked = true;
    if (found < 0) {
        explicit_bzero(store->next, sizeof *store->next);
        if (holds && failed.code != ERR_ABORTED)
            return 0;
        return err_from(err, &failed, "%s", failed.text);
    }
    struct credentials *was = store->now;
    store->now = store->next;
    store->next = was;
    explicit_bzero(was, sizeof *was);
    *renewed = store->have = true;
    *ret = store->now;
    return 0;
}
