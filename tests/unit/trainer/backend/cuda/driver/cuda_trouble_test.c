/* What a driver's error means for a trainer, as a table. */
#include "trainer/backend/cuda/driver/trouble.h"

#include <criterion/criterion.h>

Test(trouble, each_error_means_what_the_table_says)
{
    static const struct {
        CUresult code;
        enum cuda_trouble trouble;
    } cases[] = {
        {CUDA_SUCCESS, CUDA_FINE},
        {CUDA_ERROR_INVALID_VALUE, CUDA_MISUSED},
        {CUDA_ERROR_OUT_OF_MEMORY, CUDA_SHORT},
        {CUDA_ERROR_NO_DEVICE, CUDA_UNUSABLE},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_UNUSABLE},
        {CUDA_ERROR_SYSTEM_NOT_READY, CUDA_UNUSABLE},
        {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, CUDA_UNUSABLE},
        {CUDA_ERROR_INVALID_CONTEXT, CUDA_MISUSED},
        {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, CUDA_MISUSED},
        {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_MISUSED},
        {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_CRASHED},
        {CUDA_ERROR_ASSERT, CUDA_CRASHED},
        {CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_CRASHED},
        {CUDA_ERROR_LAUNCH_FAILED, CUDA_CRASHED},
        {CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_CRASHED},
        {CUDA_ERROR_MPS_CLIENT_TERMINATED, CUDA_CRASHED},
        {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_SICK},
        {CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_SICK},
        {CUDA_ERROR_CONTAINED, CUDA_SICK},
        {CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_SICK},
        {CUDA_ERROR_EXTERNAL_DEVICE, CUDA_SICK},
        {CUDA_ERROR_UNKNOWN, CUDA_SICK},
        {(CUresult)12345, CUDA_SICK}, /* of a driver to come */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(cuda_trouble_of(cases[i].code), cases[i].trouble, "%d is %s", (int)cases[i].code,
                     cuda_trouble_text(cuda_trouble_of(cases[i].code)));
}

Test(trouble, a_sentence_says_who_failed_at_what_and_what_helps)
{
    struct error err = {0};
    const struct cuda_failure sick = {
        .code = CUDA_ERROR_ECC_UNCORRECTABLE,
        .name = "CUDA_ERROR_ECC_UNCORRECTABLE",
        .text = "uncorrectable ECC error encountered",
        .doing = "finish its work",
        .device = "NVIDIA H200 GPU-8f2c",
    };
    cr_assert_eq(cuda_failure_set(&err, &sick), -1);
    cr_assert_str_eq(
        err.text,
        "NVIDIA H200 GPU-8f2c: the GPU failed, to finish its work: CUDA_ERROR_ECC_UNCORRECTABLE (214: "
        "uncorrectable ECC error encountered); what its memory holds is not used; look for Xid in this "
        "machine's kernel log, it may need a reset");
    cr_assert_eq(err.class, CLASS_DEVICE);
    cr_assert_eq(error_exit_code(err.code), EXIT_MACHINE);
    const struct cuda_failure ours = {.code = CUDA_ERROR_INVALID_HANDLE, .doing = "open a stream"};
    cuda_failure_set(&err, &ours);
    cr_assert_str_eq(err.text,
                     "the driver refused a call, to open a stream: CUDA error (400); this is a mistake of "
                     "this program, please report it");
    cr_assert_eq(err.class, CLASS_SOFTWARE);
    cuda_failure_set(&err, &(struct cuda_failure){.code = CUDA_ERROR_LAUNCH_FAILED, .doing = "wait"});
    cr_assert_eq(err.class, CLASS_DEVICE);
    cuda_failure_set(&err, &(struct cuda_failure){.code = CUDA_ERROR_NO_DEVICE, .doing = "begin"});
    cr_assert_eq(err.class, CLASS_MACHINE);
}
