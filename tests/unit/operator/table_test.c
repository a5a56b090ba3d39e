#include "operator/table.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>

static void *value_of(int i)
{
    return (void *)(intptr_t)(i + 1);
}

static void name_of(int i, char out[16])
{
    snprintf(out, 16, "name-%d", i);
}

Test(table, keeps_every_name_through_its_growth)
{
    struct table table = {0};
    char name[16];
    cr_assert_null(table_get(&table, "nobody"));
    for (int i = 0; i < 1000; i++) {
        name_of(i, name);
        table_put(&table, name, value_of(i));
    }
    cr_assert_eq(table.count, 1000);
    for (int i = 0; i < 1000; i += 2) {
        name_of(i, name);
        cr_assert_eq(table_remove(&table, name), value_of(i));
        cr_assert_null(table_remove(&table, name));
    }
    for (int i = 0; i < 1000; i++) {
        name_of(i, name);
        cr_assert_eq(table_get(&table, name), i % 2 ? value_of(i) : NULL);
    }
    cr_assert_eq(table.count, 500);
    table_clear(&table);
}

Test(table, the_last_value_of_a_name_counts)
{
    struct table table = {0};
    table_put(&table, "a", value_of(1));
    table_put(&table, "a", value_of(2));
    cr_assert_eq(table.count, 1);
    cr_assert_eq(table_get(&table, "a"), value_of(2));
    table_clear(&table);
}

struct visitor {
    struct table *table;
    int visits;
};

static void remove_odd(void *ctx, const char *name, void *value)
{
    struct visitor *visitor = ctx;
    visitor->visits++;
    if ((intptr_t)value % 2)
        table_remove(visitor->table, name);
}

Test(table, a_visit_may_remove_its_own_entry)
{
    struct table table = {0};
    struct visitor visitor = {.table = &table};
    char name[16];
    for (int i = 0; i < 100; i++) {
        name_of(i, name);
        table_put(&table, name, value_of(i));
    }
    table_each(&table, remove_odd, &visitor);
    cr_assert_eq(visitor.visits, 100);
    cr_assert_eq(table.count, 50);
    table_clear(&table);
}
