/* What a person who types gets from the table of commands. */
#include "cli/core/manual.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const struct manual_command *find(const char *first, const char *second, struct error *err)
{
    char *words[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL};
    int used;
    *err = (struct error){0};
    return manual_find(second ? 2 : 1, words, &used, err);
}

Test(manual, each_command_is_found_by_its_words_and_says_all_that_it_has)
{
    for (const struct manual_command *c = manual; c->name; c++) {
        char text[64], *words[3] = {text, NULL, NULL};
        int used;
        text_copy(text, sizeof text, c->name);
        char *space = strchr(text, ' ');
        if (space)
            *space = 0;
        words[1] = space ? space + 1 : NULL;
        cr_assert_eq(manual_find(space ? 2 : 1, words, &used, NULL), c, "%s", c->name);
        cr_assert_eq(used, space ? 2 : 1);
        struct str help = str_init(1 << 14);
        manual_help(c, &help);
        for (int i = 0; c->option[i]; i++) {
            char option[64];
            snprintf(option, sizeof option, "\n  --%s", c->option[i]->name);
            cr_assert(strstr(str_text(&help), option), "%s: %s", c->name, option);
            for (int j = 0; j < i; j++)
                cr_assert_neq(c->option[j]->key, c->option[i]->key, "%s: two options of one key", c->name);
        }
        cr_assert(strstr(str_text(&help), c->example) && strstr(c->example, c->name), "%s", c->name);
        str_clear(&help);
    }
}

Test(manual, what_is_nearly_right_is_asked_about)
{
    struct error err;
    cr_assert_null(find("chekpoint", NULL, &err));
    cr_assert_str_eq(err.text, "chekpoint is not a command; did you mean checkpoint?");
    cr_assert_null(find("checkpoint", "lst", &err));
    cr_assert_str_eq(err.text, "checkpoint lst is not a command; did you mean list?");
    cr_assert_null(find("checkpoint", "burn", &err));
    cr_assert_str_eq(err.text, "checkpoint burn is not a command; write one of list|verify|export|delete");
    cr_assert_null(find("checkpoint", NULL, &err));
    cr_assert(strstr(err.text, "list|verify|export|delete"), "%s", err.text);
    cr_assert_null(find("walk", NULL, &err));
    cr_assert_str_eq(err.text, "walk is not a command; ringmaster --help shows all");
    manual_no_option(find("run", NULL, &err), "--overwirte", &err);
    cr_assert_str_eq(err.text, "--overwirte is not an option of run; did you mean --overwrite?");
    cr_assert_null(find("Run", NULL, &err));
    cr_assert_str_eq(err.text, "Run is not a command; did you mean run?");
    manual_no_option(find("run", NULL, &err), "--ouptut=json", &err);
    cr_assert_str_eq(err.text, "--ouptut=json is not an option of run; did you mean --output?");
    manual_no_option(find("manual", NULL, &err), "--hlep", &err);
    cr_assert_str_eq(err.text, "--hlep is not an option of manual; did you mean --help?");
    manual_no_option(find("checkpoint", "list", &err), "--quickly", &err);
    cr_assert_str_eq(
        err.text,
        "--quickly is not an option of checkpoint list; ringmaster checkpoint list --help shows all");
}

/* Each option of each verb, with two letters swapped. */
Test(manual, every_option_is_guessed_where_two_of_its_letters_are_swapped)
{
    for (const struct manual_command *c = manual; c->name; c++)
        for (int i = 0; c->option[i]; i++) {
            struct error err = {0};
            const char *name = c->option[i]->name;
            char word[64], wanted[96];
            snprintf(word, sizeof word, "--%s", name);
            word[3] = name[0];
            word[2] = name[1];
            snprintf(wanted, sizeof wanted, "; did you mean --%s?", name);
            manual_no_option(c, word, &err);
            cr_assert(strstr(err.text, wanted), "%s", err.text);
        }
}

Test(manual, overview_page_and_completions_name_every_command_and_option)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    struct str texts[5];
    for (int i = 0; i < 5; i++)
        texts[i] = str_init(1 << 15);
    manual_overview(&texts[0]);
    manual_page("1.2", &texts[1]);
    cr_assert(strstr(str_text(&texts[1]), "\n.B \\-\\-help, \\-h\n"));
    cr_assert(strstr(str_text(&texts[1]), "\n.B \\-\\-version\n"));
    for (int i = 0; i < 3; i++)
        cr_assert_eq(manual_completion(shells[i], &texts[2 + i], NULL), 0);
    for (const struct manual_command *c = manual; c->name; c++)
        for (int i = 0; i < 5; i++) {
            const char *verb = strchr(c->name, ' ');
            cr_assert(strstr(str_text(&texts[i]), verb ? verb + 1 : c->name), "%s in text %d", c->name, i);
            for (int j = 0; i && c->option[j]; j++)
                cr_assert(strstr(str_text(&texts[i]), c->option[j]->name), "--%s in text %d",
                          c->option[j]->name, i);
        }
    for (int i = 0; i < 5; i++)
        str_clear(&texts[i]);
    struct error err = {0};
    struct str none = str_init(64);
    cr_assert_lt(manual_completion("tcsh", &none, &err), 0);
    cr_assert_str_eq(err.text, "completion tcsh: there are bash, zsh and fish");
    cr_assert_lt(manual_completion("zhs", &none, &err), 0);
    cr_assert_str_eq(err.text, "completion zhs: there are bash, zsh and fish; did you mean zsh?");
}

static void has_parts(const char *first, const char *second, const char *const *part)
{
    struct error err;
    struct str help = str_init(1 << 14);
    manual_help(find(first, second, &err), &help);
    for (; *part; part++)
        cr_assert(strstr(str_text(&help), *part), "%s: %s", *part, str_text(&help));
    str_clear(&help);
}

Test(manual, help_says_what_will_happen_in_plain_words)
{
    has_parts("run", NULL,
              (const char *[]){"kill:W@S (it dies)", "trainer:W@S (its trainer dies)",
                               "term:W@S (it is asked to leave)", "stop:W@S (it freezes)",
                               "hang:W@S (its trainer freezes)", "corrupt:W@S (a bit flips in its sums)",
                               "join@S (one more comes)", "coordinator@S (the coordinator dies)", NULL});
    has_parts("checkpoint", "verify",
              (const char *[]){"reads every byte of each and says whether it is whole.", NULL});
    has_parts("checkpoint", "delete",
              (const char *[]){"really delete; without it only list what would be deleted", NULL});
}
