/* What a program's processes find in their environment, name by name. */
#include "agent/launch/core/environment.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct launch_ring ring(int world, int rank)
{
    struct launch_ring r = {.generation = {1, 3}, .begun = 2, .world = world, .rank = rank};
    for (int i = 0; i < world; i++)
        snprintf(r.address[i], RM_ADDRESS_MAX, "10.0.0.%d:2%04d", i + 1, i);
    return r;
}

static const char *value(char **environment, const char *name)
{
    size_t n = strlen(name);
    const char *found = NULL;
    for (int i = 0; environment[i]; i++) {
        if (strncmp(environment[i], name, n) != 0 || environment[i][n] != '=')
            continue;
        cr_assert_null(found, "%s stands there twice", name);
        found = environment[i] + n + 1;
    }
    return found;
}

static struct job_list words(const char *const *list)
{
    struct job_list made = {0};
    for (; *list; list++)
        cr_assert(job_list_add(&made, *list));
    return made;
}

Test(environment, ranks_count_processes_and_groups_count_workers)
{
    struct launch_ring r = ring(3, 2);
    struct launch_process p = {.ring = &r, .job = "j", .local = 1, .processes = 4, .error_file = "/x/e.json"};
    struct launch_environment said;
    char *base[] = {"HOME=/root", "RANK=99", "RINGMASTER_LOG=info", "AWS_SECRET_ACCESS_KEY=s", NULL};
    char **e = launch_environment_make(&p, base, &said);
    static const char *const wanted[][2] = {{"RANK", "9"},
                                            {"WORLD_SIZE", "12"},
                                            {"LOCAL_RANK", "1"},
                                            {"LOCAL_WORLD_SIZE", "4"},
                                            {"GROUP_RANK", "2"},
                                            {"GROUP_WORLD_SIZE", "3"},
                                            {"MASTER_ADDR", "10.0.0.1"},
                                            {"MASTER_PORT", "20000"},
                                            {"TORCHELASTIC_RESTART_COUNT", "2"},
                                            {"TORCHELASTIC_ERROR_FILE", "/x/e.json"},
                                            {"JAX_COORDINATOR_ADDRESS", "10.0.0.1:20000"},
                                            {"JAX_PROCESS_ID", "9"},
                                            {"OMP_NUM_THREADS", "1"},
                                            {"RINGMASTER_HOSTS", "10.0.0.1,10.0.0.2,10.0.0.3"},
                                            {"HOME", "/root"},
                                            {"AWS_SECRET_ACCESS_KEY", "s"}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const char *found = value(e, wanted[i][0]);
        cr_assert(found && !strcmp(found, wanted[i][1]), "%s is %s", wanted[i][0],
                  found ? found : "not there");
    }
    cr_assert_null(value(e, "RINGMASTER_LOG"));
    cr_assert_null(value(e, "PET_NNODES"));
    free(e);
    launch_environment_clear(&said);
}

Test(environment, a_number_of_threads_that_somebody_chose_stays)
{
    struct launch_ring r = ring(1, 0);
    struct launch_process p = {.ring = &r, .job = "j", .processes = 2};
    struct launch_environment said;
    char *base[] = {"OMP_NUM_THREADS=6", NULL};
    char **e = launch_environment_make(&p, base, &said);
    cr_assert_str_eq(value(e, "OMP_NUM_THREADS"), "6");
    cr_assert_null(value(e, "TORCHELASTIC_ERROR_FILE"));
    free(e);
    launch_environment_clear(&said);
}

/* One that stays and has a machine, or a container, to itself. */
Test(environment, it_has_the_threads_that_there_are_for_it_and_no_rank)
{
    struct launch_process p = {.job = "j", .processes = 1, .threads = 3, .socket = "/x/s"};
    struct launch_environment said;
    char *base[] = {"HOME=/root", NULL}, *chosen[] = {"OMP_NUM_THREADS=6", NULL};
    char **e = launch_environment_make(&p, base, &said);
    cr_assert_str_eq(value(e, "OMP_NUM_THREADS"), "3");
    cr_assert_null(value(e, "RANK"));
    free(e);
    launch_environment_clear(&said);
    e = launch_environment_make(&p, chosen, &said);
    cr_assert_str_eq(value(e, "OMP_NUM_THREADS"), "6");
    free(e);
    launch_environment_clear(&said);
    p.threads = 0;
    e = launch_environment_make(&p, base, &said);
    cr_assert_null(value(e, "OMP_NUM_THREADS"));
    free(e);
    launch_environment_clear(&said);
}

Test(environment, torchrun_hears_of_nodes_and_makes_the_ranks_itself)
{
    struct launch_ring r = ring(2, 1);
    struct launch_process p = {.ring = &r, .job = "j", .processes = 4, .torchrun = true};
    struct launch_environment said;
    char *base[] = {NULL};
    char **e = launch_environment_make(&p, base, &said);
    cr_assert_str_eq(value(e, "PET_NNODES"), "2");
    cr_assert_str_eq(value(e, "PET_NODE_RANK"), "1");
    cr_assert_str_eq(value(e, "PET_NPROC_PER_NODE"), "4");
    cr_assert_str_eq(value(e, "PET_MASTER_PORT"), "20000");
    cr_assert_str_eq(value(e, "PET_RDZV_ID"), "j");
    cr_assert_null(value(e, "RANK"));
    cr_assert_null(value(e, "LOCAL_WORLD_SIZE"));
    free(e);
    launch_environment_clear(&said);
}

Test(environment, torchrun_is_known_by_its_words)
{
    static const struct {
        const char *word[5];
        bool torchrun;
    } cases[] = {{{"torchrun", "train.py"}, true},
                 {{"/opt/venv/bin/torchrun", "train.py"}, true},
                 {{"python3", "-m", "torch.distributed.run"}, true},
                 {{"/usr/bin/python3.12", "-m", "torch.distributed.launch"}, true},
                 {{"python3", "-m", "train"}, false},
                 {{"python3", "-u", "-m", "torch.distributed.run"}, true},
                 {{"python3", "torchrun"}, false},
                 {{"bash", "-c", "torchrun train.py"}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job_list list = words(cases[i].word);
        cr_assert_eq(launch_is_torchrun(&list), cases[i].torchrun, "%s", cases[i].word[0]);
    }
}

Test(environment, an_address_of_ipv6_has_its_brackets_only_where_a_port_follows)
{
    struct launch_ring r = {.generation = {2, 1}, .begun = 6, .world = 1};
    text_copy(r.address[0], RM_ADDRESS_MAX, "[fd00::7]:21000");
    struct launch_process p = {.ring = &r, .job = "j", .processes = 1};
    struct launch_environment said;
    char *base[] = {NULL};
    char **e = launch_environment_make(&p, base, &said);
    cr_assert_str_eq(value(e, "MASTER_ADDR"), "fd00::7");
    cr_assert_str_eq(value(e, "JAX_COORDINATOR_ADDRESS"), "[fd00::7]:21000");
    cr_assert_str_eq(value(e, "RINGMASTER_HOSTS"), "fd00::7");
    cr_assert_str_eq(value(e, "TORCHELASTIC_RESTART_COUNT"), "6", "also of the terms before this one");
    free(e);
    launch_environment_clear(&said);
}

/* What PYTHONPATH becomes, of a base that has this entry; name: under which it stands then. */
static void check_python(const char *entry, const char *name, const char *wanted)
{
    struct launch_ring r = ring(1, 0);
    struct launch_process p = {.ring = &r, .job = "j", .processes = 1, .python = "/b/python"};
    struct launch_environment said;
    char text[64], *base[] = {text, NULL};
    snprintf(text, sizeof text, "%s", entry);
    char **e = launch_environment_make(&p, base, &said);
    const char *found = value(e, name);
    cr_assert(found && !strcmp(found, wanted), "%s: %s", entry, found ? found : "not there");
    int any = 0;
    for (char **at = e; *at; at++)
        any += strstr(*at, "PYTHONPATH=") != NULL;
    cr_assert_eq(any, 1, "%s", entry);
    free(e);
    launch_environment_clear(&said);
}

Test(environment, the_python_package_comes_behind_the_images_own_path)
{
    check_python("HOME=/", "PYTHONPATH", "/b/python");
    check_python("PYTHONPATH=/a:/c", "PYTHONPATH", "/a:/c:/b/python");
    check_python("PYTHONPATH=", "PYTHONPATH", "/b/python"); /* ":/b" would add the working folder */
    check_python("RINGMASTER_ASIDE_PYTHONPATH=/a", "RINGMASTER_ASIDE_PYTHONPATH", "/a:/b/python");
}

Test(environment, the_socket_for_reports_is_told_with_a_place_and_no_other_is_handed_on)
{
    struct launch_ring r = ring(1, 0);
    struct launch_process p = {.ring = &r, .job = "j", .processes = 1, .socket = "/t/report"};
    struct launch_environment said;
    char *base[] = {"RINGMASTER_SOCKET=/of/an/outer/job", NULL};
    char **e = launch_environment_make(&p, base, &said);
    cr_assert_str_eq(value(e, "RINGMASTER_SOCKET"), "/t/report");
    free(e);
    launch_environment_clear(&said);
    p.ring = NULL; /* of a program that computes for a trainer */
    e = launch_environment_make(&p, base, &said);
    cr_assert_str_eq(value(e, "RINGMASTER_SOCKET"), "/t/report");
    free(e);
    launch_environment_clear(&said);
    p.socket = NULL;
    e = launch_environment_make(&p, base, &said);
    cr_assert_null(value(e, "RINGMASTER_SOCKET"));
    free(e);
    launch_environment_clear(&said);
}

/* Of several on one machine each can take a GPU of its own by it. */
Test(environment, a_program_without_a_rank_finds_its_workers_number_and_one_with_a_rank_does_not)
{
    struct launch_ring r = ring(1, 0);
    struct launch_process p = {
        .job = "j", .processes = 1, .worker = 3, .socket = "/t/s", .error_file = "/t/e"};
    struct launch_environment said;
    char *base[] = {"RINGMASTER_WORKER=of an outer job", NULL};
    char **e = launch_environment_make(&p, base, &said);
    cr_assert_str_eq(value(e, "RINGMASTER_WORKER"), "3");
    free(e);
    launch_environment_clear(&said);
    p.ring = &r;
    e = launch_environment_make(&p, base, &said);
    cr_assert_null(value(e, "RINGMASTER_WORKER"));
    free(e);
    launch_environment_clear(&said);
}
