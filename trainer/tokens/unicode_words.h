/* What a character is to a tokenizer that cuts text into words: Unicode's classes L and N. Pure. */
#ifndef RM_TRAINER_UNICODE_WORDS_H
#define RM_TRAINER_UNICODE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool unicode_is_letter(uint32_t code); /* \p{L} */
bool unicode_is_number(uint32_t code); /* \p{N} */

#endif
