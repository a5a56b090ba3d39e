/* The words that the programs share, and that scripts can build on: the pages list what the tables hold. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/os/file.h"
#include "common/wire/command.h"
#include "common/wire/event.h"
#include "common/wire/json.h"
#include "common/wire/status.h"

static void read_page(struct str *page, const char *path)
{
    struct error err = {0};
    *page = str_init(1 << 20);
    cr_assert_eq(file_read(path, page, &err), 0, "%s", err.text);
}

/* What stands between a heading and the next one. */
static char *section_of(const struct str *page, const char *heading)
{
    char *begin = strstr(str_text(page), heading);
    cr_assert(begin, "the page has a section '%s'", heading);
    char *end = strstr(begin + 3, "\n## ");
    if (end)
        end[1] = 0;
    return begin;
}

static bool names(const char *text, const char *name)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "`%s`", name);
    return strstr(text, quoted);
}

Test(events, each_kind_has_a_name_of_its_own)
{
    for (int kind = 0; kind < EVENT_KINDS; kind++) {
        cr_assert(event_name(kind), "kind %d has none", kind);
        cr_assert_eq(event_of_name(event_name(kind)), (enum event_kind)kind, "%s", event_name(kind));
    }
    cr_assert_eq(event_of_name("moonrise"), EVENT_KINDS);
    cr_assert_eq(event_of_name(""), EVENT_KINDS);
}

/* Takes the names in backquotes of a row's first cell. */
static int count_row(const char *row, bool seen[EVENT_KINDS])
{
    int count = 0;
    const char *end = strchr(row + 1, '|');
    cr_assert(end);
    for (const char *at = strchr(row, '`'); at && at < end; at = strchr(at + 1, '`')) {
        char name[64] = "";
        size_t length = strcspn(at + 1, "`");
        cr_assert_lt(length, sizeof name);
        memcpy(name, at + 1, length);
        enum event_kind kind = event_of_name(name);
        cr_assert(kind >= EVENT_SHOWN && kind < EVENT_KINDS, "'%s' is no event that is shown", name);
        cr_assert_not(seen[kind], "%s stands there twice", name);
        seen[kind] = true;
        count++;
        at += length + 1;
    }
    return count;
}

Test(events, each_member_has_a_name_of_its_own_and_stands_on_the_page)
{
    /* of events between coordinator and run alone; and of those on the coordinator's page */
    static const enum event_key inner[] = {EVENT_KEY_ATTEMPT, EVENT_KEY_DETAIL, EVENT_KEY_AT,
                                           EVENT_KEY_SPENT,   EVENT_KEY_SAVES,  EVENT_KEY_METRICS,
                                           EVENT_KEY_SEQUENCE};
    struct str page;
    read_page(&page, RM_SOURCE "/docs/exit-codes-and-events.md");
    const char *section = section_of(&page, "## Events");
    for (int key = 0; key < EVENT_KEYS; key++) {
        bool shown = true;
        cr_assert(event_key(key), "member %d has no name", key);
        for (int other = 0; other < key; other++)
            cr_assert_str_neq(event_key(key), event_key(other));
        for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
            shown = shown && inner[i] != (enum event_key)key;
        cr_assert_eq(names(section, event_key(key)), shown, "%s", event_key(key));
    }
    str_clear(&page);
}

Test(events, the_page_lists_exactly_those_that_are_shown)
{
    struct str page;
    bool seen[EVENT_KINDS] = {false};
    int count = 0;
    read_page(&page, RM_SOURCE "/docs/exit-codes-and-events.md");
    const char *row = strstr(section_of(&page, "## Events"), "|---|---|\n");
    cr_assert(row);
    for (row += strlen("|---|---|\n"); *row == '|'; row = strchr(row, '\n') + 1)
        count += count_row(row, seen);
    for (int kind = EVENT_SHOWN; kind < EVENT_KINDS; kind++)
        cr_assert(seen[kind], "the page lacks %s", event_name(kind));
    cr_assert_eq(count, EVENT_KINDS - EVENT_SHOWN);
    str_clear(&page);
}

/* What stands in brackets is a member's own: "`members`: [`worker`]", or a link. */
static void drop_brackets(char *text)
{
    int depth = 0;
    for (; *text; text++) {
        depth += *text == '[';
        bool inside = depth > 0;
        depth -= *text == ']';
        if (inside)
            *text = ' ';
    }
}

static bool is_of_each(enum event_key key)
{
    return key == EVENT_KEY_EVENT || key == EVENT_KEY_TIME || key == EVENT_KEY_SEQUENCE;
}

/* The text that tells of an event's members names those that it has, and no other. */
static void tells_members(const char *text, size_t length, enum event_kind kind)
{
    char *cell = strndup(text, length);
    drop_brackets(cell);
    for (int key = 0; key < EVENT_KEYS; key++) {
        if (is_of_each((enum event_key)key))
            continue;
        bool has = event_need(kind, (enum event_key)key) != EVENT_MAY_NOT;
        cr_expect_eq(names(cell, event_key((enum event_key)key)), has, "%s of %s, in: %s",
                     event_key((enum event_key)key), event_name(kind), cell);
    }
    free(cell);
}

Test(events, the_page_lists_exactly_the_members_that_each_has)
{
    struct str page;
    read_page(&page, RM_SOURCE "/docs/exit-codes-and-events.md");
    const char *row = strstr(section_of(&page, "## Events"), "|---|---|\n");
    for (row += strlen("|---|---|\n"); *row == '|'; row = strchr(row, '\n') + 1) {
        const char *fields = strchr(row + 1, '|') + 1;
        for (int kind = EVENT_SHOWN; kind < EVENT_KINDS; kind++) {
            char quoted[64];
            snprintf(quoted, sizeof quoted, "`%s`", event_name((enum event_kind)kind));
            if (memmem(row, (size_t)(fields - row), quoted, strlen(quoted)))
                tells_members(fields, strcspn(fields, "\n"), (enum event_kind)kind);
        }
    }
    str_clear(&page);
}

Test(events, the_page_lists_the_members_of_those_between_run_and_the_coordinator)
{
    struct str page;
    read_page(&page, RM_SOURCE "/docs/exit-codes-and-events.md");
    const char *text = section_of(&page, "## Between `run` and the coordinator");
    for (int kind = 0; kind < EVENT_SHOWN; kind++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "`%s`", event_name((enum event_kind)kind));
        const char *fields = strchr(strstr(text, quoted), '{');
        tells_members(fields, strcspn(fields, "}"), (enum event_kind)kind);
    }
    str_clear(&page);
}

/* Each with all that it must have, and with all that it may. */
Test(events, a_writer_is_held_to_the_members_that_an_event_must_and_may_have)
{
    char why[EVENT_WHY_MAX];
    for (int kind = 0; kind < EVENT_KINDS; kind++) {
        struct js *least = js_object(), *most = js_object();
        for (int key = 0; key < EVENT_KEYS; key++) {
            enum event_need need = event_need((enum event_kind)kind, (enum event_key)key);
            const char *value = key == EVENT_KEY_EVENT ? event_name((enum event_kind)kind) : "1";
            if (need == EVENT_MUST)
                js_set_string(least, event_key((enum event_key)key), value);
            if (need != EVENT_MAY_NOT)
                js_set_string(most, event_key((enum event_key)key), value);
        }
        cr_assert(event_check(least, why) && event_check(most, why), "%s", why);
        js_set_string(most, "moon", "full");
        cr_assert_not(event_check(most, why));
        cr_assert(strstr(why, "that no table knows"), "%s", why);
        js_free(least);
        js_free(most);
    }
}

static void is_wrong(const char *event, const char *sentence)
{
    char why[EVENT_WHY_MAX];
    struct js *o = js_parse(event, strlen(event), "event", NULL);
    cr_assert_not(event_check(o, why), "%s", event);
    cr_assert_str_eq(why, sentence);
    js_free(o);
}

Test(events, what_is_wrong_with_one_is_said)
{
    is_wrong("{\"event\":\"evaluated\",\"time\":1,\"step\":2}", "evaluated lacks loss");
    is_wrong("{\"event\":\"waiting\",\"time\":1,\"reason\":\"a\",\"uri\":\"b\"}", "waiting has uri");
    is_wrong("{\"event\":\"moonrise\",\"time\":1}", "moonrise is no event");
    is_wrong("{\"time\":1}", "a nameless one is no event");
}

Test(events, the_page_names_those_between_run_and_the_coordinator_in_their_place)
{
    struct str page;
    read_page(&page, RM_SOURCE "/docs/exit-codes-and-events.md");
    const char *text = section_of(&page, "## Between `run` and the coordinator");
    for (int kind = 0; kind < EVENT_SHOWN; kind++)
        cr_assert(names(text, event_name(kind)), "the page lacks %s", event_name(kind));
    str_clear(&page);
}

Test(events, the_page_about_kubernetes_names_each_that_the_operator_makes_of_one)
{
    struct str page;
    int count = 0;
    read_page(&page, RM_SOURCE "/docs/kubernetes.md");
    const char *text = section_of(&page, "## Events");
    for (int kind = 0; kind < EVENT_KINDS; kind++) {
        const char *reason = event_row(kind)->reason;
        cr_assert(!reason || names(text, reason), "the page lacks %s", reason);
        count += reason != NULL;
    }
    cr_assert_eq(count, 17);
    str_clear(&page);
}

Test(exit_codes, the_page_has_the_table_of_the_code)
{
    struct str page, table = str_init(1 << 16);
    read_page(&page, RM_SOURCE "/docs/exit-codes-and-events.md");
    exit_codes_markdown(&table);
    cr_assert(strstr(section_of(&page, "## Exit codes"), str_text(&table)), "the page should hold:\n%s",
              str_text(&table));
    str_clear(&table);
    str_clear(&page);
}

Test(exit_codes, the_rows_hold_every_code_that_an_error_ends_with)
{
    struct str table = str_init(1 << 16);
    exit_codes_markdown(&table);
    for (int code = ERR_NONE; code <= ERR_EXISTS; code++) {
        char row[16];
        snprintf(row, sizeof row, "\n| %d |", error_exit_code(code));
        cr_assert(strstr(str_text(&table), row), "no row%s", row);
    }
    str_clear(&table);
}

Test(causes, each_has_a_name_of_its_own_and_the_page_lists_them)
{
    struct str page;
    read_page(&page, RM_SOURCE "/docs/exit-codes-and-events.md");
    const char *text = section_of(&page, "## Events");
    for (int cause = CAUSE_NONE + 1; cause < CAUSES; cause++) {
        cr_assert_eq(cause_of_name(cause_name(cause)), (enum cause)cause);
        cr_assert(names(text, cause_name(cause)), "the page lacks %s", cause_name(cause));
    }
    cr_assert_eq(cause_of_name("Moonrise"), CAUSES);
    str_clear(&page);
}

static void prints(const struct command *command, const char *line)
{
    struct str out = str_init(1 << 16);
    command_print(command, &out);
    cr_assert_str_eq(str_text(&out), line);
    str_clear(&out);
}

static const struct command two_expected = {
    .kind = COMMAND_EXPECT,
    .expect = {.count = 2, .worker = {{.worker = 0, .attempt = 4}, {.worker = 63, .next = true}}}};
static const struct command drill_at_123 = {.kind = COMMAND_ACT,
                                            .act = {.cause = CAUSE_WORKER_LOST, .worker = 1, .at = 123}};
static const struct command interrupt = {.kind = COMMAND_INTERRUPT};

Test(commands, each_is_one_line_of_the_documented_members)
{
    prints(&two_expected, "{\"command\":\"expect\",\"workers\":[{\"worker\":0,\"attempt\":4},"
                          "{\"worker\":63,\"attempt\":0,\"next\":true}]}\n");
    prints(&drill_at_123, "{\"command\":\"act\",\"cause\":\"WorkerLost\",\"worker\":1,\"at\":123}\n");
    prints(&interrupt, "{\"command\":\"interrupt\"}\n");
    prints(&(struct command){.kind = COMMAND_EXPECT}, "{\"command\":\"expect\",\"workers\":[]}\n");
}

Test(commands, the_page_shows_them_as_they_are_printed)
{
    const struct command one_expected = {.kind = COMMAND_EXPECT, .expect = {.count = 1}};
    const struct command *const shown[] = {&one_expected, &drill_at_123, &interrupt};
    struct str page;
    read_page(&page, RM_SOURCE "/docs/exit-codes-and-events.md");
    const char *text = section_of(&page, "## Between `run` and the coordinator");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        struct str line = str_init(1 << 16);
        command_print(shown[i], &line);
        cr_assert(memmem(text, strlen(text), str_text(&line), line.length - 1), "the page lacks %s",
                  str_text(&line));
        str_clear(&line);
    }
    str_clear(&page);
}

/* Leaves what was read in *ret. */
static void comes_back(const struct command *sent, struct command *ret)
{
    struct error err = {0};
    struct str line = str_init(1 << 16);
    command_print(sent, &line);
    cr_assert_eq(command_read(ret, str_text(&line), line.length, &err), 0, "%s", err.text);
    cr_assert_eq(ret->kind, sent->kind);
    str_clear(&line);
}

Test(commands, what_is_read_is_what_was_printed)
{
    struct command read;
    comes_back(&interrupt, &read);
    comes_back(&drill_at_123, &read);
    cr_assert(read.act.cause == CAUSE_WORKER_LOST && read.act.worker == 1 && read.act.at == 123);
    comes_back(&two_expected, &read);
    cr_assert_eq(read.expect.count, 2);
    for (int i = 0; i < 2; i++) {
        const struct command_worker *was = &two_expected.expect.worker[i], *is = &read.expect.worker[i];
        cr_assert(is->worker == was->worker && is->attempt == was->attempt && is->next == was->next);
    }
}

Test(commands, what_is_not_as_documented_is_refused_with_the_member_that_is_wrong)
{
    static const char *const wrong[][2] = {
        {"{\"command\":\"dance\"}", "'dance' is no command"},
        {"[]", "a command is a JSON object"},
        {"{\"command\":\"act\",\"cause\":\"None\",\"worker\":1,\"at\":1}", "act: 'None' is no cause"},
        {"{\"command\":\"act\",\"cause\":\"Hang\",\"worker\":64,\"at\":1}", "worker is 64, outside 0 to 63"},
        {"{\"command\":\"act\",\"cause\":\"Hang\",\"worker\":1,\"at\":-1}", "at is -1, outside 0 to"},
        {"{\"command\":\"expect\",\"workers\":[{\"worker\":0}]}", "workers[0]: "},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct command read = {.kind = COMMAND_KINDS};
        struct error err = {0};
        cr_assert_eq(command_read(&read, wrong[i][0], strlen(wrong[i][0]), &err), -1, "%s", wrong[i][0]);
        cr_assert(err.code == ERR_PROTOCOL && strstr(err.text, wrong[i][1]), "%s", err.text);
        cr_assert_eq(read.kind, COMMAND_KINDS);
    }
}

enum { MEMBERS_MAX = 128 };

static int members_of_the_page(struct status_listed members[MEMBERS_MAX])
{
    int count = status_list(members, MEMBERS_MAX);
    cr_assert(count > 60 && count <= MEMBERS_MAX, "%d members", count);
    return count;
}

/* The line of the table whose first cell names the member. */
static void line_of(const char *table, const char *key, char *out, size_t size)
{
    for (const char *line = table; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t length = strcspn(line, "\n"), cell = length > 2 ? strcspn(line + 2, "|") + 2 : 0;
        if (*line != '|' || length >= size)
            continue;
        snprintf(out, size, "%.*s", (int)cell, line);
        bool it_is = names(out, key);
        snprintf(out, size, "%.*s", (int)length, line);
        if (it_is)
            return;
    }
    cr_assert_fail("the page has no row for %s", key);
}

Test(status, the_page_names_each_member_in_the_row_of_its_part)
{
    static char line[2048];
    struct status_listed members[MEMBERS_MAX];
    struct str page;
    bool of_result = false;
    int count = members_of_the_page(members);
    read_page(&page, RM_SOURCE "/docs/coordinator-status.md");
    for (int i = 0; i < count; i++) {
        if (members[i].depth == 0) {
            line_of(str_text(&page), members[i].key, line, sizeof line);
            of_result = !strcmp(members[i].key, "result");
        } else if (!of_result)
            cr_assert(names(line, members[i].key), "'%s' lacks %s", line, members[i].key);
    }
    str_clear(&page);
}

Test(status, the_page_shows_each_member_of_a_result)
{
    struct status_listed members[MEMBERS_MAX];
    struct str page;
    bool of_result = false;
    int count = members_of_the_page(members), shown = 0;
    read_page(&page, RM_SOURCE "/docs/coordinator-status.md");
    const char *text = section_of(&page, "## The result");
    for (int i = 0; i < count; i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\":", members[i].key);
        cr_assert(members[i].depth == 0 || !of_result || strstr(text, quoted), "it lacks %s", quoted);
        shown += members[i].depth > 0 && of_result;
        if (members[i].depth == 0)
            of_result = !strcmp(members[i].key, "result");
    }
    cr_assert_gt(shown, 8);
    str_clear(&page);
}

/* Takes the names in backquotes of a row's first cell; how many. */
static int count_members(const char *row, const struct status_listed *members, int count)
{
    int found = 0;
    for (const char *at = row; *at != '\n' && (at == row || *at != '|'); at++) {
        size_t length = *at == '`' ? strcspn(at + 1, "`") : 0;
        int i = 0;
        while (
            length && i < count &&
            (members[i].depth || strlen(members[i].key) != length || memcmp(members[i].key, at + 1, length)))
            i++;
        cr_assert(!length || i < count, "%.*s is no member", (int)length, at + 1);
        found += length > 0;
        at += length ? length + 1 : 0;
    }
    return found;
}

Test(status, the_page_lists_nothing_that_is_no_member)
{
    struct status_listed members[MEMBERS_MAX];
    struct str page;
    int count = members_of_the_page(members), top = 0, listed = 0;
    read_page(&page, RM_SOURCE "/docs/coordinator-status.md");
    for (int i = 0; i < count; i++)
        top += members[i].depth == 0;
    const char *row = strstr(str_text(&page), "|---|---|\n");
    cr_assert(row);
    for (row += strlen("|---|---|\n"); *row == '|'; row = strchr(row, '\n') + 1)
        listed += count_members(row, members, count);
    cr_assert_eq(listed, top);
    str_clear(&page);
}

Test(status, each_state_has_a_name_of_its_own_and_the_page_lists_it)
{
    struct str page;
    read_page(&page, RM_SOURCE "/docs/coordinator-status.md");
    for (int state = STATUS_UNKNOWN + 1; state < STATUS_STATES; state++) {
        cr_assert_eq(status_state_of_name(status_state_name(state)), (enum status_state)state);
        cr_assert(names(str_text(&page), status_state_name(state)), "%s", status_state_name(state));
    }
    cr_assert_eq(status_state_of_name("Moonrise"), STATUS_UNKNOWN);
    cr_assert_eq(status_state_of_name(""), STATUS_UNKNOWN);
    str_clear(&page);
}

Test(status, each_phase_of_a_worker_has_a_name_of_its_own_and_the_page_lists_it)
{
    struct str page;
    read_page(&page, RM_SOURCE "/docs/coordinator-status.md");
    const char *listed = strstr(str_text(&page), "`phase` is one of ");
    cr_assert(listed);
    for (int phase = STATUS_PHASE_UNKNOWN + 1; phase < STATUS_PHASES; phase++) {
        cr_assert_eq(status_phase_of_name(status_phase_name(phase)), (enum status_phase)phase);
        cr_assert(names(listed, status_phase_name(phase)), "%s", status_phase_name(phase));
    }
    cr_assert_eq(status_phase_of_name("moonrise"), STATUS_PHASE_UNKNOWN);
    cr_assert_eq(status_phase_of_name(""), STATUS_PHASE_UNKNOWN);
    str_clear(&page);
}

/* A page with a value in each member that is not its absent one. */
static void fill(struct status_page *page, struct js *events)
{
    static const struct status_worker five = {
        .worker = 5, .attempt = 2, .phase = "away", .rank = 1, .cause = "Hang", .time = 9};
    const struct status_workers list = {.count = 1, .worker = {five}};
    *page = (struct status_page){
        .revision = 17,
        .time = 21,
        .job = "uid",
        .name = "tiny",
        .term = 3,
        .preparing = true,
        .state = "Saving",
        .message = "it saves",
        .mixed_hardware = true,
        .ring = {.generation = 4, .term = 2, .size = 1, .formed = 5, .members = list},
        .workers = list,
        .lost = list,
        .left = list,
        .quarantined = list,
        .progress = {true, 6, 7, 8.5, 9.5, 10.5, 0.5, 0.125, 11.5, 12.5, 13.5, 14.5},
        .checkpoint = {.known = true, .step = 11, .uri = "s3://a", .seen = true, .saved = 12, .bytes = 13},
        .interval = {true, 60.5, "every minute", 2, 3600.5, 0.5, 2.5},
        .store = {true, "denied", true},
        .fenced = true,
        .outage = {true, 14, 15.5, "503"},
        .transport = {true, false, "no NCCL"},
        .failures = 16,
        .recoveries = 17,
        .last_recovery = {true, "Hang", {1, 2, 3, 4, 5, 6}, 7},
        .goodput = {true, 0.5, {1, 2, 3, 4, 5}},
        .steps_redone = {8, 9},
        .result = {.known = true,
                   .exit_code = 4,
                   .reason = "why",
                   .interrupted = true,
                   .step = 18,
                   .complete = true,
                   .loss = 1.5,
                   .goodput = 0.25,
                   .weights_sha256 = "ab",
                   .uri = "s3://b",
                   .exact = true,
                   .weighed = true,
                   .timed = true,
                   .bytes = 19,
                   .saved = 20},
        .events = events};
}

static void print(const struct status_page *page, struct str *out)
{
    struct js *o = js_object();
    status_set_page(o, page);
    js_print(o, out);
    js_free(o);
}

Test(status, what_is_read_is_what_was_written)
{
    struct status_page page, read = {.preparing = false};
    struct js *events = js_array();
    struct str first = str_init(1 << 16), second = str_init(1 << 16);
    js_push_string(events, "an event");
    fill(&page, events);
    print(&page, &first);
    struct js *root = js_parse(str_text(&first), first.length, "page", NULL);
    status_read_page(&read, root);
    print(&read, &second);
    cr_assert_str_eq(str_text(&second), str_text(&first));
    cr_assert(!strstr(str_text(&first), "null"));
    js_free(root);
    js_free(events);
    str_clear(&first);
    str_clear(&second);
}

static void read_text_as_page(struct status_page *ret, const char *text, struct js **root)
{
    struct error err = {0};
    *root = js_parse(text, strlen(text), "page", &err);
    cr_assert(*root, "%s", err.text);
    status_read_page(ret, *root);
}

Test(status, what_is_absent_or_of_another_kind_is_as_documented)
{
    static const char *const poor[] = {
        "{}", "[]", "7",
        "{\"term\":\"3\",\"job\":7,\"ring\":[],\"workers\":{\"worker\":1},\"lost\":7,\"progress\":true,"
        "\"result\":\"x\",\"preparing\":1,\"fenced\":null}"};
    for (size_t i = 0; i < sizeof poor / sizeof *poor; i++) {
        struct js *root;
        struct status_page page = {.preparing = true, .fenced = true, .term = 9};
        read_text_as_page(&page, poor[i], &root);
        cr_assert(page.preparing && page.fenced, "whoever asks has said so");
        cr_assert(page.term == 0 && !*page.job && !page.ring.members.count && !page.workers.count);
        cr_assert(!page.progress.known && isnan(page.progress.loss) && !page.lost.count);
        cr_assert(!page.result.known && page.result.exit_code == -1 && !*page.result.reason);
        js_free(root);
    }
}

Test(status, numbers_are_brought_within_their_bounds_and_entries_without_a_worker_are_passed_over)
{
    struct js *root;
    struct status_page page = {.term = 0};
    read_text_as_page(&page,
                      "{\"term\":99999999999,\"revision\":-4,\"workers\":[{\"attempt\":1},{\"worker\":64},"
                      "{\"worker\":-1},{\"worker\":63,\"rank\":-9},7],\"checkpoint\":{\"bytes\":12.75},"
                      "\"progress\":{\"loss\":2.1043,\"etaSeconds\":\"soon\"}}",
                      &root);
    cr_assert(page.term == INT32_MAX && page.revision == 0);
    cr_assert_eq(page.workers.count, 1);
    cr_assert(page.workers.worker[0].worker == 63 && page.workers.worker[0].rank == -1);
    cr_assert(page.checkpoint.known && page.checkpoint.seen && page.checkpoint.bytes == 12);
    cr_assert(page.progress.loss == 2.1043 && isnan(page.progress.eta_seconds));
    js_free(root);
}

Test(status, the_pages_show_each_part_of_a_recovery_and_what_the_time_went_into)
{
    struct str events, status;
    read_page(&events, RM_SOURCE "/docs/exit-codes-and-events.md");
    read_page(&status, RM_SOURCE "/docs/coordinator-status.md");
    for (int part = 0; part < RECOVERY_PARTS; part++)
        cr_assert(names(str_text(&events), recovery_key(part)), "the page lacks %s", recovery_key(part));
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        cr_assert(strstr(str_text(&status), goodput_key(which)), "the page lacks %s", goodput_key(which));
    str_clear(&events);
    str_clear(&status);
}

/* Leaves what was read of the text in *ret; its strings are void then. */
static void read_word(struct status_word *ret, const char *text)
{
    struct js *object = js_parse(text, strlen(text), "word", NULL);
    status_read_word(ret, object);
    js_free(object);
}

static void says_and_is_read(const struct status_word *word, const char *wanted)
{
    struct status_word read;
    struct str text = str_init(4096);
    struct js *object = js_object();
    status_set_word(object, word);
    js_print(object, &text);
    cr_assert_str_eq(str_text(&text), wanted);
    read_word(&read, str_text(&text));
    cr_assert(read.left == word->left && read.elsewhere == word->elsewhere && read.over == word->over &&
                  read.exit_code == word->exit_code,
              "%s", wanted);
    js_free(object);
    str_clear(&text);
}

Test(words, what_a_program_says_last_is_what_is_read_of_it)
{
    says_and_is_read(&(struct status_word){.left = true}, "{\"left\":true}");
    says_and_is_read(&(struct status_word){.over = true, .exit_code = 4, .reason = "why"},
                     "{\"exitCode\":4,\"reason\":\"why\"}");
    says_and_is_read(&(struct status_word){.over = true, .exit_code = 3, .reason = "why", .elsewhere = true},
                     "{\"exitCode\":3,\"reason\":\"why\",\"elsewhere\":true}");
}

Test(words, what_is_no_word_says_nothing)
{
    static const char *const none[] = {"{}",
                                       "[]",
                                       "killed",
                                       "3",
                                       "{\"left\":3,\"elsewhere\":\"yes\"}",
                                       "{\"left\":false,\"elsewhere\":false,\"exitCode\":\"4\"}"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct status_word word;
        read_word(&word, none[i]);
        cr_assert(!word.left && !word.elsewhere && !word.over && !word.exit_code, "%s", none[i]);
        cr_assert(*word.reason == 0);
    }
}
