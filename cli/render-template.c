/*
 * template with a file: starts a samovard that renders the conversation and ends.  Its output
 * passes through this program, because the output must not control a terminal.
 */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json/utf8.h"
#include "json/writer.h"

bool template_is_file(const char *word)
{
        static const char *const endings[] = { ".jinja", ".json", ".gguf", ".safetensors" };
        size_t bytes = strlen(word);
        bool named = strchr(word, '/');

        for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
                size_t ending = strlen(endings[i]);

                named = named || (bytes > ending && !strcmp(word + bytes - ending, endings[i]));
        }
        /* A word with blanks must exist as a file: "What is TCP/IP?" is a question. */
        return named && (!word[strcspn(word, " \t\r\n")] || !access(word, F_OK));
}

/*
 * Writing JSON would replace bytes that are not UTF-8, but the daemon refuses them; so check
 * first.
 */
static bool is_utf8(const char *text, size_t bytes)
{
        size_t length;

        for (size_t at = 0; at < bytes; at += length)
                if (utf8_next(text + at, bytes - at, &length) < 0)
                        return false;
        return true;
}

static int write_to_memory(const struct bytes *text, int *ret_fd)
{
        int fd = memfd_create("conversation", MFD_CLOEXEC);
        ssize_t n = 0;

        for (size_t at = 0; fd >= 0 && n >= 0 && at < text->count; at += (size_t)n)
                n = write(fd, text->at + at, text->count - at);
        if (fd < 0 || n < 0 || lseek(fd, 0, SEEK_SET) < 0) {
                say("cannot store the conversation: %s", strerror(errno));
                if (fd >= 0)
                        close(fd);
                return CLI_FAILED;
        }
        *ret_fd = fd;
        return 0;
}

static void write_message(struct json_writer *json, const char *role, const char *text,
                          size_t bytes)
{
        json_write_raw(json, "{\"role\":\"");
        json_write_raw(json, role);
        json_write_raw(json, "\",\"content\":");
        json_write_text(json, text, bytes);
        json_write_raw(json, "}");
}

/* Writes the messages of the command line as JSON, in the form that --messages reads. */
static int write_messages(const struct cli *cli, int *ret_fd)
{
        size_t system = cli->system ? strlen(cli->system) : 0;
        size_t answer = cli->answer ? strlen(cli->answer) : 0;
        struct bytes text = { 0 };
        struct json_writer json = { .to = &text };
        int r;

        if (!is_utf8(cli->system, system) || !is_utf8(cli->answer, answer) ||
            !is_utf8(cli->input.at, cli->input.count)) {
                say("the prompt, --system or --answer is not valid UTF-8");
                return CLI_FAILED;
        }
        json_write_raw(&json, "{\"messages\":[");
        if (cli->system) {
                write_message(&json, "system", cli->system, system);
                json_write_raw(&json, ",");
        }
        write_message(&json, "user", cli->input.at, cli->input.count);
        if (cli->answer) {
                json_write_raw(&json, ",");
                write_message(&json, "assistant", cli->answer, answer);
        }
        json_write_raw(&json, cli->answer ? "],\"continue_final_message\":true}" : "]}");
        r = json_write_end(&json);
        if (r)
                say("out of memory");
        r = r ? CLI_FAILED : write_to_memory(&text, ret_fd);
        bytes_deinit(&text);
        return r;
}

/* Copies the output of samovard until it ends.  JSON is already safe for a terminal. */
static int copy_output(const struct cli *cli, int from)
{
        struct screen screen;
        char text[16384];
        bool any = false;
        ssize_t n;
        int r = 0;

        screen_open(&screen, STDOUT_FILENO);
        if (cli->json)
                screen.terminal = false;
        while (!r && (n = read(from, text, sizeof(text)))) {
                if (n > 0) {
                        any = true;
                        r = screen_text(&screen, text, (size_t)n);
                } else if (errno != EINTR) {
                        say("cannot read what samovard printed: %s", strerror(errno));
                        r = CLI_FAILED;
                }
        }
        return r || !any ? r : screen_close(&screen);
}

int cli_render_template(struct cli *cli)
{
        int in = -1, out, status = 0, r = 0;
        pid_t pid;

        if (!cli->messages)
                r = write_messages(cli, &in);
        if (!r)
                r = daemon_render(cli, cli->messages ? cli->messages : "-", in, &out, &pid);
        if (in >= 0)
                close(in);
        if (r)
                return r;
        r = copy_output(cli, out);
        close(out);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                continue;
        if (WIFSIGNALED(status))
                say("samovard was killed by signal %d", WTERMSIG(status));
        return !WIFEXITED(status) || WEXITSTATUS(status) ? CLI_FAILED : r;
}
