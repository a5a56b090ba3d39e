#include "common/base/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_port(const char *text, int *ret)
{
    char *end = NULL;
    if (*text < '0' || *text > '9')
        return false;
    long port = strtol(text, &end, 10);
    if (*end || port < 1 || port > 65535)
        return false;
    *ret = (int)port;
    return true;
}

bool address_split(const char *text, char *host, size_t size, int *ret_port)
{
    bool bracketed = *text == '[';
    const char *first = text + bracketed;
    const char *last = bracketed ? strchr(first, ']') : strrchr(text, ':');
    const char *colon = last && bracketed ? last + 1 : last;
    if (!last || *colon != ':' || last == first)
        return false;
    size_t length = (size_t)(last - first);
    bool ambiguous = !bracketed && memchr(first, ':', length);
    if (ambiguous || length >= size || !read_port(colon + 1, ret_port))
        return false;
    memcpy(host, first, length);
    host[length] = 0;
    return true;
}

void address_join(char *out, size_t size, const char *host, int port)
{
    bool bracketed = strchr(host, ':');
    snprintf(out, size, bracketed ? "[%s]:%d" : "%s:%d", host, port);
}
