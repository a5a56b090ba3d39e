#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/kube/config.h"

static char folder[64], path[128];

static void put(const char *name, const char *text)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/kube_config_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void teardown(void)
{
    static const char *const names[] = {"config", "token", "ca.crt", "namespace", "my.crt"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

TestSuite(config, .init = setup, .fini = teardown);

static const char good[] =
    "apiVersion: v1\n"
    "kind: Config\n"
    "current-context: here\n"
    "contexts:\n"
    "- {name: there, context: {cluster: c, user: token}}\n"
    "- name: here\n"
    "  context: {cluster: c, user: cert, namespace: train}\n"
    "clusters:\n"
    "- name: c\n"
    "  cluster: {server: \"https://127.0.0.1:6443/\", certificate-authority-data: Q0E=}\n"
    "users:\n"
    "- {name: cert, user: {client-certificate: my.crt, client-key-data: S0VZ}}\n"
    "- {name: token, user: {tokenFile: token}}\n";

Test(config, a_kubeconfig_gives_server_certificates_and_namespace)
{
    struct kube_config config;
    struct error err = {0};
    put("my.crt", "CERT");
    put("config", good);
    cr_assert_eq(kube_config_read(&config, path, NULL, 0, &err), 0, "%s", err.text);
    cr_assert_str_eq(config.server, "https://127.0.0.1:6443");
    cr_assert_str_eq(config.namespace, "train");
    cr_assert_str_eq(str_text(&config.ca), "CA");
    cr_assert_str_eq(str_text(&config.cert), "CERT");
    cr_assert_str_eq(str_text(&config.key), "KEY");
    kube_config_clear(&config);
}

Test(config, a_tokens_file_is_read_again_each_minute_and_when_refused)
{
    struct kube_config config;
    struct error err = {0};
    put("token", "one\n");
    put("config", good);
    cr_assert_eq(kube_config_read(&config, path, "there", 100 * RM_S, &err), 0, "%s", err.text);
    cr_assert_str_eq(str_text(&config.token), "one");
    put("token", "two");
    kube_config_refresh(&config, false, 159 * RM_S);
    cr_assert_str_eq(str_text(&config.token), "one");
    kube_config_refresh(&config, false, 160 * RM_S);
    cr_assert_str_eq(str_text(&config.token), "two");
    put("token", "three");
    kube_config_refresh(&config, true, 161 * RM_S);
    cr_assert_str_eq(str_text(&config.token), "three");
    put("token", "");
    kube_config_refresh(&config, true, 162 * RM_S);
    cr_assert_str_eq(str_text(&config.token), "three", "a file that is being written is no token");
    kube_config_clear(&config);
}

static void check_refused(const char *text, const char *context, const char *sentence)
{
    struct kube_config config;
    struct error err = {0};
    put("config", text);
    cr_expect_eq(kube_config_read(&config, path, context, 0, &err), -1);
    cr_expect_not_null(strstr(err.text, sentence), "\"%s\" lacks \"%s\"", err.text, sentence);
}

Test(config, what_can_not_be_is_refused_with_a_sentence)
{
    check_refused(good, "nowhere", "nothing named \"nowhere\" in contexts");
    check_refused("contexts: []\n", NULL, "no current-context");
    check_refused("current-context: a\ncontexts:\n- {name: a, context: {cluster: c}}\n", NULL,
                  "names no cluster or no user");
    check_refused(
        "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
        "clusters:\n- {name: c, cluster: {server: \"https://h\", insecure-skip-tls-verify: true}}\n",
        NULL, "insecure-skip-tls-verify is not supported");
    check_refused("current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
                  "clusters:\n- {name: c, cluster: {server: \"https://h\", proxy-url: \"http://p:3128\"}}\n",
                  NULL, "proxy-url is not supported; name the proxy in HTTPS_PROXY");
    check_refused(
        "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
        "clusters:\n- {name: c, cluster: {server: \"https://h\", certificate-authority-data: \"*\"}}\n",
        NULL, "certificate-authority-data is not base64");
    check_refused("current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
                  "clusters:\n- {name: c, cluster: {server: \"https://h\"}}\n"
                  "users:\n- {name: u, user: {exec: {command: x}}}\n",
                  NULL, "`exec` is not supported");
    check_refused("current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
                  "clusters:\n- {name: c, cluster: {server: \"https://h\"}}\n"
                  "users:\n- {name: u, user: {client-key-data: S0VZ}}\n",
                  NULL, "and not both");
}

Test(config, a_server_of_nothing_but_slashes_is_refused)
{
    static const char *const none[] = {"", "/", "//"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\n"
                 "clusters:\n- {name: c, cluster: {server: \"%s\"}}\nusers:\n- {name: u, user: {}}\n",
                 none[i]);
        check_refused(text, NULL, "the cluster has no usable `server`");
    }
}

Test(config, a_pod_finds_its_service_account)
{
    struct kube_config config;
    struct error err = {0};
    unsetenv("KUBERNETES_SERVICE_HOST");
    cr_assert_eq(kube_config_in_pod(&config, folder, 0, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    cr_assert_eq(kube_config_in_pod(&config, folder, 0, &err), -1);
    put("token", "secret\n");
    put("ca.crt", "CA");
    put("namespace", "ringmaster-system");
    cr_assert_eq(kube_config_in_pod(&config, folder, 0, &err), 0, "%s", err.text);
    cr_assert_str_eq(config.server, "https://[fd00::1]:443");
    cr_assert_str_eq(config.namespace, "ringmaster-system");
    cr_assert_str_eq(str_text(&config.token), "secret");
    kube_config_clear(&config);
}
