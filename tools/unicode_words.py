#!/usr/bin/python3
"""Prints trainer/tokens/unicode_words.c: the ranges of Unicode's letters (L*) and numbers (N*), as Python's unicodedata has them."""

import sys
import unicodedata


def ranges(kind):
    first = None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(kind)
        if inside and first is None:
            first = code
        elif not inside and first is not None:
            yield first, code - 1
            first = None


def table(name, kind):
    print(f"static const struct range {name}[] = {{")
    line = ""
    for first, last in ranges(kind):
        word = f"{{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(word) > 104:
            print("   " + line)
            line = ""
        line += " " + word
    print("   " + line + "\n};")


print(f"""/* Unicode {unicodedata.unidata_version}'s letters and numbers, from its character database; written by tools/unicode_words.py. */
#include "trainer/tokens/unicode_words.h"

struct range {{
    uint32_t first, last;
}};

/* clang-format off */""")
table("letters", "L")
print()
table("numbers", "N")
print("""/* clang-format on */

static bool has(const struct range *range, size_t count, uint32_t code)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (range[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && range[low].first <= code;
}

bool unicode_is_letter(uint32_t code)
{
    return has(letters, sizeof letters / sizeof *letters, code);
}

bool unicode_is_number(uint32_t code)
{
    return has(numbers, sizeof numbers / sizeof *numbers, code);
}""")
