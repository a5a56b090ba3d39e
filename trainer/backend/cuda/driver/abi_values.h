/* The driver's numbers that we know by name. Each list is given to a macro: abi.h makes enumerators of them,
 * cuda_abi_test.c compares them with cuda.h. */
#ifndef RM_TRAINER_CUDA_ABI_VALUES_H
#define RM_TRAINER_CUDA_ABI_VALUES_H

#define CUDA_VALUE(name, number) name = (number),

#define CUDA_RESULTS(V)                                                                                      \
    V(CUDA_SUCCESS, 0)                                                                                       \
    V(CUDA_ERROR_INVALID_VALUE, 1)                                                                           \
    V(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                           \
    V(CUDA_ERROR_NOT_INITIALIZED, 3)                                                                         \
    V(CUDA_ERROR_DEINITIALIZED, 4)                                                                           \
    V(CUDA_ERROR_STUB_LIBRARY, 34)                                                                           \
    V(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                                                                     \
    V(CUDA_ERROR_NO_DEVICE, 100)                                                                             \
    V(CUDA_ERROR_INVALID_DEVICE, 101)                                                                        \
    V(CUDA_ERROR_DEVICE_NOT_LICENSED, 102)                                                                   \
    V(CUDA_ERROR_INVALID_IMAGE, 200)                                                                         \
    V(CUDA_ERROR_INVALID_CONTEXT, 201)                                                                       \
    V(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                                     \
    V(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                                     \
    V(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                                                  \
    V(CUDA_ERROR_CONTAINED, 226)                                                                             \
    V(CUDA_ERROR_OPERATING_SYSTEM, 304)                                                                      \
    V(CUDA_ERROR_INVALID_HANDLE, 400)                                                                        \
    V(CUDA_ERROR_ILLEGAL_STATE, 401)                                                                         \
    V(CUDA_ERROR_NOT_FOUND, 500)                                                                             \
    V(CUDA_ERROR_NOT_READY, 600)                                                                             \
    V(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                                       \
    V(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                                                               \
    V(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                                        \
    V(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                                                  \
    V(CUDA_ERROR_ASSERT, 710)                                                                                \
    V(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                                  \
    V(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                                   \
    V(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                                    \
    V(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                                                 \
    V(CUDA_ERROR_INVALID_PC, 718)                                                                            \
    V(CUDA_ERROR_LAUNCH_FAILED, 719)                                                                         \
    V(CUDA_ERROR_NOT_PERMITTED, 800)                                                                         \
    V(CUDA_ERROR_NOT_SUPPORTED, 801)                                                                         \
    V(CUDA_ERROR_SYSTEM_NOT_READY, 802)                                                                      \
    V(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                                                \
    V(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                                                        \
    V(CUDA_ERROR_MPS_CONNECTION_FAILED, 805)                                                                 \
    V(CUDA_ERROR_MPS_RPC_FAILURE, 806)                                                                       \
    V(CUDA_ERROR_MPS_SERVER_NOT_READY, 807)                                                                  \
    V(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808)                                                               \
    V(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, 809)                                                           \
    V(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)                                                                 \
    V(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                            \
    V(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                            \
    V(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)                                                               \
    V(CUDA_ERROR_TIMEOUT, 909)                                                                               \
    V(CUDA_ERROR_EXTERNAL_DEVICE, 911)                                                                       \
    V(CUDA_ERROR_UNKNOWN, 999)

#define CUDA_DEVICE_ATTRIBUTES(V)                                                                            \
    V(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                                          \
    V(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20)                                                                  \
    V(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 32)                                                                   \
    V(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                                      \
    V(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                                      \
    V(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                             \
    V(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                                          \
    V(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)

#define CUDA_FUNCTION_ATTRIBUTES(V)                                                                          \
    V(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                                                            \
    V(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                                                         \
    V(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)

#define CUDA_FLAGS(V)                                                                                        \
    V(CU_CTX_SCHED_BLOCKING_SYNC, 4)                                                                         \
    V(CU_STREAM_NON_BLOCKING, 1)                                                                             \
    V(CU_EVENT_DEFAULT, 0)                                                                                   \
    V(CU_EVENT_DISABLE_TIMING, 2)                                                                            \
    V(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                                \
    V(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                                                      \
    V(CU_MEM_HANDLE_TYPE_NONE, 0)                                                                            \
    V(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                                                           \
    V(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                                                        \
    V(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                                                 \
    V(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                                                   \
    V(CU_MEMHOSTALLOC_PORTABLE, 1)                                                                           \
    V(CU_COMPUTEMODE_PROHIBITED, 2)

#endif
