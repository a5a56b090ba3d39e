#include <criterion/criterion.h>
#include <string.h>

#include "common/job/field.h"
#include "common/job/file.h"
#include "common/os/file.h"

Test(docs, the_table_in_the_docs_is_the_table_in_the_code)
{
    struct str page = str_init(1 << 20), table = str_init(1 << 16);
    struct error err = {0};
    cr_assert_eq(file_read(RM_SOURCE "/docs/job-file.md", &page, &err), 0, "%s", err.text);
    job_fields_markdown(&table);
    cr_assert(strstr(str_text(&page), str_text(&table)), "docs/job-file.md should hold:\n%s",
              str_text(&table));
    str_clear(&page);
    str_clear(&table);
}

Test(docs, the_examples_are_valid_job_files)
{
    struct job_spec spec;
    struct str notes = str_init(4096);
    struct error err = {0};
    cr_assert_eq(job_file_read(&spec, RM_SOURCE "/deploy/examples/quickstart.yaml", NULL, 0, &notes, &err), 0,
                 "%s", err.text);
    cr_assert_str_eq(str_text(&notes), "");
    str_clear(&notes);
}
