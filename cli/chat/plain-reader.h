/*
 * Reads a line without libedit: the terminal itself lets the user correct it.  A paste is still one
 * line with newlines in it, and ^C clears the line.
 */
#ifndef CLI_CHAT_PLAIN_READER_H
#define CLI_CHAT_PLAIN_READER_H

#include "cli/chat/line-editor.h"

/* Bytes that came behind the end of a line. */
struct plain_reader {
        struct terminal *terminal;
        struct bytes held;
};

/* As line_editor_read(). */
enum line_result plain_reader_read(struct plain_reader *reader, const char *prompt,
                                   struct bytes *to);

#endif
