/* A library that says it is a driver for CUDA 13.0, and has nothing else of one. */
int cuDriverGetVersion(int *version);

__attribute__((visibility("default"))) int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}
