#include "tests/cuda_rig/on_gpu.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/backend/cuda/images.h"

bool on_gpu(void)
{
    return getenv("RINGMASTER_TEST_GPU") != NULL;
}

const void *on_gpu_image(const char *name)
{
    for (int i = 0; i < cuda_images_count() && on_gpu(); i++)
        if (!strcmp(cuda_image(i).name, name))
            return cuda_image(i).data;
    return "an image for stand-ins";
}
