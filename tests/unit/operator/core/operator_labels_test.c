#include <criterion/criterion.h>
#include <string.h>

#include "operator/core/labels.h"

Test(operator_labels, keys_and_values_are_read_in_their_order)
{
    struct op_labels labels;
    struct error err = {0};
    const char *text = "kubernetes.io/metadata.name=monitoring,Team_1.x=,a=B-2";
    cr_assert_eq(labels_read(&labels, text, &err), 0, "%s", err.text);
    cr_assert_eq(labels.count, 3);
    cr_assert_str_eq(labels.label[0].key, "kubernetes.io/metadata.name");
    cr_assert_str_eq(labels.label[0].value, "monitoring");
    cr_assert_str_eq(labels.label[1].key, "Team_1.x");
    cr_assert_str_eq(labels.label[1].value, "");
    cr_assert_str_eq(labels.label[2].key, "a");
    cr_assert_str_eq(labels.label[2].value, "B-2");
}

Test(operator_labels, what_the_api_server_would_not_take_is_refused_by_its_name)
{
    static const char *const wrong[] = {"",       "monitoring", "=a",      "a=b,",  ",a=b",     "a=b,,c=d",
                                        "a b=c",  "a=b c",      "-a=b",    "a-=b",  "a=-b",     "a=b.",
                                        "/a=b",   "a/=b",       "a/b/c=d", "A/b=c", "a..b/c=d", "a_b/c=d",
                                        ".a/b=c", "a=b=c",      "a=\"b\""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct op_labels labels = {.count = 7};
        struct error err = {0};
        cr_assert_eq(labels_read(&labels, wrong[i], &err), -1, "%s", wrong[i]);
        cr_assert_eq(err.code, ERR_USAGE);
        cr_assert(strstr(err.text, "is no label: write KEY=VALUE"), "%s: %s", wrong[i], err.text);
        cr_assert_eq(labels.count, 7, "%s: touched", wrong[i]);
    }
}

/* A label whose prefix, name and value have these lengths. */
static int of_lengths(int prefix, int name, int value)
{
    char text[1024];
    struct op_labels labels;
    int n = 0;
    for (int i = 0; i < prefix; i++)
        text[n++] = i % 60 == 59 && i < prefix - 1 ? '.' : 'p';
    if (prefix)
        text[n++] = '/';
    for (int i = 0; i < name; i++)
        text[n++] = 'n';
    text[n++] = '=';
    for (int i = 0; i < value; i++)
        text[n++] = 'v';
    text[n] = 0;
    return labels_read(&labels, text, NULL);
}

Test(operator_labels, as_long_as_kubernetes_takes_them_and_no_longer)
{
    cr_assert_eq(of_lengths(253, 63, 63), 0);
    cr_assert_eq(of_lengths(254, 63, 63), -1);
    cr_assert_eq(of_lengths(253, 64, 63), -1);
    cr_assert_eq(of_lengths(253, 63, 64), -1);
}

Test(operator_labels, eight_and_no_more)
{
    struct op_labels labels;
    struct error err = {0};
    cr_assert_eq(labels_read(&labels, "a=,b=,c=,d=,e=,f=,g=,h=", &err), 0, "%s", err.text);
    cr_assert_eq(labels_read(&labels, "a=,b=,c=,d=,e=,f=,g=,h=,i=", &err), -1);
    cr_assert_str_eq(err.text, "more than 8 labels");
}
