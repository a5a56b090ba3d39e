/* Text cut into words as GPT-2's tokenizer cuts it, by this expression (https://github.com/openai/gpt-2,
 * src/encoder.py):
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Every byte belongs to one word. Letters and numbers are those of Unicode 14. Pure. */
#ifndef RM_TRAINER_WORDS_H
#define RM_TRAINER_WORDS_H

#include <stddef.h>

/* Where the word ends that begins at `from` (< length). A byte that is no UTF-8 is a character that is
 * neither letter nor number nor blank. */
size_t word_end(const char *text, size_t length, size_t from);

#endif
