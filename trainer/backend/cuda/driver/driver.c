#include "trainer/backend/cuda/driver/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/str.h"
#include "common/os/config.h"
#include "trainer/backend/cuda/driver/trouble.h"

#define LIBRARY "libcuda.so.1"

/* After where the loader looks: GKE's device plugin; old toolkits; WSL; drivers outside of the usual folders.
 */
static const char *const folders[] = {
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
};

static void *load_library(const char *path, struct cuda_driver *d)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        text_copy(d->path, sizeof d->path, path);
    return library;
}

static int load_named(const char *path, struct cuda_driver *d, void **ret, struct error *err)
{
    *ret = load_library(path, d);
    if (*ret)
        return 0;
    const char *why = dlerror();
    err_set(err, ERR_MACHINE, "no NVIDIA driver: %s names no library that can be loaded: %s",
            config_name(CONFIG_CUDA_LIBRARY), why ? why : path);
    return err_person(err);
}

static int load_anywhere(struct cuda_driver *d, void **ret, struct error *err)
{
    char path[RM_URI_MAX];
    *ret = load_library(LIBRARY, d);
    for (size_t i = 0; !*ret && i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/" LIBRARY, folders[i]);
        *ret = load_library(path, d);
    }
    if (*ret)
        return 0;
    err_set(err, ERR_MACHINE,
            "no NVIDIA driver: " LIBRARY
            " is not where programs find libraries, nor in %s; install the driver, "
            "give this container a GPU (resources.limits nvidia.com/gpu), or train with trainer.device: cpu",
            folders[0]);
    return err_class(err, CLASS_MACHINE);
}

struct entry {
    const char *name;
    size_t at; /* its place in struct cuda_calls */
};

#define ENTRY(name, arguments) {#name, offsetof(struct cuda_calls, name)},
static const struct entry entries[] = {CUDA_CALLS(ENTRY)};

static const char *find_calls(void *library, struct cuda_calls *calls)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *found = dlsym(library, entries[i].name);
        if (!found)
            return entries[i].name;
        *(void **)((char *)calls + entries[i].at) = found;
    }
    return NULL;
}

/* The version is asked for by itself: an old driver lacks calls that its version says it can't have. */
static int check_version(void *library, struct cuda_driver *d, struct error *err)
{
    CUresult (*get)(int *);
    *(void **)&get = dlsym(library, "cuDriverGetVersion");
    if (!get || get(&d->version) != CUDA_SUCCESS) {
        err_set(err, ERR_MACHINE, "%s is no NVIDIA driver: it does not say its version", d->path);
        return err_class(err, CLASS_MACHINE);
    }
    if (d->version >= CUDA_VERSION_LEAST)
        return 0;
    err_set(
        err, ERR_MACHINE,
        "the NVIDIA driver of this machine (%s) is for CUDA %d.%d, and 13.0 is needed: install driver 580 or "
        "newer, or train with trainer.device: cpu",
        d->path, d->version / 1000, d->version % 1000 / 10);
    return err_class(err, CLASS_MACHINE);
}

static int no_device(const struct cuda_driver *d, struct error *err)
{
    err_set(
        err, ERR_MACHINE,
        "the NVIDIA driver (CUDA %d.%d) shows this process no GPU: give its container one (resources.limits "
        "nvidia.com/gpu), look at CUDA_VISIBLE_DEVICES, or train with trainer.device: cpu",
        d->version / 1000, d->version % 1000 / 10);
    return err_class(err, CLASS_MACHINE);
}

static int start_driver(struct cuda_driver *d, struct error *err)
{
    CUresult code = d->calls.cuInit(0);
    if (code == CUDA_ERROR_NO_DEVICE)
        return no_device(d, err);
    if (code != CUDA_SUCCESS)
        return cuda_driver_failed(d, code, NULL, "start the driver", err);
    code = d->calls.cuDeviceGetCount(&d->devices);
    if (code != CUDA_SUCCESS)
        return cuda_driver_failed(d, code, NULL, "count the GPUs", err);
    return d->devices ? 0 : no_device(d, err);
}

static int open_driver(struct cuda_driver *d, struct error *err)
{
    void *library = NULL;
    const char *path = config_get(CONFIG_CUDA_LIBRARY);
    if ((path ? load_named(path, d, &library, err) : load_anywhere(d, &library, err)) < 0)
        return -1;
    if (check_version(library, d, err) < 0)
        return -1;
    const char *missing = find_calls(library, &d->calls);
    if (missing) {
        err_set(err, ERR_MACHINE,
                "the NVIDIA driver of this machine (%s) lacks %s, which each one for CUDA %d.%d has", d->path,
                missing, d->version / 1000, d->version % 1000 / 10);
        return err_class(err, CLASS_MACHINE);
    }
    return start_driver(d, err);
}

int cuda_driver_open(struct cuda_driver **ret, struct error *err)
{
    struct cuda_driver *d = calloc(1, sizeof *d);
    if (!d)
        return err_set(err, ERR_MACHINE, "no memory");
    if (open_driver(d, err) < 0) {
        free(d);
        return -1;
    }
    *ret = d;
    return 0;
}

void cuda_driver_free(struct cuda_driver *driver)
{
    free(driver);
}

int cuda_driver_failed(const struct cuda_driver *driver, CUresult code, const char *device, const char *doing,
                       struct error *err)
{
    struct cuda_failure failure = {.code = code, .doing = doing, .device = device};
    if (driver->calls.cuGetErrorName(code, &failure.name) != CUDA_SUCCESS)
        failure.name = NULL;
    if (driver->calls.cuGetErrorString(code, &failure.text) != CUDA_SUCCESS)
        failure.text = NULL;
    return cuda_failure_set(err, &failure);
}
