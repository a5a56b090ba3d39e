/* Stands in for the trainer where only its manners matter: FAKE_TRAINER says which. The real link protocol on
 * descriptor 3. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/wire/message.h"

static void say(const struct message *message)
{
    struct str text = str_init(RM_FRAME_MAX);
    message_write(message, &text);
    unsigned char header[4];
    for (int i = 0; i < 4; i++)
        header[i] = (unsigned char)(text.length >> 8 * i);
    if (write(3, header, 4) != 4 || write(3, text.data, text.length) != (ssize_t)text.length)
        _exit(9);
    str_clear(&text);
}

static void say_heartbeats(int count)
{
    static struct message message = {.type = MSG_HEARTBEAT, .heartbeat = {.waiting_for = -1}};
    for (int i = 1; i <= count; i++) {
        message.heartbeat.counter = i;
        say(&message);
    }
}

static void wait_for_the_end_of_the_link(void)
{
    char byte;
    while (read(3, &byte, 1) > 0)
        ;
}

int main(void)
{
    const char *manners = getenv("FAKE_TRAINER");
    if (!manners)
        return 8;
    if (!strcmp(manners, "speaks and exits")) {
        say_heartbeats(200);
        return 3;
    }
    if (!strcmp(manners, "closes the link and stays")) {
        close(3);
        for (;;)
            pause();
    }
    if (!strcmp(manners, "speaks garbage")) {
        if (write(3, "\x07\0\0\0garbage", 11) != 11)
            return 9;
        for (;;)
            pause();
    }
    say_heartbeats(1);
    wait_for_the_end_of_the_link();
    return 0;
}
