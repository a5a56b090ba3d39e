#include "common/model/snapshot.h"
#include "common/base/assert.h"
#include "common/model/arrays.h"

enum { PAGE = 4096 };

int64_t snapshot_area_bytes(const struct model_layout *layout)
{
    return model_arrays_bytes(layout);
}

int64_t snapshot_area_at(int64_t area_bytes, enum snapshot_area area)
{
    int64_t pages = (area_bytes + PAGE - 1) / PAGE;
    RM_ASSERT(area_bytes >= 0 && (unsigned)area <= SNAPSHOT_AREAS, "area %d of %lld bytes", (int)area,
              (long long)area_bytes);
    return (int64_t)area * pages * PAGE;
}

int64_t snapshot_file_bytes(int64_t area_bytes)
{
    return snapshot_area_at(area_bytes, SNAPSHOT_AREAS);
}
