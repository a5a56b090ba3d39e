/* As lines.py, for an image that has another C library and hardly more: rank r of WORLD_SIZE appends the
 * numbers below COUNT that are its own, each once, to FOLDER/lines.
 *   lines FOLDER COUNT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_MAX = 10000 };

static char there[COUNT_MAX];

static void read_lines(const char *path)
{
    char line[64];
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        long number = strtol(line, NULL, 10);
        if (number >= 0 && number < COUNT_MAX)
            there[number] = 1;
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    char path[256], line[64];
    if (argc != 3 || !getenv("RANK") || !getenv("WORLD_SIZE"))
        return 2;
    long rank = strtol(getenv("RANK"), NULL, 10), world = strtol(getenv("WORLD_SIZE"), NULL, 10);
    long count = strtol(argv[2], NULL, 10);
    snprintf(path, sizeof path, "%s/lines", argv[1]);
    read_lines(path);
    int out = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (out < 0 || world < 1 || count > COUNT_MAX)
        return 3;
    for (long number = rank; number < count; number += world) {
        int length = snprintf(line, sizeof line, "%ld %ld %ld\n", number, world, rank);
        if (!there[number] && write(out, line, (size_t)length) != length)
            return 4;
    }
    return 0;
}
