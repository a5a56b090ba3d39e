/* Messages between coordinator, agent and trainer: what decodes encodes, and decodes to the same again. */
#include <stdlib.h>

#include "common/wire/message.h"
#include "tests/fuzz/fuzz.h"

static struct message message, again; /* large */

static void check_accepted(void)
{
    struct str first = str_init(4 << 20), second = str_init(4 << 20);
    struct error err = {0};
    char line[120];
    message_write(&message, &first);
    if (message_read(&again, str_text(&first), first.length, &err) < 0)
        fuzz_broken(err.text);
    message_write(&again, &second);
    fuzz_same(&first, &second, "a message that decodes is encoded and decoded the same");
    message_describe(&message, line, sizeof line);
    str_clear(&first);
    str_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    char *text = fuzz_text(data, size);
    if (message_read(&message, text, size, &err) == 0)
        check_accepted();
    else
        fuzz_refused(&err);
    free(text);
    return 0;
}
