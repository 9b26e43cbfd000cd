/*
 * Reads the command line.  There is one table of commands and one of flags.  --help is made from
 * them, and so are the reference page and the man page (contrib/dev/reference).  Anything that is
 * not in the tables is refused.
 */
#include "cli/cli.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/flag.h"
#include "json/distance.h"

#define GENERATE     (CLI_ASK | CLI_COMPLETE)
#define TOKENS       (CLI_TOKENIZE | CLI_DETOKENIZE)
#define CONVERSATION (CLI_ASK | CLI_TEMPLATE)
#define STREAM       (GENERATE | CLI_ATTACH)
#define SAMPLING     (GENERATE | CLI_FORK_DEMO)
#define LOOKS        (CLI_STATUS | CLI_MODELS | CLI_PS | CLI_CANCEL)
#define ALL          (STREAM | CLI_FORK_DEMO | TOKENS | CLI_TEMPLATE | LOOKS)

#define TIMEOUT_S_MAX 86400
#define SHORT_S       10 /* to ask the daemon what it does */
#define LONG_S        60 /* to ask it for work: a daemon that is restarted drains for 30 s */

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
        { "status",     CLI_STATUS,     "",            "show on one screen what the daemon does, and for whom" },
        { "ps",         CLI_PS,         "",            "list your streams and handles; root and the user of the daemon see all" },
        { "cancel",     CLI_CANCEL,     "NUMBER",      "end the stream, or close the handle, that ps shows with this number" },
        { "models",     CLI_MODELS,     "",            "list the models that the daemon serves" },
        { "fork-demo",  CLI_FORK_DEMO,  "[BEGINNING...]", "begin a story, fork it while it is generated, and show three endings at the same time" },
        { "inspect",    CLI_INSPECT,    "PATH",        "print what a model is, whether this machine can serve it, and in which quantisations" },
};

static const char *const transports[] = {
        [SMV_TRANSPORT_AUTO] = "auto",
        [SMV_TRANSPORT_RING] = "ring",
        [SMV_TRANSPORT_SOCKET] = "socket",
        NULL,
};

static const char *const tool_choices[] = { "auto", "none", "required", NULL };

static const char *const orders[] = {
        [SMV_ORDER_TEMPERATURE_FIRST] = "temperature_first",
        [SMV_ORDER_TEMPERATURE_LAST] = "temperature_last",
        NULL,
};

static const char *const priorities[] = {
#define X(name, word) [SMV_PRIORITY_##name] = word,
        SMV_PRIORITIES(X)
#undef X
        NULL,
};

static const struct flag flags[] = {
        { "--socket",    "PATH", ALL,      FLAG_TEXT,   offsetof(struct cli, socket),               0, "the socket of the daemon", "Daemon and model" },
        { "--any-uid",   NULL,   ALL,      FLAG_SWITCH, offsetof(struct cli, any_uid),              0, "accept a daemon that runs as neither you nor root" },
        { "--principal", "NAME", ALL,      FLAG_TEXT,   offsetof(struct cli, principal),            0, "connect for this principal, if you are the user of the daemon's setting gateway" },
        { "--timeout",   "SECONDS", ALL,   FLAG_COUNT,  offsetof(struct cli, timeout_s),            0, "wait this long for a connection; by default 10 for status, models, ps and cancel, else 60", .high = TIMEOUT_S_MAX },
        { "--model",     "NAME", SAMPLING | TOKENS | CLI_TEMPLATE, FLAG_TEXT, offsetof(struct cli, model),          0, "the model to use; a path (with /, .gguf or .safetensors) starts a private samovard" },

        { "--system",    "TEXT", CONVERSATION,     FLAG_TEXT,   offsetof(struct cli, system),               0, "the system message, before the question", "Prompt" },
        { "--answer",    "TEXT", CONVERSATION,     FLAG_TEXT,   offsetof(struct cli, answer),               0, "the beginning of the answer, which the model continues; only the continuation is printed" },
        { "--messages",  "FILE", CONVERSATION,     FLAG_TEXT,   offsetof(struct cli, messages),             0, "a conversation in JSON, with or without tools, instead of a question" },

        { "--max-tokens", "N",   SAMPLING, FLAG_COUNT, offsetof(struct cli, generate.max_tokens),  0, "maximum number of tokens", "Tokens" },
        { "--clamp",     NULL,   GENERATE, FLAG_SWITCH, offsetof(struct cli, clamp),                0, "if --max-tokens is more than fits, generate as many as fit" },
        { "--stop",      "TEXT", GENERATE, FLAG_STOP,   0,                                          0, "end before this text; may be given up to 16 times" },
        { "--ignore-eos", NULL,  GENERATE, FLAG_SWITCH, offsetof(struct cli, ignore_eos),           0, "do not end at the model's own end token, only at the other limits" },
        { "--temperature-range", "R", GENERATE, FLAG_FLOAT, offsetof(struct cli, generate.temperature_range), 0, "the temperature grows with the entropy, from R below --temp to R above it", .high = SMV_TEMPERATURE_MAX },
        { "--temperature-exponent", "E", GENERATE, FLAG_FLOAT, offsetof(struct cli, generate.temperature_exponent), SMV_SET_TEMPERATURE_EXPONENT, "with --temperature-range: how it grows; default 1", .high = SMV_EXPONENT_MAX },
        { "--temp",      "T",    SAMPLING, FLAG_FLOAT,  offsetof(struct cli, generate.temperature), SMV_SET_TEMPERATURE, "temperature; 0: always the likeliest token", .high = SMV_TEMPERATURE_MAX },
        { "--top-k",     "K",    SAMPLING, FLAG_UINT32, offsetof(struct cli, generate.top_k),       SMV_SET_TOP_K, "only the K likeliest tokens", .high = SMV_TOP_K_MAX },
        { "--top-p",     "P",    SAMPLING, FLAG_FLOAT,  offsetof(struct cli, generate.top_p),       SMV_SET_TOP_P, "only the likeliest tokens that sum up to P", .high = 1, .above = true },
        { "--min-p",     "P",    SAMPLING, FLAG_FLOAT,  offsetof(struct cli, generate.min_p),       SMV_SET_MIN_P, "only tokens at least P times as likely as the likeliest", .high = 1 },
        { "--n-sigma",   "N",    GENERATE, FLAG_FLOAT,  offsetof(struct cli, generate.n_sigma),     0, "only tokens whose logits are at most N deviations below the largest", .high = SMV_N_SIGMA_MAX },
        { "--typical",   "P",    GENERATE, FLAG_FLOAT,  offsetof(struct cli, generate.typical),     0, "only the tokens that are nearest to the entropy and sum up to P", .high = 1 },
        { "--xtc-chance", "P",   GENERATE, FLAG_FLOAT,  offsetof(struct cli, generate.xtc_chance),  0, "with this chance, leave out the likely tokens but the last one", .high = 1 },
        { "--xtc-least", "P",    GENERATE, FLAG_FLOAT,  offsetof(struct cli, generate.xtc_least),   SMV_SET_XTC_LEAST, "with --xtc-chance: tokens from P on are likely; default 0.1", .high = 1 },
        { "--mirostat-tau", "BITS", GENERATE, FLAG_FLOAT, offsetof(struct cli, generate.mirostat_tau), 0, "keep tokens so that the mean surprise of the drawn ones comes near BITS: mirostat 2; it makes the only cut", .high = SMV_MIROSTAT_TAU_MAX },
        { "--mirostat-eta", "E", GENERATE, FLAG_FLOAT,  offsetof(struct cli, generate.mirostat_eta), SMV_SET_MIROSTAT_ETA, "with --mirostat-tau: how fast it learns; default 0.1", .high = SMV_MIROSTAT_ETA_MAX },
        { "--order",     "ORDER", GENERATE, FLAG_WORD,  offsetof(struct cli, generate.order),       0, "the temperature applies before the cuts (temperature_first, the default) or after them (temperature_last)", .words = orders },
        { "--presence-penalty", "P", GENERATE, FLAG_FLOAT, offsetof(struct cli, generate.presence_penalty), 0, "lower the logits of tokens that the answer has by P", .low = -SMV_PENALTY_MAX, .high = SMV_PENALTY_MAX },
        { "--frequency-penalty", "P", GENERATE, FLAG_FLOAT, offsetof(struct cli, generate.frequency_penalty), 0, "lower them by P each time that the answer has them", .low = -SMV_PENALTY_MAX, .high = SMV_PENALTY_MAX },
        { "--repetition-penalty", "P", GENERATE, FLAG_FLOAT, offsetof(struct cli, generate.repetition_penalty), 0, "divide the logits of tokens of prompt and answer by P; 1: off", .high = SMV_PENALTY_MAX, .above = true },
        { "--repeat-window", "N", GENERATE, FLAG_COUNT, offsetof(struct cli, generate.repeat_window), 0, "with --repetition-penalty: only the last N tokens; default 3072", .high = SMV_WINDOW_MAX },
        { "--dry-multiplier", "M", GENERATE, FLAG_FLOAT, offsetof(struct cli, generate.dry_multiplier), 0, "lower the logits of tokens that would continue a repetition: DRY; usual is 0.8", .high = SMV_PENALTY_MAX },
        { "--dry-base",  "B",    GENERATE, FLAG_FLOAT,  offsetof(struct cli, generate.dry_base),    0, "with --dry-multiplier: grows by this factor with each token; default 1.75", .high = SMV_PENALTY_MAX, .above = true },
        { "--dry-allowed", "N",  GENERATE, FLAG_COUNT,  offsetof(struct cli, generate.dry_allowed), 0, "with --dry-multiplier: shorter repetitions are free; default 2", .high = SMV_WINDOW_MAX },
        { "--dry-window", "N",   GENERATE, FLAG_COUNT,  offsetof(struct cli, generate.dry_window),  0, "with --dry-multiplier: only the last N tokens; default 3072", .high = SMV_WINDOW_MAX },
        { "--no-repeat-ngram", "N", GENERATE, FLAG_UINT32, offsetof(struct cli, generate.no_repeat_ngram), 0, "no N tokens in a row come twice; 0: off", .high = SMV_NGRAM_MAX },
        { "--reasoning-max", "N", GENERATE, FLAG_UINT32, offsetof(struct cli, generate.reasoning_max), SMV_SET_REASONING_MAX, "end the reasoning of the model when it has N tokens; 0: at once" },
        { "--reasoning-end", "TEXT", GENERATE, FLAG_TEXT, offsetof(struct cli, generate.reasoning_end), 0, "with --reasoning-max: the text that is written before the end of the reasoning" },
        { "--min-tokens", "N",   GENERATE, FLAG_UINT32, offsetof(struct cli, generate.min_tokens),  0, "no end before N tokens, but at a --stop" },
        { "--ban",       "TEXT", GENERATE, FLAG_BAN,    0,                                          0, "the answer never has this text; may be given up to 64 times" },
        { "--seed",      "N",    SAMPLING, FLAG_UINT64, offsetof(struct cli, generate.seed),        SMV_SET_SEED, "seed of the random draws: the same seed gives the same tokens" },

        { "--schema",    "FILE", GENERATE, FLAG_TEXT,   offsetof(struct cli, schema),               0, "the answer is JSON that obeys this JSON Schema", "Form of the answer" },
        { "--regex",     "TEXT", GENERATE, FLAG_TEXT,   offsetof(struct cli, regex),                0, "the whole answer matches this regular expression" },
        { "--grammar",   "FILE", GENERATE, FLAG_TEXT,   offsetof(struct cli, grammar),              0, "the answer is a text of this grammar, in GBNF" },
        { "--choice",    "TEXT", GENERATE, FLAG_CHOICE, 0,                                          0, "the answer is this text, or that of another --choice; up to 64" },
        { "--constraint", "JSON", GENERATE, FLAG_TEXT, offsetof(struct cli, generate.constraint),   0, "the answer must follow this: {\"schema\": ...}, {\"json\": true}, {\"regex\": ...}, {\"grammar\": ...} or {\"choices\": ...}" },
        { "--tools",     "FILE", CLI_ASK,  FLAG_TEXT,   offsetof(struct cli, tools),                0, "a list of tools in JSON, as OpenAI has it; calls are printed as NAME(ARGUMENTS), a line each" },
        { "--tool-choice", "CHOICE", CLI_ASK,     FLAG_WORD,   offsetof(struct cli, generate.tool_choice), 0, "with tools: auto (the default), none, or required: the answer is calls only", .words = tool_choices },
        { "--tool",      "NAME", CLI_ASK,          FLAG_TOOL,   0,                                           0, "with tools: this one may be called; up to 64 of them; without --tool, all" },
        { "--calls-max", "N",    CLI_ASK,          FLAG_COUNT,  offsetof(struct cli, generate.calls_max),   0, "with tools: at most N calls", .high = SMV_CALLS_MAX },
        { "--parts",     NULL,   CLI_ASK,  FLAG_SWITCH, offsetof(struct cli, parts),                0, "divide the answer: reasoning goes to stderr, and --json says what each piece is; so it is with a form and with tools, too" },

        { "-n",          "COUNT", GENERATE, FLAG_COUNT, offsetof(struct cli, generate.n),          0, "number of answers to one prompt, generated at the same time; up to 64", "Several answers", .high = SMV_SAMPLES_MAX },
        { "--best-of",   "COUNT", GENERATE, FLAG_COUNT, offsetof(struct cli, best_of),            0, "generate COUNT answers, and print the one that the model finds likeliest", .high = SMV_SAMPLES_MAX },
        { "--beams",     "W",    GENERATE, FLAG_COUNT,  offsetof(struct cli, beam.width),           0, "beam search: follow the W likeliest continuations, and print the likeliest one", .high = SMV_BEAM_WIDTH_MAX },
        { "--length-penalty", "P", GENERATE, FLAG_FLOAT, offsetof(struct cli, beam.length_penalty), 0, "with --beams: divide a continuation's log-probability by its length to this power; default 1" },

        { "--priority",  "PRIORITY", GENERATE, FLAG_WORD, offsetof(struct cli, generate.priority),    0, "scheduling priority: interactive, normal (the default) or background", "Scheduling", .words = priorities },
        { "--deadline",  "MS",   GENERATE, FLAG_COUNT,  offsetof(struct cli, generate.deadline_ms), 0, "end after MS milliseconds with the tokens until then; refused if it could hardly begin by then" },
        { "--keep",      "SECONDS", GENERATE, FLAG_COUNT, offsetof(struct cli, keep_s),            0, "if this command dies, the stream waits this long for attach; stderr shows its resume id", .high = SMV_KEEP_MS_MAX / 1000 },

        { "--json",      NULL,   (ALL & ~(CLI_FORK_DEMO | CLI_CANCEL)) | CLI_INSPECT, FLAG_SWITCH, offsetof(struct cli, json),                 0, "print JSON", "Output" },
        { "--control-text", NULL, GENERATE, FLAG_SWITCH, offsetof(struct cli, control_text),         0, "print the text of control tokens that the model generates, too" },
        { "--pieces",    NULL,   TOKENS,   FLAG_SWITCH, offsetof(struct cli, pieces),               0, "print a line for each token: its id, what it is, and its own text" },
        { "--logprobs",  "N",    GENERATE, FLAG_UINT32, offsetof(struct cli, generate.logprobs),   SMV_SET_LOGPROBS, "with --json: the log-probability of each token, and of the N likeliest ones", .high = SMV_LOGPROBS_MAX },
        { "--stats",     NULL,   STREAM, FLAG_SWITCH, offsetof(struct cli, stats),                0, "print on stderr the queue, how tokens are drawn, how much of the prompt was cached, why not more, how often the stream was preempted, which --stop ended it, and the times" },
        { "--all",       NULL,   CLI_STATUS, FLAG_SWITCH, offsetof(struct cli, all),                 0, "print every count, one a line" },
        { "--watch",     "[SECONDS]", CLI_STATUS, FLAG_SECONDS, offsetof(struct cli, watch_s),       0, "show it again every SECONDS, by default every second, until ^C" },
        { "--from",      "N",    CLI_ATTACH, FLAG_UINT32, offsetof(struct cli, from),               0, "begin at this record; --json shows their numbers as sequence" },
        { "--transport", "HOW", SAMPLING, FLAG_WORD, offsetof(struct cli, transport),          0, "transport of tokens: auto, ring (shared memory) or socket", .words = transports },
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
        if (!(cli->command & (LOOKS | CLI_INSPECT | CLI_ATTACH | CLI_FORK_DEMO)))
                printf("Without arguments, or with -, it reads stdin.\n");
        if (cli->command & CONVERSATION)
                printf("If stdin is a pipe or a file, it follows the question, after an empty "
                       "line.\n");
        if (cli->command == CLI_STATUS)
                printf("The manual samovar(1) explains each key of --all and --json.\n");
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
                .words = flags[index].words,
                .help = flags[index].help,
                .commands = flags[index].commands,
        };
        return true;
}

static bool same(const char *name, const char *given, size_t bytes)
{
        return strlen(name) == bytes && !memcmp(name, given, bytes);
}

/* The flag of that name which one of the commands `takers` takes, or NULL. */
static const struct flag *find_flag(unsigned takers, const char *given, size_t bytes)
{
        for (size_t i = 0; i < LENGTH(flags); i++)
                if ((flags[i].commands & takers) && same(flags[i].name, given, bytes))
                        return &flags[i];
        return NULL;
}

bool cli_takes(const struct cli *cli, const char *flag)
{
        return find_flag(cli->command, flag, strlen(flag));
}

/* A flag begins as its field does, with dashes: --keep sets keep_ms, --temp sets temperature. */
static bool sets_field(const struct flag *flag, const char *field)
{
        const char *name = flag->name + strspn(flag->name, "-");

        for (; *name && *field && *name == (*field == '_' ? '-' : *field); name++)
                field++;
        return !*name && (!*field || strlen(flag->name) > 4);
}

bool cli_name_flag(const struct cli *cli, const char *field, char *to, size_t bytes)
{
        if (!strcmp(field, "messages") && cli->command & (CLI_ASK | CLI_TEMPLATE) &&
            !cli->messages) {
                snprintf(to, bytes, "%sthe question", cli->system ? "--system and " : "");
                return true;
        }
        if (!strcmp(field, "constraint") && cli->constraint.count)
                field = cli->schema    ? "schema"
                        : cli->regex   ? "regex"
                        : cli->grammar ? "grammar"
                                       : "choice";
        for (size_t i = 0; i < LENGTH(flags); i++) {
                const void *value = (const char *)cli + flags[i].offset;
                const char *text = flags[i].kind == FLAG_TEXT ? *(const char *const *)value : NULL;

                if (!(flags[i].commands & cli->command) || !sets_field(&flags[i], field))
                        continue;
                snprintf(to, bytes, "%s%s%.64s", flags[i].name, text ? " " : "", text ? text : "");
                return true;
        }
        return false;
}

/* Names the flag that was probably meant: it begins with what was given, or is nearly the same. */
static int refuse_flag(const struct cli *cli, const char *given, size_t bytes)
{
        unsigned takers = cli->name ? cli->command : ~0u;
        const char *taker = cli->name ? cli->name : "samovar", *meant = NULL;
        uint32_t best = DISTANCE_NONE;

        if (distance_is_hint(given, bytes, "--help", &best))
                meant = "--help"; /* all take it, and it is no row */
        if (!cli->name && distance_is_hint(given, bytes, "--version", &best))
                meant = "--version"; /* stands only before a command */
        for (size_t i = 0; i < LENGTH(flags); i++) {
                if (!(flags[i].commands & takers))
                        continue;
                if (bytes > 3 && !strncmp(flags[i].name, given, bytes)) {
                        meant = flags[i].name;
                        break;
                }
                if (distance_is_hint(given, bytes, flags[i].name, &best))
                        meant = flags[i].name;
        }
        if (meant)
                say("%s has no flag %.*s; is %s meant?", taker, (int)bytes, given, meant);
        else
                say("%s has no flag %.*s; see samovar%s%s --help", taker, (int)bytes, given,
                    cli->name ? " " : "", cli->name ? cli->name : "");
        return CLI_USAGE;
}

/*
 * Reads one flag; if its value is the next argument, *at moves to that.  While the command is not
 * known yet, the flag is only skipped.
 */
static int read_flag(struct cli *cli, int argc, char **argv, int *at)
{
        const char *given = argv[*at], *equals = strchr(given, '=');
        size_t bytes = equals ? (size_t)(equals - given) : strlen(given);
        const struct flag *flag = find_flag(cli->name ? cli->command : ~0u, given, bytes);
        const char *value = equals ? equals + 1 : NULL;

        if (!flag)
                return refuse_flag(cli, given, bytes);
        if (!flag->value && equals) {
                say("%s takes no value", flag->name);
                return CLI_USAGE;
        }
        if (!equals && flag_takes(flag, *at + 1 < argc ? argv[*at + 1] : NULL)) {
                if (*at + 1 == argc) {
                        say("%s needs a value: %s", flag->name, flag->value);
                        return CLI_USAGE;
                }
                value = argv[++*at];
        }
        return cli->name ? flag_set(cli, flag, value) : 0;
}

static int refuse_command(const char *given)
{
        const char *meant = NULL;
        uint32_t best = DISTANCE_NONE;
        char names[256] = "";
        size_t used = 0;

        for (size_t i = 0; i < LENGTH(commands); i++) {
                if (distance_is_hint(given, strlen(given), commands[i].name, &best))
                        meant = commands[i].name;
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                         commands[i].name);
        }
        if (meant)
                say("there is no command %.40s; is %s meant?", given, meant);
        else
                say("there is no command %.40s; the commands are %s", given, names);
        return CLI_USAGE;
}

static bool is_help(const char *given)
{
        return !strcmp(given, "--help") || !strcmp(given, "-h");
}

static bool read_command(struct cli *cli, const char *given)
{
        for (size_t i = 0; i < LENGTH(commands); i++) {
                if (!strcmp(given, commands[i].name)) {
                        cli->name = commands[i].name;
                        cli->command = commands[i].command;
                        return true;
                }
        }
        return false;
}

static int print_version(void)
{
        printf("samovar %s\n", smv_version());
        return -1;
}

/* `help`, `help COMMAND` and `version` are what many type instead of the flags. */
static int answer_word(struct cli *cli, const char *word, const char *next)
{
        if (!strcmp(word, "version"))
                return print_version();
        if (strcmp(word, "help") || (next && !read_command(cli, next)))
                return refuse_command(next && !strcmp(word, "help") ? next : word);
        help(cli);
        return -1;
}

/* Finds the command behind the flags that stand before it; *ret_at is its place. */
static int find_command(struct cli *cli, int argc, char **argv, int *ret_at)
{
        int at = 1, r = 0;

        for (; at < argc && *argv[at] == '-' && argv[at][1]; at++) {
                if (is_help(argv[at])) {
                        help(cli);
                        return -1;
                }
                if (!strcmp(argv[at], "--version"))
                        return print_version();
                r = read_flag(cli, argc, argv, &at);
                if (r)
                        return r;
        }
        if (at == argc) {
                say("no command is given; samovar --help lists them");
                return CLI_USAGE;
        }
        *ret_at = at;
        return read_command(cli, argv[at]) ? 0 : answer_word(cli, argv[at], argv[at + 1]);
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
        if (!cli->model && !cli->socket && !cli->any_uid && !cli->principal && !cli->timeout_s)
                return 0;
        say("the template of the file %s is rendered without a running daemon: leave out %s",
            cli->file,
            cli->model       ? "--model"
            : cli->socket    ? "--socket"
            : cli->any_uid   ? "--any-uid"
            : cli->principal ? "--principal"
                             : "--timeout");
        return CLI_USAGE;
}

static int read_resume_id(struct cli *cli)
{
        static const struct flag number = { .name = "the resume id",
                                            .kind = FLAG_UINT64,
                                            .offset = offsetof(struct cli, resume_id),
                                            .low = 1 };

        if (cli->argument_count == 1)
                return flag_set(cli, &number, cli->arguments[0]);
        say("attach takes one resume id, which --keep has printed on stderr");
        return CLI_USAGE;
}

static int read_number(struct cli *cli)
{
        static const struct flag number = { .name = "the number",
                                            .kind = FLAG_UINT64,
                                            .offset = offsetof(struct cli, number),
                                            .low = 1 };

        if (cli->argument_count == 1)
                return flag_set(cli, &number, cli->arguments[0]);
        say("cancel takes one number, of a stream or a handle; samovar ps shows them");
        return CLI_USAGE;
}

/* --beams and --best-of print one answer out of many: they exclude -n, --keep and each other. */
static int check_search(struct cli *cli)
{
        const char *other = cli->generate.n                   ? "-n"
                            : cli->keep_s                     ? "--keep"
                            : cli->beam.width && cli->best_of ? "--best-of"
                                                              : NULL;
        const char *form = cli->beam.width ? cli_form_flag(cli) : NULL;

        if (form) {
                say("--beams searches without a form of the answer: leave out %s", form);
                return CLI_USAGE;
        }

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

/* Reads the command, the flags before and after it, and the arguments. */
static int read_words(struct cli *cli, int argc, char **argv)
{
        bool only_arguments = false;
        int command = 0, r;

        r = find_command(cli, argc, argv, &command);
        for (int i = 1; i < argc && !r; i++) {
                const char *given = argv[i];

                if (i == command)
                        continue;
                if (only_arguments || *given != '-' || !given[1]) {
                        cli->arguments[cli->argument_count++] = given;
                } else if (!strcmp(given, "--")) {
                        only_arguments = true;
                } else if (is_help(given)) {
                        help(cli);
                        return -1;
                } else {
                        r = read_flag(cli, argc, argv, &i);
                }
        }
        return r;
}

int cli_flags(struct cli *cli, int argc, char **argv)
{
        int r;

        cli->beam.length_penalty = 1;
        r = read_words(cli, argc, argv);
        if (!r && cli->command == CLI_TEMPLATE)
                r = read_template_file(cli);
        if (!r && cli->messages && (cli->system || cli->answer || cli->argument_count)) {
                say("--messages has the whole conversation: leave out %s",
                    cli->system   ? "--system"
                    : cli->answer ? "--answer"
                                  : "the question");
                r = CLI_USAGE;
        }
        if (!r && cli->messages && cli->tools) {
                say("--messages may have tools itself: leave out --tools, and write them there");
                r = CLI_USAGE;
        }
        if (!r && (cli->beam.width || cli->best_of))
                r = check_search(cli);
        if (!r && cli->generate.set & SMV_SET_LOGPROBS && !cli->json && !cli->best_of) {
                say("--logprobs needs --json");
                r = CLI_USAGE;
        }
        if (!r && cli->command == CLI_ATTACH)
                r = read_resume_id(cli);
        if (!r && cli->command == CLI_CANCEL)
                r = read_number(cli);
        if (!r && cli->command & (LOOKS & ~CLI_CANCEL) && cli->argument_count) {
                say("%s takes no argument, but %.40s is one", cli->name, cli->arguments[0]);
                r = CLI_USAGE;
        }
        cli->wait_s = cli->timeout_s ? cli->timeout_s : cli->command & LOOKS ? SHORT_S : LONG_S;
        /* Commands with one short answer need no shared memory. */
        if (!(cli->command & SAMPLING))
                cli->transport = SMV_TRANSPORT_SOCKET;
        cli->beam.size = sizeof(cli->beam);
        cli->generate.size = sizeof(cli->generate);
        cli->generate.stops = cli->stops;
        cli->generate.banned_texts = cli->bans;
        cli->generate.allowed_tools = cli->allowed_tools;
        cli->generate.ignore_eos = cli->ignore_eos;
        cli->generate.clamp = cli->clamp;
        cli->generate.control_text = cli->control_text;
        cli->generate.keep_ms = cli->keep_s * 1000;
        return r;
}
