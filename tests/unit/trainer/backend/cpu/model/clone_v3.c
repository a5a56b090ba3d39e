#define VEC_CLONED  __attribute__((target("arch=x86-64-v3")))
#define CLONE(name) name##_v3
#include "tests/unit/trainer/backend/cpu/model/clone_body.h"
