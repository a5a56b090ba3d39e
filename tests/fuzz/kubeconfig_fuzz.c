/* A kubeconfig: what is accepted names a server that can be asked, and its texts end within their room. */
#include <string.h>

#include "common/kube/config.h"
#include "tests/fuzz/fuzz.h"

static void check_config(const struct kube_config *config)
{
    size_t server = strnlen(config->server, sizeof config->server);
    if (!server || server == sizeof config->server || config->server[server - 1] == '/')
        fuzz_broken("a server is named, without a slash at its end");
    if (strnlen(config->namespace, sizeof config->namespace) == sizeof config->namespace ||
        !config->namespace[0])
        fuzz_broken("a namespace is named");
    if (strnlen(config->token_file, sizeof config->token_file) == sizeof config->token_file)
        fuzz_broken("a path ends within its room");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_config config;
    struct error err = {0};
    char path[128];
    fuzz_file("config", data, size);
    struct str name = str_init(sizeof path);
    str_addf(&name, "%s/config", fuzz_folder());
    if (kube_config_read(&config, str_text(&name), NULL, 0, &err) == 0) {
        check_config(&config);
        kube_config_clear(&config);
    } else
        fuzz_refused(&err);
    str_clear(&name);
    return 0;
}
