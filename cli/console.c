#include "cli/console.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/os/config.h"

static const rm_time redraw_every = 100 * RM_MS, line_every = 5 * RM_S;

void console_init(struct console *console, bool json)
{
    struct winsize size;
    *console = (struct console){.json = json, .terminal = !json && isatty(STDOUT_FILENO)};
    bool sized = console->terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col;
    console->style.columns = sized ? size.ws_col : 80;
    setlocale(LC_CTYPE, "");
    console->style.unicode = !strcmp(nl_langinfo(CODESET), "UTF-8");
    console->style.colour = console->terminal && !config_get(CONFIG_NO_COLOR);
}

static void out(struct console *console, const char *bytes, size_t length)
{
    if (console->broken || (fwrite(bytes, 1, length, stdout) == length && fflush(stdout) == 0))
        return;
    console->reason = errno;
    console->broken = true;
}

/* Takes the progress line away. */
static void clear_line(struct console *console)
{
    if (console->drawn)
        out(console, "\r\033[2K", 5);
    console->drawn = false;
}

void console_print(struct console *console, const struct str *text)
{
    if (!text->length)
        return;
    clear_line(console);
    out(console, text->data, text->length);
}

void console_say(struct console *console, const char *format, ...)
{
    va_list args;
    clear_line(console);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void console_pass(struct console *console, const char *text, size_t length)
{
    clear_line(console);
    fwrite(text, 1, length, stderr);
    fputc('\n', stderr);
}

void console_progress(struct console *console, const struct report *report, rm_time now)
{
    struct str line = str_init(1024);
    const struct report_told *told = &report->told;
    bool last = told->known ? told->step == told->steps : report->step == report->steps,
         first = !console->last_progress;
    rm_time pause = console->terminal ? redraw_every : line_every;
    if (console->json || (!first && !last && now - console->last_progress < pause))
        return;
    console->last_progress = now;
    screen_progress(report, console->style, &line);
    if (!console->terminal)
        str_adds(&line, "\n");
    clear_line(console);
    out(console, str_text(&line), line.length);
    console->drawn = console->terminal;
    str_clear(&line);
}
