/* Matrix products in fp32 or of bf16 operands, and the choice of the instruction set (oneDNN and OpenMP stay
 * inside matmul.c).
 *
 * A product's bits depend on its shape and on the instruction set. Large products are cut into tiles fixed by
 * the shape (struct tiling); each tile is one call on one thread. Sums are in fp32 always. */
#ifndef RM_TRAINER_MATMUL_H
#define RM_TRAINER_MATMUL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

struct matrix {
    const void *data; /* floats, or bf16 as uint16_t where the product says so */
    int64_t stride;   /* elements from one stored row to the next */
    bool transposed;  /* what is stored is the transpose of what is meant */
};

struct product { /* c (m, n) = a (m, k) b (k, n), or c += */
    int64_t m, n, k;
    struct matrix a, b;
    bool bf16; /* a and b hold bf16 */
    float *c;
    int64_t c_stride;
    bool add; /* false: what stood in c does not matter, not even NaN */
};

/* On the calling thread. -1 where oneDNN fails (no memory). The first bf16 product of a shape on a thread
 * compiles it, which takes milliseconds. */
int matmul(const struct product *p);

/* Floats of the largest tile of a product whose a is not transposed. */
enum { MATMUL_TILE = 256 * 384 };

struct tiling {
    int64_t rows, columns; /* of a full tile; those at the edges are smaller */
    int tiles, across;     /* tiles in all, and in one row of tiles */
};
struct tiling matmul_tiling(const struct product *p);
/* c NULL stays NULL: the caller gives the tile a place of its own. */
struct product matmul_tile(const struct product *p, const struct tiling *t, int i, int64_t *ret_row,
                           int64_t *ret_column);

/* "Auto", "SSE41", "AVX", "AVX2", "AVX512_CORE", "AVX512_CORE_BF16" or "AVX512_CORE_AMX": the most that
 * products may use. Counts once per process and before the first product; ERR_USAGE where the name is
 * unknown, the CPU has no such instructions, or another one is in use already. */
int matmul_use_isa(const char *name, struct error *err);
const char *matmul_isa(void);     /* the one in use */
const char *matmul_library(void); /* "oneDNN 2.6.3" */

/* bf16 products are computed by our own kernel (matmul_bf16.h). */
bool matmul_is_own(void);

/* Tests call it: bf16 products go through fp32 ones from here on, as on a processor for which oneDNN has
 * nothing better. */
void matmul_widen_always(bool yes);

#endif
