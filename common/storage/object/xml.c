#include "common/storage/object/xml.h"

#include <expat.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"

struct reader {
    XML_Parser parser;
    int (*closed)(void *ctx, const char *path, const char *text, struct error *err);
    void *ctx;
    char path[XML_PATH_MAX];
    size_t ends[XML_DEPTH_MAX]; /* of the paths of the elements that are open */
    int depth;
    bool holds; /* the element that ends next holds others: its text is white space or refused */
    struct str text;
    struct error failed; /* code is not ERR_NONE: ended here */
};

static void stop_reader(struct reader *reader, const char *why)
{
    if (reader->failed.code == ERR_NONE)
        err_set(&reader->failed, ERR_DATA, "%s", why);
    XML_StopParser(reader->parser, XML_FALSE);
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == 0;
}

static void element_start(void *ctx, const XML_Char *name, const XML_Char **attributes)
{
    (void)attributes;
    struct reader *reader = ctx;
    const char *colon = strrchr(name, ':');
    size_t at = reader->depth ? reader->ends[reader->depth - 1] : 0;
    name = colon ? colon + 1 : name;
    if (reader->failed.code != ERR_NONE)
        return;
    if (!is_blank(str_text(&reader->text)))
        return stop_reader(reader, "text beside elements");
    if (reader->depth == XML_DEPTH_MAX || at + 1 + strlen(name) + 1 > sizeof reader->path)
        return stop_reader(reader, "elements too deep");
    if (reader->depth)
        reader->path[at++] = '/';
    text_copy(reader->path + at, sizeof reader->path - at, name);
    reader->ends[reader->depth++] = at + strlen(name);
    reader->holds = false;
    str_reset(&reader->text);
}

static void element_end(void *ctx, const XML_Char *name)
{
    (void)name;
    struct reader *reader = ctx;
    const char *text = str_text(&reader->text);
    if (reader->failed.code != ERR_NONE)
        return;
    if (reader->holds && !is_blank(text))
        return stop_reader(reader, "text beside elements");
    if (reader->closed(reader->ctx, reader->path, reader->holds ? "" : text, &reader->failed) < 0)
        return stop_reader(reader, "refused");
    reader->depth--;
    reader->path[reader->depth ? reader->ends[reader->depth - 1] : 0] = 0;
    reader->holds = true;
    str_reset(&reader->text);
}

static void text_came(void *ctx, const XML_Char *text, int length)
{
    struct reader *reader = ctx;
    str_add(&reader->text, text, (size_t)length);
    if (reader->text.truncated)
        stop_reader(reader, "a text too long");
}

static void doctype_came(void *ctx, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                         int own)
{
    (void)name, (void)system, (void)public, (void)own;
    stop_reader(ctx, "a document type");
}

static int read_all(struct reader *reader, const void *bytes, size_t length, struct error *err)
{
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, element_start, element_end);
    XML_SetCharacterDataHandler(reader->parser, text_came);
    XML_SetStartDoctypeDeclHandler(reader->parser, doctype_came);
    if (XML_Parse(reader->parser, bytes, (int)length, 1) == XML_STATUS_OK)
        return 0;
    if (reader->failed.code != ERR_NONE)
        return err_set(err, reader->failed.code, "%s", reader->failed.text);
    return err_set(err, ERR_DATA, "not XML: %s", XML_ErrorString(XML_GetErrorCode(reader->parser)));
}

int xml_read(const void *bytes, size_t length,
             int (*closed)(void *ctx, const char *path, const char *text, struct error *err), void *ctx,
             struct error *err)
{
    struct reader reader = {.closed = closed, .ctx = ctx, .text = str_init(XML_TEXT_MAX - 1)};
    if (length > INT_MAX)
        return err_set(err, ERR_DATA, "not XML: too long");
    reader.parser = XML_ParserCreate("UTF-8");
    if (!reader.parser)
        return err_set(err, ERR_MACHINE, "no memory to read XML");
    int result = read_all(&reader, bytes, length, err);
    XML_ParserFree(reader.parser);
    if (reader.text.data)
        explicit_bzero(reader.text.data, reader.text.capacity); /* credentials come this way, too */
    str_clear(&reader.text);
    return result;
}
