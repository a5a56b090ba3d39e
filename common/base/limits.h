/* The ceilings of everything that grows, in one place, with their relations. */
#ifndef RM_BASE_LIMITS_H
#define RM_BASE_LIMITS_H

/* Members of one ring; also the most worker indices a job may use. 64 is what is tested. Another one is tried
 * with -DRM_WORKERS_MAX=256, the same for all programs of a job; the cores run with that in the simulator
 * (tests/sim/CMakeLists.txt). */
#ifndef RM_WORKERS_MAX
#define RM_WORKERS_MAX 64
#endif

enum {
    RM_LANES_MAX = 1024, /* lanes of one step */
    RM_LAYERS_MAX = 96,  /* transformer blocks */
    RM_TENSORS_MAX = 12 * RM_LAYERS_MAX + 4,
    RM_EXPONENT_MOST = 100,     /* a tensor's k, in which its gradient is added up: -100 to 100 */
    RM_URI_MAX = 1024,          /* bytes of a URI or path, with its NUL */
    RM_ADDRESS_MAX = 64,        /* "127.0.0.1:40312", with its NUL */
    RM_WHY_MAX = 192,           /* a reason's sentence, with its NUL */
    RM_FRAME_MAX = 1 << 20,     /* bytes of one message between programs */
    RM_FINGERPRINT_MAX = 256,   /* text of a numerics fingerprint, with its NUL */
    RM_PROBE_MAX = 17,          /* text of a probe: 16 hex digits, with its NUL */
    RM_CHECKPOINTS_LISTED = 16, /* newest checkpoints that an agent names at most */
    RM_HASH_BYTES = 32,         /* SHA-256 */
    RM_HASH_HEX = 2 * RM_HASH_BYTES + 1,
};

_Static_assert(RM_LANES_MAX >= RM_WORKERS_MAX, "every worker has at least one lane");
_Static_assert(RM_WORKERS_MAX > 0, "somebody trains");

#endif
