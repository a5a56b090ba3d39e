#include "common/model/snapshot.h"

enum { PAGE = 4096 };

int64_t snapshot_area_bytes(const struct model_layout *layout)
{
    return 3 * layout->parameters * (int64_t)sizeof(float);
}

int64_t snapshot_area_at(const struct model_layout *layout, enum snapshot_area area)
{
    int64_t pages = (snapshot_area_bytes(layout) + PAGE - 1) / PAGE;
    return (int64_t)area * pages * PAGE;
}

int64_t snapshot_file_bytes(const struct model_layout *layout)
{
    return snapshot_area_at(layout, SNAPSHOT_AREAS);
}
