#include "agent/launch/core/aside.h"

enum { PREFIX_LENGTH = sizeof ASIDE_PREFIX - 1 };

/* A name, or the beginning of names: the dynamic loader's and malloc's, those that have glibc or OpenSSL read
 * files and load libraries, libuv's, and all of Python's. */
static const struct {
    const char *text;
    bool beginning;
} names[] = {
    {"LD_", true},      {"MALLOC_", true},      {"GLIBC_TUNABLES", false}, {"GCONV_PATH", false},
    {"LOCPATH", false}, {"GETCONF_DIR", false}, {"NLSPATH", false},        {"OPENSSL_", true},
    {"UV_", true},      {"PYTHON", true},
};

static size_t length_of(const char *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return n;
}

/* How much of `text` an entry begins with all of; 0: it does not. */
static size_t begins_with(const char *entry, const char *text)
{
    size_t n = 0;
    for (; text[n]; n++)
        if (entry[n] != text[n])
            return 0;
    return n;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && *a != '=' && *a == *b) {
        a++;
        b++;
    }
    return (!*a || *a == '=') && (!*b || *b == '=');
}

bool aside_concerns(const char *entry)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].beginning ? begins_with(entry, names[i].text) > 0 : same_name(entry, names[i].text))
            return true;
    return false;
}

bool aside_is_put(const char *entry)
{
    return begins_with(entry, ASIDE_PREFIX) > 0;
}

static size_t count_of(char *const *environment)
{
    size_t n = 0;
    while (environment[n])
        n++;
    return n;
}

size_t aside_room(char *const *environment, const char *said)
{
    size_t bytes = (count_of(environment) + 2) * sizeof(char *) + length_of(said) + 1;
    for (; *environment; environment++)
        if (aside_concerns(*environment))
            bytes += PREFIX_LENGTH + length_of(*environment) + 1;
    return bytes;
}

/* One behind the other, and a zero byte; returns what follows. */
static char *join(char *at, const char *first, const char *second)
{
    while (*first)
        *at++ = *first++;
    while (*second)
        *at++ = *second++;
    *at++ = 0;
    return at;
}

char **aside_put(char *const *environment, const char *said, void *room)
{
    char **made = room, *at = (char *)(made + count_of(environment) + 2);
    size_t n = 0;
    for (; *environment; environment++) {
        if (aside_is_put(*environment) || same_name(*environment, said))
            continue;
        made[n++] = aside_concerns(*environment) ? at : *environment;
        if (aside_concerns(*environment))
            at = join(at, ASIDE_PREFIX, *environment);
    }
    made[n++] = at;
    join(at, said, "");
    made[n] = NULL;
    return made;
}

void aside_give_back(char **environment)
{
    for (; *environment; environment++)
        if (aside_is_put(*environment))
            *environment += PREFIX_LENGTH;
}
