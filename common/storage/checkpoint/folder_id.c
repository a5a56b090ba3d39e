#include "common/storage/checkpoint/folder_id.h"

#include <string.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/files.h"

static const char name[] = ".folder-id";

static bool is_id(const char *text, size_t length)
{
    return length == FOLDER_ID_CHARS - 1 && strspn(text, "0123456789abcdef") == length;
}

static bool read_id(struct object_store *store, char out[FOLDER_ID_CHARS])
{
    struct str text = str_init(FOLDER_ID_CHARS);
    bool found =
        object_get(store, name, FOLDER_ID_CHARS - 1, &text, NULL) == 0 && is_id(str_text(&text), text.length);
    if (found)
        text_copy(out, FOLDER_ID_CHARS, str_text(&text));
    str_clear(&text);
    return found;
}

static void write_id(struct object_store *store)
{
    uint8_t drawn[(FOLDER_ID_CHARS - 1) / 2];
    char id[FOLDER_ID_CHARS];
    struct str text = str_init(FOLDER_ID_CHARS);
    crypto_random(drawn, sizeof drawn);
    hex_encode(drawn, sizeof drawn, id);
    str_adds(&text, id);
    files_put(store, name, &text, OBJECT_CREATE, NULL);
    str_clear(&text);
}

/* What was written is read back: another machine may have been first. */
void folder_id(struct object_store *store, char out[FOLDER_ID_CHARS])
{
    out[0] = 0;
    if (!object_is_local(store) || read_id(store, out))
        return;
    write_id(store);
    read_id(store, out);
}
