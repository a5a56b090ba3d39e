/* Which file of certificates is taken, in an image of ours and in one that has none. */
#include "common/net/trust.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(trust, outside_of_a_bundle_the_system_decides)
{
    static const char *const places[] = {"/proc/self/status", NULL};
    char room[TRUST_PATH_MAX];
    cr_assert_null(trust_choose(NULL, places, room, sizeof room));
    unsetenv("RINGMASTER_BUNDLE");
    cr_assert_null(trust_file(room, sizeof room));
}

Test(trust, an_images_own_file_goes_before_the_bundles)
{
    static const char *const places[] = {"/no/such/file", "/proc/self/status", "/proc/self/stat", NULL};
    char room[TRUST_PATH_MAX];
    cr_assert_str_eq(trust_choose("/opt/ringmaster", places, room, sizeof room), "/proc/self/status");
}

Test(trust, an_image_without_any_gets_the_bundles)
{
    static const char *const places[] = {"/no/such/file", NULL};
    char room[TRUST_PATH_MAX];
    cr_assert_str_eq(trust_choose("/opt/ringmaster", places, room, sizeof room),
                     "/opt/ringmaster/etc/ca-certificates.crt");
}
