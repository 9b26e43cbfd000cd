/*
 * The samovar command: libsamovar for people and shells.
 *
 * main.c and flags.c read the flags, main.c connects; generate.c streams, beams.c follows the
 * likeliest ways, fork-demo.c shows what a fork is, in the columns of columns.c; words.c does what
 * needs no model but its vocabulary, conversation.c makes messages, preview.c renders them by a
 * file's template; status.c tabulates, stats.c says what a stream cost, loading.c shows a bar while
 * the model loads, screen.c writes, daemon.c runs a private samovard.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <samovar/client.h>
#include <samovar/protocol.h>
#include <stdbool.h>
#include <sys/types.h>

#include "client/bytes.h"

/* The exit statuses, and what functions here return on their way to them. */
enum cli_exit {
        CLI_GOOD = 0,
        CLI_FAILED = 1, /* refused, or failed on the way */
        CLI_USAGE = 2,
        CLI_NO_DAEMON = 3,
        CLI_INTERRUPTED = 130, /* as a shell says that SIGINT ended it */
};

/* The commands, one bit each: which flags they take. */
enum cli_command {
        CLI_ASK = 1 << 0,
        CLI_COMPLETE = 1 << 1,
        CLI_TOKENIZE = 1 << 2,
        CLI_DETOKENIZE = 1 << 3,
        CLI_STATUS = 1 << 4,
        CLI_INSPECT = 1 << 5,
        CLI_TEMPLATE = 1 << 6,
        CLI_ATTACH = 1 << 7,
        CLI_FORK_DEMO = 1 << 8,
};

struct cli {
        const char *name; /* of the command */
        enum cli_command command;
        const char *socket;
        const char *model; /* a name, or a file for a private daemon */
        bool json, any_uid, stats;
        enum smv_transport transport;
        struct smv_generate generate;
        struct smv_beam beam; /* width 0: no beams are wanted */
        uint32_t best_of;     /* so many are generated, and one is shown; 0: all are */
        uint32_t keep_s;      /* 0: not beyond the command */
        uint64_t kept;        /* the number of the stream, if it is */
        uint32_t from;        /* attach: this record */
        const char *stops[SMV_STOPS_MAX];
        const char **words; /* the arguments that are no flags */
        int word_count;
        struct bytes input;            /* what the command works on; NUL-ended */
        const char *file;              /* template's: a template, or a model that has one */
        const char *system, *messages; /* what is said before it; a file instead of both */
        struct smv_message said[2];
        struct bytes packed; /* the file's */

        struct smv_client *client;
        pid_t child; /* the private daemon; 0: none */
};

/* flags.c: fills cli from the command line: CLI_GOOD, CLI_USAGE, or -1: all was said, exit 0. */
int cli_flags(struct cli *cli, int argc, char **argv);

/* input.c: fills `input` with the words joined by spaces, or all of stdin. */
int cli_input(struct cli *cli);

/* All there is to read; NUL-ended. */
int input_read(int fd, const char *name, struct bytes *text);

/* conversation.c: fills `generate` with the file's messages, or the system's and the input. */
int cli_conversation(struct cli *cli);

/* The commands: each returns an exit status. */
int cli_generate(struct cli *cli);
/* beams.c: `generate` is filled; what was found is printed when all of it is. */
int cli_beams(struct cli *cli);
int cli_attach(struct cli *cli);
int cli_fork_demo(struct cli *cli);
int cli_tokenize(struct cli *cli);
int cli_detokenize(struct cli *cli);
int cli_template(struct cli *cli);
/* preview.c: of a file, without a daemon that serves. */
int cli_preview(struct cli *cli);
/* Does the first argument of template name a file?  One with blanks must also be there. */
bool preview_is_file(const char *word);
int cli_status(struct cli *cli);

/* stats.c: what a stream's END tells, on stderr; asks the daemon for the text of tokens. */
void cli_say_stats(struct cli *cli, const struct smv_event *end);

/* loading.c: waits for the model, showing how far it is, if stderr is a terminal; else returns. */
void cli_await_loaded(struct cli *cli);

/* daemon.c: is the value of --model a file? */
bool daemon_is_file(const char *model);
/* Starts a private samovard that ends with us: 0, its socket and its pid, or an exit status. */
int daemon_start(const char *model, int *ret_fd, pid_t *ret_pid);
/* Becomes a samovard that says what the model there is.  Returns only if it cannot: an exit status. */
int daemon_inspect(const char *model);
/* Starts a samovard that renders `messages`, a file or "-", which is `in` if that is no -1: 0, what it
 * prints and its pid, or an exit status. */
int daemon_preview(const struct cli *cli, const char *messages, int in, int *ret_out,
                   pid_t *ret_pid);
/* Waits for it, not for long.  How it ended, for people; "" if it was still running. */
void daemon_end(pid_t pid, char *how, size_t size);

/* screen.c: says on stderr, control characters replaced. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says why a call failed: its refusal's field and message.  CLI_FAILED. */
int say_failed(const struct cli *cli, int error);

/*
 * A model's bytes to stdout: as they are, but for a terminal, which they must
 * not drive.  The state is a character whose end is still to come.
 */
struct screen {
        bool terminal;
        char held[4];
        size_t held_bytes;
};

void screen_open(struct screen *screen);
/* 0, or an exit status: nobody reads any more, or writing failed (and it was said). */
int screen_text(struct screen *screen, const char *text, size_t bytes);
/* What is held back; a newline if stdout is a terminal. */
int screen_close(struct screen *screen);
/* The bytes and nothing else. */
int screen_raw(const char *bytes, size_t count);

#endif
