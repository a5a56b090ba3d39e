#define VEC_CLONED  __attribute__((target("arch=x86-64")))
#define CLONE(name) name##_v1
#include "tests/unit/trainer/backend/cpu/model/clone_body.h"
