/* Files into a snapshot's folder and back: named ones, those that a process has open, and what was never
 * written there. */
#include "agent/snapshot/travel.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/file.h"

/* A folder for a test's files, and one for the snapshot. */
struct place {
    char work[64], images[64];
    int folder; /* images, open */
};

static void make_place(struct place *p)
{
    *p = (struct place){.work = "/tmp/travel-test-XXXXXX", .images = "/tmp/travel-test-XXXXXX"};
    cr_assert(mkdtemp(p->work) && mkdtemp(p->images));
    p->folder = open(p->images, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(p->folder, 0);
}

static void remove_place(struct place *p)
{
    char command[160];
    close(p->folder);
    snprintf(command, sizeof command, "rm -rf %s %s", p->work, p->images);
    cr_assert_eq(system(command), 0);
}

static const char *path_in(const struct place *p, const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", p->work, name);
    return path[turn];
}

static void write_text(const char *path, const char *text)
{
    struct error err = {0};
    cr_assert_eq(file_write(path, text, strlen(text), 0640, &err), 0, "%s", err.text);
}

static void expect_text(const char *path, const char *expected)
{
    struct str text = str_init(1 << 20);
    struct error err = {0};
    cr_assert_eq(file_read(path, &text, &err), 0, "%s", err.text);
    cr_expect_str_eq(str_text(&text), expected);
    str_clear(&text);
}

static void pack(const struct travel *travel, const struct place *p)
{
    struct error err = {0};
    cr_assert_eq(travel_refuse(travel, &err), 0, "%s", err.text);
    cr_assert_eq(travel_pack(travel, p->folder, &err), 0, "%s", err.text);
}

static void unpack(const struct place *p)
{
    struct error err = {0};
    cr_assert_eq(travel_unpack(p->folder, &err), 0, "%s", err.text);
}

Test(travel_files, what_is_named_comes_back_as_it_was)
{
    struct place p;
    struct stat info;
    char target[16] = "";
    make_place(&p);
    cr_assert_eq(mkdir(path_in(&p, "in"), 0750), 0);
    cr_assert_eq(mkdir(path_in(&p, "in/empty"), 0700), 0);
    write_text(path_in(&p, "in/log"), "one\ntwo\n");
    write_text(path_in(&p, "in/nothing"), "");
    cr_assert_eq(symlink("log", path_in(&p, "in/newest")), 0);
    const struct timespec times[] = {{1000000, 0}, {1234567, 5000}};
    cr_assert_eq(utimensat(AT_FDCWD, path_in(&p, "in/log"), times, 0), 0);
    char folder[128];
    snprintf(folder, sizeof folder, "%s", path_in(&p, "in"));
    const char *const named[] = {folder, "/no/such/file"};
    pack(&(struct travel){.named = named, .named_count = 2, .room = 8}, &p);
    write_text(path_in(&p, "in/log"), "something else, and longer\n");
    cr_assert_eq(unlink(path_in(&p, "in/newest")), 0);
    cr_assert_eq(rmdir(path_in(&p, "in/empty")), 0);
    write_text(path_in(&p, "in/later"), "stays\n");
    unpack(&p);
    expect_text(path_in(&p, "in/log"), "one\ntwo\n");
    expect_text(path_in(&p, "in/nothing"), "");
    expect_text(path_in(&p, "in/later"), "stays\n");
    cr_expect(stat(path_in(&p, "in/log"), &info) == 0 && (info.st_mode & 07777) == 0640);
    cr_expect(info.st_mtim.tv_sec == 1234567 && info.st_mtim.tv_nsec == 5000);
    cr_expect(stat(path_in(&p, "in/empty"), &info) == 0 && (info.st_mode & 07777) == 0700);
    cr_expect_eq(readlink(path_in(&p, "in/newest"), target, sizeof target), 3);
    cr_expect_str_eq(target, "log");
    remove_place(&p);
}

Test(travel_files, a_whole_tree_comes_back_where_nothing_of_it_is_left)
{
    struct place p;
    make_place(&p);
    cr_assert_eq(mkdir(path_in(&p, "a"), 0755), 0);
    cr_assert_eq(mkdir(path_in(&p, "a/b"), 0755), 0);
    char file[128], command[160];
    snprintf(file, sizeof file, "%s", path_in(&p, "a/b/file"));
    write_text(file, "here\n");
    const char *const named[] = {file};
    pack(&(struct travel){.named = named, .named_count = 1, .room = -1}, &p);
    snprintf(command, sizeof command, "rm -rf %s", p.work);
    cr_assert_eq(system(command), 0);
    unpack(&p);
    expect_text(file, "here\n");
    remove_place(&p);
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    cr_assert_eq(syscall(SYS_capset, &head, none), 0);
}

/* A pod's tool may read and write what its user may, and no more. */
Test(travel_files, what_nobody_may_write_to_is_put_back_without_any_right)
{
    struct place p;
    struct stat info;
    char folder[128], file[128];
    make_place(&p);
    snprintf(folder, sizeof folder, "%s", path_in(&p, "sealed"));
    snprintf(file, sizeof file, "%s", path_in(&p, "sealed/file"));
    cr_assert_eq(mkdir(folder, 0700), 0);
    write_text(file, "here\n");
    cr_assert(chmod(file, 0400) == 0 && chmod(folder, 0500) == 0);
    drop_capabilities();
    const char *const named[] = {folder};
    pack(&(struct travel){.named = named, .named_count = 1, .room = -1}, &p);
    unpack(&p);
    cr_assert(chmod(folder, 0700) == 0 && unlink(file) == 0 && rmdir(folder) == 0);
    unpack(&p);
    expect_text(file, "here\n");
    cr_expect(stat(file, &info) == 0 && (info.st_mode & 07777) == 0400);
    cr_expect(stat(folder, &info) == 0 && (info.st_mode & 07777) == 0500);
    cr_assert_eq(chmod(folder, 0700), 0);
    remove_place(&p);
}

/* The mount that a descriptor of this process is on. */
static long mount_of(int fd)
{
    char path[64];
    bool written;
    long mount = -1;
    struct str text = str_init(1 << 16);
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    cr_assert_eq(file_read(path, &text, NULL), 0);
    cr_assert(travel_descriptor(str_text(&text), &written, &mount));
    str_clear(&text);
    return mount;
}

static _Noreturn void hold_on(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        pause();
}

Test(travel_files, what_is_open_for_writing_travels_by_itself_and_nothing_else_that_is_open)
{
    struct place p;
    make_place(&p);
    write_text(path_in(&p, "written"), "ten bytes\n");
    write_text(path_in(&p, "read"), "before\n");
    write_text(path_in(&p, "gone"), "");
    int written = open(path_in(&p, "written"), O_WRONLY | O_APPEND | O_CLOEXEC);
    int again = open(path_in(&p, "written"), O_RDWR | O_CLOEXEC);
    int read_only = open(path_in(&p, "read"), O_RDONLY | O_CLOEXEC);
    int gone = open(path_in(&p, "gone"), O_WRONLY | O_CLOEXEC);
    cr_assert(written >= 0 && again >= 0 && read_only >= 0 && gone >= 0);
    cr_assert_eq(unlink(path_in(&p, "gone")), 0);
    pid_t holder = fork(); /* with all that is open here */
    if (holder == 0)
        hold_on();
    struct travel travel = {
        .root = holder, .mounts = {.count = 1, .number = {mount_of(written)}}, .room = -1};
    pack(&travel, &p);
    cr_assert_eq(write(written, "more\n", 5), 5);
    write_text(path_in(&p, "read"), "behind\n");
    unpack(&p);
    expect_text(path_in(&p, "written"), "ten bytes\n");
    expect_text(path_in(&p, "read"), "behind\n");
    cr_expect_eq(access(path_in(&p, "gone"), F_OK), -1, "CRIU keeps what has no name any more");
    travel.room = 9;
    struct error err = {0};
    cr_expect_eq(travel_refuse(&travel, &err), -1, "once, and of ten bytes");
    travel.mounts.number[0] = -1;
    cr_expect_eq(travel_refuse(&travel, &err), 0, "of another mount");
    kill(holder, SIGKILL);
    close(written), close(again), close(read_only), close(gone);
    remove_place(&p);
}

Test(travel_files, a_folder_without_them_is_as_good_and_what_nobody_wrote_is_refused)
{
    struct place p;
    char archive[128], file[128];
    struct error err = {0};
    make_place(&p);
    unpack(&p);
    snprintf(archive, sizeof archive, "%s/ringmaster-files", p.images);
    snprintf(file, sizeof file, "%s", path_in(&p, "file"));
    write_text(file, "here\n");
    const char *const named[] = {file};
    pack(&(struct travel){.named = named, .named_count = 1, .room = -1}, &p);
    struct stat info;
    cr_assert_eq(stat(archive, &info), 0);
    for (off_t length = info.st_size - 1; length >= 0; length -= 7) {
        cr_assert_eq(truncate(archive, length), 0);
        err = (struct error){0};
        cr_expect_eq(travel_unpack(p.folder, &err), -1, "of %ld bytes", (long)length);
        cr_expect(err.code == ERR_DATA &&
                      !strcmp(err.text, "this folder is no snapshot: ringmaster-files is not "
                                        "what a dump writes"),
                  "%s", err.text);
    }
    remove_place(&p);
}
