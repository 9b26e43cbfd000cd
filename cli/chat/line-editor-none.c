/* Built without libedit: the plain reader reads all lines. */
#include "cli/chat/line-editor.h"

struct line_editor *line_editor_open(struct terminal *terminal, line_complete_fn *complete,
                                     void *arg)
{
        (void)terminal;
        (void)complete;
        (void)arg;
        return NULL;
}

struct line_editor *line_editor_close(struct line_editor *editor)
{
        return editor;
}

enum line_result line_editor_read(struct line_editor *editor, const char *prompt, struct bytes *to)
{
        (void)editor;
        (void)prompt;
        (void)to;
        return LINE_FAILED;
}

void line_editor_remember(struct line_editor *editor, const char *line)
{
        (void)editor;
        (void)line;
}
