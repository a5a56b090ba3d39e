#include "trainer/backend/cuda/lane/lane_parts.h"

int lane_queue(struct cuda_lane *l, struct error *err)
{
    const size_t losses = (size_t)l->rows * sizeof(float);
    if (cuda_copy_in(&l->stream, l->at.rows, l->host.tokens, lane_rows_bytes(l->rows), err) < 0 ||
        lane_forward(l, err) < 0 || lane_backward(l, err) < 0)
        return -1;
    return cuda_copy_out(&l->stream, l->losses, l->at.losses, losses, err);
}
