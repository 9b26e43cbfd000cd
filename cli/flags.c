/*
 * Reads the command line.  There is one table of commands and one of flags.  --help is made from
 * them, and so are the reference page and the man page (contrib/dev/reference).  Anything that is
 * not in the tables is refused.
 */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GENERATE     (CLI_ASK | CLI_COMPLETE)
#define TOKENS       (CLI_TOKENIZE | CLI_DETOKENIZE)
#define CONVERSATION (CLI_ASK | CLI_TEMPLATE)
#define STREAM       (GENERATE | CLI_ATTACH)
#define SAMPLING     (GENERATE | CLI_FORK_DEMO)
#define ALL          (STREAM | CLI_FORK_DEMO | TOKENS | CLI_TEMPLATE | CLI_STATUS)

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* clang-format off */
static const struct {
        const char *name;
        enum cli_command command;
        const char *arguments, *help;
} commands[] = {
        { "ask",        CLI_ASK,        "[PROMPT...]", "ask a model, and print its answer" },
        { "complete",   CLI_COMPLETE,   "[PROMPT...]", "continue a prompt; prints only the continuation, for programs" },
        { "template",   CLI_TEMPLATE,   "[FILE] [PROMPT...]", "print the prompt that a model's chat template makes of a question" },
        { "tokenize",   CLI_TOKENIZE,   "[TEXT...]",   "print the token ids of a text" },
        { "detokenize", CLI_DETOKENIZE, "[ID...]",     "print the text of token ids" },
        { "attach",     CLI_ATTACH,     "ID",          "continue to read a stream that was started with --keep" },
        { "status",     CLI_STATUS,     "",            "print the state and the counters of the daemon" },
        { "fork-demo",  CLI_FORK_DEMO,  "[BEGINNING...]", "begin a story, fork it while it is generated, and show three endings at the same time" },
        { "inspect",    CLI_INSPECT,    "PATH",        "print what a model is, and whether this machine can serve it" },
};

enum kind {
        FLAG_TEXT, FLAG_SWITCH, FLAG_COUNT, FLAG_UINT32, FLAG_UINT64, FLAG_FLOAT, FLAG_STOP,
        FLAG_TRANSPORT, FLAG_PRIORITY,
};

static const struct flag {
        const char *name, *value;
        unsigned commands;
        enum kind kind;
        size_t offset; /* in struct cli */
        uint32_t set;  /* enum smv_set */
        const char *help;
        const char *group; /* the headline of the group that begins here; NULL: the same group */
} flags[] = {
        { "--socket",    "PATH", ALL,      FLAG_TEXT,   offsetof(struct cli, socket),               0, "the socket of the daemon", "Daemon and model" },
        { "--any-uid",   NULL,   ALL,      FLAG_SWITCH, offsetof(struct cli, any_uid),              0, "accept a daemon that runs as neither you nor root" },
        { "--model",     "NAME", SAMPLING | TOKENS | CLI_TEMPLATE, FLAG_TEXT, offsetof(struct cli, model),          0, "the model to use; a path (with /, .gguf or .safetensors) starts a private samovard" },

        { "--system",    "TEXT", CONVERSATION,     FLAG_TEXT,   offsetof(struct cli, system),               0, "the system message, before the question", "Prompt" },
        { "--messages",  "FILE", CONVERSATION,     FLAG_TEXT,   offsetof(struct cli, messages),             0, "a conversation in JSON, with or without tools, instead of a question" },

        { "--max-tokens", "N",   SAMPLING, FLAG_COUNT, offsetof(struct cli, generate.max_tokens),  0, "maximum number of tokens", "Tokens" },
        { "--stop",      "TEXT", GENERATE, FLAG_STOP,   0,                                          0, "end before this text; may be given up to 16 times" },
        { "--temp",      "T",    SAMPLING, FLAG_FLOAT,  offsetof(struct cli, generate.temperature), SMV_SET_TEMPERATURE, "temperature; 0: always the likeliest token" },
        { "--top-k",     "K",    SAMPLING, FLAG_UINT32, offsetof(struct cli, generate.top_k),       SMV_SET_TOP_K, "only the K likeliest tokens" },
        { "--top-p",     "P",    SAMPLING, FLAG_FLOAT,  offsetof(struct cli, generate.top_p),       SMV_SET_TOP_P, "only the likeliest tokens that sum up to P" },
        { "--min-p",     "P",    SAMPLING, FLAG_FLOAT,  offsetof(struct cli, generate.min_p),       SMV_SET_MIN_P, "only tokens at least P times as likely as the likeliest" },
        { "--seed",      "N",    SAMPLING, FLAG_UINT64, offsetof(struct cli, generate.seed),        SMV_SET_SEED, "seed of the random draws: the same seed gives the same tokens" },

        { "-n",          "COUNT", GENERATE, FLAG_COUNT, offsetof(struct cli, generate.n),          0, "number of answers to one prompt, generated at the same time; up to 64", "Several answers" },
        { "--best-of",   "COUNT", GENERATE, FLAG_COUNT, offsetof(struct cli, best_of),            0, "generate COUNT answers, and print the one that the model finds likeliest" },
        { "--beams",     "W",    GENERATE, FLAG_COUNT,  offsetof(struct cli, beam.width),           0, "beam search: follow the W likeliest continuations, and print the likeliest one" },
        { "--length-penalty", "P", GENERATE, FLAG_FLOAT, offsetof(struct cli, beam.length_penalty), 0, "with --beams: divide a continuation's log-probability by its length to this power; default 1" },

        { "--priority",  "PRIORITY", GENERATE, FLAG_PRIORITY, offsetof(struct cli, generate.priority),    0, "scheduling priority: interactive, normal (the default) or background", "Scheduling" },
        { "--deadline",  "MS",   GENERATE, FLAG_COUNT,  offsetof(struct cli, generate.deadline_ms), 0, "end after MS milliseconds with the tokens until then; refused if it could hardly begin by then" },
        { "--keep",      "SECONDS", GENERATE, FLAG_COUNT, offsetof(struct cli, keep_s),            0, "if this command dies, the stream waits this long for attach; stderr shows its resume id" },

        { "--json",      NULL,   ALL & ~CLI_FORK_DEMO, FLAG_SWITCH, offsetof(struct cli, json),                 0, "print JSON", "Output" },
        { "--logprobs",  "N",    GENERATE, FLAG_UINT32, offsetof(struct cli, generate.logprobs),   SMV_SET_LOGPROBS, "with --json: the log-probability of each token, and of the N likeliest ones" },
        { "--stats",     NULL,   STREAM, FLAG_SWITCH, offsetof(struct cli, stats),                0, "print on stderr the queue, how much of the prompt was cached, why not more, and the times" },
        { "--from",      "N",    CLI_ATTACH, FLAG_UINT32, offsetof(struct cli, from),               0, "begin at this record; --json shows their numbers as sequence" },
        { "--transport", "HOW", SAMPLING, FLAG_TRANSPORT, offsetof(struct cli, transport),          0, "transport of tokens: auto, ring (shared memory) or socket" },
};
/* clang-format on */

static void help(const struct cli *cli)
{
        const char *group = NULL; /* a headline that no flag of this command has printed yet */
        char left[64];

        if (!cli->name) {
                printf("usage: samovar COMMAND [FLAGS] [ARGUMENTS]\n\n");
                for (size_t i = 0; i < LENGTH(commands); i++)
                        printf("  %-22s %s\n", commands[i].name, commands[i].help);
                printf("\n  %-22s %s\n  %-22s %s\n", "COMMAND --help", "the flags of a command",
                       "--version", "the version of samovar");
                return;
        }

        for (size_t i = 0; i < LENGTH(commands); i++)
                if (commands[i].command == cli->command)
                        printf("usage: samovar %s [FLAGS] %s\n\n%s.\n", commands[i].name,
                               commands[i].arguments, commands[i].help);
        if (!(cli->command & (CLI_STATUS | CLI_INSPECT | CLI_ATTACH | CLI_FORK_DEMO)))
                printf("Without arguments, or with -, it reads stdin.\n");
        if (cli->command == CLI_STATUS)
                printf("The manual samovar(1) explains each key.\n");
        if (cli->command == CLI_TEMPLATE)
                printf("With a FILE (a template, a model, a tokenizer_config.json) no running "
                       "daemon is "
                       "needed.\n");
        for (size_t i = 0; i < LENGTH(flags); i++) {
                if (flags[i].group)
                        group = flags[i].group;
                if (!(flags[i].commands & cli->command))
                        continue;
                if (group)
                        printf("\n%s\n", group);
                group = NULL;
                snprintf(left, sizeof(left), "%s %s", flags[i].name,
                         flags[i].value ? flags[i].value : "");
                printf("  %-22s %s\n", left, flags[i].help);
        }
}

bool cli_describe_command(size_t index, struct cli_row *ret_row)
{
        if (index >= LENGTH(commands))
                return false;
        *ret_row = (struct cli_row){
                .name = commands[index].name,
                .value = commands[index].arguments,
                .help = commands[index].help,
                .commands = commands[index].command,
        };
        return true;
}

bool cli_describe_flag(size_t index, struct cli_row *ret_row)
{
        if (index >= LENGTH(flags))
                return false;
        *ret_row = (struct cli_row){
                .group = flags[index].group,
                .name = flags[index].name,
                .value = flags[index].value ? flags[index].value : "",
                .help = flags[index].help,
                .commands = flags[index].commands,
        };
        return true;
}

static int bad_value(const struct flag *flag, const char *value, const char *wanted)
{
        say("%s: \"%s\" is not %s", flag->name, value, wanted);
        return CLI_USAGE;
}

static int set_uint(const struct flag *flag, const char *value, uint64_t min, uint64_t max,
                    uint64_t *ret_number)
{
        char wanted[80];
        unsigned long long number;
        char *end;

        errno = 0;
        number = strtoull(value, &end, 10);
        if (*value < '0' || *value > '9' || *end || errno || number < min || number > max) {
                snprintf(wanted, sizeof(wanted), "a whole number from %" PRIu64 " to %" PRIu64, min,
                         max);
                return bad_value(flag, value, wanted);
        }
        *ret_number = number;
        return 0;
}

static const char *const transports[] = {
        [SMV_TRANSPORT_AUTO] = "auto",
        [SMV_TRANSPORT_RING] = "ring",
        [SMV_TRANSPORT_SOCKET] = "socket",
};

static const char *const priorities[] = {
#define X(name, word) [SMV_PRIORITY_##name] = word,
        SMV_PRIORITIES(X)
#undef X
};

/* Finds which of the three words `value` is. */
static int set_word(const struct flag *flag, const char *value, const char *const words[3],
                    unsigned *ret_which)
{
        char wanted[80];

        for (unsigned i = 0; i < 3; i++) {
                if (!strcmp(value, words[i])) {
                        *ret_which = i;
                        return 0;
                }
        }
        snprintf(wanted, sizeof(wanted), "%s, %s or %s", words[0], words[1], words[2]);
        return bad_value(flag, value, wanted);
}

static int set_flag(struct cli *cli, const struct flag *flag, const char *value)
{
        char *field = (char *)cli + flag->offset;
        uint64_t number = 0;
        double real;
        char *end;
        int r = 0;

        switch (flag->kind) {
        case FLAG_TEXT:
                *(const char **)(void *)field = value;
                break;
        case FLAG_SWITCH:
                *(bool *)(void *)field = true;
                break;
        case FLAG_UINT32:
                r = set_uint(flag, value, 0, UINT32_MAX, &number);
                *(uint32_t *)(void *)field = (uint32_t)number;
                break;
        case FLAG_COUNT:
                r = set_uint(flag, value, 1, UINT32_MAX, &number);
                *(uint32_t *)(void *)field = (uint32_t)number;
                break;
        case FLAG_UINT64:
                r = set_uint(flag, value, 0, UINT64_MAX, &number);
                *(uint64_t *)(void *)field = number;
                break;
        case FLAG_FLOAT:
                real = strtod(value, &end);
                if (end == value || *end || !isfinite(real))
                        return bad_value(flag, value, "a number");
                *(float *)(void *)field = (float)real;
                break;
        case FLAG_STOP:
                if (cli->generate.stop_count == LENGTH(cli->stops)) {
                        say("--stop may be given at most %zu times", LENGTH(cli->stops));
                        return CLI_USAGE;
                }
                cli->stops[cli->generate.stop_count++] = value;
                break;
        case FLAG_TRANSPORT:
                r = set_word(flag, value, transports, (unsigned *)(void *)field);
                break;
        case FLAG_PRIORITY:
                r = set_word(flag, value, priorities, (unsigned *)(void *)field);
                break;
        }
        cli->generate.set |= flag->set;
        return r;
}

/* Names the flag that was probably meant, if one begins with what was given. */
static int refuse_flag(const struct cli *cli, const char *given, size_t bytes)
{
        for (size_t i = 0; bytes > 3 && i < LENGTH(flags); i++) {
                if ((flags[i].commands & cli->command) && !strncmp(flags[i].name, given, bytes)) {
                        say("%s has no flag %.*s; is %s meant?", cli->name, (int)bytes, given,
                            flags[i].name);
                        return CLI_USAGE;
                }
        }
        say("%s has no flag %.*s; see samovar %s --help", cli->name, (int)bytes, given, cli->name);
        return CLI_USAGE;
}

/* Reads one flag.  If its value is the next argument, *at moves to that. */
static int read_flag(struct cli *cli, int argc, char **argv, int *at)
{
        const char *given = argv[*at], *equals = strchr(given, '=');
        size_t bytes = equals ? (size_t)(equals - given) : strlen(given);
        const struct flag *flag = NULL;

        for (size_t i = 0; i < LENGTH(flags); i++)
                if ((flags[i].commands & cli->command) && strlen(flags[i].name) == bytes &&
                    !memcmp(flags[i].name, given, bytes))
                        flag = &flags[i];
        if (!flag)
                return refuse_flag(cli, given, bytes);

        if (!flag->value && equals) {
                say("%s takes no value", flag->name);
                return CLI_USAGE;
        }
        if (!flag->value || equals)
                return set_flag(cli, flag, equals ? equals + 1 : NULL);
        if (*at + 1 == argc) {
                say("%s needs a value", flag->name);
                return CLI_USAGE;
        }
        return set_flag(cli, flag, argv[++*at]);
}

static int find_command(struct cli *cli, int argc, char **argv)
{
        if (argc < 2) {
                say("no command is given; samovar --help lists them");
                return CLI_USAGE;
        }
        if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
                help(cli);
                return -1;
        }
        if (!strcmp(argv[1], "--version")) {
                printf("samovar %s\n", smv_version());
                return -1;
        }
        for (size_t i = 0; i < LENGTH(commands); i++) {
                if (!strcmp(argv[1], commands[i].name)) {
                        cli->name = commands[i].name;
                        cli->command = commands[i].command;
                        return 0;
                }
        }
        say("there is no %s %s; see samovar --help", *argv[1] == '-' ? "flag" : "command", argv[1]);
        return CLI_USAGE;
}

/* The first argument of `template` may be a file; the prompt follows it. */
static int read_template_file(struct cli *cli)
{
        if (!cli->argument_count || !template_is_file(cli->arguments[0]))
                return 0;
        cli->file = cli->arguments[0];
        cli->argument_count--;
        memmove(cli->arguments, cli->arguments + 1,
                (size_t)cli->argument_count * sizeof(*cli->arguments));
        if (!cli->model && !cli->socket && !cli->any_uid)
                return 0;
        say("the template of the file %s is rendered without a running daemon: leave out %s",
            cli->file,
            cli->model    ? "--model"
            : cli->socket ? "--socket"
                          : "--any-uid");
        return CLI_USAGE;
}

static int read_resume_id(struct cli *cli)
{
        static const struct flag number = { .name = "attach" };

        if (cli->argument_count == 1)
                return set_uint(&number, cli->arguments[0], 0, UINT64_MAX, &cli->resume_id);
        say("attach takes one resume id, which --keep has printed on stderr");
        return CLI_USAGE;
}

/* --beams and --best-of print one answer out of many: they exclude -n, --keep and each other. */
static int check_search(struct cli *cli)
{
        const char *other = cli->generate.n                   ? "-n"
                            : cli->keep_s                     ? "--keep"
                            : cli->beam.width && cli->best_of ? "--best-of"
                                                              : NULL;

        if (other) {
                say("%s prints one answer and excludes %s: leave one of them out",
                    cli->beam.width ? "--beams" : "--best-of", other);
                return CLI_USAGE;
        }
        if (cli->best_of) {
                cli->generate.n = cli->best_of;
                cli->generate.set |= SMV_SET_LOGPROBS;
        }
        return 0;
}

int cli_flags(struct cli *cli, int argc, char **argv)
{
        bool only_arguments = false;
        int r;

        cli->beam.length_penalty = 1;
        r = find_command(cli, argc, argv);
        for (int i = 2; i < argc && !r; i++) {
                const char *given = argv[i];

                if (only_arguments || *given != '-' || !given[1]) {
                        cli->arguments[cli->argument_count++] = given;
                } else if (!strcmp(given, "--")) {
                        only_arguments = true;
                } else if (!strcmp(given, "--help") || !strcmp(given, "-h")) {
                        help(cli);
                        return -1;
                } else {
                        r = read_flag(cli, argc, argv, &i);
                }
        }
        if (!r && cli->command == CLI_TEMPLATE)
                r = read_template_file(cli);
        if (!r && cli->messages && (cli->system || cli->argument_count)) {
                say("--messages has the whole conversation: leave out %s",
                    cli->system ? "--system" : "the question");
                r = CLI_USAGE;
        }
        if (!r && (cli->beam.width || cli->best_of))
                r = check_search(cli);
        if (!r && cli->generate.set & SMV_SET_LOGPROBS && !cli->json && !cli->best_of) {
                say("--logprobs needs --json");
                r = CLI_USAGE;
        }
        if (!r && cli->keep_s > SMV_KEEP_MS_MAX / 1000) {
                say("--keep is %u seconds; it may be up to %u", cli->keep_s,
                    SMV_KEEP_MS_MAX / 1000);
                r = CLI_USAGE;
        }
        if (!r && cli->command == CLI_ATTACH)
                r = read_resume_id(cli);
        if (!r && cli->command == CLI_STATUS && cli->argument_count) {
                say("status takes no argument");
                r = CLI_USAGE;
        }
        /* Commands with one short answer need no shared memory. */
        if (!(cli->command & SAMPLING))
                cli->transport = SMV_TRANSPORT_SOCKET;
        cli->beam.size = sizeof(cli->beam);
        cli->generate.size = sizeof(cli->generate);
        cli->generate.stops = cli->stops;
        cli->generate.keep_ms = cli->keep_s * 1000;
        return r;
}
