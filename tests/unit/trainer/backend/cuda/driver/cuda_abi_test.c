/* Our own declarations of the driver's interface are cuda.h's: names, types, sizes and numbers. The
 * comparison is the compiler's; skipped where the build found no cuda.h beside a CUDA compiler. */
#include <criterion/criterion.h>

#ifdef CUDA_H

#include CUDA_H

/* Instead of abi.h: the calls are declared with cuda.h's types. */
#define RM_TRAINER_CUDA_ABI_H
#include "trainer/backend/cuda/driver/abi_values.h"
#include "trainer/backend/cuda/driver/calls.h"

#define SAME_TYPE(name, arguments)                                                                           \
    _Static_assert(                                                                                          \
        __builtin_types_compatible_p(__typeof__(&name), __typeof__(((struct cuda_calls *)0)->name)), #name);
CUDA_CALLS(SAME_TYPE)

#define SAME_NUMBER(name, number) _Static_assert((int)name == (number), #name);
CUDA_RESULTS(SAME_NUMBER)
CUDA_DEVICE_ATTRIBUTES(SAME_NUMBER)
CUDA_FUNCTION_ATTRIBUTES(SAME_NUMBER)
CUDA_FLAGS(SAME_NUMBER)

#define SAME_PLACE(type, field, place) _Static_assert(offsetof(type, field) == (place), #type "." #field)
_Static_assert(sizeof(CUresult) == 4 && sizeof(CUdevice) == 4 && sizeof(CUdeviceptr) == 8, "sizes");
_Static_assert(sizeof(CUuuid) == 16 && sizeof(CUmemGenericAllocationHandle) == 8, "sizes");
#else

#include "trainer/backend/cuda/driver/abi.h"

#define SAME_PLACE(type, field, place) _Static_assert(offsetof(type, field) == (place), #type "." #field)

#endif

#ifdef CUBLASLT_H

#include CUBLASLT_H

#define RM_TRAINER_CUDA_CUBLASLT_ABI_H
#include "trainer/backend/cuda/driver/cublaslt_calls.h"
#include "trainer/backend/cuda/driver/cublaslt_values.h"

#define SAME_BLAS_TYPE(name, arguments)                                                                      \
    _Static_assert(                                                                                          \
        __builtin_types_compatible_p(__typeof__(&name), __typeof__(((struct cublaslt_calls *)0)->name)),     \
        #name);
CUBLASLT_CALLS(SAME_BLAS_TYPE)
CUBLASLT_STATUSES(SAME_NUMBER)
CUBLASLT_LAYOUT_ATTRIBUTES(SAME_NUMBER)
CUBLASLT_DESC_ATTRIBUTES(SAME_NUMBER)
CUBLASLT_PREFERENCES(SAME_NUMBER)
CUBLASLT_ALGORITHM_ATTRIBUTES(SAME_NUMBER)
CUBLASLT_FLAGS(SAME_NUMBER)

#else

#include "trainer/backend/cuda/driver/cublaslt_abi.h"

#endif

/* The same of both. */
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96 && sizeof(cublasLtMatmulAlgo_t) == 64, "sizes");
SAME_PLACE(cublasLtMatmulHeuristicResult_t, workspaceSize, 64);
SAME_PLACE(cublasLtMatmulHeuristicResult_t, state, 72);
_Static_assert(sizeof(CUmemAllocationProp) == 32 && sizeof(CUmemAccessDesc) == 12, "sizes");
SAME_PLACE(CUmemAllocationProp, requestedHandleTypes, 4);
SAME_PLACE(CUmemAllocationProp, location, 8);
SAME_PLACE(CUmemAllocationProp, win32HandleMetaData, 16);
SAME_PLACE(CUmemAllocationProp, allocFlags, 24);
SAME_PLACE(CUmemLocation, id, 4);
SAME_PLACE(CUmemAccessDesc, flags, 8);

Test(abi, is_that_of_the_header)
{
#ifndef CUDA_H
    cr_skip_test("built without cuda.h: tools/install-packages --cuda");
#endif
}
