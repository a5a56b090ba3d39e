/* How a failed assertion is told: as glibc's own, with values and without an input or output of ours. */
#include "common/base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

extern void __assert_fail(const char *assertion, const char *file, unsigned int line, const char *function)
    __attribute__((noreturn));

enum { SENTENCE_MAX = 512 };

_Thread_local void (*assertion_hook)(const char *sentence);

void assertion_failed(const char *file, int line, const char *condition, const char *format, ...)
{
    char values[SENTENCE_MAX / 2], sentence[SENTENCE_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(values, sizeof values, format, list);
    va_end(list);
    snprintf(sentence, sizeof sentence, "%.200s (%s)", condition, values);
    if (assertion_hook) {
        char whole[SENTENCE_MAX + 128];
        snprintf(whole, sizeof whole, "%.100s:%d: %s", file, line, sentence);
        assertion_hook(whole);
    }
    __assert_fail(sentence, file, (unsigned)line, "a promise of the code itself");
}
