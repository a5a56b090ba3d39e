/* Asks others for the credentials of a store: the container's endpoint, the machine's metadata, and STS for
 * a token of the web identity. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/date.h"
#include "common/base/str.h"
#include "common/notice/metadata.h"
#include "common/os/config.h"
#include "common/os/secret.h"
#include "common/storage/object/credentials.h"
#include "common/storage/object/credentials_json.h"
#include "common/storage/object/s3_answer.h"

enum {
    URL_MAX = 2048,
    TOKEN_MAX = 16 << 10, /* a web identity's token, with its NUL */
    BODY_MAX = 3 * TOKEN_MAX + 4096,
};

/* --- a container's and a machine's answer --- */

struct found {
    struct credentials *ret;
    char code[64], message[200], ends[64];
};

static int judge_answer(const struct found *found, struct error *err)
{
    if (found->code[0] && strcmp(found->code, "Success") != 0)
        return err_set(err, ERR_DATA, "%s %s", found->code, found->message);
    if (!found->ret->access_key[0] || !found->ret->secret_key[0])
        return err_set(err, ERR_DATA, "no access key in the answer");
    if (found->ends[0] && !date_of_iso(found->ends, &found->ret->ends_s))
        return err_set(err, ERR_DATA, "Expiration is \"%s\"", found->ends);
    return 0;
}

int credentials_of_json(const char *text, size_t length, struct credentials *ret, struct error *err)
{
    struct found *found = secret_open(sizeof *found);
    int result;
    if (!found)
        return err_set(err, ERR_MACHINE, "no memory for credentials");
    *ret = (struct credentials){0};
    found->ret = ret;
    const struct credentials_field field[] = {
        {"AccessKeyId", ret->access_key, sizeof ret->access_key, false},
        {"SecretAccessKey", ret->secret_key, sizeof ret->secret_key, false},
        {"Token", ret->token, sizeof ret->token, false},
        {"Expiration", found->ends, sizeof found->ends, false},
        {"Code", found->code, sizeof found->code, false},
        {"Message", found->message, sizeof found->message, false},
    };
    if (credentials_json(text, length, field, sizeof field / sizeof *field))
        result = judge_answer(found, err);
    else
        result = err_set(err, ERR_DATA, "the answer is not JSON of one level");
    secret_free(found, sizeof *found);
    return result;
}

/* --- asking --- */

static const struct fetch_request local_request = {
    .method = "GET", .connect_within = RM_S, .within = 5 * RM_S, .tries = 3};

static int ask_source(const struct credentials_options *options, const struct fetch_request *request,
                      struct fetch_answer *answer, const char *what, struct error *err)
{
    if (fetch(options->waiter, request, answer, err) < 0)
        return err_wrap(err, "credentials from %s", what);
    return 0;
}

/* Busy now, which passes by itself; or no, until somebody changes what it says. */
static int container_refused(int status, struct error *err)
{
    bool busy = status >= 500 || status == 429;
    err_set(err, busy ? ERR_MACHINE : ERR_USAGE, "the container's endpoint refuses credentials: status %d",
            status);
    return busy ? err_class(err, CLASS_PASSING) : -1;
}

/* The host of a URL without brackets, in lower case. */
static bool host_of(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    if (!host)
        return false;
    host += 3;
    size_t length = strcspn(host, "/?#");
    if (memchr(host, '@', length))
        return false; /* "http://127.0.0.1@elsewhere" */
    if (*host == '[') {
        host++;
        length = strcspn(host, "]");
        if (!host[length] || (host[length + 1] && !strchr(":/?#", host[length + 1])))
            return false;
    } else
        length = strcspn(host, ":/?#");
    if (!length || length >= size)
        return false;
    for (size_t i = 0; i < length; i++)
        out[i] = (char)tolower((unsigned char)host[i]);
    out[length] = 0;
    return true;
}

static bool is_this_machine(const char *host)
{
    unsigned part[4];
    int end = 0;
    if (!strcmp(host, "localhost") || !strcmp(host, "::1"))
        return true;
    return sscanf(host, "%3u.%3u.%3u.%3u%n", &part[0], &part[1], &part[2], &part[3], &end) == 4 &&
           !host[end] && part[0] == 127;
}

bool credentials_host_allowed(const char *url)
{
    char host[256];
    if (!strncmp(url, "https://", 8))
        return true;
    if (strncmp(url, "http://", 7) != 0 || !host_of(url, host, sizeof host))
        return false;
    return is_this_machine(host) || !strcmp(host, "169.254.170.2") || !strcmp(host, "169.254.170.23") ||
           !strcmp(host, "fd00:ec2::23");
}

/* --- a container: ECS, EKS Pod Identity --- */

static int container_url(char out[URL_MAX], struct error *err)
{
    const char *full = config_get(CONFIG_AWS_CONTAINER_FULL_URI);
    const char *relative = config_get(CONFIG_AWS_CONTAINER_RELATIVE_URI);
    if (!full && !relative)
        return err_set(err, ERR_NOT_FOUND, "no container");
    if (relative)
        snprintf(out, URL_MAX, "http://169.254.170.2%s%s", *relative == '/' ? "" : "/", relative);
    else
        text_copy(out, URL_MAX, full);
    if (!credentials_host_allowed(out))
        return err_set(
            err, ERR_USAGE,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI: credentials are asked for over https only, or of this "
            "machine and the addresses of containers");
    return 0;
}

/* "Authorization: token" into out, "" where there is none. */
static int container_header(char *out, size_t size, struct error *err)
{
    static const char name[] = "Authorization: ";
    const char *file = config_get(CONFIG_AWS_CONTAINER_TOKEN_FILE);
    const char *token = config_get(CONFIG_AWS_CONTAINER_TOKEN);
    out[0] = 0;
    if (!file && !token)
        return 0;
    text_copy(out, size, name);
    if (file)
        return credentials_read_file(file, out + sizeof name - 1, TOKEN_MAX, err);
    if (strpbrk(token, "\r\n") || !text_copy(out + sizeof name - 1, size - sizeof name + 1, token))
        return err_set(err, ERR_USAGE, "%s has a line end in it or is too long",
                       config_name(CONFIG_AWS_CONTAINER_TOKEN));
    return 0;
}

struct secrets {
    struct fetch_answer answer;
    char header[TOKEN_MAX + 64], token[TOKEN_MAX], body[BODY_MAX];
    struct s3_session session;
};

static int ask_container(const struct credentials_options *options, struct secrets *secrets,
                         struct credentials *ret, struct error *err)
{
    char url[URL_MAX];
    const char *header = secrets->header;
    struct fetch_request request = local_request;
    if (container_url(url, err) < 0 || container_header(secrets->header, sizeof secrets->header, err) < 0)
        return -1;
    request.url = url;
    request.header = &header;
    request.headers = header[0] ? 1 : 0;
    request.ca_file = options->ca_file;
    if (ask_source(options, &request, &secrets->answer, "the container's endpoint", err) < 0)
        return -1;
    if (secrets->answer.status != 200)
        return container_refused(secrets->answer.status, err);
    if (credentials_of_json(secrets->answer.bytes, secrets->answer.length, ret, err) < 0)
        return err_wrap(err, "credentials from the container's endpoint");
    ret->source = "the container's role";
    return 0;
}

int credentials_container(const struct credentials_options *options, struct credentials *ret,
                          struct error *err)
{
    struct secrets *secrets = secret_open(sizeof *secrets);
    if (!secrets)
        return err_set(err, ERR_MACHINE, "no memory for credentials");
    int result = ask_container(options, secrets, ret, err);
    secret_free(secrets, sizeof *secrets);
    return result;
}

/* --- the machine's role: IMDSv2 --- */

static int ask_machine_path(const struct credentials_options *options, struct secrets *secrets,
                            const char *base, const char *path, struct error *err)
{
    char url[URL_MAX];
    const char *header = secrets->header;
    struct fetch_request request = local_request;
    bool token = !strcmp(path, METADATA_AWS_TOKEN_PATH);
    if (token)
        text_copy(secrets->header, sizeof secrets->header, METADATA_AWS_TOKEN_TTL);
    else
        snprintf(secrets->header, sizeof secrets->header, METADATA_AWS_TOKEN_HEADER "%s", secrets->token);
    snprintf(url, sizeof url, "%.500s%s", base, path);
    request.method = token ? "PUT" : "GET";
    request.url = url;
    request.header = &header;
    request.headers = 1;
    request.tries = token ? 1 : 3; /* nobody there is the usual case off such machines */
    return ask_source(options, &request, &secrets->answer, "the machine's metadata", err);
}

static int ask_machine(const struct credentials_options *options, struct secrets *secrets,
                       struct credentials *ret, struct error *err)
{
    static const char folder[] = "/latest/meta-data/iam/security-credentials/";
    char path[512];
    const char *given = config_get(CONFIG_AWS_METADATA_ENDPOINT);
    char base[512];
    text_copy(base, sizeof base, given ? given : METADATA_BASE);
    for (size_t n = strlen(base); n && base[n - 1] == '/'; n--)
        base[n - 1] = 0;
    struct error away = {0};
    if (ask_machine_path(options, secrets, base, METADATA_AWS_TOKEN_PATH, &away) < 0)
        return err_set(err, away.code == ERR_ABORTED ? ERR_ABORTED : ERR_NOT_FOUND, "%s", away.text);
    if (secrets->answer.status != 200)
        return err_set(err, ERR_NOT_FOUND, "the machine's metadata gives no token");
    text_copy(secrets->token, sizeof secrets->token, secrets->answer.bytes);
    secrets->token[strcspn(secrets->token, "\r\n")] = 0;
    if (ask_machine_path(options, secrets, base, folder, err) < 0)
        return -1;
    if (secrets->answer.status != 200 || !secrets->answer.length)
        return err_set(err, ERR_NOT_FOUND, "the machine has no role");
    snprintf(path, sizeof path, "%s%.*s", folder, (int)strcspn(secrets->answer.bytes, "\r\n"),
             secrets->answer.bytes);
    if (ask_machine_path(options, secrets, base, path, err) < 0)
        return -1;
    if (credentials_of_json(secrets->answer.bytes, secrets->answer.length, ret, err) < 0)
        return err_wrap(err, "credentials from the machine's metadata");
    ret->source = "the machine's role";
    return 0;
}

int credentials_machine(const struct credentials_options *options, struct credentials *ret, struct error *err)
{
    const char *off = config_get(CONFIG_AWS_METADATA_DISABLED);
    if (off && !strcasecmp(off, "true"))
        return err_set(err, ERR_NOT_FOUND, "not asked");
    struct secrets *secrets = secret_open(sizeof *secrets);
    if (!secrets)
        return err_set(err, ERR_MACHINE, "no memory for credentials");
    int result = ask_machine(options, secrets, ret, err);
    secret_free(secrets, sizeof *secrets);
    return result;
}

/* --- a web identity: IRSA and the like --- */

static size_t add_encoded(char *out, size_t at, size_t size, const char *name, const char *value)
{
    static const char digits[] = "0123456789ABCDEF";
    at += (size_t)snprintf(out + at, size - at, "%s%s=", at ? "&" : "", name);
    for (; *value && at + 4 < size; value++) {
        unsigned char c = (unsigned char)*value;
        if (isalnum(c) || strchr("-._~", c)) {
            out[at++] = (char)c;
            continue;
        }
        out[at++] = '%';
        out[at++] = digits[c >> 4];
        out[at++] = digits[c & 15];
    }
    out[at] = 0;
    return at;
}

/* STS says so with a status of 400. */
static bool is_throttled(const struct fetch_answer *answer)
{
    static const char *const busy[] = {"Throttling", "ThrottlingException", "RequestThrottled",
                                       "RequestLimitExceeded", "IDPCommunicationError"};
    struct s3_refusal refusal;
    if (answer->status < 400)
        return false;
    s3_answer_refusal(answer->bytes, answer->length, &refusal);
    for (size_t i = 0; i < sizeof busy / sizeof busy[0]; i++)
        if (!strcmp(refusal.code, busy[i]))
            return true;
    return answer->status == 429;
}

static int refused(const struct fetch_answer *answer, const char *role, struct error *err)
{
    struct s3_refusal refusal;
    bool busy = answer->status >= 500 || is_throttled(answer);
    s3_answer_refusal(answer->bytes, answer->length, &refusal);
    err_set(err, busy ? ERR_MACHINE : ERR_USAGE,
            "STS refuses the role %s for this web identity: %s %s (status %d)", role, refusal.code,
            refusal.message, answer->status);
    return busy ? err_class(err, CLASS_PASSING) : -1;
}

static int ask_sts(const struct credentials_options *options, const char *role, const char *session,
                   struct secrets *secrets, struct error *err)
{
    char url[URL_MAX];
    const char *given = config_get(CONFIG_AWS_ENDPOINT_URL_STS);
    static const char *const header[] = {"Content-Type: application/x-www-form-urlencoded"};
    size_t n = add_encoded(secrets->body, 0, BODY_MAX, "Action", "AssumeRoleWithWebIdentity");
    n = add_encoded(secrets->body, n, BODY_MAX, "RoleArn", role);
    n = add_encoded(secrets->body, n, BODY_MAX, "RoleSessionName", session ? session : "ringmaster");
    n = add_encoded(secrets->body, n, BODY_MAX, "Version", "2011-06-15");
    n = add_encoded(secrets->body, n, BODY_MAX, "WebIdentityToken", secrets->token);
    if (given)
        text_copy(url, sizeof url, given);
    else
        snprintf(url, sizeof url, "https://sts.%s.amazonaws.com%s/", options->region,
                 strncmp(options->region, "cn-", 3) ? "" : ".cn");
    struct fetch_request request = {.method = "POST",
                                    .url = url,
                                    .header = header,
                                    .headers = 1,
                                    .body = {secrets->body, n},
                                    .ca_file = options->ca_file,
                                    .connect_within = 5 * RM_S,
                                    .within = 20 * RM_S,
                                    .tries = 4,
                                    .proxy = !given,
                                    .busy = is_throttled};
    return ask_source(options, &request, &secrets->answer, "STS", err);
}

static int web_identity(const struct credentials_options *options, const char *role, const char *session,
                        struct secrets *secrets, struct credentials *ret, struct error *err)
{
    const struct fetch_answer *answer = &secrets->answer;
    const struct s3_session *given = &secrets->session;
    if (ask_sts(options, role, session, secrets, err) < 0)
        return -1;
    if (answer->status != 200)
        return refused(answer, role, err);
    if (s3_answer_session(answer->bytes, answer->length, &secrets->session, err) < 0)
        return err_wrap(err, "credentials from STS");
    text_copy(ret->access_key, sizeof ret->access_key, given->access_key);
    text_copy(ret->secret_key, sizeof ret->secret_key, given->secret_key);
    text_copy(ret->token, sizeof ret->token, given->token);
    ret->ends_s = given->ends_s;
    ret->source = "the web identity's role";
    return 0;
}

int credentials_web_identity(const struct credentials_options *options, const char *role, const char *session,
                             const char *token_file, struct credentials *ret, struct error *err)
{
    struct secrets *secrets = secret_open(sizeof *secrets);
    int result = -1;
    if (!secrets)
        return err_set(err, ERR_MACHINE, "no memory for credentials");
    if (credentials_read_file(token_file, secrets->token, TOKEN_MAX, err) == 0)
        result = web_identity(options, role, session, secrets, ret, err);
    secret_free(secrets, sizeof *secrets);
    return result;
}
