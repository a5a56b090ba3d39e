/* The letters that byte-level tokenizers write for bytes (GPT-2's bytes_to_unicode,
 * https://github.com/openai/gpt-2, src/encoder.py): each byte has one printable character, its own Latin-1
 * letter where that is printable, and else the next free one from U+0100 on. So every string of bytes is a
 * valid text, and no token holds a blank. Pure. */
#ifndef RM_BASE_BYTE_LETTERS_H
#define RM_BASE_BYTE_LETTERS_H

#include <stddef.h>
#include <stdint.h>

enum { BYTE_LETTER_MAX = 4 }; /* bytes of a letter in UTF-8, with its NUL */

/* The letter of a byte, in UTF-8. */
void byte_letter(uint8_t byte, char out[BYTE_LETTER_MAX]);

/* The byte that the first letter of text (NUL-terminated UTF-8) stands for, and how many bytes the letter
 * takes in *ret_length; -1 where it stands for none. */
int byte_of_letter(const char *text, size_t *ret_length);

#endif
