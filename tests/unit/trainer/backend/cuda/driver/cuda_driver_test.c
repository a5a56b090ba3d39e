/* How the driver and a GPU are found, and what is said where they are not. */
#include "gpu_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void fails_to_open(const char *script, const char *sentence)
{
    struct cuda_driver *driver;
    gpu_script(script);
    GPU_FAILS(cuda_driver_open(&driver, &gpu_err), sentence);
}

static void device_refused(const char *script, const char *wanted, const char *sentence)
{
    struct cuda_driver *driver;
    struct cuda_device *device;
    gpu_script(script);
    GPU_OK(cuda_driver_open(&driver, &gpu_err));
    GPU_FAILS(cuda_device_open(&device, driver, wanted, &gpu_err), sentence);
    cuda_driver_free(driver);
}

Test(driver, is_found_by_its_path_and_tells_its_version)
{
    struct gpu g;
    gpu_open(&g, "version=13020,devices=2");
    cr_assert_str_eq(g.driver->path, STANDIN);
    cr_assert_eq(g.driver->version, 13020);
    cr_assert_eq(g.driver->devices, 2);
    gpu_close(&g);
}

/* This machine may have a driver: then that one is found, and says what it has to say. */
Test(driver, a_machine_without_one_gets_a_sentence)
{
    struct cuda_driver *driver;
    struct error err = {0};
    unsetenv("RINGMASTER_CUDA_LIBRARY");
    if (cuda_driver_open(&driver, &err) == 0) {
        cuda_driver_free(driver);
        return;
    }
    cr_assert_eq(err.code, ERR_MACHINE);
    if (!strncmp(err.text, "no NVIDIA driver", 16))
        cr_assert_str_eq(
            err.text,
            "no NVIDIA driver: libcuda.so.1 is not where programs find libraries, nor in "
            "/usr/local/nvidia/lib64; "
            "install the driver, give this container a GPU (resources.limits nvidia.com/gpu), or train with "
            "trainer.device: cpu");
}

Test(driver, a_path_that_leads_nowhere_is_a_persons_mistake)
{
    struct cuda_driver *driver;
    struct error err = {0};
    setenv("RINGMASTER_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
    cr_assert_eq(cuda_driver_open(&driver, &err), -1);
    cr_assert_not_null(
        strstr(err.text, "no NVIDIA driver: RINGMASTER_CUDA_LIBRARY names no library that can be loaded: "
                         "/nowhere/libcuda.so.1"),
        "%s", err.text);
    cr_assert(err.person);
    cr_assert_eq(error_exit_code(err.code), EXIT_MACHINE);
}

Test(driver, one_that_lacks_a_call_is_refused_by_its_name)
{
    struct cuda_driver *driver;
    setenv("RINGMASTER_CUDA_LIBRARY", STANDIN_STUB, 1);
    GPU_FAILS(cuda_driver_open(&driver, &gpu_err),
              "the NVIDIA driver of this machine (" STANDIN_STUB
              ") lacks cuGetErrorName, which each one for CUDA 13.0 has");
}

Test(driver, a_library_that_is_no_driver_is_refused)
{
    struct cuda_driver *driver;
    setenv("RINGMASTER_CUDA_LIBRARY", "libm.so.6", 1);
    GPU_FAILS(cuda_driver_open(&driver, &gpu_err),
              "libm.so.6 is no NVIDIA driver: it does not say its version");
}

Test(driver, one_that_is_too_old_for_cuda_13_says_which_is_needed)
{
    fails_to_open("version=12080",
                  "the NVIDIA driver of this machine (" STANDIN
                  ") is for CUDA 12.8, and 13.0 is needed: install driver 580 or newer, or train with "
                  "trainer.device: cpu");
}

static const char no_gpu[] = "the NVIDIA driver (CUDA 13.0) shows this process no GPU: give its container "
                             "one (resources.limits nvidia.com/gpu), "
                             "look at CUDA_VISIBLE_DEVICES, or train with trainer.device: cpu";

Test(driver, without_a_gpu_says_how_to_get_one)
{
    fails_to_open("devices=0", no_gpu);
}

Test(driver, that_can_not_start_says_why)
{
    fails_to_open(
        "fail:cuInit@1=SYSTEM_DRIVER_MISMATCH",
        "the GPU can't be used, to start the driver: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803: as the stand-in "
        "says); look at nvidia-smi on this machine, or train with trainer.device: cpu");
}

Test(driver, errors_that_it_does_not_know_have_their_number)
{
    fails_to_open("fail:cuInit@1=871",
                  "the GPU failed, to start the driver: CUDA error (871); what its memory holds is not "
                  "used; look for Xid in this machine's kernel log, it may need a reset");
}

/* ---- which GPU ---- */

Test(device, is_what_the_driver_says_of_it)
{
    struct gpu g;
    gpu_open(&g, "name=NVIDIA H200,sms=132,memory=140G,capability=9.0");
    cr_assert_str_eq(g.device->label, "NVIDIA H200 GPU-5eed0000-0000-0000-0000-000000000000");
    cr_assert_eq(g.device->processors, 132);
    cr_assert_eq(g.device->bytes, (size_t)140 << 30);
    cr_assert_eq(g.device->granularity, 2u << 20);
    cr_assert_eq(cuda_device_trouble(g.device), CUDA_FINE);
    gpu_close(&g);
}

Test(device, the_one_asked_for_is_found_by_number_and_by_the_beginning_of_its_uuid)
{
    static const struct {
        const char *wanted;
        int number;
    } cases[] = {{NULL, 0},
                 {"", 0},
                 {"0", 0},
                 {"1", 1},
                 {"GPU-5eed0000-0000-0000-0000-000000000001", 1},
                 {"gpu-5EED0000-0000-0000-0000-000000000000", 0}};
    struct cuda_driver *driver;
    gpu_script("devices=2");
    GPU_OK(cuda_driver_open(&driver, &gpu_err));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cuda_device *device;
        GPU_OK(cuda_device_open(&device, driver, cases[i].wanted, &gpu_err));
        cr_assert_eq(device->number, cases[i].number, "%s", cases[i].wanted);
        cuda_device_free(device);
    }
    cuda_driver_free(driver);
}

Test(device, one_that_is_not_there_is_refused_with_those_that_are)
{
    device_refused("devices=2", "2",
                   "there is no GPU \"2\" here; of 2 that this process sees 0 is Stand-in GPU GPU-5eed0000, "
                   "1 is Stand-in "
                   "GPU GPU-5eed0000");
}

Test(device, two_that_begin_alike_are_refused)
{
    device_refused("devices=2", "GPU-5eed",
                   "more than one GPU \"GPU-5eed\" here; of 2 that this process sees 0 is Stand-in GPU "
                   "GPU-5eed0000, 1 is "
                   "Stand-in GPU GPU-5eed0000");
}

Test(device, one_that_no_kernel_was_built_for_is_refused)
{
    device_refused(
        "name=Tesla T4,capability=7.5", NULL,
        "Tesla T4 GPU-5eed0000-0000-0000-0000-000000000000: this GPU is of compute capability 7.5, and there "
        "are kernels for 8.x, 9.0 and 10.x; train with trainer.device: cpu");
}

Test(device, capabilities_with_kernels)
{
    static const int built[][2] = {{8, 0}, {8, 6}, {8, 9}, {9, 0}, {10, 0}, {10, 3}};
    static const int not_built[][2] = {{7, 5}, {9, 1}, {11, 0}, {12, 0}};
    for (size_t i = 0; i < sizeof built / sizeof *built; i++)
        cr_assert(cuda_capability_is_built(built[i][0], built[i][1]));
    for (size_t i = 0; i < sizeof not_built / sizeof *not_built; i++)
        cr_assert_not(cuda_capability_is_built(not_built[i][0], not_built[i][1]));
}

Test(device, one_that_nobody_may_use_or_that_exports_nothing_is_refused)
{
    device_refused(
        "prohibited", NULL,
        "Stand-in GPU GPU-5eed0000-0000-0000-0000-000000000000: this GPU is in compute mode Prohibited: "
        "nvidia-smi -c DEFAULT lets processes use it");
}

Test(device, one_that_lends_no_descriptors_is_refused)
{
    device_refused(
        "no-export", NULL,
        "Stand-in GPU GPU-5eed0000-0000-0000-0000-000000000000: this GPU's driver lends no memory that can "
        "outlive a process (virtual memory management with file descriptors): a virtual GPU without it can't "
        "be "
        "used");
}

Test(device, one_that_another_process_has_for_itself_says_so)
{
    device_refused(
        "fail:cuDevicePrimaryCtxRetain@1=DEVICE_UNAVAILABLE", NULL,
        "Stand-in GPU GPU-5eed0000-0000-0000-0000-000000000000: the GPU can't be used, to begin work on it: "
        "CUDA_ERROR_DEVICE_UNAVAILABLE (46: as the stand-in says); look at nvidia-smi on this machine, or "
        "train "
        "with trainer.device: cpu");
}
