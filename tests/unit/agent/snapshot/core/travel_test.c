/* What travels with a snapshot and what does not, by what /proc says of it; and the heads that it has there.
 */
#include "agent/snapshot/core/travel.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(travel, a_descriptor_is_written_to_by_its_flags_and_lies_on_its_mount)
{
    static const struct {
        const char *fdinfo;
        bool told, written;
        long mount;
    } rows[] = {
        {"pos:\t0\nflags:\t0100001\nmnt_id:\t29\nino:\t7\n", true, true, 29},
        {"pos:\t12\nflags:\t02100002\nmnt_id:\t1042\n", true, true, 1042},
        {"pos:\t0\nflags:\t0100000\nmnt_id:\t29\n", true, false, 29},
        {"pos:\t0\nflags:\t012100002\nmnt_id:\t29\n", true, false, 29}, /* O_PATH: it can't be written to */
        {"pos:\t0\nflags:\t0100001\n", false, false, 0},
        {"flags:\nmnt_id:\t29\n", false, false, 0},
        {"", false, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool written = false;
        long mount = 0;
        cr_assert_eq(travel_descriptor(rows[i].fdinfo, &written, &mount), rows[i].told, "row %zu", i);
        if (rows[i].told)
            cr_expect(written == rows[i].written && mount == rows[i].mount, "row %zu: %ld", i, mount);
    }
}

/* How many there are, and whether those two are among them. */
static void owns(const char *mountinfo, int count, long first, long second)
{
    struct travel_mounts mounts;
    travel_own_mounts(mountinfo, &mounts);
    cr_expect_eq(mounts.count, count, "%d: %s", mounts.count, mountinfo);
    cr_expect(first < 0 || travel_is_own(&mounts, first), "%ld: %s", first, mountinfo);
    cr_expect(second < 0 || travel_is_own(&mounts, second), "%ld: %s", second, mountinfo);
}

Test(travel, the_mount_at_the_root_is_the_pods_own_and_the_last_one_there_counts)
{
    owns("21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
         "22 21 0:20 / /proc rw - proc proc rw\n"
         "915 21 0:70 / / rw,relatime - overlay overlay rw\n"
         "916 915 8:1 /data /data rw - ext4 /dev/sda1 rw\n",
         1, 915, -1);
    owns("916 915 8:1 / /data rw - ext4 /dev/sda1 rw\n", 0, -1, -1);
    owns("21 1 8:1 /\n", 0, -1, -1);
    owns("", 0, -1, -1);
}

Test(travel, so_are_its_empty_folders_and_what_lies_in_memory_and_no_other_volume)
{
#define PODS "/var/lib/kubelet/pods/0b1c/volumes/"
    owns("915 21 0:70 / / rw - overlay overlay rw\n"
         "920 915 8:1 " PODS "kubernetes.io~empty-dir/ringmaster-tmp /tmp rw master:1 - ext4 /dev/sda1 rw\n"
         "921 915 8:1 " PODS "kubernetes.io~csi/pvc-7/mount /data rw - ext4 /dev/sda1 rw\n"
         "922 915 8:1 /srv/kubernetes.io~empty-dir-of-mine /mine rw - ext4 /dev/sda1 rw\n"
         "923 915 0:99 / /dev/shm rw,nosuid shared:3 master:2 - tmpfs tmpfs rw\n"
         "924 915 0:99 /part /memory rw - tmpfs tmpfs rw\n"
         "926 915 0:99 / /tmpfs rw - ext4 tmpfs rw\n"
         "925 915 0:98 / /nfs rw - nfs4 server:/ rw\n",
         4, 920, 923);
}

Test(travel, of_very_many_mounts_the_root_is_looked_at_in_any_case)
{
    char text[1 << 14];
    size_t length = 0;
    for (int i = 0; i < 2 * TRAVEL_MOUNTS_MAX; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "%d 1 0:9 / /m%d rw - tmpfs tmpfs rw\n", 100 + i, i);
    snprintf(text + length, sizeof text - length, "7 1 0:70 / / rw - overlay overlay rw\n");
    owns(text, TRAVEL_MOUNTS_MAX, 7, 100);
}

Test(travel, what_lies_below_a_folder_lies_in_it)
{
    cr_expect(travel_lies_in("/tmp/work", "/tmp/work"));
    cr_expect(travel_lies_in("/tmp/work/a", "/tmp/work/"));
    cr_expect(travel_lies_in("/tmp/work/a", "//"));
    cr_expect_not(travel_lies_in("/tmp/works", "/tmp/work"));
    cr_expect_not(travel_lies_in("/tmp", "/tmp/work"));
}

Test(travel, the_kernels_files_and_the_snapshots_own_folder_are_refused)
{
    static const struct {
        const char *path, *in; /* in: "" for one that can travel */
    } rows[] = {
        {"/tmp/work", ""},
        {"/images", ""},
        {"/var/lib/ringmaster/snapshots/mine", ""},
        {"/process", ""},
        {"//", "/dev"},
        {"/proc/1/cwd", "/proc"},
        {"/sys/", "/sys"},
        {"/dev/shm/mine", "/dev"},
        {"/var/lib", "/var/lib/ringmaster/snapshots"},
        {"/var/lib/ringmaster/snapshots", "/var/lib/ringmaster/snapshots"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = {0};
        char sentence[256];
        int result = travel_refuse_path(rows[i].path, "/var/lib/ringmaster/snapshots", &err);
        cr_expect_eq(result, *rows[i].in ? -1 : 0, "%s", rows[i].path);
        snprintf(sentence, sizeof sentence,
                 "spec.checkpoint.processPaths has %s, but %s can't travel with a snapshot; name what the "
                 "program writes",
                 rows[i].path, rows[i].in);
        if (*rows[i].in)
            cr_expect(err.code == ERR_USAGE && !strcmp(err.text, sentence), "%s", err.text);
    }
}

Test(travel, what_is_too_much_is_refused_with_what_to_do)
{
    const int64_t mib = 1 << 20;
    struct error err = {0};
    cr_expect_eq(travel_refuse_bytes(0, 1024 * mib, -1, &err), 0);
    cr_expect_eq(travel_refuse_bytes(1 << 20, 2 << 20, 3 << 20, &err), 0);
    cr_expect_eq(travel_refuse_bytes(0, 1025 * mib, -1, &err), -1);
    cr_expect_str_eq(err.text, "files that the program writes to have 1025 MiB, and 1024 MiB travel by "
                               "themselves; name them in checkpoint.processPaths");
    cr_expect_eq(travel_refuse_bytes(4096 * mib, 0, -1, &err), 0, "those that are named have no such bound");
    cr_expect_eq(travel_refuse_bytes(3 * mib, 1 * mib, 3 * mib, &err), -1);
    cr_expect_str_eq(err.text,
                     "there is no room for a snapshot: files of 4 MiB travel with it, and 3 MiB are "
                     "free on disk beside its memory; make its volume larger");
    cr_expect_eq(travel_refuse_bytes(INT64_MAX, INT64_MAX / 2, 1 << 20, NULL), -1);
}

Test(travel, a_head_that_nobody_wrote_is_none)
{
    const struct travel_head sound = {
        .magic = TRAVEL_HEAD_MAGIC, .kind = TRAVEL_FILE, .mode = 0644, .path_length = 9, .size = 5};
    struct travel_head odd = sound;
    cr_expect(travel_head_holds(&sound));
    odd.magic++;
    cr_expect_not(travel_head_holds(&odd));
    odd = sound, odd.kind = 'x';
    cr_expect_not(travel_head_holds(&odd));
    odd = sound, odd.mode = 0100644;
    cr_expect_not(travel_head_holds(&odd));
    odd = sound, odd.path_length = 0;
    cr_expect_not(travel_head_holds(&odd));
    odd = sound, odd.path_length = TRAVEL_PATH_MAX;
    cr_expect_not(travel_head_holds(&odd));
    odd = sound, odd.size = UINT64_MAX;
    cr_expect_not(travel_head_holds(&odd));
    odd = sound, odd.kind = TRAVEL_FOLDER;
    cr_expect_not(travel_head_holds(&odd), "a folder has no bytes");
    odd = sound, odd.kind = TRAVEL_LINK, odd.size = TRAVEL_PATH_MAX;
    cr_expect_not(travel_head_holds(&odd));
    odd = sound, odd.kind = TRAVEL_END;
    cr_expect_not(travel_head_holds(&odd), "an end has no path");
    odd = (struct travel_head){.magic = TRAVEL_HEAD_MAGIC, .kind = TRAVEL_END};
    cr_expect(travel_head_holds(&odd));
}

Test(travel, a_path_begins_at_the_root_and_goes_straight_down)
{
    static const char *const sound[] = {"/a", "/a/b..c", "/...", "/a/..b", "/tmp/work"};
    static const char *const odd[] = {"", "/", "a", "/..", "/../a", "/a/..", "/a/../b", "./a"};
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
        cr_expect(travel_path_holds(sound[i], strlen(sound[i])), "%s", sound[i]);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        cr_expect_not(travel_path_holds(odd[i], strlen(odd[i])), "%s", odd[i]);
    cr_expect_not(travel_path_holds("/a\0b", 4));
}
