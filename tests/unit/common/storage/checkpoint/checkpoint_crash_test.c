/* A crash at any point and a full disk leave the newest complete checkpoint as it was. */
#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

TestSuite(crash, .init = fixture_make, .fini = fixture_remove);

static struct manifest m;

/* Saves in a child that has this fault point set ("": none). Returns whether the child was killed by it. */
static bool save_in_child(const struct fixture_save *save, const char *fault)
{
    int status, child = fork();
    cr_assert(child >= 0);
    if (!child) {
        setenv("RINGMASTER_FAULT", fault, 1);
        _exit(fixture_try_save(save, &m, NULL) < 0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0, "status %x",
              status);
    return WIFSIGNALED(status);
}

static int64_t newest(void)
{
    static struct checkpoint_resume resume;
    struct error err = {0};
    cr_assert_eq(checkpoint_resume(fixture_store, &resume, &err), 0, "%s", err.text);
    cr_assert(resume.found);
    cr_assert_eq(resume.skipped, 0, "%s: %s", resume.skip[0].name, resume.skip[0].why);
    return resume.entry.step;
}

Test(crash, at_every_fault_point_the_newest_complete_checkpoint_still_loads)
{
    static const struct {
        const char *fault;
        bool complete; /* the checkpoint under way is the newest already */
    } points[] = {{"upload-begun", false},    {"object-temp", false},     {"object-temp:2", false},
                  {"part-written", false},    {"slice-written", false},   {"slice-written:3", false},
                  {"sums-written", false},    {"sums-written:3", false},  {"config-written", false},
                  {"upload-whole", false},    {"upload-named", false},    {"model-whole", false},
                  {"piece-settled", false},   {"piece-settled:4", false}, {"read-back", true},
                  {"before-manifest", false}, {"object-temp:6", false},   {"after-manifest", true},
                  {"before-delete", true},    {"before-delete:2", true},  {"file-removed", true},
                  {"file-removed:3", true},   {"file-removed:7", true}};
    struct model_layout *layout = fixture_layout(&fixture_shape);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        for (int64_t step = 1; step <= 3; step++) {
            struct fixture_save old = {.layout = layout, .step = step, .seed = (uint64_t)step, .parts = 2};
            cr_assert_not(save_in_child(&old, ""));
        }
        struct fixture_save save = {.layout = layout, .step = 4, .seed = 4, .parts = 3, .keep = 1};
        cr_assert(save_in_child(&save, points[i].fault), "%s was not reached", points[i].fault);
        cr_assert_eq(newest(), points[i].complete ? 4 : 3, "%s", points[i].fault);
        fixture_holds(points[i].complete ? "step-00000004" : "step-00000003", layout,
                      points[i].complete ? 4 : 3);

        save.parts = 2; /* whoever goes on saves the same state, split otherwise */
        cr_assert_not(save_in_child(&save, ""));
        fixture_holds("step-00000004", layout, 4);
        cr_assert_eq(checkpoint_delete_all(fixture_store, NULL), 0);
    }
    free(layout);
}

Test(crash, a_deletion_that_was_cut_off_is_finished_by_later_saves)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    char path[512];
    struct fixture_save save = {.layout = layout, .step = 1, .seed = 1, .parts = 2};
    fixture_save(&save, &m);
    fixture_path(path, "step-00000001/manifest.json");
    unlink(path); /* the first thing that a deletion does */
    for (save.step = 2; save.step <= 3; save.step++)
        fixture_save(&save, &m);
    cr_assert_not(fixture_has("step-00000001"));
    free(layout);
}

/* A disk of our own, where this may be done. */
static void small_disk(const char *options)
{
    if (mount("none", fixture_folder(), "tmpfs", 0, options) < 0)
        cr_skip_test("a file system of limited size can't be mounted here");
}

Test(crash, a_full_disk_is_said_and_takes_nothing_away)
{
    struct model_layout *layout = fixture_layout(&(struct model_shape){2, 2, 32, 16, 256});
    struct error err = {0};
    small_disk("size=700k"); /* one checkpoint of these takes about 410 kB */
    struct fixture_save first = {.layout = layout, .step = 1, .seed = 1, .parts = 3, .keep = 3};
    struct fixture_save second = {.layout = layout, .step = 2, .seed = 2, .parts = 3, .keep = 3};
    fixture_save(&first, &m);
    int result = fixture_try_save(&second, &m, &err);
    bool holds = checkpoint_verify(fixture_store, "step-00000001", NULL, NULL) == 0;
    static struct checkpoint_list list;
    int listed = checkpoint_list(fixture_store, &list, NULL) == 0 ? list.count : -1;
    umount(fixture_folder());
    cr_assert_eq(result, -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert(strstr(err.text, "No space left on device") && strstr(err.text, "step-00000002"), "%s",
              err.text);
    cr_assert(holds);
    cr_assert_eq(listed, 1);
    free(layout);
}

Test(crash, a_disk_full_of_unfinished_checkpoints_is_cleared_for_the_next)
{
    struct model_layout *layout = fixture_layout(&(struct model_shape){2, 2, 32, 16, 256});
    float *state = fixture_state(layout, 1);
    struct error err = {0};
    small_disk("size=700k");
    struct fixture_save broken = {.layout = layout, .step = 1, .seed = 1, .parts = 1};
    fixture_manifest(&broken, &m);
    int first = fixture_write(&broken, state, 0, &m, &err); /* never published */
    struct fixture_save save = {.layout = layout, .step = 2, .seed = 2, .parts = 1};
    int second = fixture_try_save(&save, &m, &err);
    bool gone = !fixture_has("step-00000001");
    umount(fixture_folder());
    cr_assert_eq(first, 0);
    cr_assert_eq(second, 0, "%s", err.text);
    cr_assert(gone);
    free(state);
    free(layout);
}

Test(crash, a_disk_full_of_older_checkpoints_is_cleared_for_the_next)
{
    struct model_layout *layout = fixture_layout(&(struct model_shape){2, 2, 32, 16, 256});
    float *state = fixture_state(layout, 3);
    struct error err = {0};
    small_disk("size=1000k"); /* room for two */
    for (int64_t step = 1; step <= 2; step++) {
        struct fixture_save save = {
            .layout = layout, .step = step, .seed = 1, .parts = 1, .keep = 1, .unsettled = true};
        fixture_save(&save, &m);
    }
    struct fixture_save save = {.layout = layout, .step = 3, .seed = 3, .parts = 1, .keep = 1};
    int result = fixture_try_save(&save, &m, &err);
    bool gone = !fixture_has("step-00000001");
    umount(fixture_folder());
    cr_assert_eq(result, 0, "%s", err.text);
    cr_assert(gone);
    free(state);
    free(layout);
}

/* --- few descriptors --- */

enum { NUMBERS = 96 }; /* of descriptors; those of the test's own frame are among them */

/* With ever more numbers, until it works: until then it is this machine that is short of them. */
static void works_once_there_are_enough(int (*work)(const struct fixture_save *save, struct error *err),
                                        const struct fixture_save *save)
{
    int refused = 0, result = -1;
    for (int numbers = 3; result < 0; numbers++) {
        const struct rlimit few = {(rlim_t)numbers, 1024};
        struct error err = {0};
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        result = work(save, &err);
        cr_assert(result == 0 || (err.code == ERR_MACHINE && err.class == CLASS_MACHINE),
                  "%d: code %d, class %d: %s", numbers, (int)err.code, (int)err.class, err.text);
        refused += result < 0;
        cr_assert_lt(numbers, NUMBERS);
    }
    cr_assert_gt(refused, 0);
}

static int save_all(const struct fixture_save *save, struct error *err)
{
    return fixture_try_save(save, &m, err);
}

static int load_newest(const struct fixture_save *save, struct error *err)
{
    static struct checkpoint_resume resume;
    float *state = fixture_state(save->layout, 99);
    int result = checkpoint_resume(fixture_store, &resume, err);
    cr_assert(result < 0 || (resume.found && !resume.skipped && resume.entry.step == save->step));
    if (result == 0)
        result = checkpoint_load(fixture_store, resume.entry.name, save->layout, state, NULL, err);
    free(state);
    return result;
}

/* Neither damaged nor another's, and what was there before stands. */
Test(crash, without_descriptors_a_save_and_a_load_fail_and_nothing_is_damaged)
{
    static const enum manifest_hash hashes[] = {MANIFEST_XXH3, MANIFEST_SHA256};
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 1, .seed = 1, .parts = 2, .keep = 1};
    for (size_t i = 0; i < 2; i++) {
        save.hash = hashes[i];
        save.final = i == 1;
        save.step++;
        works_once_there_are_enough(save_all, &save);
        works_once_there_are_enough(load_newest, &save);
    }
    fixture_holds("final", layout, 1);
    free(layout);
}
