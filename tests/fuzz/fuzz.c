#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

void fuzz_broken(const char *sentence)
{
    fprintf(stderr, "broken promise: %s\n", sentence);
    abort();
}

void fuzz_same(const struct str *a, const struct str *b, const char *sentence)
{
    if (a->truncated || b->truncated || a->length != b->length ||
        (a->length && memcmp(a->data, b->data, a->length))) {
        fprintf(stderr, "first:  %s\nsecond: %s\n", str_text(a), str_text(b));
        fuzz_broken(sentence);
    }
}

void fuzz_refused(const struct error *err)
{
    size_t length = strnlen(err->text, sizeof err->text);
    if (err->code == ERR_NONE || !length || length == sizeof err->text)
        fuzz_broken("a refusal has a code and a sentence");
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        fuzz_broken("no memory");
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    return text;
}

static void remove_folder(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (!folder[0]) {
        text_copy(folder, sizeof folder, "/dev/shm/ringmaster-fuzz-XXXXXX");
        if (!mkdtemp(folder))
            fuzz_broken("no folder below /dev/shm");
        atexit(remove_folder);
    }
    return folder;
}

void fuzz_file(const char *name, const void *bytes, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || (size && write(fd, bytes, size) != (ssize_t)size))
        fuzz_broken("a file can't be written");
    close(fd);
}

int fuzz_split(const uint8_t *data, size_t size, struct fuzz_part *out, int most)
{
    static const char mark[] = "\n%%\n";
    int count = 0;
    while (count < most) {
        const uint8_t *cut = count + 1 < most && size ? memmem(data, size, mark, sizeof mark - 1) : NULL;
        out[count++] = (struct fuzz_part){data, cut ? (size_t)(cut - data) : size};
        if (!cut)
            break;
        size -= (size_t)(cut - data) + sizeof mark - 1;
        data = cut + sizeof mark - 1;
    }
    return count;
}
