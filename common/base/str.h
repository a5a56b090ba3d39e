/* A growing string with a ceiling. The bytes are NUL-terminated and owned by the struct.
 *
 *     struct str s = str_init(RM_FRAME_MAX);
 *     str_addf(&s, "{\"step\":%lld}", step);
 *     if (s.truncated) ...           (a str over its ceiling keeps what fitted and says so)
 *     str_clear(&s);                 (frees; the struct may be used again) */
#ifndef RM_BASE_STR_H
#define RM_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

struct str {
    char *data; /* NULL while empty: use str_text() to print */
    size_t length;
    size_t capacity;
    size_t ceiling;
    bool truncated;
};

static inline struct str str_init(size_t ceiling)
{
    return (struct str){.ceiling = ceiling};
}

void str_add(struct str *s, const void *bytes, size_t length);
void str_adds(struct str *s, const char *text);
void str_addf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void str_reset(struct str *s); /* empty, keeps the memory */
void str_clear(struct str *s); /* empty, frees */
const char *str_text(const struct str *s);

/* Copies text into out[size], cut to fit and always terminated. Returns false where it was cut. */
bool text_copy(char *out, size_t size, const char *text);

/* The same of a sentence, of which both ends stay where it is too long, with " ... " between them: it names
 * the thing first and the cause last. No character of UTF-8 is cut in two. size is 32 or more. Returns out.
 */
char *text_copy_ends(char *out, size_t size, const char *text);
/* Likewise what is printed; of more than 2 KB the end goes. */
char *text_print_ends(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Lower-case hex of bytes into out (2 * length + 1 bytes). */
void hex_encode(const void *bytes, size_t length, char *out);
/* The other way; false where text is not exactly 2 * length hex digits. */
bool hex_decode(const char *text, void *bytes, size_t length);

#endif
