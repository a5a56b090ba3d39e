#define VEC_CLONED  __attribute__((target("arch=x86-64-v4")))
#define CLONE(name) name##_v4
#include "tests/unit/trainer/backend/cpu/model/clone_body.h"
