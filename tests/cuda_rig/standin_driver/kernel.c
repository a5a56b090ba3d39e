/* Modules and kernels: whatever image it is, its functions are the emulated kernels that are linked into the
 * stand-in. */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_rig/standin_driver/standin.h"

enum { FATBIN = 0xba55ed50, RESIDENT_THREADS = 2048 };

struct CUmod_st {
    struct CUmod_st *next;
    const char *image;
    size_t bytes; /* 0: an image for stand-ins, with all kernels in it */
};

struct CUfunc_st {
    struct CUfunc_st *next;
    struct CUmod_st *module;
    const struct emulated_kernel *kernel;
    int shared_most;
};

static struct CUmod_st *modules;
static struct CUfunc_st *functions;

/* What KERNEL of emulator.h lists. */
extern const struct emulated_kernel *const __start_emulated_kernels[], *const __stop_emulated_kernels[];

static const struct emulated_kernel *emulated(const char *name)
{
    for (const struct emulated_kernel *const *k = __start_emulated_kernels; k < __stop_emulated_kernels; k++)
        if (!strcmp((*k)->name, name))
            return *k;
    return NULL;
}

/* Bytes of a fat binary by its head; 0 where it is one for stand-ins; false where it is none. */
static bool image_read(const char *image, size_t *bytes)
{
    uint32_t magic;
    uint16_t head;
    uint64_t body;
    memcpy(&magic, image, sizeof magic);
    if (magic == FATBIN) {
        memcpy(&head, image + 6, sizeof head);
        memcpy(&body, image + 8, sizeof body);
        *bytes = head + (size_t)body;
        return true;
    }
    *bytes = 0;
    return !strcmp(image, "an image for stand-ins");
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    ENTER(cuModuleLoadData, NEEDS_CONTEXT);
    size_t bytes;
    CUresult code = refuse_while_capturing("cuModuleLoadData");
    if (code != CUDA_SUCCESS)
        return code;
    if (!image_read(image, &bytes))
        return CUDA_ERROR_INVALID_IMAGE;
    struct CUmod_st *m = fresh(sizeof *m);
    *m = (struct CUmod_st){modules, image, bytes};
    modules = *module = m;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    ENTER(cuModuleUnload, NEEDS_CONTEXT);
    struct CUmod_st **link = &modules;
    if (work_is_under_way())
        misuse("cuModuleUnload: code goes while work is under way");
    while (*link && *link != module)
        link = &(*link)->next;
    if (!*link)
        misuse("%p is no module", (void *)module);
    *link = module->next;
    for (struct CUfunc_st **f = &functions; *f;) {
        struct CUfunc_st *gone = *f;
        if (gone->module == module) {
            *f = gone->next;
            free(gone);
        } else
            f = &gone->next;
    }
    free(module);
    return CUDA_SUCCESS;
}

/* A kernel's code stands in a section of its name. */
static bool image_has(const struct CUmod_st *m, const char *name)
{
    char section[128] = ".text.";
    strncat(section, name, sizeof section - sizeof ".text.");
    return !m->bytes || memmem(m->image, m->bytes, section, strlen(section) + 1);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTER(cuModuleGetFunction, NEEDS_CONTEXT);
    const struct emulated_kernel *kernel = emulated(name);
    if (!image_has(module, name))
        return answer(CUDA_ERROR_NOT_FOUND, "the image has no kernel %s", name);
    if (!kernel)
        return answer(CUDA_ERROR_NOT_FOUND, "no kernel %s is linked into the stand-in", name);
    struct CUfunc_st *f = fresh(sizeof *f);
    *f = (struct CUfunc_st){functions, module, kernel, 48 << 10};
    functions = *function = f;
    return CUDA_SUCCESS;
}

static struct CUfunc_st *function_of(CUfunction function)
{
    struct CUfunc_st *f = functions;
    while (f && f != function)
        f = f->next;
    if (!f)
        misuse("%p is no kernel, or its module is gone", (void *)function);
    return f;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
    ENTER(cuFuncGetAttribute, NEEDS_CONTEXT);
    struct CUfunc_st *f = function_of(function);
    *value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? f->kernel->threads
             : which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? f->shared_most
                                                                        : 64 /* registers */;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value)
{
    ENTER(cuFuncSetAttribute, NEEDS_CONTEXT);
    struct CUfunc_st *f = function_of(function);
    if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > 227 << 10)
        return CUDA_ERROR_INVALID_VALUE;
    f->shared_most = value;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t number, size_t *offset, size_t *bytes)
{
    ENTER(cuFuncGetParamInfo, NEEDS_CONTEXT);
    struct CUfunc_st *f = function_of(function);
    if (number)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    *bytes = f->kernel->bytes;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared)
{
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor, NEEDS_CONTEXT);
    (void)shared;
    function_of(function);
    *blocks = RESIDENT_THREADS / threads;
    return CUDA_SUCCESS;
}

struct size {
    unsigned x, y, z;
};

static void check_launch(const struct CUfunc_st *f, struct size blocks, struct size threads, unsigned shared)
{
    if (!blocks.x || blocks.y != 1 || blocks.z != 1 || threads.y != 1 || threads.z != 1)
        misuse("%s: a grid of %u x %u x %u blocks", f->kernel->name, blocks.x, blocks.y, blocks.z);
    if ((int)threads.x != f->kernel->threads)
        misuse("%s: blocks of %u threads, and it is written for %d", f->kernel->name, threads.x,
               f->kernel->threads);
    if ((int)shared > f->shared_most)
        misuse("%s: %u bytes of shared memory, and %d were asked for", f->kernel->name, shared,
               f->shared_most);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int blocks_x, unsigned int blocks_y,
                        unsigned int blocks_z, unsigned int threads_x, unsigned int threads_y,
                        unsigned int threads_z, unsigned int shared, CUstream stream, void **params,
                        void **extra)
{
    ENTER(cuLaunchKernel, NEEDS_CONTEXT);
    struct CUfunc_st *f = function_of(function);
    check_launch(f, (struct size){blocks_x, blocks_y, blocks_z},
                 (struct size){threads_x, threads_y, threads_z}, shared);
    if (extra || !params)
        misuse("%s: arguments other than by params", f->kernel->name);
    struct op *op = op_new(OP_LAUNCH);
    op->kernel = f->kernel;
    op->blocks = (int)blocks_x;
    op->arguments = fresh(f->kernel->bytes);
    memcpy(op->arguments, params[0], f->kernel->bytes);
    return hand_over(stream, op);
}
