/* What an image says to the loader is put aside and given back, to the byte. */
#include "agent/launch/core/aside.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/core/environment.h"

static const char said[] = "RINGMASTER_BUNDLE=/opt/ringmaster";

struct made {
    char **environment;
    char *room;
};

/* In exactly as much room as was asked for, behind which a sanitizer sees every byte. */
static struct made put(char *const *environment)
{
    struct made made = {.room = malloc(aside_room(environment, said))};
    cr_assert(made.room);
    made.environment = aside_put(environment, said, made.room);
    return made;
}

static void expect(char *const *environment, const char *const *wanted)
{
    for (; *wanted; environment++, wanted++) {
        cr_assert(*environment, "%s is missing", *wanted);
        cr_assert_str_eq(*environment, *wanted);
    }
    cr_assert_null(*environment, "%s is too much", *environment);
}

Test(aside, what_changes_a_start_is_concerned_and_nothing_else)
{
    static const struct {
        const char *entry;
        bool concerned;
    } cases[] = {{"LD_PRELOAD=/x.so", true},
                 {"LD_LIBRARY_PATH=", true},
                 {"LD_AUDIT=/a.so", true},
                 {"LD_PRELOAD", true},
                 {"PYTHONPATH=/a", true},
                 {"PYTHONHOME=/a", true},
                 {"MALLOC_ARENA_MAX=1", true},
                 {"GLIBC_TUNABLES=glibc.malloc.check=3", true},
                 {"GCONV_PATH=/g", true},
                 {"OPENSSL_CONF=/c", true},
                 {"UV_THREADPOOL_SIZE=1", true},
                 {"GCONV_PATHS=/g", false},
                 {"GLIBC_TUNABLE=1", false},
                 {"OLD_PRELOAD=1", false},
                 {"LD=ld", false},
                 {"PYTHO=1", false},
                 {"PATH=/bin", false},
                 {"HOME=/root", false},
                 {"OMP_NUM_THREADS=4", false},
                 {"RINGMASTER_LOG=info", false},
                 {"=LD_PRELOAD=1", false},
                 {"", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(aside_concerns(cases[i].entry), cases[i].concerned, "\"%s\"", cases[i].entry);
}

Test(aside, the_loader_finds_nothing_of_it_and_all_else_in_its_order)
{
    char *base[] = {"PATH=/bin", "LD_PRELOAD=/x.so", "HOME=/", "PYTHONHOME=", "RINGMASTER_LOG=info", NULL};
    static const char *const wanted[] = {"PATH=/bin",
                                         "RINGMASTER_ASIDE_LD_PRELOAD=/x.so",
                                         "HOME=/",
                                         "RINGMASTER_ASIDE_PYTHONHOME=",
                                         "RINGMASTER_LOG=info",
                                         said,
                                         NULL};
    struct made made = put(base);
    expect(made.environment, wanted);
    cr_assert_eq(made.environment[0], base[0], "what is not concerned is the same string");
    free(made.room);
}

Test(aside, what_was_put_aside_or_said_before_the_container_began_is_nobodys)
{
    char *base[] = {"RINGMASTER_ASIDE_LD_PRELOAD=/evil.so", "RINGMASTER_BUNDLE=/elsewhere", "A=1", NULL};
    static const char *const wanted[] = {"A=1", said, NULL};
    struct made made = put(base);
    expect(made.environment, wanted);
    free(made.room);
}

Test(aside, an_empty_environment_has_what_is_said)
{
    char *base[] = {NULL};
    static const char *const wanted[] = {said, NULL};
    struct made made = put(base);
    expect(made.environment, wanted);
    free(made.room);
}

/* Through the launcher, which makes the program's environment, to `exec`, which gives it back. */
Test(aside, a_program_finds_duplicates_empty_values_and_what_is_no_assignment_as_they_were)
{
    char *base[] = {"LD_PRELOAD=/a.so",
                    "X=1",
                    "LD_PRELOAD=/b.so",
                    "LD_LIBRARY_PATH=",
                    "PYTHONPATH=a=b:c",
                    "LD_ODD",
                    "MALLOC_CHECK_=3",
                    "RINGMASTER_LOG=info",
                    NULL};
    static const char *const wanted[] = {"LD_PRELOAD=/a.so", "X=1",    "LD_PRELOAD=/b.so", "LD_LIBRARY_PATH=",
                                         "PYTHONPATH=a=b:c", "LD_ODD", "MALLOC_CHECK_=3",  NULL};
    struct launch_ring ring = {.generation = {1, 1}, .world = 1};
    text_copy(ring.address[0], RM_ADDRESS_MAX, "127.0.0.1:20000");
    struct launch_process process = {.ring = &ring, .job = "j", .processes = 1};
    struct launch_environment text;
    struct made made = put(base);
    char **environment = launch_environment_make(&process, made.environment, &text);
    for (int i = 0; environment[i]; i++)
        cr_assert(!aside_concerns(environment[i]), "%s is not aside while the launcher has it",
                  environment[i]);
    aside_give_back(environment);
    for (size_t i = 0; wanted[i]; i++)
        cr_assert_str_eq(environment[i], wanted[i]);
    for (int i = 7; environment[i]; i++)
        cr_assert(strncmp(environment[i], "RINGMASTER_BUNDLE", 17) != 0 && !aside_is_put(environment[i]));
    free(environment);
    launch_environment_clear(&text);
    free(made.room);
}

Test(aside, without_a_bundle_nothing_is_given_back_that_was_not_put)
{
    char *base[] = {"LD_PRELOAD=/a.so", "A=RINGMASTER_ASIDE_B", NULL};
    static const char *const wanted[] = {"LD_PRELOAD=/a.so", "A=RINGMASTER_ASIDE_B", NULL};
    aside_give_back(base);
    expect(base, wanted);
}
