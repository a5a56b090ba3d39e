/* Asks Google's metadata server for the access token of a service account: GKE's for that of a pod (workload
 * identity), a machine's for its own. A token needs no signature: s3_sign.c sends it as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/str.h"
#include "common/os/config.h"
#include "common/os/secret.h"
#include "common/storage/object/credentials.h"
#include "common/storage/object/credentials_json.h"

enum { HOST_MAX = 256, URL_MAX = 512, SAID_MAX = 64 };

static const char usual_host[] = "metadata.google.internal"; /* by its name: machines may have IPv6 alone */
static const char token_path[] = "/computeMetadata/v1/instance/service-accounts/default/token";
static const char flavor[] = "Metadata-Flavor"; /* both ways: no other server says so, no page's script can */

/* --- its answer --- */

/* Seconds as a whole number above 0, or -1. */
static int64_t seconds_of(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || digits > 9 || text[digits])
        return -1;
    return strtoll(text, NULL, 10) > 0 ? strtoll(text, NULL, 10) : -1;
}

/* It becomes part of a header's line. */
static bool is_token(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    return text[0] != 0;
}

int credentials_google_token(const char *text, size_t length, int64_t now_s, struct credentials *ret,
                             struct error *err)
{
    char kind[32] = "", ends[32] = "";
    *ret = (struct credentials){0};
    const struct credentials_field field[] = {
        {"access_token", ret->token, sizeof ret->token, false},
        {"expires_in", ends, sizeof ends, true},
        {"token_type", kind, sizeof kind, false},
    };
    if (!credentials_json(text, length, field, sizeof field / sizeof *field))
        return err_set(err, ERR_DATA, "the answer is not JSON of one level");
    if (!is_token(ret->token))
        return err_set(err, ERR_DATA, "no access token in the answer");
    if (strcasecmp(kind, "Bearer") != 0)
        return err_set(err, ERR_DATA, "token_type is \"%s\", not Bearer", kind);
    if (seconds_of(ends) < 0)
        return err_set(err, ERR_DATA, "expires_in is \"%s\", not a number of seconds", ends);
    ret->bearer = true;
    ret->ends_s = now_s + seconds_of(ends);
    return 0;
}

/* --- asking --- */

static int find_host(char out[HOST_MAX], struct error *err)
{
    const char *given = config_get(CONFIG_GCE_METADATA_HOST);
    static const char kept[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]"; /* no path, nobody's name */
    if (text_copy(out, HOST_MAX, given ? given : usual_host) && !out[strspn(out, kept)])
        return 0;
    return err_set(err, ERR_USAGE, "%s is \"%.100s\", not a host or host:port",
                   config_name(CONFIG_GCE_METADATA_HOST), given);
}

/* What a refusal says of itself, behind a space: GKE's names what IAM said. "" where that is no sentence:
 * what else it may hold is not known. */
static void first_words(const struct fetch_answer *answer, char out[SAID_MAX])
{
    size_t length = 0;
    while (length < answer->length && length < SAID_MAX - 2 && answer->bytes[length] >= ' ' &&
           answer->bytes[length] <= '~')
        length++;
    if (strcspn(answer->bytes, "{<\"") < length)
        length = 0;
    snprintf(out, SAID_MAX, "%s%.*s", length ? " " : "", (int)length, answer->bytes);
}

/* Busy now, which passes by itself; or no, until somebody changes what it says. */
static int refused(const struct fetch_answer *answer, struct error *err)
{
    int status = answer->status;
    char said[SAID_MAX];
    first_words(answer, said);
    if (status >= 500 || status == 429) {
        err_set(err, ERR_MACHINE, "Google's metadata server gives no token now: status %d", status);
        return err_class(err, CLASS_PASSING);
    }
    if (status == 404)
        return err_set(
            err, ERR_USAGE,
            "Google's metadata server knows no service account (status 404%s): give the machine, or "
            "the pod's node pool, one",
            said);
    return err_set(err, ERR_USAGE,
                   "Google's metadata server refuses a token (status %d%s): grant the pod's service account "
                   "roles/iam.workloadIdentityUser on the Google one",
                   status, said);
}

static int ask_google(const struct credentials_options *options, int64_t now_s, struct fetch_answer *answer,
                      struct credentials *ret, struct error *err)
{
    static const char *const header[] = {"Metadata-Flavor: Google"};
    char host[HOST_MAX], url[URL_MAX];
    struct error away = {0};
    if (find_host(host, err) < 0)
        return -1;
    snprintf(url, sizeof url, "http://%s%s", host, token_path);
    struct fetch_request request = {.method = "GET",
                                    .url = url,
                                    .header = header,
                                    .headers = 1,
                                    .wanted = flavor,
                                    .connect_within = RM_S,
                                    .within = 20 * RM_S, /* a pod's first token goes by IAM */
                                    .tries = 3};
    if (fetch(options->waiter, &request, answer, &away) < 0)
        return err_set(err, away.code == ERR_ABORTED ? ERR_ABORTED : ERR_NOT_FOUND,
                       "Google's metadata server at %s does not answer: %s", host, away.text);
    if (strcmp(answer->wanted, "Google") != 0)
        return err_set(err, ERR_NOT_FOUND, "who answers at %s (status %d) is not Google's metadata server",
                       host, answer->status);
    if (answer->status != 200)
        return refused(answer, err);
    if (credentials_google_token(answer->bytes, answer->length, now_s, ret, err) < 0)
        return err_wrap(err, "the token of Google's metadata server");
    ret->source = "Google's metadata server";
    return 0;
}

int credentials_google(const struct credentials_options *options, int64_t now_s, struct credentials *ret,
                       struct error *err)
{
    struct fetch_answer *answer = secret_open(sizeof *answer);
    if (!answer)
        return err_set(err, ERR_MACHINE, "no memory for credentials");
    int result = ask_google(options, now_s, answer, ret, err);
    secret_free(answer, sizeof *answer);
    return result;
}
