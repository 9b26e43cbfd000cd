/*
 * Hostile HTTP requests.
 *
 * The first two bytes say how the others are cut into pieces.  However they are cut, the reader
 * must report the same requests and the same refusal.  Of a request that it reports, the path and
 * the query are UTF-8 without control characters, names are tokens, values have no control
 * characters, and the body is within its limit.  The memory of the reader is limited, too.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/http/authority.h"
#include "bridge/http/reader.h"
#include "json/bytes.h"
#include "json/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BODY_LIMIT 300u

static void note(struct bytes *outcome, const char *text, size_t bytes)
{
        assert(!bytes_add(outcome, text, bytes));
}

static void note_text(struct bytes *outcome, const char *text)
{
        note(outcome, text, strlen(text) + 1);
}

static void check_text(const char *text)
{
        size_t length;

        assert(utf8_valid(text, strlen(text)) == strlen(text));
        for (const char *at = text; *at; at += length)
                assert(!utf8_is_control(utf8_next(at, strlen(at), &length)));
}

static void check_field(const char *name, const char *value)
{
        static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

        assert(*name && !name[strspn(name, token)]);
        assert(*value != ' ' && *value != '\t');
        for (const char *at = value; *at; at++)
                assert(*at == '\t' || ((unsigned char)*at >= ' ' && *at != 0x7f));
}

static void check_head(const struct http_reader *reader, struct bytes *outcome)
{
        const char *name, *value = NULL;
        struct http_authority host;
        size_t bytes = 0;

        assert(reader->method < HTTP_METHODS);
        value = http_reader_host(reader, &bytes);
        assert(value ? http_authority_read(value, bytes, &host) : !reader->minor);
        if (value && http_authority_is_loopback(&host))
                note_text(outcome, "loopback");
        check_text(http_reader_path(reader));
        assert(*http_reader_path(reader) == '/' || !strcmp(http_reader_path(reader), "*"));
        note_text(outcome, http_reader_path(reader));
        if (http_reader_query(reader, "a", &value)) {
                check_text(value);
                note_text(outcome, value);
        }
        for (uint32_t i = 0; http_reader_field(reader, i, &name, &value); i++) {
                check_field(name, value);
                note_text(outcome, name);
                note_text(outcome, value);
        }
        assert(reader->head.count <= HTTP_LINE_MAX + 2 + HTTP_HEADERS_MAX);
        assert(!(http_reader_header(reader, "content-length") && reader->chunked));
}

/* False: the reader refuses. */
static bool feed(struct http_reader *reader, const char *at, size_t count, struct bytes *outcome)
{
        for (;;) {
                const char *body = NULL;
                size_t bytes = 0;
                int event = http_reader_next(reader, &at, &count, &body, &bytes);

                switch (event) {
                case HTTP_READER_MORE:
                        assert(!count);
                        return true;
                case HTTP_READER_HEAD:
                        check_head(reader, outcome);
                        break;
                case HTTP_READER_BODY:
                        assert(bytes && reader->count <= BODY_LIMIT);
                        note(outcome, body, bytes);
                        break;
                case HTTP_READER_END:
                        note_text(outcome, "END");
                        http_reader_reset(reader, BODY_LIMIT);
                        break;
                default:
                        assert(event == HTTP_READER_BAD);
                        assert(reader->problem.status >= 400 && *reader->problem.message);
                        note_text(outcome, http_refusal_name(reader->problem.refusal));
                        return false;
                }
        }
}

/* Pieces of `step` bytes behind a first one; each is memory of its own. */
static void read_cut(const uint8_t *data, size_t size, size_t first, size_t step,
                     struct bytes *outcome)
{
        struct http_reader reader;
        size_t at = 0, piece = first;

        http_reader_init(&reader, BODY_LIMIT);
        for (bool goes_on = true; at < size && goes_on; at += piece, piece = step) {
                char *copy;

                piece = piece < size - at ? piece : size - at;
                copy = malloc(piece ? piece : 1);
                assert(copy);
                memcpy(copy, data + at, piece);
                goes_on = feed(&reader, copy, piece, outcome);
                free(copy);
        }
        http_reader_reset(&reader, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct bytes whole = { 0 }, cut = { 0 };

        if (size < 2)
                return 0;
        read_cut(data + 2, size - 2, size, size, &whole);
        read_cut(data + 2, size - 2, data[0], 1 + data[1] % 16u, &cut);
        assert(whole.count == cut.count);
        assert(!whole.count || !memcmp(whole.at, cut.at, whole.count));
        bytes_deinit(&whole);
        bytes_deinit(&cut);
        return 0;
}
