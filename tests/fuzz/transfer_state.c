#include "tests/fuzz/transfer_state.h"

#include "common/os/file.h"
#include "tests/fuzz/fuzz.h"

struct state *fuzz_state(const struct model_layout **ret_layout)
{
    static struct model_layout layout; /* large */
    static struct state *state;
    if (!state) {
        struct model_shape model = {.layers = 1, .heads = 1, .width = 4, .context = 4, .vocabulary = 8};
        struct state_shape shape = {.layout = &layout, .lanes = 2};
        struct error err = {0};
        int fd;
        model_layout_init(&layout, &model);
        if (file_memory(&fd, "state", 0, &err) < 0 || state_open(&state, fd, &shape, &err) < 0)
            fuzz_broken(err.text);
    }
    *ret_layout = &layout;
    return state;
}

void fuzz_state_fill(struct state *state)
{
    struct state_point point = {.step = FUZZ_STATE_STEP, .lineage = {7}};
    state_receive_begin(state);
    state_receive_end(state, &point, NULL);
}
