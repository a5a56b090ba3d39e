/* What we need of the CUDA driver's binary interface, declared by ourselves: its header is not needed to
 * build, and no other version of it changes a program. Names are the driver's own, as in every book about it;
 * cuda_abi_test.c holds each type, size and number here to cuda.h, where the CUDA compiler has brought one.
 */
#ifndef RM_TRAINER_CUDA_ABI_H
#define RM_TRAINER_CUDA_ABI_H

#include <stddef.h>

#include "trainer/backend/cuda/driver/abi_values.h"

typedef enum { CUDA_RESULTS(CUDA_VALUE) } CUresult;
typedef enum { CUDA_DEVICE_ATTRIBUTES(CUDA_VALUE) } CUdevice_attribute;
typedef enum { CUDA_FUNCTION_ATTRIBUTES(CUDA_VALUE) } CUfunction_attribute;
enum { CUDA_FLAGS(CUDA_VALUE) };

/* Those of which we use one or two values. */
typedef unsigned int CUstreamCaptureMode, CUmemAllocationType, CUmemAllocationHandleType, CUmemLocationType,
    CUmemAccess_flags, CUmemAllocationGranularity_flags;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

typedef struct {
    char bytes[16];
} CUuuid;

typedef struct {
    CUmemLocationType type;
    int id;
} CUmemLocation;

typedef struct {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    unsigned char allocFlags[8];
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

#endif
