#include "common/object/credentials.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/secret.h"

enum { RENEW_BEFORE_S = 300, RENEW_EVERY_S = 30 };

struct credentials_store {
    struct credentials_options options;
    struct credentials *now, *next; /* memory for secrets */
    bool have;
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

static int take(struct credentials *ret, const char *access, const char *secret, const char *token,
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
    return take(ret, access, secret, token ? token : "", "the environment", err);
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
        return take(ret, profile->access_key, profile->secret_key, profile->token, "the profile", err);
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

/* The first source that is there. */
static int find(const struct credentials_options *options, struct credentials *ret, struct error *err)
{
    struct error failed = {0};
    if (from_environment(ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND && from_web_identity(options, ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND && from_profile(options, ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND && credentials_container(options, ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND && credentials_machine(options, ret, &failed) == 0)
        return 0;
    if (failed.code == ERR_NOT_FOUND)
        return err_set(
            err, ERR_USAGE,
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give "
            "this machine or container a role");
    return err_set(err, failed.code, "%s", failed.text);
}

int credentials_get(struct credentials_store *store, int64_t now_s, bool anew, const struct credentials **ret,
                    bool *renewed, struct error *err)
{
    struct error failed = {0};
    bool ending = store->have && store->now->ends_s && now_s >= store->now->ends_s - RENEW_BEFORE_S;
    bool holds = store->have && (!store->now->ends_s || now_s < store->now->ends_s);
    int64_t *last = anew ? &store->refused_s : &store->tried_s;
    bool soon = holds && now_s < *last + RENEW_EVERY_S; /* asked just now */
    *renewed = false;
    *ret = store->now;
    if (store->have && ((!ending && !anew) || soon))
        return 0;
    *last = store->tried_s = now_s;
    if (find(&store->options, store->next, &failed) < 0) {
        explicit_bzero(store->next, sizeof *store->next);
        if (holds && failed.code != ERR_ABORTED)
            return 0;
        return err_set(err, failed.code, "%s", failed.text);
    }
    struct credentials *was = store->now;
    store->now = store->next;
    store->next = was;
    explicit_bzero(was, sizeof *was);
    *renewed = store->have = true;
    *ret = store->now;
    return 0;
}
