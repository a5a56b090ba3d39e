/* What a container's, a machine's or Google's endpoint gives, and the shared files of the AWS tools: whatever
 * is read ends within its room. */
#include <stdlib.h>
#include <string.h>

#include "common/storage/object/credentials.h"
#include "tests/fuzz/fuzz.h"

static void expect_end(const char *text, size_t size)
{
    if (strnlen(text, size) == size)
        fuzz_broken("a text ends within its room");
}

static void read_profile(const char *text, bool config)
{
    static struct profile profile;
    struct error err = {0};
    memset(&profile, 0, sizeof profile);
    if (profile_parse(&profile, "p", config, text, &err) < 0)
        fuzz_refused(&err);
    expect_end(profile.access_key, sizeof profile.access_key);
    expect_end(profile.secret_key, sizeof profile.secret_key);
    expect_end(profile.token, sizeof profile.token);
    expect_end(profile.style, sizeof profile.style);
}

/* It becomes a header's line: nothing in it may end that. */
static void read_google(const char *text, size_t size)
{
    static struct credentials given;
    struct error err = {0};
    if (credentials_google_token(text, size, 0, &given, &err) < 0) {
        fuzz_refused(&err);
        return;
    }
    expect_end(given.token, sizeof given.token);
    if (!given.bearer || !given.token[0] || given.access_key[0] || given.ends_s <= 0)
        fuzz_broken("an accepted token is one, and ends");
    for (const char *at = given.token; *at; at++)
        if (*at <= ' ' || *at > '~')
            fuzz_broken("an accepted token is one word");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct credentials given;
    struct error err = {0};
    char *text = fuzz_text(data, size);
    if (credentials_of_json(text, size, &given, &err) < 0)
        fuzz_refused(&err);
    else if (!given.access_key[0] || !given.secret_key[0])
        fuzz_broken("accepted credentials have a key and its secret");
    expect_end(given.token, sizeof given.token);
    read_google(text, size);
    credentials_host_allowed(text);
    read_profile(text, false);
    read_profile(text, true);
    free(text);
    return 0;
}
