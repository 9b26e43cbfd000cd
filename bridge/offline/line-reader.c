#include "bridge/offline/line-reader.h"

#include <errno.h>
#include <string.h>

#include "base/sys.h"

#define READ_BYTES ((size_t)1 << 20)

void line_reader_init(struct line_reader *reader, int fd, struct line_place place)
{
        *reader = (struct line_reader){ .fd = fd,
                                        .base = place.at,
                                        .lines = { .number = place.number } };
}

void line_reader_deinit(struct line_reader *reader)
{
        bytes_deinit(&reader->buffer);
}

/* Removes the lines that were read. */
static void forget_lines(struct line_reader *reader)
{
        struct bytes *buffer = &reader->buffer;
        size_t used = reader->lines.at;

        if (!used)
                return;
        memmove(buffer->at, buffer->at + used, buffer->count - used);
        buffer->count -= used;
        reader->base += used;
        reader->lines.at = 0;
        reader->lines.text = (struct text){ buffer->at, 0 };
}

/* Reads until a line is whole, or the file ends. */
static int read_more(struct line_reader *reader)
{
        struct bytes *buffer = &reader->buffer;
        const char *end = NULL;
        ssize_t n = 1;

        forget_lines(reader);
        while (!end && n > 0) {
                if (buffer->count > LINE_BYTES_MAX)
                        return -EFBIG;
                if (bytes_reserve(buffer, READ_BYTES))
                        return -ENOMEM;
                n = sys_pread(reader->fd, buffer->at + buffer->count, READ_BYTES,
                              reader->base + buffer->count);
                if (n < 0)
                        return (int)n;
                end = n ? memrchr(buffer->at + buffer->count, '\n', (size_t)n) : NULL;
                buffer->count += (size_t)n;
        }
        reader->ended = !n;
        reader->lines.text.at = buffer->at;
        reader->lines.text.bytes = end ? (size_t)(end - buffer->at) + 1 : buffer->count;
        return 0;
}

int line_reader_next(struct line_reader *reader, struct text *ret_line)
{
        int r = 0;

        while (!r && !batch_lines_next(&reader->lines, ret_line)) {
                if (reader->ended)
                        return 0;
                r = read_more(reader);
        }
        return r ? r : 1;
}

struct line_place line_reader_place(const struct line_reader *reader)
{
        return (struct line_place){ reader->base + reader->lines.at, reader->lines.number };
}

bool line_reader_was_whole(const struct line_reader *reader)
{
        return reader->lines.at && reader->buffer.at[reader->lines.at - 1] == '\n';
}
