/* Runs the tests of a program one after the other, each in a fork, and writes what Criterion writes for
 * tools/check: a JUnit report where CRITERION_OUTPUTS says xml:PATH.
 *
 *   NAME_test [--filter 'suite/name'] [--without 'suite/name' ...]
 *
 * What is left out so is counted as skipped. Other arguments are Criterion's and mean nothing here. */
#include <criterion/criterion.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_SKIPPED = 77 };

static struct cr_test *first, **last = &first;
static bool has_failed; /* in a test's own process */

void cr_register(struct cr_test *test)
{
    *last = test;
    last = &test->next;
}

void cr_failed(bool fatal, const char *file, int line, const char *what, const char *format, ...)
{
    va_list values;
    printf("%s:%d: does not hold: %s:", file, line, what);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    has_failed = true;
    if (fatal) {
        fflush(NULL);
        _exit(EXIT_FAILED);
    }
}

void cr_skipped(const char *format, ...)
{
    va_list values;
    printf("skipped:");
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    fflush(NULL);
    _exit(EXIT_SKIPPED);
}

static struct cr_options of_suite(const struct cr_test *test)
{
    for (const struct cr_test *t = first; t; t = t->next)
        if (!t->body && !strcmp(t->suite, test->suite))
            return t->options;
    return (struct cr_options){0};
}

static void run_here(const struct cr_test *test)
{
    const struct cr_options suite = of_suite(test);
    if (suite.init)
        suite.init();
    if (test->options.init)
        test->options.init();
    test->body();
    if (test->options.fini)
        test->options.fini();
    if (suite.fini)
        suite.fini();
    fflush(NULL);
    _exit(has_failed ? EXIT_FAILED : 0);
}

enum outcome { PASSED, FAILED, SKIPPED };

static enum outcome run(const struct cr_test *test)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_here(test);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return FAILED;
    if (WIFSIGNALED(status) && WTERMSIG(status) != test->options.signal)
        printf("%s/%s ended by signal %d\n", test->suite, test->name, WTERMSIG(status));
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == test->options.signal ? PASSED : FAILED;
    if (WEXITSTATUS(status) == EXIT_SKIPPED)
        return SKIPPED;
    return WEXITSTATUS(status) == 0 && !test->options.signal ? PASSED : FAILED;
}

static const char *word_after(int count, char **words, const char *word)
{
    for (int i = 1; i + 1 < count; i++)
        if (!strcmp(words[i], word))
            return words[i + 1];
    return NULL;
}

static bool is_left_out(int count, char **words, const char *name)
{
    for (int i = 1; i + 1 < count; i++)
        if (!strcmp(words[i], "--without") && !fnmatch(words[i + 1], name, 0))
            return true;
    return false;
}

static FILE *report_begin(void)
{
    const char *outputs = getenv("CRITERION_OUTPUTS");
    FILE *report = outputs && !strncmp(outputs, "xml:", 4) ? fopen(outputs + 4, "w") : NULL;
    if (report)
        fputs("<testsuites><testsuite>\n", report);
    return report;
}

static void report_one(FILE *report, const struct cr_test *test, enum outcome outcome)
{
    static const char *const inside[] = {"", "<failure/>", "<skipped/>"};
    static const char *const words[] = {"PASSED", "FAILED", "SKIPPED"};
    if (outcome != PASSED)
        printf("[%s] %s::%s\n", words[outcome], test->suite, test->name);
    if (report)
        fprintf(report, "<testcase name=\"%s::%s\" status=\"%s\">%s</testcase>\n", test->suite, test->name,
                words[outcome], inside[outcome]);
}

int main(int count, char **words)
{
    const char *filter = word_after(count, words, "--filter");
    int outcomes[3] = {0};
    FILE *report = report_begin();
    for (const struct cr_test *t = first; t; t = t->next) {
        char name[512];
        snprintf(name, sizeof name, "%s/%s", t->suite, t->name);
        if (!t->body || (filter && fnmatch(filter, name, 0)))
            continue;
        enum outcome outcome = is_left_out(count, words, name) ? SKIPPED : run(t);
        report_one(report, t, outcome);
        outcomes[outcome]++;
    }
    if (report) {
        fputs("</testsuite></testsuites>\n", report);
        fclose(report);
    }
    printf("Tested: %d | Passing: %d | Failing: %d | Skipped: %d\n", outcomes[0] + outcomes[1] + outcomes[2],
           outcomes[PASSED], outcomes[FAILED], outcomes[SKIPPED]);
    return outcomes[FAILED] != 0;
}
