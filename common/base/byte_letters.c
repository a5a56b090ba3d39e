#include "common/base/byte_letters.h"

#include <stdbool.h>

enum { BYTES = 256, FIRST_FREE = 0x100 };

static bool prints(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

static int letter_of(int byte)
{
    if (prints(byte))
        return byte;
    int before = 0;
    for (int i = 0; i < byte; i++)
        before += !prints(i);
    return FIRST_FREE + before;
}

void byte_letter(uint8_t byte, char out[BYTE_LETTER_MAX])
{
    int letter = letter_of(byte);
    if (letter < 0x80) {
        out[0] = (char)letter;
        out[1] = '\0';
        return;
    }
    out[0] = (char)(0xC0 | letter >> 6);
    out[1] = (char)(0x80 | (letter & 0x3F));
    out[2] = '\0';
}

int byte_of_letter(const char *text, size_t *ret_length)
{
    const unsigned char *at = (const unsigned char *)text;
    int letter = at[0];
    *ret_length = 1;
    if (letter >= 0x80) {
        if (letter >> 5 != 6 || at[1] >> 6 != 2)
            return -1;
        letter = (letter & 0x1F) << 6 | (at[1] & 0x3F);
        *ret_length = 2;
    }
    if (letter < FIRST_FREE)
        return prints(letter) ? letter : -1;
    for (int byte = 0, free_letter = FIRST_FREE; byte < BYTES; byte++)
        if (!prints(byte) && free_letter++ == letter)
            return byte;
    return -1;
}
