#include "cli/chat/line-editor.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "cli/cli.h"

#define REMEMBERED  1000
#define PROMPT_MAX  128u
#define REPLACEMENT 0xfffd
#define TAB_COLUMNS 8u

struct line_editor {
        EditLine *el;
        HistoryW *history;
        FILE *in, *out;
        struct terminal *terminal;
        line_complete_fn *complete;
        void *arg;
        wchar_t prompt[PROMPT_MAX];
        size_t columns;  /* of the terminal when the line was drawn last */
        char held[4096]; /* bytes that were read, and are no character yet */
        size_t held_at, held_count;
        enum line_result result; /* why the line ended, unless by a newline */
};

/* ---- text ---- */

/* The text as wide characters; the caller frees it.  NULL: out of memory. */
static wchar_t *widen(const char *text)
{
        size_t bytes = strlen(text), n = 0, length;
        wchar_t *wide = calloc(bytes + 1, sizeof(*wide));
        mbstate_t state = { 0 };

        for (size_t at = 0; wide && at < bytes; at += length) {
                length = mbrtowc(&wide[n], text + at, bytes - at, &state);
                if (length == (size_t)-1 || length == (size_t)-2) {
                        wide[n] = REPLACEMENT;
                        state = (mbstate_t){ 0 };
                        length = 1;
                }
                n++;
        }
        return wide;
}

static int narrow(const wchar_t *wide, size_t count, struct bytes *to)
{
        char character[MB_LEN_MAX];
        mbstate_t state = { 0 };
        int r = 0;

        for (size_t i = 0; !r && i < count; i++) {
                size_t length = wcrtomb(character, wide[i], &state);

                if (length != (size_t)-1)
                        r = bytes_add(to, character, length);
        }
        if (!r)
                r = bytes_add(to, "", 1);
        if (!r)
                to->count--;
        return r;
}

static struct line_editor *editor_of(EditLine *el)
{
        void *editor = NULL;

        el_wget(el, EL_CLIENTDATA, &editor);
        return editor;
}

/* ---- where the cursor is ---- */

/* Follows the cursor of a terminal of so many columns over the text, as libedit draws it. */
static void walk(const wchar_t *text, size_t count, size_t columns, size_t *row, size_t *column)
{
        for (size_t i = 0; i < count; i++) {
                int width = wcwidth(text[i]);

                if (text[i] == L'\n') {
                        *row += 1;
                        *column = 0;
                        continue;
                }
                if (text[i] == L'\t')
                        width = (int)(TAB_COLUMNS - *column % TAB_COLUMNS);
                else if (width < 0)
                        width = 2; /* a control character: ^X */
                if (*column + (size_t)width > columns) {
                        *row += 1;
                        *column = 0;
                }
                *column += (size_t)width;
                if (*column >= columns) {
                        *row += 1;
                        *column = 0;
                }
        }
}

/* How many rows the cursor is below the row where the prompt begins. */
static size_t cursor_row(const struct line_editor *editor, size_t columns)
{
        const LineInfoW *line = el_wline(editor->el);
        size_t row = 0, column = 0;

        walk(editor->prompt, wcslen(editor->prompt), columns, &row, &column);
        walk(line->buffer, (size_t)(line->cursor - line->buffer), columns, &row, &column);
        return row;
}

/*
 * The terminal has a new size, and may have wrapped the line anew.  Draws it again from the row
 * where the prompt begins.  Some terminals wrap and some do not: of two guesses, the one that
 * clears fewer rows is right or leaves a piece of the old line.
 */
static void draw_again(struct line_editor *editor)
{
        size_t columns = terminal_columns(editor->terminal), rows = terminal_rows(editor->terminal);
        size_t before = cursor_row(editor, editor->columns), now = cursor_row(editor, columns);
        size_t up = before < now ? before : now;

        if (up >= rows)
                up = rows - 1;
        fputc('\r', editor->out);
        if (up)
                fprintf(editor->out, "\x1b[%zuA", up);
        fputs("\x1b[J", editor->out);
        el_resize(editor->el);
        editor->columns = columns;
        el_wset(editor->el, EL_REFRESH);
        fflush(editor->out);
}

static void suspend(struct line_editor *editor)
{
        el_wset(editor->el, EL_PREP_TERM, 0);
        terminal_suspend(editor->terminal);
        el_wset(editor->el, EL_PREP_TERM, 1);
        el_wset(editor->el, EL_REFRESH);
}

/* ---- characters ---- */

/* Takes a character out of the bytes that were read; false if the rest of it has not come. */
static bool take_character(struct line_editor *editor, wchar_t *ret_character)
{
        const char *at = editor->held + editor->held_at;
        size_t left = editor->held_count - editor->held_at, length;
        mbstate_t state = { 0 };

        if (!left)
                return false;
        length = mbrtowc(ret_character, at, left, &state);
        if (length == (size_t)-2)
                return false;
        if (length == (size_t)-1) {
                *ret_character = REPLACEMENT;
                length = 1;
        }
        editor->held_at += length ? length : 1;
        return true;
}

static bool read_more(struct line_editor *editor)
{
        size_t left = editor->held_count - editor->held_at;
        ssize_t n;

        memmove(editor->held, editor->held + editor->held_at, left);
        editor->held_at = 0;
        editor->held_count = left;
        n = read(STDIN_FILENO, editor->held + left, sizeof(editor->held) - left);
        if (n > 0)
                editor->held_count += (size_t)n;
        return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Waits for a character: 1; or -1, and the line ends.  An interruption is the character ^C. */
static int next_character(EditLine *el, wchar_t *ret_character)
{
        struct line_editor *editor = editor_of(el);

        while (!take_character(editor, ret_character)) {
                bool readable = terminal_wait(editor->terminal, STDIN_FILENO, POLLIN, -1);
                unsigned signals = terminal_take(editor->terminal);

                if (signals & TERMINAL_END) {
                        editor->result = LINE_TOLD_TO_END;
                        return -1;
                }
                if (signals & TERMINAL_STOP)
                        suspend(editor);
                if (signals & (TERMINAL_RESIZE | TERMINAL_STOP))
                        draw_again(editor);
                if (signals & TERMINAL_INTERRUPT) {
                        editor->held_at = editor->held_count = 0;
                        *ret_character = CTRL('C');
                        return 1;
                }
                if (readable && !read_more(editor)) {
                        editor->result = LINE_END;
                        return -1;
                }
        }
        return 1;
}

/* ---- keys ---- */

/* Ends the line as the newline key does, which also leaves the cursor below it. */
static unsigned char end_line(struct line_editor *editor)
{
        el_wpush(editor->el, L"\n");
        return CC_REFRESH;
}

static void cursor_to_end(EditLine *el)
{
        const LineInfoW *line = el_wline(el);

        el_cursor(el, (int)(line->lastchar - line->cursor));
}

static unsigned char on_interrupt(EditLine *el, int key)
{
        struct line_editor *editor = editor_of(el);

        (void)key;
        editor->result = LINE_INTERRUPTED;
        cursor_to_end(el);
        el_winsertstr(el, L"^C");
        return end_line(editor);
}

/* ^D ends the input in an empty line, and deletes a character in another. */
static unsigned char on_end(EditLine *el, int key)
{
        struct line_editor *editor = editor_of(el);
        const LineInfoW *line = el_wline(el);

        (void)key;
        if (line->lastchar == line->buffer) {
                editor->result = LINE_END;
                return end_line(editor);
        }
        if (line->cursor == line->lastchar)
                return CC_ERROR;
        el_cursor(el, 1);
        el_wdeletestr(el, 1);
        return CC_REFRESH;
}

static unsigned char on_newline(EditLine *el, int key)
{
        (void)key;
        return el_winsertstr(el, L"\n") < 0 ? CC_ERROR : CC_REFRESH;
}

/* Inserts without control characters, which the line would show as ^X, and a final newline. */
static unsigned char insert_text(EditLine *el, wchar_t *text, size_t count)
{
        size_t n = 0;

        for (size_t i = 0; i < count; i++) {
                if (text[i] == L'\r' && i + 1 < count && text[i + 1] == L'\n')
                        continue;
                if (text[i] == L'\r')
                        text[n++] = L'\n';
                else if (text[i] == L'\n' || text[i] == L'\t' || (text[i] && wcwidth(text[i]) >= 0))
                        text[n++] = text[i];
        }
        while (n && text[n - 1] == L'\n')
                n--;
        text[n] = L'\0';
        return n && el_winsertstr(el, text) < 0 ? CC_ERROR : CC_REFRESH;
}

/* Inserts a paste, which the terminal sends between two marks. */
static unsigned char on_paste(EditLine *el, int key)
{
        static const wchar_t mark[] = L"\x1b[201~";
        size_t mark_count = sizeof(mark) / sizeof(*mark) - 1, count = 0, size = 0;
        wchar_t *text = NULL, character;
        unsigned char r = CC_ERROR;

        (void)key;
        while (next_character(el, &character) > 0) {
                if (count + 1 >= size) {
                        wchar_t *larger = realloc(text, (2 * size + 256) * sizeof(*text));

                        if (!larger)
                                break;
                        text = larger;
                        size = 2 * size + 256;
                }
                text[count++] = character;
                if (count >= mark_count && !wmemcmp(text + count - mark_count, mark, mark_count)) {
                        r = insert_text(el, text, count - mark_count);
                        break;
                }
                if (character == CTRL('C') && editor_of(el)->held_at == editor_of(el)->held_count) {
                        r = on_interrupt(el, key);
                        break;
                }
        }
        free(text);
        return r;
}

/* ---- completion ---- */

static size_t common_bytes(const char *const *matches, size_t count)
{
        size_t common = strlen(matches[0]);

        for (size_t i = 1; i < count; i++)
                for (size_t j = 0; j < common; j++)
                        if (matches[0][j] != matches[i][j])
                                common = j;
        return common;
}

static unsigned char show_matches(struct line_editor *editor, const char *const *matches,
                                  size_t count)
{
        fputc('\n', editor->out);
        for (size_t i = 0; i < count; i++)
                fprintf(editor->out, "%s%s", i ? "  " : "", matches[i]);
        fputc('\n', editor->out);
        return CC_REDISPLAY;
}

/* Inserts what all matches have in common behind the bytes of the word. */
static unsigned char insert_common(EditLine *el, const char *const *matches, size_t count,
                                   size_t word_bytes)
{
        size_t common = common_bytes(matches, count);
        wchar_t *rest = widen(matches[0] + word_bytes);

        if (rest && common > word_bytes) {
                rest[common - word_bytes] = L'\0';
                el_winsertstr(el, rest);
        }
        free(rest);
        if (count == 1)
                el_winsertstr(el, L" ");
        return CC_REFRESH;
}

static unsigned char on_complete(EditLine *el, int key)
{
        struct line_editor *editor = editor_of(el);
        const char *matches[LINE_MATCHES_MAX];
        const LineInfoW *line = el_wline(el);
        struct bytes text = { 0 };
        size_t word = 0, count = 0, bytes;
        unsigned char r = CC_NORM;

        if (!narrow(line->buffer, (size_t)(line->cursor - line->buffer), &text))
                count = editor->complete(editor->arg, text.at, &word, matches);
        bytes = text.count - word;
        if (count == LINE_FILES)
                r = _el_fn_complete(el, key);
        else if (count > 1 && common_bytes(matches, count) <= bytes)
                r = show_matches(editor, matches, count);
        else if (count)
                r = insert_common(el, matches, count, bytes);
        bytes_deinit(&text);
        return r;
}

/* ---- the user's editor ---- */

static int write_file(int fd, const struct bytes *text)
{
        size_t at = 0;
        ssize_t n;

        for (; at < text->count; at += (size_t)n) {
                n = write(fd, text->at + at, text->count - at);
                if (n <= 0)
                        return -1;
        }
        return 0;
}

/* True if the editor succeeded.  The shell reads $EDITOR, which may have flags. */
static bool run_editor(const char *path)
{
        const char *program = getenv("VISUAL");
        char command[512];
        int status = -1;
        pid_t pid;

        if (!program || !*program)
                program = getenv("EDITOR");
        if (!program || !*program)
                program = "vi";
        snprintf(command, sizeof(command), "%s \"$1\"", program);
        pid = fork();
        if (!pid) {
                signal(SIGINT, SIG_DFL);
                signal(SIGTSTP, SIG_DFL);
                execl("/bin/sh", "sh", "-c", command, "sh", path, (char *)NULL);
                _exit(127);
        }
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                continue;
        return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* The line becomes what the user has made of it. */
static void replace_line(EditLine *el, const char *text)
{
        const LineInfoW *line;
        wchar_t *wide = widen(text);

        if (!wide)
                return;
        cursor_to_end(el);
        line = el_wline(el);
        el_wdeletestr(el, (int)(line->lastchar - line->buffer));
        insert_text(el, wide, wcslen(wide));
        free(wide);
}

static void edit_file(EditLine *el, const char *path)
{
        struct line_editor *editor = editor_of(el);
        struct bytes text = { 0 };
        bool edited;

        el_wset(el, EL_PREP_TERM, 0);
        edited = run_editor(path);
        terminal_take(editor->terminal); /* a ^C was meant for the editor */
        el_wset(el, EL_PREP_TERM, 1);
        if (edited && !input_file(path, &text))
                replace_line(el, text.at);
        bytes_deinit(&text);
}

static unsigned char on_edit(EditLine *el, int key)
{
        const char *folder = getenv("TMPDIR");
        const LineInfoW *line = el_wline(el);
        struct bytes text = { 0 };
        char path[256];
        int fd;

        (void)key;
        snprintf(path, sizeof(path), "%s/samovar-XXXXXX", folder && *folder ? folder : "/tmp");
        fd = mkostemp(path, O_CLOEXEC); /* which gives it the mode 0600 */
        if (fd < 0)
                return CC_ERROR;
        if (!narrow(line->buffer, (size_t)(line->lastchar - line->buffer), &text) &&
            !write_file(fd, &text))
                edit_file(el, path);
        bytes_deinit(&text);
        close(fd);
        unlink(path);
        fputc('\n', editor_of(el)->out);
        return CC_REDISPLAY;
}

/* ---- opening ---- */

static wchar_t *prompt_of(EditLine *el)
{
        return editor_of(el)->prompt;
}

/* libedit needs a locale that knows characters; the text is UTF-8 in any case. */
static bool has_characters(void)
{
        static const char *const names[] = { "", "C.UTF-8", "en_US.UTF-8" };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (setlocale(LC_CTYPE, names[i]) && !strcmp(nl_langinfo(CODESET), "UTF-8"))
                        return true;
        return false;
}

static bool can_draw(void)
{
        const char *type = getenv("TERM");

        return type && *type && strcmp(type, "dumb");
}

static void bind_keys(EditLine *el)
{
        static const struct {
                const wchar_t *name;
                unsigned char (*run)(EditLine *el, int key);
                const wchar_t *keys[3];
        } own[] = {
                { L"chat-interrupt", on_interrupt, { L"^C" } },
                { L"chat-end", on_end, { L"^D" } },
                { L"chat-newline", on_newline, { L"\\e\\r", L"\\e\\n" } },
                { L"chat-paste", on_paste, { L"\\e[200~" } },
                { L"chat-complete", on_complete, { L"\\t" } },
                { L"chat-edit", on_edit, { L"^G" } },
        };
        static const wchar_t *const usual[][2] = {
                { L"^R", L"em-inc-search-prev" },      { L"^W", L"ed-delete-prev-word" },
                { L"\\e[3~", L"ed-delete-next-char" }, { L"\\e[H", L"ed-move-to-beg" },
                { L"\\e[F", L"ed-move-to-end" },       { L"\\e[1~", L"ed-move-to-beg" },
                { L"\\e[4~", L"ed-move-to-end" },      { L"\\e[1;5C", L"em-next-word" },
                { L"\\e[1;5D", L"ed-prev-word" },
        };

        for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
                el_wset(el, EL_BIND, usual[i][0], usual[i][1], NULL);
        el_source(el, NULL); /* the user's ~/.editrc */
        for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
                el_wset(el, EL_ADDFN, own[i].name, L"", own[i].run);
                for (size_t j = 0; j < 3 && own[i].keys[j]; j++)
                        el_wset(el, EL_BIND, own[i].keys[j], own[i].name, NULL);
        }
}

/*
 * libedit moves the rest of a line by inserting and deleting columns, and counts those of wide
 * characters wrongly.  Without these abilities of the terminal it writes the rest again.
 */
static void forget_insertion(EditLine *el)
{
        static const wchar_t *const abilities[] = { L"ic", L"IC", L"im", L"ei",
                                                    L"ip", L"dc", L"DC", L"dm" };

        for (size_t i = 0; i < sizeof(abilities) / sizeof(*abilities); i++)
                el_wset(el, EL_SETTC, abilities[i], L"", NULL);
}

static bool set_up(struct line_editor *editor)
{
        HistEventW event;

        editor->in = fdopen(dup(STDIN_FILENO), "r");
        editor->out = fdopen(dup(editor->terminal->out), "w");
        editor->history = history_winit();
        if (!editor->in || !editor->out || !editor->history)
                return false;
        editor->el = el_init("samovar", editor->in, editor->out, editor->out);
        if (!editor->el)
                return false;
        history_w(editor->history, &event, H_SETSIZE, REMEMBERED);
        el_wset(editor->el, EL_CLIENTDATA, editor);
        el_wset(editor->el, EL_PROMPT, prompt_of);
        el_wset(editor->el, EL_EDITOR, L"emacs");
        el_wset(editor->el, EL_HIST, history_w, editor->history);
        el_wset(editor->el, EL_GETCFN, next_character);
        forget_insertion(editor->el);
        bind_keys(editor->el);
        return true;
}

struct line_editor *line_editor_open(struct terminal *terminal, line_complete_fn *complete,
                                     void *arg)
{
        struct line_editor *editor;

        if (!can_draw() || !has_characters())
                return NULL;
        editor = calloc(1, sizeof(*editor));
        if (!editor)
                return NULL;
        editor->terminal = terminal;
        editor->complete = complete;
        editor->arg = arg;
        return set_up(editor) ? editor : line_editor_close(editor);
}

struct line_editor *line_editor_close(struct line_editor *editor)
{
        if (!editor)
                return NULL;
        if (editor->el)
                el_end(editor->el);
        if (editor->history)
                history_wend(editor->history);
        if (editor->in)
                fclose(editor->in);
        if (editor->out)
                fclose(editor->out);
        free(editor);
        return NULL;
}

void line_editor_remember(struct line_editor *editor, const char *line)
{
        wchar_t *wide = widen(line);
        HistEventW event;

        if (wide)
                history_w(editor->history, &event, H_ENTER, wide);
        free(wide);
}

/* The line without its newline.  The text of ^C is no part of it. */
static enum line_result give_line(struct line_editor *editor, const wchar_t *line, int count,
                                  struct bytes *to)
{
        if (editor->result != LINE_READ)
                return editor->result;
        if (!line || count <= 0)
                return LINE_END;
        if (line[count - 1] == L'\n')
                count--;
        return narrow(line, (size_t)count, to) ? LINE_FAILED : LINE_READ;
}

enum line_result line_editor_read(struct line_editor *editor, const char *prompt, struct bytes *to)
{
        wchar_t *wide = widen(prompt);
        const wchar_t *line;
        int count = 0;

        if (!wide)
                return LINE_FAILED;
        swprintf(editor->prompt, PROMPT_MAX, L"%ls", wide);
        free(wide);
        editor->result = LINE_READ;
        editor->columns = terminal_columns(editor->terminal);
        fputs("\x1b[?2004h", editor->out);
        line = el_wgets(editor->el, &count);
        fputs("\x1b[?2004l", editor->out);
        fflush(editor->out);
        terminal_quiet(editor->terminal); /* libedit has left the usual mode */
        return give_line(editor, line, count, to);
}
