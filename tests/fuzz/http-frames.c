/*
 * The reader of HTTP requests as a filter, for contrib/dev/h11.
 *
 * Each frame on the standard input is a length of 4 bytes, little endian, and as many bytes of a
 * connection.  For each frame there is a line on the standard output: what the reader makes of it.
 * Words are in hexadecimal where they come from the input:
 *
 *      request METHOD 1.MINOR PATH [NAME=VALUE ...] body .BODY ; ... STATUS
 *
 * The ";" is there if the request is whole.
 * STATUS is `more`, `idle` (between two requests), or the status of the refusal.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/http/reader.h"

#define BODY_LIMIT (UINT64_C(1) << 20)

static void put_hex(const char *text, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                printf("%02x", (unsigned char)text[i]);
}

static void put_head(const struct http_reader *reader)
{
        static const char *const methods[HTTP_METHODS] = { "GET",   "HEAD",   "POST",   "PUT",
                                                           "PATCH", "DELETE", "OPTIONS" };
        const char *name, *value;

        printf(" request %s 1.%u ", methods[reader->method], reader->minor);
        put_hex(http_reader_path(reader), strlen(http_reader_path(reader)));
        for (uint32_t i = 0; http_reader_field(reader, i, &name, &value); i++) {
                printf(" ");
                put_hex(name, strlen(name));
                printf("=");
                put_hex(value, strlen(value));
        }
        printf(" body .");
}

static void read_frame(const char *at, size_t count)
{
        struct http_reader reader;
        int event = HTTP_READER_HEAD;

        http_reader_init(&reader, BODY_LIMIT);
        while (event != HTTP_READER_MORE && event != HTTP_READER_BAD) {
                const char *body = NULL;
                size_t bytes = 0;

                event = http_reader_next(&reader, &at, &count, &body, &bytes);
                if (event == HTTP_READER_HEAD)
                        put_head(&reader);
                if (event == HTTP_READER_BODY)
                        put_hex(body, bytes);
                if (event == HTTP_READER_END) {
                        printf(" ;");
                        http_reader_reset(&reader, BODY_LIMIT);
                }
                if (event < 0)
                        exit(1);
        }
        if (event == HTTP_READER_BAD)
                printf(" %u\n", reader.problem.status);
        else
                printf(" %s\n", http_reader_has_begun(&reader) ? "more" : "idle");
        http_reader_reset(&reader, 0);
}

int main(void)
{
        unsigned char length[4];

        while (fread(length, 1, sizeof(length), stdin) == sizeof(length)) {
                size_t bytes = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 |
                               (size_t)length[3] << 24;
                char *frame = malloc(bytes ? bytes : 1);

                if (!frame || fread(frame, 1, bytes, stdin) != bytes)
                        return 1;
                read_frame(frame, bytes);
                free(frame);
                fflush(stdout);
        }
        return 0;
}
