#include "common/base/address.h"

#include <criterion/criterion.h>

#include "common/base/limits.h"

Test(address, a_host_and_a_port_come_apart_and_together_again)
{
    static const struct {
        const char *text, *host;
        int port;
    } good[] = {{"127.0.0.1:40312", "127.0.0.1", 40312},
                {"gpt-coordinator:7070", "gpt-coordinator", 7070},
                {"[fd00::7]:65535", "fd00::7", 65535},
                {"[::1]:1", "::1", 1}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char host[RM_ADDRESS_MAX], again[RM_ADDRESS_MAX];
        int port = 0;
        cr_assert(address_split(good[i].text, host, sizeof host, &port), "%s", good[i].text);
        cr_assert_str_eq(host, good[i].host);
        cr_assert_eq(port, good[i].port);
        address_join(again, sizeof again, host, port);
        cr_assert_str_eq(again, good[i].text);
    }
}

Test(address, what_is_none_is_refused)
{
    static const char *const bad[] = {"",      ":",      "host",      "host:",   "host:0",  "host:65536",
                                      ":7070", "[]:1",   "host:+1",   "host: 1", "host:1x", "fd00::7:7070",
                                      "[::1]", "[::1]7", "[::1:7070", "[::1]:",  "host:-1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char host[RM_ADDRESS_MAX];
        int port = 0;
        cr_assert_not(address_split(bad[i], host, sizeof host, &port), "%s", bad[i]);
    }
}

Test(address, a_host_that_does_not_fit_is_refused)
{
    char host[4];
    int port;
    cr_assert(address_split("abc:1", host, sizeof host, &port));
    cr_assert_not(address_split("abcd:1", host, sizeof host, &port));
}
