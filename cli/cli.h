/*
 * The samovar command: libsamovar for people and shells.
 *
 * main.c runs the command, and connect.c connects it to a daemon.  flags.c reads the command line
 * by the tables of flag-table.c, flag-values.c reads the values of flags, and input.c the input.
 * generate.c streams answers, beams.c does beam search, and fork-demo.c demonstrates a fork, in the
 * columns of columns.c.  tokenize.c tokenizes, detokenizes, and renders templates with a daemon.
 * conversation.c makes messages, and render-template.c renders them with the template of a file.
 * answer-form.c makes the constraint of an answer, and answer-lines.c writes an answer as JSON.
 * status.c shows what the daemon does, models.c what it serves; stats.c prints the cost of a
 * stream, and loading.c shows a bar while the model loads.  work.c lists streams and handles and
 * ends them; reply.c, status-reader.c, work-reader.c and amounts.c have what these share.  top/ is
 * the live view, doctor/ checks the machine, chat/ is a conversation in the terminal, and batch.c
 * becomes a samovar-http that runs a batch.  pull/ fetches models into the folder of models and
 * removes them.  web.c speaks HTTP, and bench/ measures servers.  screen.c writes, cells.c counts
 * the cells of a text, progress.c draws a bar, clock.c has the time, and private-daemon.c runs a
 * private samovard.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <samovar/client.h>
#include <samovar/protocol.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli/bench/options.h"
#include "cli/chat/chat.h"
#include "cli/doctor/options.h"
#include "cli/pull/pull.h"
#include "cli/top/options.h"
#include "json/bytes.h"

/* The exit statuses.  Functions here return them too. */
enum cli_exit {
        CLI_GOOD = 0,
        CLI_FAILED = 1, /* the daemon refused, or something failed later */
        CLI_USAGE = 2,
        CLI_NO_DAEMON = 3,
        CLI_INTERRUPTED = 130, /* the status that a shell reports after SIGINT */
};

/* The commands, one bit each, so that a flag can list the commands that take it. */
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
        CLI_MODELS = 1 << 9,
        CLI_PS = 1 << 10,
        CLI_CANCEL = 1 << 11,
        CLI_CHAT = 1 << 12,
        CLI_TOP = 1 << 13,
        CLI_BATCH = 1 << 14,
        CLI_BENCH = 1 << 15,
        CLI_PULL = 1 << 16,
        CLI_RM = 1 << 17,
        CLI_DOCTOR = 1 << 18,
};

#define CHOICES_MAX 64u /* more of them are better given as --constraint */

/* batch.c */
struct batch_options {
        const char *output; /* NULL: stdout */
        bool resume;
        uint32_t parallel; /* 0: as many as the daemon takes */
};

struct cli {
        const char *name; /* of the command */
        enum cli_command command;
        const char *socket;
        const char *principal;
        const char *model;      /* a model's name, or a file for a private daemon */
        const char *model_file; /* of the private daemon that runs; then `model` is NULL */
        char *found_model;      /* the path of `model` in the folder of models, if that is used */
        bool json, any_uid, stats, ignore_eos, clamp, all, pieces, control_text, names;
        uint32_t timeout_s; /* as given; 0: not given */
        uint32_t wait_s;    /* the longest wait for a connection to the service */
        double watch_s;     /* status: seconds until it is shown again; 0: it is shown once */
        enum smv_transport transport;
        struct smv_generate generate;
        struct smv_beam beam; /* width 0: no beam search */
        uint32_t best_of;     /* generate this many, show the best; 0: show all */
        uint32_t keep_s;      /* the stream outlives the command this long; 0: it does not */
        uint64_t resume_id;   /* of that stream; 0: none */
        uint64_t number;      /* cancel: the stream or handle */
        struct top_options top;
        struct doctor_options doctor;
        uint32_t from; /* attach: the first record wanted */
        const char *stops[SMV_STOPS_MAX];
        const char *bans[SMV_BANNED_TEXTS_MAX];
        /* The form of the answer: a file, a file, an expression, or one of these texts. */
        const char *schema, *grammar, *regex;
        const char *choices[CHOICES_MAX];
        size_t choice_count;
        struct bytes constraint; /* made of them */
        const char *prediction;
        struct bytes predicted; /* its text */
        bool parts;
        const char *tools; /* a file */
        const char *allowed_tools[SMV_BANNED_TEXTS_MAX];
        struct pull_options pull;
        const char **arguments; /* those that are not flags */
        int argument_count;
        struct bytes input; /* the text that the command works on; NUL-terminated */
        const char *file;   /* of `template`: a template, or a model that has one */
        /* The system message, and how the answer begins; or, instead of them and the input, a file
         * with all messages. */
        const char *system, *answer, *messages;
        struct smv_message own_messages[3]; /* made of them */
        struct bytes packed;                /* the messages of that file, as msgpack */
        struct bench_options bench;

        struct chat_options chat;
        struct batch_options batch;

        struct smv_client *client;
        pid_t child; /* the private daemon; 0: none */
};

/*
 * flags.c: fills cli from the command line.  CLI_GOOD, CLI_USAGE, or -1: everything has been
 * printed, so exit with status 0.
 */
int cli_flags(struct cli *cli, int argc, char **argv);

/* True if the command takes this flag: "--model". */
bool cli_takes(const struct cli *cli, const char *flag);

/*
 * Writes the flag that sets this field of a request, and its value if that is a text; or "the
 * question" if the messages were made of one.  False: the command has no such flag.
 */
bool cli_name_flag(const struct cli *cli, const char *field, char *to, size_t bytes);

/*
 * Sets a flag of this command while it runs, by its name without dashes or by the name of its field
 * ("temp", "temperature").  NULL: back to the default; a switch takes "on" and "off".  The value
 * must live as long as cli.  0, or CLI_USAGE after saying what is wrong.
 */
int cli_set_flag(struct cli *cli, const char *name, const char *value);
/* Writes the value of flag `index` as text; false if it has its default, or is no flag. */
bool cli_show_flag(const struct cli *cli, size_t index, char *to, size_t bytes);

/* A row of the table of commands, or of that of flags, for a page of reference. */
struct cli_row {
        /* The headline of the group of flags that begins here; NULL: the same group. */
        const char *group;
        const char *name, *value, *help;
        const char *const *words; /* all values that the flag may have; NULL: others */
        unsigned commands;        /* enum cli_command: of a flag, those that take it */
};

/* Row `index`; false after the last one. */
bool cli_describe_command(size_t index, struct cli_row *ret_row);
bool cli_describe_flag(size_t index, struct cli_row *ret_row);

/*
 * input.c: fills `input` with the arguments joined by spaces, or with all of stdin; for `ask` and
 * `template` with both, if stdin is a pipe or a file.
 */
int cli_input(struct cli *cli);

/* Appends everything that can be read from `fd`; NUL-terminated. */
int input_read(int fd, const char *name, struct bytes *text);
/* Appends a file; "-" is stdin. */
int input_file(const char *path, struct bytes *text);

/*
 * conversation.c: fills `generate` with the file's messages, or the system message and the input.
 */
int cli_conversation(struct cli *cli);

/*
 * Appends the JSON text as one msgpack value.  0; or CLI_FAILED, with what is wrong with the text.
 */
int cli_pack_json(const char *text, size_t bytes, struct bytes *to, const char **ret_wrong);

/* answer-form.c: fills in the constraint of `generate`, and whether its answer has parts. */
int cli_answer_form(struct cli *cli);
/* A flag that was given, and that says what the answer may be; NULL: none was. */
const char *cli_form_flag(const struct cli *cli);

/* connect.c: to the service or to a private daemon.  0, or an exit status after saying why not. */
int cli_connect(struct cli *cli);
/* Whether the daemon serves a model of this name. */
bool cli_serves(const struct smv_client *client, const char *name);
/* If --model names one of the folder of models, makes it that path.  0, or CLI_FAILED. */
int cli_find_model(struct cli *cli);
/* Tries for timeout_ms to connect to the service, and says nothing.  0, or an errno and why. */
int cli_redial(struct cli *cli, int timeout_ms, char *message, size_t message_bytes);

/* The commands: each returns an exit status. */
int cli_generate(struct cli *cli);
/* beams.c: `generate` must be filled.  Prints the results when the search is done. */
int cli_beams(struct cli *cli);
int cli_attach(struct cli *cli);
int cli_fork_demo(struct cli *cli);
int cli_chat(struct cli *cli); /* chat/loop.c */
int cli_tokenize(struct cli *cli);
int cli_detokenize(struct cli *cli);
int cli_template(struct cli *cli);
/* render-template.c: renders with the template of a file, without a running daemon. */
int cli_render_template(struct cli *cli);
/* True if the first argument of `template` names a file.  If it has blanks, the file must exist. */
bool template_is_file(const char *word);
int cli_status(struct cli *cli);
int cli_ps(struct cli *cli);     /* work.c */
int cli_cancel(struct cli *cli); /* work.c */
int cli_models(struct cli *cli);
int cli_model_names(void);     /* models --names */
int cli_pull(struct cli *cli); /* pull/command.c */
int cli_rm(struct cli *cli);   /* pull/remove.c */

/*
 * batch.c: becomes a samovar-http that answers the lines of a file.  Returns only on failure: an
 * exit status.
 */
int cli_batch(struct cli *cli);

/*
 * bench/bench.c.  `client` is a connection to the server, unless the options name others.  The next
 * call says how many sequences a private daemon for it needs.
 */
int cli_bench(struct cli *cli);
uint32_t cli_bench_sequences(const struct cli *cli);

/* stats.c: prints on stderr what a stream's END says; asks the daemon for the text of tokens. */
void cli_say_stats(struct cli *cli, const struct smv_event *end);

/*
 * loading.c: if stderr is a terminal, shows a bar until the model is loaded; else returns at once.
 */
void cli_wait_until_loaded(struct cli *cli);

/*
 * private-daemon.c: finds another program of ours: by a variable of the environment; else next to
 * this one, where it is installed; else in the build tree; else in PATH.
 */
struct program_names {
        const char *variable, *installed, *built;
};
void program_find(const struct program_names *names, char *path, size_t size);

/* private-daemon.c: true if the value of --model names a file. */
bool daemon_is_file(const char *model);
#define FORK_DEMO_BRANCHES 3u

/*
 * Starts a private samovard that ends with this process, and that runs so many sequences at once.
 * 0, its socket and its pid; or an exit status.
 */
int daemon_start(const char *model, uint32_t sequences, int *ret_fd, pid_t *ret_pid);
/* The same with these flags, NULL-ended.  model NULL: the daemon's default. */
int daemon_start_with(const char *model, const char *const *flags, int *ret_fd, pid_t *ret_pid);
/* Becomes a samovard that describes the model.  Returns only on failure: an exit status. */
int daemon_inspect(const char *model, bool json);
/*
 * Asks a samovard for the description of the model as JSON: 0, also if the model cannot be served;
 * or an exit status after a message.
 */
int daemon_describe(const char *model, struct bytes *ret_json);
/*
 * Starts a samovard that renders `messages`: a file, or "-" for its stdin.  If `in` is not -1, it
 * becomes that stdin.  Returns 0, a descriptor with its output, and its pid; or an exit status.
 */
int daemon_render(const struct cli *cli, const char *messages, int in, int *ret_out,
                  pid_t *ret_pid);
/*
 * Waits up to 2 s for a daemon to end, then kills it.  `how` gets a text that says how it ended,
 * or "" if it was still running.
 */
void daemon_end(pid_t pid, char *how, size_t size);

/* screen.c: prints a line on stderr, with control characters replaced. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Prints why a call failed: the message of the refusal, and the flag that it is about.  Returns
 * CLI_FAILED.
 */
int say_failed(const struct cli *cli, int error);

/*
 * Writes a model's text to stdout or stderr: unchanged, except to a terminal, which the text must
 * not be able to control.  `held` is the beginning of a character whose end has not come yet.
 */
struct screen {
        int fd;
        bool terminal;
        char held[4];
        size_t held_bytes;
};

void screen_open(struct screen *screen, int fd);
/*
 * 0, or an exit status: the reader has closed the pipe, or writing failed (then the failure has
 * been printed).
 */
int screen_text(struct screen *screen, const char *text, size_t bytes);
/* Only on a terminal: writes "?" for an incomplete character, then a newline. */
int screen_close(struct screen *screen);
/* Writes the bytes to stdout, unchanged. */
int screen_raw(const char *bytes, size_t count);

#endif
