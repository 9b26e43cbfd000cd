/*
 * Reads a regular file line by line, in constant memory, whatever its size.
 *
 * Lines are those of batch-lines.h.  A line may have LINE_BYTES_MAX bytes.  Loop thread only.
 */
#ifndef BRIDGE_OFFLINE_LINE_READER_H
#define BRIDGE_OFFLINE_LINE_READER_H

#include "bridge/openai/batch-lines.h"
#include "json/bytes.h"

#define LINE_BYTES_MAX (UINT64_C(64) << 20)

struct line_reader {
        int fd; /* of the caller */
        struct bytes buffer;
        struct batch_lines lines; /* those of the buffer that are whole */
        uint64_t base;            /* of the buffer, in the file */
        bool ended;               /* nothing of the file is behind the buffer */
};

/* A place in the file: behind the last line that was read. */
struct line_place {
        uint64_t at;
        uint32_t number; /* of that line, from 1 */
};

/* Begins at a place; { 0 } is the beginning of the file. */
void line_reader_init(struct line_reader *reader, int fd, struct line_place place);
void line_reader_deinit(struct line_reader *reader);

/*
 * 1 and the next line that is not blank, valid until the next call; 0: there is none; -EFBIG: the
 * line is too long; or another negative errno.
 */
int line_reader_next(struct line_reader *reader, struct text *ret_line);

struct line_place line_reader_place(const struct line_reader *reader);
/* The last line that was read has its newline: it is not the torn end of the file. */
bool line_reader_was_whole(const struct line_reader *reader);

#endif
