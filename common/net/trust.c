#include "common/net/trust.h"

#include <stdio.h>
#include <unistd.h>

#include "common/os/config.h"

const char *trust_choose(const char *bundle, const char *const *places, char *room, size_t size)
{
    if (!bundle)
        return NULL;
    for (; *places; places++)
        if (access(*places, R_OK) == 0)
            return *places;
    snprintf(room, size, "%s/etc/ca-certificates.crt", bundle);
    return room;
}

const char *trust_file(char *room, size_t size)
{
    /* Debian, Alpine, Arch; Fedora and its kin; SUSE */
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/pki/tls/certs/ca-bundle.crt", "/var/lib/ca-certificates/ca-bundle.pem", NULL};
    return trust_choose(config_get(CONFIG_BUNDLE), places, room, size);
}
