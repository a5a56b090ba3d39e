/* What the fuzz targets share. Each target is one file NAME_fuzz.c with libFuzzer's entry; its first inputs
 * lie in corpus/NAME. A target aborts where a parser breaks its promise, so that libFuzzer keeps the input.
 */
#ifndef RM_TESTS_FUZZ_H
#define RM_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Prints the sentence and aborts. */
void fuzz_broken(const char *sentence) __attribute__((noreturn));

/* The two texts must be the same and whole. */
void fuzz_same(const struct str *a, const struct str *b, const char *sentence);

/* A refusal must have a code and a sentence that ends within its room. */
void fuzz_refused(const struct error *err);

/* A copy of the bytes with a NUL behind them, in a block of just that size, so that a step over the end is
 * seen. The caller frees it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* An empty folder for files, one for the process, below /dev/shm; removed when the process ends as usual. */
const char *fuzz_folder(void);

/* Writes a file there; the name may have no folder in it. */
void fuzz_file(const char *name, const void *bytes, size_t size);

/* An input cut at each line "%%" into at most `most` parts; returns their number, at least 1. */
struct fuzz_part {
    const uint8_t *data;
    size_t size;
};
int fuzz_split(const uint8_t *data, size_t size, struct fuzz_part *out, int most);

#endif
