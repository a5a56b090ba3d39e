#include "common/model/layout.h"

#include <criterion/criterion.h>
#include <string.h>

static struct model_layout layout;

static void make(int layers, int heads, int width, int context, int vocabulary)
{
    struct model_shape shape = {layers, heads, width, context, vocabulary};
    model_layout_init(&layout, &shape);
}

Test(layout, gpt2_124m_has_the_published_number_of_parameters)
{
    make(12, 12, 768, 1024, 50257);
    cr_assert_eq(layout.parameters, 124439808);
    cr_assert_eq(layout.tensors, 148);
}

Test(layout, tensors_stand_in_order_of_name_without_gaps)
{
    make(12, 5, 80, 37, 257);
    int64_t next = 0;
    for (int i = 0; i < layout.tensors; i++) {
        cr_assert_eq(layout.tensor[i].first, next);
        next += layout.tensor[i].count;
        if (i)
            cr_assert_lt(strcmp(layout.tensor[i - 1].name, layout.tensor[i].name), 0);
    }
    cr_assert_eq(next, layout.parameters);
}

Test(layout, every_role_finds_its_tensor_and_every_element_its_owner)
{
    static struct model_index index;
    make(11, 2, 8, 4, 16);
    model_index_init(&index, &layout);
    cr_assert_str_eq(layout.tensor[index.block[10].fc_weight].name, "h.10.mlp.c_fc.weight");
    cr_assert_eq(layout.tensor[index.block[10].fc_weight].size[1], 32);
    cr_assert_eq(layout.tensor[index.wte].size[0], 16);
    cr_assert(layout.tensor[index.wpe].decay);
    cr_assert(!layout.tensor[index.lnf_bias].decay);
    cr_assert_eq(model_layout_find(&layout, "h.11.ln_1.bias"), -1);
    for (int i = 0; i < layout.tensors; i++) {
        cr_assert_eq(model_layout_at(&layout, layout.tensor[i].first), i);
        cr_assert_eq(model_layout_at(&layout, layout.tensor[i].first + layout.tensor[i].count - 1), i);
    }
}

Test(part, parts_cover_the_whole_once_and_differ_by_one_at_most)
{
    for (int64_t n = 1; n <= 9; n++) {
        int64_t next = 0;
        for (int64_t i = 0; i < n; i++) {
            struct model_range r = model_part(64, i, n);
            cr_assert_eq(r.first, next);
            cr_assert(r.count >= 64 / n && r.count <= 64 / n + 1);
            next += r.count;
        }
        cr_assert_eq(next, 64);
    }
}

Test(layout, the_parts_of_the_weights_tile_them_and_none_is_too_small_for_an_object_store)
{
    static const int64_t parameters[] = {1, 1000, 1572863, 1572864, 3145728, 12000000, 124439808, 1557611200};
    enum { LEAST = 5 << 20 }; /* bytes of a part, but for the last one */
    for (size_t p = 0; p < sizeof parameters / sizeof *parameters; p++)
        for (int64_t n = 1; n <= 64; n++) {
            int64_t at = 0;
            for (int64_t i = 0; i < n; i++) {
                struct model_range range = model_weights_part(parameters[p], i, n);
                cr_assert(range.count >= 0 && (range.first == at || !range.count));
                at += range.count;
                cr_assert(!range.count || at == parameters[p] || 4 * range.count >= LEAST);
            }
            cr_assert_eq(at, parameters[p]);
        }
}
