/* The index of a data folder: as bytes, and where it lies. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/crypto.h"
#include "common/storage/data/index_file.h"
#include "common/storage/data/tree.h"

static struct data_index of_three_files(void)
{
    struct data_index index = {0};
    const struct index_entry file[] = {{"a", 5, 1700000000, 999999999, 17, 0},
                                       {"b/c \n", 0, -3, 0, 1, 0},
                                       {"\xff", TREE_CHUNK + 1, 0, 1, UINT64_MAX, 0}};
    struct error err;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(data_index_add(&index, &file[i], &err), 0, "%s", err.text);
    for (int64_t c = 0; c < index.chunks; c++)
        memset(index.chunk[c], (int)c + 1, RM_HASH_BYTES);
    return index;
}

static struct str as_bytes(const struct data_index *index)
{
    struct str text = str_init(DATA_INDEX_BYTES_MAX);
    struct error err;
    cr_assert_eq(data_index_write(index, &text, &err), 0, "%s", err.text);
    return text;
}

Test(index, what_is_written_is_read_the_same)
{
    struct data_index first = of_three_files(), again;
    struct str text = as_bytes(&first), twice;
    struct error err;
    cr_assert_eq(data_index_read(&again, text.data, text.length, "index", &err), 0, "%s", err.text);
    cr_assert_eq(again.count, 3);
    cr_assert_eq(again.chunks, 3);
    cr_assert_eq(again.file[2].first, 1);
    for (int i = 0; i < 3; i++)
        cr_assert(data_index_same(&first.file[i], &again.file[i]) &&
                  !strcmp(first.file[i].name, again.file[i].name));
    cr_assert_eq(data_index_find(&again, "b/c \n"), &again.file[1]);
    cr_assert_null(data_index_find(&again, "b"));
    twice = as_bytes(&again);
    cr_assert(text.length == twice.length && !memcmp(text.data, twice.data, text.length));
    str_clear(&text);
    str_clear(&twice);
    data_index_clear(&first);
    data_index_clear(&again);
}

Test(index, two_differ_in_files_that_look_the_same_and_have_other_chunks)
{
    struct data_index first = of_three_files(), other = of_three_files();
    cr_assert_eq(data_index_differences(&first, &other), 0);
    other.chunk[other.file[2].first + 1][7] ^= 1;
    cr_assert_eq(data_index_differences(&first, &other), 1);
    other.chunk[other.file[0].first][0] ^= 1;
    cr_assert_eq(data_index_differences(&first, &other), 2);
    other.file[2].seconds++;
    cr_assert_eq(data_index_differences(&first, &other), 1, "what looks otherwise is another file");
    data_index_clear(&first);
    data_index_clear(&other);
}

static void refuses(const void *bytes, size_t length, const char *part)
{
    struct data_index index;
    struct error err = {0};
    char *exact = malloc(length + !length); /* so that a sanitizer sees a step over its end */
    if (length)
        memcpy(exact, bytes, length);
    cr_assert_eq(data_index_read(&index, exact, length, "data/.ringmaster-index", &err), -1, "%zu bytes",
                 length);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, "data/.ringmaster-index") == err.text && strstr(err.text, part), "%s",
              err.text);
    cr_assert(strstr(err.text, "ringmaster data index"), "what to do: %s", err.text);
    data_index_clear(&index);
    free(exact);
}

Test(index, one_that_is_cut_anywhere_is_refused)
{
    struct data_index index = of_three_files();
    struct str text = as_bytes(&index);
    for (size_t length = 0; length < text.length; length++)
        refuses(text.data, length, "cut short");
    str_add(&text, "x", 1);
    refuses(text.data, text.length, "longer than it says");
    str_clear(&text);
    data_index_clear(&index);
}

Test(index, one_in_which_any_byte_is_another_is_refused)
{
    struct data_index index = of_three_files();
    struct str text = as_bytes(&index);
    for (size_t at = 0; at < text.length; at++) {
        text.data[at] ^= 0x10;
        refuses(text.data, text.length, "data/.ringmaster-index");
        text.data[at] ^= 0x10;
    }
    str_clear(&text);
    data_index_clear(&index);
}

static void seal(struct str *text)
{
    sha256_once(text->data, text->length - RM_HASH_BYTES,
                (uint8_t *)text->data + text->length - RM_HASH_BYTES);
}

/* Where the entries of the three files begin. */
enum { FIRST = 40, SECOND = FIRST + 32 + 1, THIRD = SECOND + 32 + 5 };

Test(index, one_whose_hash_is_right_is_still_held_against_itself)
{
    static const struct {
        size_t at;
        uint8_t byte;
        const char *part;
    } table[] = {{8, 2, "newer release (version 2"},
                 {8, 0, "no version"},
                 {14, 1, "no version"},
                 {16, 2, "fewer chunks"},
                 {16, 4, "missing"},
                 {16, 9, "no room"},
                 {24, 2, "more chunks"},
                 {24, 4, "missing"},
                 {31, 0x80, "no room"},
                 {FIRST + 7, 0x80, "can't be so"},
                 {FIRST + 3, 4, "more chunks"},
                 {FIRST + 19, 0x7f, "can't be so"},
                 {FIRST + 20, 2, "can't be so"},
                 {FIRST + 20, 0, "can't be so"},
                 {FIRST + 23, 0x80, "longer than"},
                 {FIRST + 32, '.', "can't be so"},
                 {FIRST + 32, '/', "can't be so"},
                 {FIRST + 32, 'c', "does not come behind"},
                 {SECOND + 32, 'A', "does not come"},
                 {SECOND + 34, '.', "can't be so"},
                 {SECOND + 34, '/', "can't be so"},
                 {SECOND + 3, 1, "more chunks"},
                 {THIRD + 3, 0, "fewer chunks"}};
    struct data_index index = of_three_files();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct str text = as_bytes(&index);
        text.data[table[i].at] = (char)table[i].byte;
        seal(&text);
        refuses(text.data, text.length, table[i].part);
        str_clear(&text);
    }
    data_index_clear(&index);
}

Test(index, a_file_is_the_same_by_size_time_and_inode)
{
    const struct index_entry is = {"a", 5, 6, 7, 8, 0};
    struct index_entry other[] = {is, is, is, is, is};
    other[0].bytes++;
    other[1].seconds--;
    other[2].nanoseconds++;
    other[3].inode++;
    for (int i = 0; i < 4; i++)
        cr_assert_not(data_index_same(&is, &other[i]), "%d", i);
    cr_assert(data_index_same(&is, &other[4]));
}

static char folder[64], data[80];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/index-test-XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(data, sizeof data, "%s/data", folder);
    cr_assert_eq(mkdir(data, 0755), 0);
}

static void remove_folder(void)
{
    char path[RM_URI_MAX];
    for (int place = 0; place < DATA_INDEX_PLACES; place++) {
        data_index_path(data, place, path);
        unlink(path);
    }
    rmdir(data);
    rmdir(folder);
}

TestSuite(index_file, .init = make_folder, .fini = remove_folder);

Test(index_file, it_lies_in_the_folder_under_a_hidden_name_or_beside_it)
{
    static const struct {
        const char *folder;
        int place;
        const char *path;
    } table[] = {{"/d/books", 0, "/d/books/.ringmaster-index"},
                 {"/d/books", 1, "/d/books.ringmaster-index"},
                 {"/d/books//", 0, "/d/books/.ringmaster-index"},
                 {"/d/books//", 1, "/d/books.ringmaster-index"},
                 {"/", 0, "/.ringmaster-index"},
                 {"/", 1, ""}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char path[RM_URI_MAX];
        data_index_path(table[i].folder, table[i].place, path);
        cr_assert_str_eq(path, table[i].path, "row %zu", i);
    }
}

Test(index_file, it_is_saved_over_an_older_one_and_loaded)
{
    struct data_index index = of_three_files(), loaded;
    char path[RM_URI_MAX], expected[RM_URI_MAX];
    struct error err;
    data_index_path(data, 0, expected);
    cr_assert_eq(data_index_load(&loaded, expected, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(data_index_save(&index, data, path, &err), 0, "%s", err.text);
    cr_assert_str_eq(path, expected);
    cr_assert_eq(data_index_load(&loaded, path, &err), 0, "%s", err.text);
    cr_assert_eq(loaded.count, 3);
    data_index_clear(&index);
    data_index_clear(&loaded);
}

Test(index_file, what_is_no_file_is_no_index)
{
    struct data_index loaded;
    char path[RM_URI_MAX];
    struct error err = {0};
    data_index_path(data, 0, path);
    cr_assert_eq(mkfifo(path, 0644), 0);
    cr_assert_eq(data_index_load(&loaded, path, &err), -1);
    cr_assert(err.code == ERR_DATA && strstr(err.text, "this is no file"), "%s", err.text);
}

/* --- where it lies --- */

static char place[64], lies[RM_URI_MAX];

static int64_t count_loaded(void)
{
    struct data_index index;
    struct error err = {0};
    cr_assert_eq(data_index_load(&index, lies, &err), 0, "%s", err.text);
    int64_t count = index.count;
    data_index_clear(&index);
    return count;
}

static int entries(void)
{
    int count = 0;
    DIR *all = opendir(place);
    cr_assert(all);
    while (readdir(all))
        count++;
    closedir(all);
    return count - 2;
}

/* Asks nothing of Criterion: of two processes that tell it of an assertion at the same time one may wait for
 * the answer that the other one got, for ever. */
static int try_save_files(int count, struct error *err)
{
    struct data_index index = {0};
    char path[RM_URI_MAX], name[3] = "aa";
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        snprintf(name, sizeof name, "%c%c", 'a' + i / 26, 'a' + i % 26);
        result = data_index_add(&index, &(struct index_entry){.name = name, .bytes = 3}, err);
    }
    if (result == 0)
        result = data_index_save(&index, place, path, err);
    data_index_clear(&index);
    return result == 0 && strcmp(path, lies) ? -1 : result;
}

static void save_files(int count)
{
    struct error err = {0};
    cr_assert_eq(try_save_files(count, &err), 0, "%s", err.text);
}

static void make_place(void)
{
    snprintf(place, sizeof place, "/tmp/index-test-XXXXXX");
    cr_assert(mkdtemp(place));
    data_index_path(place, 0, lies);
}

static void remove_place(void)
{
    unlink(lies);
    cr_assert_eq(rmdir(place), 0, "something is left in it");
}

Test(index, who_is_killed_while_it_writes_leaves_the_one_before_and_the_next_one_clears_up)
{
    int status;
    make_place();
    save_files(2);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        cr_assert(child >= 0);
        if (!child) {
            setenv("RINGMASTER_FAULT", "index-begun", 1);
            _exit(try_save_files(3, NULL) < 0);
        }
        cr_assert(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        cr_assert_eq(count_loaded(), 2);
        cr_assert_eq(entries(), 2, "what was left before is gone");
    }
    save_files(4);
    cr_assert_eq(count_loaded(), 4);
    cr_assert_eq(entries(), 1);
    remove_place();
}

/* Processes of one number too, as those of two containers may be. */
Test(index, of_some_that_write_at_once_one_counts_and_who_reads_has_a_whole_one)
{
    enum { WRITERS = 4, ROUNDS = 40 };
    int status, left = WRITERS;
    make_place();
    save_files(1);
    for (int writer = 0; writer < WRITERS; writer++)
        if (!fork()) {
            for (int i = 0; i < ROUNDS; i++)
                if (try_save_files(100 + 100 * writer, NULL) < 0)
                    _exit(1);
            _exit(0);
        }
    while (left) {
        int64_t count = count_loaded();
        cr_assert(count == 1 || count % 100 == 0, "%lld", (long long)count);
        pid_t child = waitpid(-1, &status, WNOHANG);
        left -= child > 0;
        cr_assert(child <= 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "%x", status);
    }
    cr_assert_eq(entries(), 1);
    remove_place();
}
