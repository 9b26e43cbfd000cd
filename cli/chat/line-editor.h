/*
 * Reads a line that the user can edit, with libedit.
 *
 * A line may have newlines in it: those of a paste, of a history entry, or typed as Alt-Enter.  ^G
 * lets the user edit the line in $VISUAL or $EDITOR.  Signals come by the terminal: ^C clears the
 * line, and a new size of the terminal draws it again.
 */
#ifndef CLI_CHAT_LINE_EDITOR_H
#define CLI_CHAT_LINE_EDITOR_H

#include "cli/chat/terminal.h"
#include "json/bytes.h"

enum line_result {
        LINE_READ,
        LINE_END,         /* ^D in an empty line, or no terminal any more */
        LINE_INTERRUPTED, /* ^C: the line is gone */
        LINE_TOLD_TO_END, /* a signal says that the process shall end */
        LINE_FAILED,
};

/*
 * Completes the word before the cursor.  `line` is the text up to there.  Fills `matches`, which
 * the completer owns, and *ret_word with the place where the word begins.  Returns how many there
 * are; LINE_FILES: names of files complete it.
 */
#define LINE_MATCHES_MAX 64u
#define LINE_FILES       SIZE_MAX
typedef size_t line_complete_fn(void *arg, const char *line, size_t *ret_word,
                                const char *matches[LINE_MATCHES_MAX]);

struct line_editor;

/* NULL: built without libedit, or this terminal cannot be controlled. */
struct line_editor *line_editor_open(struct terminal *terminal, line_complete_fn *complete,
                                     void *arg);
struct line_editor *line_editor_close(struct line_editor *editor); /* takes NULL */

/* Appends the line to `to`, without its final newline; NUL-ended. */
enum line_result line_editor_read(struct line_editor *editor, const char *prompt, struct bytes *to);

/* Adds a line that the up key brings back. */
void line_editor_remember(struct line_editor *editor, const char *line);

#endif
