/* Reads a kubeconfig or a pod's ServiceAccount into what the client sends (client.c), and that account's
 * token again when it may be old. The operator's app.c chooses between the two. */
#include "common/kube/config.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "common/base/base64.h"
#include "common/job/yaml.h"
#include "common/os/config.h"
#include "common/os/file.h"

static const char mounted[] = "/var/run/secrets/kubernetes.io/serviceaccount";
static const rm_time token_kept = 60 * RM_S;

static void config_init(struct kube_config *config)
{
    *config = (struct kube_config){.namespace = "default"};
    config->ca = config->cert = config->key = config->token = str_init(KUBE_TEXT_MAX);
}

static void wipe(struct str *secret)
{
    if (secret->data)
        explicit_bzero(secret->data, secret->capacity);
    str_clear(secret);
}

void kube_config_clear(struct kube_config *config)
{
    str_clear(&config->ca);
    str_clear(&config->cert);
    wipe(&config->key);
    wipe(&config->token);
}

static void trim(struct str *text)
{
    while (text->length && strchr(" \t\r\n", text->data[text->length - 1]))
        text->data[--text->length] = 0;
}

static int read_token(struct kube_config *config, rm_time now, struct error *err)
{
    struct str fresh = str_init(KUBE_TEXT_MAX);
    if (file_read(config->token_file, &fresh, err) < 0)
        return -1;
    trim(&fresh);
    if (!fresh.length) {
        str_clear(&fresh);
        return err_set(err, ERR_USAGE, "%s is empty; it should hold a token", config->token_file);
    }
    wipe(&config->token);
    config->token = fresh;
    config->token_read = now;
    return 0;
}

void kube_config_refresh(struct kube_config *config, bool stale, rm_time now)
{
    if (config->token_file[0] && (stale || now - config->token_read >= token_kept))
        read_token(config, now, NULL);
}

/* --- a pod's ServiceAccount --- */

int kube_config_in_pod(struct kube_config *ret, const char *folder, rm_time now, struct error *err)
{
    const char *host = config_get(CONFIG_KUBERNETES_HOST), *port = config_get(CONFIG_KUBERNETES_PORT);
    char path[1024];
    struct str namespace = str_init(64);
    if (!host || !port)
        return err_set(err, ERR_NOT_FOUND, "not in a pod: %s and %s are not set; name a --kubeconfig",
                       config_name(CONFIG_KUBERNETES_HOST), config_name(CONFIG_KUBERNETES_PORT));
    config_init(ret);
    folder = folder ? folder : mounted;
    const char *form = strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s";
    snprintf(ret->server, sizeof ret->server, form, host, port);
    snprintf(ret->token_file, sizeof ret->token_file, "%s/token", folder);
    snprintf(path, sizeof path, "%s/ca.crt", folder);
    if (read_token(ret, now, err) < 0 || file_read(path, &ret->ca, err) < 0) {
        kube_config_clear(ret);
        return err_wrap(err, "the ServiceAccount's files");
    }
    snprintf(path, sizeof path, "%s/namespace", folder);
    if (file_read(path, &namespace, NULL) == 0)
        trim(&namespace);
    if (namespace.length)
        text_copy(ret->namespace, sizeof ret->namespace, str_text(&namespace));
    str_clear(&namespace);
    return 0;
}

/* --- a kubeconfig --- */

struct source {
    const struct yml *root;
    const char *path; /* of the file */
};

static const char *text_of(const struct yml *node, const char *key)
{
    const struct yml *found = yml_get(node, key);
    return found && found->kind == YML_SCALAR && *found->text ? found->text : NULL;
}

/* The entry called `name` of a list like `clusters`, and in it the map under `inner`. */
static const struct yml *named(const struct source *source, const char *list, const char *name,
                               const char *inner, struct error *err)
{
    const struct yml *all = yml_get(source->root, list);
    for (const struct yml *it = all ? all->child : NULL; it; it = it->next) {
        const char *its = text_of(it, "name");
        const struct yml *value = yml_get(it, inner);
        if (its && value && !strcmp(its, name))
            return value;
    }
    err_set(err, ERR_USAGE, "%s: nothing named \"%.80s\" in %s", source->path, name, list);
    return NULL;
}

static void beside(const struct source *source, const char *path, char *out, size_t size)
{
    char folder[1024];
    text_copy(folder, sizeof folder, source->path);
    if (*path == '/')
        text_copy(out, size, path);
    else
        snprintf(out, size, "%s/%s", dirname(folder), path);
}

/* PEM text that stands in the file itself (KEY-data) or in a file of its own (KEY). */
static int read_pem(const struct source *source, const struct yml *node, const char *key, struct str *out,
                    struct error *err)
{
    char inline_key[64], path[1024];
    snprintf(inline_key, sizeof inline_key, "%s-data", key);
    const char *data = text_of(node, inline_key), *name = text_of(node, key);
    if (data && !base64_decode(data, out))
        return err_set(err, ERR_USAGE, "%s: %s is not base64", source->path, inline_key);
    if (data || !name)
        return 0;
    beside(source, name, path, sizeof path);
    return file_read(path, out, err);
}

/* Without slashes at its end, as paths begin with one; false where nothing is left. */
static bool take_server(struct kube_config *ret, const char *server)
{
    if (!text_copy(ret->server, sizeof ret->server, server))
        return false;
    size_t length = strlen(ret->server);
    while (length && ret->server[length - 1] == '/')
        ret->server[--length] = 0;
    return length > 0;
}

static int read_cluster(struct kube_config *ret, const struct source *source, const struct yml *cluster,
                        struct error *err)
{
    const char *server = text_of(cluster, "server"), *trusting = text_of(cluster, "insecure-skip-tls-verify");
    if (!server || !take_server(ret, server))
        return err_set(err, ERR_USAGE, "%s: the cluster has no usable `server`", source->path);
    if (trusting && strcmp(trusting, "true") == 0)
        return err_set(err, ERR_USAGE,
                       "%s: insecure-skip-tls-verify is not supported; name a "
                       "certificate-authority",
                       source->path);
    if (text_of(cluster, "proxy-url"))
        return err_set(err, ERR_USAGE, "%s: proxy-url is not supported; name the proxy in HTTPS_PROXY",
                       source->path);
    return read_pem(source, cluster, "certificate-authority", &ret->ca, err);
}

static int read_user(struct kube_config *ret, const struct source *source, const struct yml *user,
                     rm_time now, struct error *err)
{
    const char *token = text_of(user, "token"), *file = text_of(user, "tokenFile");
    static const char *const never[] = {"exec", "auth-provider", "username", "password"};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (yml_get(user, never[i]))
            return err_set(err, ERR_USAGE,
                           "%s: the user's `%s` is not supported; use a client certificate, "
                           "a token or a tokenFile",
                           source->path, never[i]);
    if (read_pem(source, user, "client-certificate", &ret->cert, err) < 0 ||
        read_pem(source, user, "client-key", &ret->key, err) < 0)
        return -1;
    if (!ret->cert.length != !ret->key.length)
        return err_set(err, ERR_USAGE, "%s: the user has a client certificate or its key, and not both",
                       source->path);
    if (file) {
        beside(source, file, ret->token_file, sizeof ret->token_file);
        return read_token(ret, now, err);
    }
    if (token)
        str_adds(&ret->token, token);
    return 0;
}

static int read_context(struct kube_config *ret, const struct source *source, const char *name, rm_time now,
                        struct error *err)
{
    const char *current = name ? name : text_of(source->root, "current-context");
    if (!current)
        return err_set(err, ERR_USAGE, "%s: no current-context; name one with --context", source->path);
    const struct yml *context = named(source, "contexts", current, "context", err);
    const char *cluster = text_of(context, "cluster"), *user = text_of(context, "user");
    if (!context)
        return -1;
    if (!cluster || !user)
        return err_set(err, ERR_USAGE, "%s: the context \"%.80s\" names no cluster or no user", source->path,
                       current);
    if (text_of(context, "namespace"))
        text_copy(ret->namespace, sizeof ret->namespace, text_of(context, "namespace"));
    const struct yml *cluster_node = named(source, "clusters", cluster, "cluster", err);
    if (!cluster_node || read_cluster(ret, source, cluster_node, err) < 0)
        return -1;
    const struct yml *user_node = named(source, "users", user, "user", err);
    return user_node ? read_user(ret, source, user_node, now, err) : -1;
}

int kube_config_read(struct kube_config *ret, const char *path, const char *context, rm_time now,
                     struct error *err)
{
    struct str text = str_init(KUBE_TEXT_MAX);
    struct yml *root = NULL;
    config_init(ret);
    int result = file_read(path, &text, err);
    if (result == 0)
        result = yml_parse(&root, str_text(&text), text.length, path, err);
    if (result == 0)
        result = read_context(ret, &(struct source){root, path}, context, now, err);
    yml_free(root);
    wipe(&text);
    if (result < 0)
        kube_config_clear(ret);
    return result;
}
