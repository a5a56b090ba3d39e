#include "common/storage/data/index_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/file.h"

static const char suffix[] = ".ringmaster-index";

void data_index_path(const char *folder, int place, char out[RM_URI_MAX])
{
    size_t length = strlen(folder);
    while (length && folder[length - 1] == '/')
        length--;
    int n = snprintf(out, RM_URI_MAX, "%.*s%s%s", (int)length, folder, place ? "" : "/", suffix);
    if (n >= RM_URI_MAX || (place && !length))
        *out = 0;
}

/* What is no file might never end. */
static bool is_odd(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

int data_index_load(struct data_index *ret, const char *path, struct error *err)
{
    struct str text = str_init(DATA_INDEX_BYTES_MAX);
    *ret = (struct data_index){0};
    int status = is_odd(path)
                     ? err_set(err, ERR_DATA, "%s: this is no file, and so no index; delete it", path)
                     : file_read(path, &text, err);
    if (status == 0)
        status = data_index_read(ret, str_text(&text), text.length, path, err);
    str_clear(&text);
    return status;
}

static bool may_write(const char *folder)
{
    return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
}

int data_index_save(const struct data_index *index, const char *folder, char ret_path[RM_URI_MAX],
                    struct error *err)
{
    struct str text = str_init(DATA_INDEX_BYTES_MAX);
    data_index_path(folder, !may_write(folder), ret_path);
    int status = *ret_path
                     ? data_index_write(index, &text, err)
                     : err_set(err, ERR_DATA, "%s: there is no room for an index in it or beside it", folder);
    if (status == 0 && file_write(ret_path, str_text(&text), text.length, 0644, err) < 0)
        status = err_wrap(err, "the index can't be written");
    str_clear(&text);
    return status;
}
