/* The driver's functions that we call, by the names that its library has them under: where a name ends in _v2
 * an older form of the function is still there under the bare one. All are in every driver for CUDA 13.
 *
 * The list is given to a macro: here it makes the table, in driver.c it fills it, in the tests it is compared
 * with cuda.h and with the stand-in. */
#ifndef RM_TRAINER_CUDA_CALLS_H
#define RM_TRAINER_CUDA_CALLS_H

#include "trainer/backend/cuda/driver/abi.h"

#define CUDA_CALLS_OF_DEVICES(C)                                                                             \
    C(cuGetErrorName, (CUresult error, const char **name))                                                   \
    C(cuGetErrorString, (CUresult error, const char **text))                                                 \
    C(cuInit, (unsigned int flags))                                                                          \
    C(cuDriverGetVersion, (int *version))                                                                    \
    C(cuDeviceGetCount, (int *count))                                                                        \
    C(cuDeviceGet, (CUdevice * device, int number))                                                          \
    C(cuDeviceGetName, (char *name, int bytes, CUdevice device))                                             \
    C(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device))                                                  \
    C(cuDeviceGetAttribute, (int *value, CUdevice_attribute which, CUdevice device))                         \
    C(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                                \
    C(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned int flags))                                  \
    C(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                                      \
    C(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                       \
    C(cuCtxSetCurrent, (CUcontext context))                                                                  \
    C(cuCtxGetStreamPriorityRange, (int *least, int *greatest))

#define CUDA_CALLS_OF_MEMORY(C)                                                                              \
    C(cuMemGetInfo_v2, (size_t * free, size_t * total))                                                      \
    C(cuMemGetAllocationGranularity,                                                                         \
      (size_t * bytes, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags which))             \
    C(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *prop,    \
                    unsigned long long flags))                                                               \
    C(cuMemRelease, (CUmemGenericAllocationHandle handle))                                                   \
    C(cuMemAddressReserve,                                                                                   \
      (CUdeviceptr * at, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags))      \
    C(cuMemAddressFree, (CUdeviceptr at, size_t bytes))                                                      \
    C(cuMemMap, (CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,           \
                 unsigned long long flags))                                                                  \
    C(cuMemUnmap, (CUdeviceptr at, size_t bytes))                                                            \
    C(cuMemSetAccess, (CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count))           \
    C(cuMemExportToShareableHandle, (void *shareable, CUmemGenericAllocationHandle handle,                   \
                                     CUmemAllocationHandleType type, unsigned long long flags))              \
    C(cuMemImportFromShareableHandle,                                                                        \
      (CUmemGenericAllocationHandle * handle, void *shareable, CUmemAllocationHandleType type))              \
    C(cuMemHostAlloc, (void **at, size_t bytes, unsigned int flags))                                         \
    C(cuMemFreeHost, (void *at))                                                                             \
    C(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))               \
    C(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                     \
    C(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))               \
    C(cuMemsetD32Async, (CUdeviceptr at, unsigned int word, size_t words, CUstream stream))

#define CUDA_CALLS_OF_STREAMS(C)                                                                             \
    C(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority))                     \
    C(cuStreamDestroy_v2, (CUstream stream))                                                                 \
    C(cuStreamQuery, (CUstream stream))                                                                      \
    C(cuStreamSynchronize, (CUstream stream))                                                                \
    C(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags))                               \
    C(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))                                  \
    C(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                                \
    C(cuEventCreate, (CUevent * event, unsigned int flags))                                                  \
    C(cuEventDestroy_v2, (CUevent event))                                                                    \
    C(cuEventRecord, (CUevent event, CUstream stream))                                                       \
    C(cuEventQuery, (CUevent event))                                                                         \
    C(cuEventSynchronize, (CUevent event))                                                                   \
    C(cuEventElapsedTime_v2, (float *ms, CUevent begin, CUevent end))                                        \
    C(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags))            \
    C(cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                                    \
    C(cuGraphExecDestroy, (CUgraphExec exec))                                                                \
    C(cuGraphDestroy, (CUgraph graph))

#define CUDA_CALLS_OF_KERNELS(C)                                                                             \
    C(cuModuleLoadData, (CUmodule * module, const void *image))                                              \
    C(cuModuleUnload, (CUmodule module))                                                                     \
    C(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))                       \
    C(cuFuncGetAttribute, (int *value, CUfunction_attribute which, CUfunction function))                     \
    C(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute which, int value))                      \
    C(cuFuncGetParamInfo, (CUfunction function, size_t number, size_t * offset, size_t * bytes))             \
    C(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                           \
      (int *blocks, CUfunction function, int threads, size_t shared))                                        \
    C(cuLaunchKernel,                                                                                        \
      (CUfunction function, unsigned int blocks_x, unsigned int blocks_y, unsigned int blocks_z,             \
       unsigned int threads_x, unsigned int threads_y, unsigned int threads_z, unsigned int shared,          \
       CUstream stream, void **params, void **extra))

#define CUDA_CALLS(C)                                                                                        \
    CUDA_CALLS_OF_DEVICES(C)                                                                                 \
    CUDA_CALLS_OF_MEMORY(C)                                                                                  \
    CUDA_CALLS_OF_STREAMS(C)                                                                                 \
    CUDA_CALLS_OF_KERNELS(C)

#define CUDA_CALL_MEMBER(name, arguments) CUresult(*name) arguments;

struct cuda_calls {
    CUDA_CALLS(CUDA_CALL_MEMBER)
};

#endif
