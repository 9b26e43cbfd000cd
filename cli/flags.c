/*
 * Reads the command line.  There is one table of commands and one of flags, and --help is
 * made from them.  Anything that is not in the tables is refused.
 */
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GENERATE (CLI_ASK | CLI_COMPLETE)
#define WORDS    (CLI_TOKENIZE | CLI_DETOKENIZE)
#define TALK     (CLI_ASK | CLI_TEMPLATE)
#define STREAM   (GENERATE | CLI_ATTACH)
#define DRAWN    (GENERATE | CLI_FORK_DEMO)
#define ALL      (STREAM | CLI_FORK_DEMO | WORDS | CLI_TEMPLATE | CLI_STATUS)

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
        { "attach",     CLI_ATTACH,     "NUMBER",      "continue to read a stream that was started with --keep" },
        { "status",     CLI_STATUS,     "",            "print the daemon's counts" },
        { "fork-demo",  CLI_FORK_DEMO,  "[BEGINNING...]", "begin a story, fork it while it is generated, and show three endings at the same time" },
        { "inspect",    CLI_INSPECT,    "PATH",        "print what a model is, and whether this machine can serve it" },
};

enum kind {
        FLAG_TEXT, FLAG_SWITCH, FLAG_COUNT, FLAG_UINT32, FLAG_UINT64, FLAG_FLOAT, FLAG_STOP,
        FLAG_TRANSPORT, FLAG_CLASS,
};

static const struct flag {
        const char *name, *value;
        unsigned commands;
        enum kind kind;
        size_t offset; /* in struct cli */
        uint32_t set;  /* enum smv_set */
        const char *help;
} flags[] = {
        { "--socket",    "PATH", ALL,      FLAG_TEXT,   offsetof(struct cli, socket),               0, "where the daemon listens" },
        { "--any-uid",   NULL,   ALL,      FLAG_SWITCH, offsetof(struct cli, any_uid),              0, "trust a daemon that runs as neither you nor root" },
        { "--model",     "NAME", DRAWN | WORDS | CLI_TEMPLATE, FLAG_TEXT, offsetof(struct cli, model),          0, "the model to use; a path (with /, .gguf or .safetensors) starts a private samovard" },
        { "--system",    "TEXT", TALK,     FLAG_TEXT,   offsetof(struct cli, system),               0, "the system message, before the question" },
        { "--messages",  "FILE", TALK,     FLAG_TEXT,   offsetof(struct cli, messages),             0, "a conversation in JSON, with or without tools, instead of a question" },
        { "--max",       "N",    DRAWN, FLAG_COUNT,  offsetof(struct cli, generate.max_tokens),  0, "maximum number of tokens" },
        { "--temp",      "T",    DRAWN, FLAG_FLOAT,  offsetof(struct cli, generate.temperature), SMV_SET_TEMPERATURE, "temperature; 0: always the likeliest token" },
        { "--top-k",     "K",    DRAWN, FLAG_UINT32, offsetof(struct cli, generate.top_k),       SMV_SET_TOP_K, "only the K likeliest tokens" },
        { "--top-p",     "P",    DRAWN, FLAG_FLOAT,  offsetof(struct cli, generate.top_p),       SMV_SET_TOP_P, "only the likeliest tokens that sum up to P" },
        { "--min-p",     "P",    DRAWN, FLAG_FLOAT,  offsetof(struct cli, generate.min_p),       SMV_SET_MIN_P, "only tokens at least P times as likely as the likeliest" },
        { "--seed",      "N",    DRAWN, FLAG_UINT64, offsetof(struct cli, generate.seed),        SMV_SET_SEED, "draw the same tokens again" },
        { "-n",          "COUNT", GENERATE, FLAG_COUNT, offsetof(struct cli, generate.n),          0, "number of answers to one prompt, generated at the same time; up to 64" },
        { "--best-of",   "COUNT", GENERATE, FLAG_COUNT, offsetof(struct cli, best_of),            0, "generate COUNT answers, and print the one that is likeliest by the model" },
        { "--class",     "CLASS", GENERATE, FLAG_CLASS, offsetof(struct cli, generate.priority),    0, "scheduling class: interactive, normal or background" },
        { "--deadline",  "MS",   GENERATE, FLAG_COUNT,  offsetof(struct cli, generate.deadline_ms), 0, "end after MS milliseconds with the tokens until then; refused if too little could be done" },
        { "--beams",     "W",    GENERATE, FLAG_COUNT,  offsetof(struct cli, beam.width),           0, "beam search: follow the W likeliest continuations, and print the likeliest one" },
        { "--length-penalty", "P", GENERATE, FLAG_FLOAT, offsetof(struct cli, beam.length_penalty), 0, "with --beams: divide a continuation's log-probability by its length to this power; default 1" },
        { "--logprobs",  "N",    GENERATE, FLAG_UINT32, offsetof(struct cli, generate.logprobs),   SMV_SET_LOGPROBS, "with --json: the log-probability of each token, and of the N likeliest ones" },
        { "--stop",      "TEXT", GENERATE, FLAG_STOP,   0,                                          0, "end before this text; may be given again" },
        { "--keep",      "SECONDS", GENERATE, FLAG_COUNT, offsetof(struct cli, keep_s),            0, "if this command dies, the stream waits this long for attach; stderr shows its number" },
        { "--from",      "N",    CLI_ATTACH, FLAG_UINT32, offsetof(struct cli, from),               0, "begin at this record, as counted by --json" },
        { "--transport", "HOW", DRAWN, FLAG_TRANSPORT, offsetof(struct cli, transport),          0, "transport of tokens: auto, ring (shared memory) or socket" },
        { "--stats",     NULL,   STREAM, FLAG_SWITCH, offsetof(struct cli, stats),                0, "print on stderr how much of the prompt was cached, why not more, and the times" },
        { "--json",      NULL,   ALL & ~CLI_FORK_DEMO, FLAG_SWITCH, offsetof(struct cli, json),                 0, "print JSON" },
};
/* clang-format on */

static void help(const struct cli *cli)
{
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
        if (cli->command == CLI_TEMPLATE)
                printf("With a FILE (a template, a model, a tokenizer_config.json) no daemon is "
                       "asked.\n");
        printf("\n");
        for (size_t i = 0; i < LENGTH(flags); i++) {
                if (!(flags[i].commands & cli->command))
                        continue;
                snprintf(left, sizeof(left), "%s %s", flags[i].name,
                         flags[i].value ? flags[i].value : "");
                printf("  %-22s %s\n", left, flags[i].help);
        }
}

static int bad_value(const struct flag *flag, const char *value, const char *wanted)
{
        say("%s: \"%s\" is not %s", flag->name, value, wanted);
        return CLI_USAGE;
}

static int set_uint(const struct flag *flag, const char *value, uint64_t max, uint64_t *ret_number)
{
        unsigned long long number;
        char *end;

        errno = 0;
        number = strtoull(value, &end, 10);
        if (*value < '0' || *value > '9' || *end || errno || number > max)
                return bad_value(flag, value, "a whole number in range");
        *ret_number = number;
        return 0;
}

static const char *const transports[] = {
        [SMV_TRANSPORT_AUTO] = "auto",
        [SMV_TRANSPORT_RING] = "ring",
        [SMV_TRANSPORT_SOCKET] = "socket",
};

static const char *const classes[] = {
        [SMV_CLASS_NORMAL] = "normal",
        [SMV_CLASS_INTERACTIVE] = "interactive",
        [SMV_CLASS_BACKGROUND] = "background",
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
                r = set_uint(flag, value, UINT32_MAX, &number);
                *(uint32_t *)(void *)field = (uint32_t)number;
                break;
        case FLAG_COUNT:
                r = set_uint(flag, value, UINT32_MAX, &number);
                if (!r && !number)
                        r = bad_value(flag, value, "1 or more");
                *(uint32_t *)(void *)field = (uint32_t)number;
                break;
        case FLAG_UINT64:
                r = set_uint(flag, value, UINT64_MAX, &number);
                *(uint64_t *)(void *)field = number;
                break;
        case FLAG_FLOAT:
                real = strtod(value, &end);
                if (end == value || *end || !isfinite(real))
                        return bad_value(flag, value, "a number");
                *(float *)(void *)field = (float)real;
                break;
        case FLAG_STOP:
                if (cli->generate.stop_count == LENGTH(cli->stops))
                        return bad_value(flag, value, "taken: there are too many of them");
                cli->stops[cli->generate.stop_count++] = value;
                break;
        case FLAG_TRANSPORT:
                r = set_word(flag, value, transports, (unsigned *)(void *)field);
                break;
        case FLAG_CLASS:
                r = set_word(flag, value, classes, (unsigned *)(void *)field);
                break;
        }
        cli->generate.set |= flag->set;
        return r;
}

/* Reads one flag.  If its value is the next argument, *at moves to that. */
static int take_flag(struct cli *cli, int argc, char **argv, int *at)
{
        const char *given = argv[*at], *equals = strchr(given, '=');
        size_t bytes = equals ? (size_t)(equals - given) : strlen(given);
        const struct flag *flag = NULL;

        for (size_t i = 0; i < LENGTH(flags); i++)
                if ((flags[i].commands & cli->command) && strlen(flags[i].name) == bytes &&
                    !memcmp(flags[i].name, given, bytes))
                        flag = &flags[i];
        if (!flag) {
                say("%s has no flag %.*s; see samovar %s --help", cli->name, (int)bytes, given,
                    cli->name);
                return CLI_USAGE;
        }

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
                say("which command? see samovar --help");
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
static int take_template(struct cli *cli)
{
        if (!cli->word_count || !preview_is_file(cli->words[0]))
                return 0;
        cli->file = cli->words[0];
        cli->word_count--;
        memmove(cli->words, cli->words + 1, (size_t)cli->word_count * sizeof(*cli->words));
        if (!cli->model && !cli->socket && !cli->any_uid)
                return 0;
        say("%s is a file, and no daemon is asked: there is no %s beside it", cli->file,
            cli->model    ? "--model"
            : cli->socket ? "--socket"
                          : "--any-uid");
        return CLI_USAGE;
}

static int take_number(struct cli *cli)
{
        static const struct flag number = { .name = "attach" };

        if (cli->word_count == 1)
                return set_uint(&number, cli->words[0], UINT64_MAX, &cli->kept);
        say("attach takes one number: what --keep said on stderr");
        return CLI_USAGE;
}

/* --beams and --best-of print one answer out of many: they exclude -n, --keep and each other. */
static int take_search(struct cli *cli)
{
        const char *other = cli->generate.n                   ? "-n"
                            : cli->keep_s                     ? "--keep"
                            : cli->beam.width && cli->best_of ? "--best-of"
                                                              : NULL;

        if (other) {
                say("%s finds what is likeliest: there is no %s beside it",
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
        bool only_words = false;
        int r;

        cli->beam.length_penalty = 1;
        r = find_command(cli, argc, argv);
        for (int i = 2; i < argc && !r; i++) {
                const char *given = argv[i];

                if (only_words || *given != '-' || !given[1]) {
                        cli->words[cli->word_count++] = given;
                } else if (!strcmp(given, "--")) {
                        only_words = true;
                } else if (!strcmp(given, "--help") || !strcmp(given, "-h")) {
                        help(cli);
                        return -1;
                } else {
                        r = take_flag(cli, argc, argv, &i);
                }
        }
        if (!r && cli->command == CLI_TEMPLATE)
                r = take_template(cli);
        if (!r && cli->messages && (cli->system || cli->word_count)) {
                say("--messages has all that is said: there is no %s beside it",
                    cli->system ? "--system" : "question");
                r = CLI_USAGE;
        }
        if (!r && (cli->beam.width || cli->best_of))
                r = take_search(cli);
        if (!r && cli->generate.set & SMV_SET_LOGPROBS && !cli->json && !cli->best_of) {
                say("--logprobs is for --json");
                r = CLI_USAGE;
        }
        if (!r && cli->keep_s > SMV_KEEP_MS_MAX / 1000) {
                say("--keep: %u is not %u or less", cli->keep_s, SMV_KEEP_MS_MAX / 1000);
                r = CLI_USAGE;
        }
        if (!r && cli->command == CLI_ATTACH)
                r = take_number(cli);
        if (!r && cli->command == CLI_STATUS && cli->word_count) {
                say("status takes no argument");
                r = CLI_USAGE;
        }
        /* Commands with one short answer need no shared memory. */
        if (!(cli->command & DRAWN))
                cli->transport = SMV_TRANSPORT_SOCKET;
        cli->beam.size = sizeof(cli->beam);
        cli->generate.size = sizeof(cli->generate);
        cli->generate.stops = cli->stops;
        cli->generate.keep_ms = cli->keep_s * 1000;
        return r;
}
