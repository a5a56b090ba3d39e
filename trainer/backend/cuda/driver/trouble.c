#include "trainer/backend/cuda/driver/trouble.h"

static const struct {
    const char *text, *help;
    enum fault_class class;
} troubles[CUDA_TROUBLES] = {
    [CUDA_FINE] = {"nothing is wrong", "", CLASS_UNKNOWN},
    [CUDA_MISUSED] = {"the driver refused a call", "this is a mistake of this program, please report it",
                      CLASS_SOFTWARE},
    [CUDA_SHORT] =
        {"the GPU's memory is full",
         "fewer sequences a lane (trainer.batch.laneSequences) or trainer.recompute: true take less",
         CLASS_MACHINE},
    [CUDA_UNUSABLE] = {"the GPU can't be used",
                       "look at nvidia-smi on this machine, or train with trainer.device: cpu",
                       CLASS_MACHINE},
    [CUDA_CRASHED] = {"the GPU stopped this process's work", "another process takes its place", CLASS_DEVICE},
    [CUDA_SICK] =
        {"the GPU failed",
         "what its memory holds is not used; look for Xid in this machine's kernel log, it may need a reset",
         CLASS_DEVICE},
};

/* What is in none of the rows leaves nothing that could be trusted. */
static const struct {
    CUresult first, last;
    enum cuda_trouble trouble;
} rows[] = {
    {CUDA_SUCCESS, CUDA_SUCCESS, CUDA_FINE},
    {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, CUDA_MISUSED},
    {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, CUDA_SHORT},
    {CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_DEINITIALIZED, CUDA_MISUSED},
    {CUDA_ERROR_STUB_LIBRARY, CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_UNUSABLE},
    {CUDA_ERROR_NO_DEVICE, CUDA_ERROR_DEVICE_NOT_LICENSED, CUDA_UNUSABLE},
    {CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE, CUDA_UNUSABLE},
    {CUDA_ERROR_INVALID_CONTEXT, 208, CUDA_MISUSED},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_UNUSABLE},
    {210, 213, CUDA_MISUSED},
    {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_SICK},
    {215, 219, CUDA_MISUSED},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_SICK},
    {221, 225, CUDA_UNUSABLE},
    {CUDA_ERROR_CONTAINED, CUDA_ERROR_CONTAINED, CUDA_SICK},
    {300, 303, CUDA_UNUSABLE},
    {CUDA_ERROR_OPERATING_SYSTEM, CUDA_ERROR_OPERATING_SYSTEM, CUDA_SICK},
    {CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_NOT_READY, CUDA_MISUSED},
    {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_CRASHED},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_MISUSED},
    {CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_CRASHED},
    {703, 708, CUDA_MISUSED},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_ASSERT, CUDA_CRASHED},
    {711, 713, CUDA_MISUSED},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR, CUDA_SICK},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_LAUNCH_FAILED, CUDA_CRASHED},
    {720, 720, CUDA_MISUSED},
    {721, 721, CUDA_CRASHED},
    {CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED, CUDA_MISUSED},
    {CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, CUDA_UNUSABLE},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, CUDA_ERROR_MPS_CLIENT_TERMINATED, CUDA_CRASHED},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 908, CUDA_MISUSED},
    {910, 910, CUDA_MISUSED},
    {912, 915, CUDA_MISUSED},
};

enum cuda_trouble cuda_trouble_of(CUresult code)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (code >= rows[i].first && code <= rows[i].last)
            return rows[i].trouble;
    return CUDA_SICK;
}

const char *cuda_trouble_text(enum cuda_trouble trouble)
{
    return troubles[trouble].text;
}

int cuda_failure_set(struct error *err, const struct cuda_failure *f)
{
    enum cuda_trouble trouble = cuda_trouble_of(f->code);
    err_set(err, ERR_MACHINE, "%s%s%s, to %s: %s (%d%s%s); %s", f->device ? f->device : "",
            f->device ? ": " : "", troubles[trouble].text, f->doing, f->name ? f->name : "CUDA error",
            (int)f->code, f->text ? ": " : "", f->text ? f->text : "", troubles[trouble].help);
    return err_class(err, troubles[trouble].class);
}
