/* The thread that reads back and deletes: it is known to be at it until its end, also once nobody wants it.
 */
#include <poll.h>
#include <sys/wait.h>

#include "agent/storage/worker_settle.h"
#include "common/base/str.h"
#include "tests/unit/common/storage/checkpoint/fixture.h"

TestSuite(settle, .init = fixture_make, .fini = fixture_remove);

static void until_it_has_ended(void)
{
    while (worker_settle_goes_on())
        poll(NULL, 0, 1);
}

static struct worker_settle *begun(struct job_spec *spec, int64_t steps)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    static struct manifest m;
    for (int64_t step = 1; step <= steps; step++)
        fixture_save(
            &(struct fixture_save){
                .layout = layout, .step = step, .seed = 1, .parts = 1, .keep = 1, .unsettled = true},
            &m);
    free(layout);
    text_copy(spec->checkpoint.uri, sizeof spec->checkpoint.uri, fixture_uri);
    spec->checkpoint.keep = 1;
    struct worker_settle *settle = worker_settle_open(spec, "");
    cr_assert(settle);
    return settle;
}

Test(settle, it_goes_on_until_what_is_beyond_has_gone, .timeout = 120)
{
    static struct job_spec spec;
    struct worker_settle *settle = begun(&spec, 2);
    cr_assert_not(worker_settle_goes_on());
    worker_settle_begin(settle, 2);
    until_it_has_ended();
    cr_assert(fixture_has("step-00000002/manifest.json"));
    cr_assert_not(fixture_has("step-00000001/manifest.json"));
    worker_settle_free(settle);
}

/* By exit() some forty of a hundred would end by a signal. */
Test(settle, a_process_ends_with_its_code_wherever_such_a_thread_is, .timeout = 120)
{
    static struct job_spec spec;
    enum { TRIES = 100, CODE = 7 };
    worker_settle_free(begun(&spec, 2));
    for (int i = 0; i < TRIES; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            struct worker_settle *settle = worker_settle_open(&spec, "");
            worker_settle_begin(settle, 2);
            for (volatile int spin = 0; spin < i * 20000; spin++) { /* a little further each time */
            }
            worker_settle_free(settle);
            worker_settle_end_process(CODE);
            exit(CODE);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == CODE, "try %d: status %#x", i,
                  (unsigned)status);
    }
}
