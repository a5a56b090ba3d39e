#include "agent/launch/error_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/config.h"
#include "common/os/file.h"
#include "common/wire/json.h"

enum { FILE_MAX_BYTES = 256 * 1024 };

int error_file_folder(char *ret, size_t size, struct error *err)
{
    const char *base = config_get(CONFIG_TMPDIR);
    int length = snprintf(ret, size, "%s/ringmaster-XXXXXX", base ? base : "/tmp");
    if (length >= (int)size) {
        *ret = 0;
        return err_set(err, ERR_USAGE, "%s is longer than %zu characters; set it to a shorter path",
                       config_name(CONFIG_TMPDIR), size - sizeof "/ringmaster-XXXXXX");
    }
    if (!mkdtemp(ret)) {
        int failed = err_errno(err, ERR_MACHINE, "%s: no folder for the program's error files", ret);
        *ret = 0;
        return failed;
    }
    return 0;
}

static void path_of(const char *folder, int local, char *ret, size_t size)
{
    snprintf(ret, size, "%s/error-%d.json", folder, local);
}

void error_file_fresh(const char *folder, int local, char *ret, size_t size)
{
    path_of(folder, local, ret, size);
    unlink(ret);
}

/* What matters of a traceback is its end. */
static void add_end(const char *text, struct str *out)
{
    size_t length = strlen(text), skip = length > out->ceiling ? length - out->ceiling : 0;
    const char *line = skip ? strchr(text + skip, '\n') : NULL;
    str_adds(out, line && line[1] ? line + 1 : text + skip);
}

/* {"message": {"message": "...", "extraInfo": {"py_callstack": "...", "timestamp": "..."}}}, or "message" as
 * a text: as torch.distributed.elastic writes it. */
bool error_file_read(const char *folder, int local, struct str *message, struct str *traceback)
{
    char path[ERROR_PATH_MAX];
    struct error err;
    struct str text = str_init(FILE_MAX_BYTES);
    path_of(folder, local, path, sizeof path);
    struct js *root = NULL;
    if (*folder && file_read(path, &text, &err) == 0)
        root = js_parse(str_text(&text), text.length, "the error file", &err);
    const struct js *outer = js_get(root, "message"), *inner = js_get(outer, "message");
    const char *said = js_as_string(inner ? inner : outer);
    const char *stack = js_as_string(js_get(js_get(outer, "extraInfo"), "py_callstack"));
    if (said) {
        str_adds(message, said);
        add_end(stack && *stack ? stack : said, traceback);
    }
    bool said_any = said != NULL;
    js_free(root);
    str_clear(&text);
    return said_any;
}

void error_file_remove(const char *folder)
{
    char path[ERROR_PATH_MAX];
    for (int i = 0; *folder && i < 64; i++) {
        path_of(folder, i, path, sizeof path);
        unlink(path);
    }
    if (*folder)
        rmdir(folder);
}
