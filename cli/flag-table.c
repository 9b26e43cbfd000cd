/*
 * The table of commands and that of flags.  --help is made from them, and so are the reference page
 * and the man page (contrib/dev/reference).
 */
#include <stddef.h>
#include <stdio.h>

#include "cli/flag.h"

#define TIMEOUT_S_MAX 86400

/* clang-format off */
const struct command command_table[] = {
        { "ask",        CLI_ASK,        "[PROMPT...]", "ask a model, and print its answer", "Questions" },
        { "chat",       CLI_CHAT,       "[QUESTION...]", "talk to a model in the terminal; a question on stdin is one question" },
        { "complete",   CLI_COMPLETE,   "[PROMPT...]", "continue a prompt; prints only the continuation, for programs" },
        { "attach",     CLI_ATTACH,     "ID",          "continue to read a stream that was started with --keep" },
        { "fork-demo",  CLI_FORK_DEMO,  "[BEGINNING...]", "begin a story, fork it while it is generated, and show three endings at the same time" },
        { "batch",      CLI_BATCH,      "[FILE]",      "answer the requests of a file, one a line, as batches of OpenAI have them", "Many questions" },
        { "bench",      CLI_BENCH,      "[batch-sizes | batching | exercises]", "measure a server: our daemon, or any at a URL that speaks OpenAI's API" },
        { "models",     CLI_MODELS,     "",            "list the models that the daemon serves, and those in the folder of models", "Models" },
        { "pull",       CLI_PULL,       "NAME",        "fetch a model of Hugging Face, of a URL or of this machine into the folder of models" },
        { "rm",         CLI_RM,         "NAME...",     "remove models from the folder of models" },
        { "inspect",    CLI_INSPECT,    "PATH",        "print what a model is, whether this machine can serve it, and in which quantisations" },
        { "status",     CLI_STATUS,     "",            "show on one screen what the daemon does, and for whom", "The daemon" },
        { "top",        CLI_TOP,        "",            "watch the daemon: its pool, its queue, its users and a row for each stream" },
        { "ps",         CLI_PS,         "",            "list your streams and handles; root and the user of the daemon see all" },
        { "cancel",     CLI_CANCEL,     "NUMBER",      "end the stream, or close the handle, that ps shows with this number" },
        { "doctor",     CLI_DOCTOR,     "",            "check this machine and the daemon, and say what to do about what is wrong" },
        { "template",   CLI_TEMPLATE,   "[FILE] [PROMPT...]", "print the prompt that a model's chat template makes of a question", "Templates and tokens" },
        { "tokenize",   CLI_TOKENIZE,   "[TEXT...]",   "print the token ids of a text" },
        { "detokenize", CLI_DETOKENIZE, "[ID...]",     "print the text of token ids" },
};

static const char *const transports[] = {
        [SMV_TRANSPORT_AUTO] = "auto",
        [SMV_TRANSPORT_RING] = "ring",
        [SMV_TRANSPORT_SOCKET] = "socket",
        NULL,
};

static const char *const tool_choices[] = { "auto", "none", "required", NULL };

static const char *const sorts[] = {
        [TOP_BY_AGE] = "age",
        [TOP_BY_USER] = "user",
        [TOP_BY_TOKENS] = "tokens",
        [TOP_BY_RATE] = "rate",
        NULL,
};

static const char *const orders[] = {
        [SMV_ORDER_TEMPERATURE_FIRST] = "temperature_first",
        [SMV_ORDER_TEMPERATURE_LAST] = "temperature_last",
        NULL,
};

static const char *const bench_apis[] = { "auto", "completions", "chat", NULL };
static const char *const bench_forms[] = { "auto", "ids", "text", NULL };
static const char *const bench_units[] = { "auto", "s", "ms", NULL };
static const char *const bench_processes[] = { "poisson", "fixed", "gamma", NULL };

static const char *const priorities[] = {
#define X(name, word) [SMV_PRIORITY_##name] = word,
        SMV_PRIORITIES(X)
#undef X
        NULL,
};

const struct flag flag_table[] = {
        { "--socket",    "PATH", ALL | CLI_BATCH | CLI_DOCTOR, FLAG_TEXT,   offsetof(struct cli, socket),               0, "the socket of the daemon", "Daemon and model" },
        { "--any-uid",   NULL,   ALL | CLI_DOCTOR,      FLAG_SWITCH, offsetof(struct cli, any_uid),              0, "accept a daemon that runs as neither you nor root" },
        { "--principal", "NAME", ALL | CLI_DOCTOR,      FLAG_TEXT,   offsetof(struct cli, principal),            0, "connect for this principal, if you are the user of the daemon's setting gateway" },
        { "--timeout",   "SECONDS", ALL | CLI_BATCH | CLI_DOCTOR, FLAG_COUNT,  offsetof(struct cli, timeout_s),            0, "wait this long for a connection; by default 3 for doctor, 10 for status, models, top, ps and cancel, else 60", .high = TIMEOUT_S_MAX },
        { "--model",     "NAME", SAMPLING | TOKENS | CLI_TEMPLATE | CLI_BATCH | CLI_BENCH, FLAG_TEXT, offsetof(struct cli, model), 0, "the model to use: one that the daemon serves; else one of the folder of models, or a path (with /, .gguf or .safetensors), for which a private samovard is started; batch: the model for lines that name none that is served" },
        { "--model",     "PATH", CLI_DOCTOR, FLAG_TEXT, offsetof(struct cli, model),                0, "also check whether this model fits into memory" },
        { "--http-port", "PORT", CLI_DOCTOR, FLAG_COUNT, offsetof(struct cli, doctor.http_port),    0, "the port of samovar-http; default 7266", .high = 65535 },
        { "--digests",   NULL,   CLI_DOCTOR, FLAG_SWITCH, offsetof(struct cli, doctor.digests),     0, "read every byte of the models that samovar pull has fetched, and compare their SHA-256" },

        { "--system",    "TEXT", CONVERSATION | CLI_CHAT,     FLAG_TEXT,   offsetof(struct cli, system),               0, "the system message, before the question", "Prompt" },
        { "--answer",    "TEXT", CONVERSATION,     FLAG_TEXT,   offsetof(struct cli, answer),               0, "the beginning of the answer, which the model continues; only the continuation is printed" },
        { "--messages",  "FILE", CONVERSATION | CLI_CHAT,     FLAG_TEXT,   offsetof(struct cli, messages),             0, "a conversation in JSON, with or without tools, instead of a question" },

        { "--max-tokens", "N",   SAMPLING, FLAG_COUNT, offsetof(struct cli, generate.max_tokens),  0, "maximum number of tokens", "Tokens" },
        { "--clamp",     NULL,   ONE_QUESTION, FLAG_SWITCH, offsetof(struct cli, clamp),                0, "if --max-tokens is more than fits, generate as many as fit" },
        { "--stop",      "TEXT", GENERATE, FLAG_STOP,   0,                                          0, "end before this text; may be given up to 16 times" },
        { "--ignore-eos", NULL,  GENERATE | CLI_BENCH, FLAG_SWITCH, offsetof(struct cli, ignore_eos),           0, "do not end at the model's own end token, only at the other limits" },
        { "--temperature-range", "R", GENERATE, FLAG_FLOAT, offsetof(struct cli, generate.temperature_range), 0, "the temperature grows with the entropy, from R below --temp to R above it", .high = SMV_TEMPERATURE_MAX },
        { "--temperature-exponent", "E", GENERATE, FLAG_FLOAT, offsetof(struct cli, generate.temperature_exponent), SMV_SET_TEMPERATURE_EXPONENT, "with --temperature-range: how it grows; default 1", .high = SMV_EXPONENT_MAX },
        { "--temp",      "T",    SAMPLING | CLI_BENCH, FLAG_FLOAT,  offsetof(struct cli, generate.temperature), SMV_SET_TEMPERATURE, "temperature; 0: always the likeliest token", .high = SMV_TEMPERATURE_MAX },
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
        { "--seed",      "N",    SAMPLING | CLI_BENCH, FLAG_UINT64, offsetof(struct cli, generate.seed),        SMV_SET_SEED, "seed of the random draws: the same seed gives the same tokens" },

        { "--schema",    "FILE", GENERATE, FLAG_TEXT,   offsetof(struct cli, schema),               0, "the answer is JSON that obeys this JSON Schema", "Form of the answer" },
        { "--regex",     "TEXT", GENERATE, FLAG_TEXT,   offsetof(struct cli, regex),                0, "the whole answer matches this regular expression" },
        { "--grammar",   "FILE", GENERATE, FLAG_TEXT,   offsetof(struct cli, grammar),              0, "the answer is a text of this grammar, in GBNF" },
        { "--choice",    "TEXT", GENERATE, FLAG_CHOICE, 0,                                          0, "the answer is this text, or that of another --choice; up to 64" },
        { "--constraint", "JSON", GENERATE, FLAG_TEXT, offsetof(struct cli, generate.constraint),   0, "the answer must follow this: {\"schema\": ...}, {\"json\": true}, {\"regex\": ...}, {\"grammar\": ...} or {\"choices\": ...}" },
        { "--tools",     "FILE", CALLS,  FLAG_TEXT,   offsetof(struct cli, tools),                0, "a list of tools in JSON, as OpenAI has it; calls are printed as NAME(ARGUMENTS), a line each" },
        { "--tool-choice", "CHOICE", CALLS,     FLAG_WORD,   offsetof(struct cli, generate.tool_choice), 0, "with tools: auto (the default), none, or required: the answer is calls only", .words = tool_choices },
        { "--tool",      "NAME", CALLS,          FLAG_TOOL,   0,                                           0, "with tools: this one may be called; up to 64 of them; without --tool, all" },
        { "--calls-max", "N",    CALLS,          FLAG_COUNT,  offsetof(struct cli, generate.calls_max),   0, "with tools: at most N calls", .high = SMV_CALLS_MAX },
        { "--parts",     NULL,   CLI_ASK,  FLAG_SWITCH, offsetof(struct cli, parts),                0, "divide the answer: reasoning goes to stderr, and --json says what each piece is; so it is with a form and with tools, too" },

        { "-n",          "COUNT", ONE_QUESTION, FLAG_COUNT, offsetof(struct cli, generate.n),          0, "number of answers to one prompt, generated at the same time; up to 64", "Several answers", .high = SMV_SAMPLES_MAX },
        { "--best-of",   "COUNT", ONE_QUESTION, FLAG_COUNT, offsetof(struct cli, best_of),            0, "generate COUNT answers, and print the one that the model finds likeliest", .high = SMV_SAMPLES_MAX },
        { "--beams",     "W",    ONE_QUESTION, FLAG_COUNT,  offsetof(struct cli, beam.width),           0, "beam search: follow the W likeliest continuations, and print the likeliest one", .high = SMV_BEAM_WIDTH_MAX },
        { "--length-penalty", "P", ONE_QUESTION, FLAG_FLOAT, offsetof(struct cli, beam.length_penalty), 0, "with --beams: divide a continuation's log-probability by its length to this power; default 1" },

        { "--priority",  "PRIORITY", GENERATE | CLI_BENCH, FLAG_WORD, offsetof(struct cli, generate.priority),    0, "scheduling priority: interactive, normal (the default; chat: interactive) or background", "Scheduling", .words = priorities },
        { "--deadline",  "MS",   GENERATE, FLAG_COUNT,  offsetof(struct cli, generate.deadline_ms), 0, "end after MS milliseconds with the tokens until then; refused if it could hardly begin by then" },
        { "--draft-tokens", "N", GENERATE, FLAG_UINT32, offsetof(struct cli, generate.draft_tokens), SMV_SET_DRAFT_TOKENS, "guess so many next tokens at most; 0: none" },
        { "--prediction", "FILE", GENERATE, FLAG_TEXT, offsetof(struct cli, prediction), 0, "a text that the answer will probably be, or have parts of, such as a file that is to be edited: it comes faster then" },
        { "--keep",      "SECONDS", ONE_QUESTION, FLAG_COUNT, offsetof(struct cli, keep_s),            0, "if this command dies, the stream waits this long for attach; stderr shows its resume id", .high = SMV_KEEP_MS_MAX / 1000 },

        { "-o",          "FILE", CLI_BATCH, FLAG_TEXT,  offsetof(struct cli, batch.output),         0, "write the answers to FILE, in the order of the lines; by default to stdout", "Batch" },
        { "--resume",    NULL,   CLI_BATCH, FLAG_SWITCH, offsetof(struct cli, batch.resume),        0, "FILE may have answers of the first lines, also a torn one: continue behind them" },
        { "--parallel",  "N",    CLI_BATCH, FLAG_COUNT, offsetof(struct cli, batch.parallel),       0, "ask N lines at the same time; by default as many as the daemon takes", .high = 4096 },

        { "--dry-run",   NULL,   CLI_PULL, FLAG_SWITCH, offsetof(struct cli, pull.dry_run),         0, "fetch nothing: show the files, their sizes, and what fits on this machine", "Folder of models" },
        { "--name",      "NAME", CLI_PULL, FLAG_TEXT,   offsetof(struct cli, pull.name),            0, "the name of the model in the folder; by default that of its file or repository" },
        { "--sha256",    "HEX",  CLI_PULL, FLAG_TEXT,   offsetof(struct cli, pull.sha256),          0, "the SHA-256 that the file must have; by default that of the hub" },
        { "--retries",   "N",    CLI_PULL, FLAG_UINT32, offsetof(struct cli, pull.retries),         0, "give up after N failures without progress between them, 0: after the first; default 8", .high = 1000 },
        { "--force",     NULL,   CLI_PULL | CLI_RM, FLAG_SWITCH, offsetof(struct cli, pull.force),  0, "pull: also what samovard cannot serve, and in place of another model; rm: also what a daemon serves" },
        { "--yes",       NULL,   CLI_RM,   FLAG_SWITCH, offsetof(struct cli, pull.yes),             0, "remove without a question" },

        { "--url", "URL", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.url), 0, "a server like http://host:port/v1, instead of the daemon; unix:SOCKET:/v1 for a socket of HTTP", "What is measured" },
        { "--key-file", "FILE", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.key_file), 0, "the first line is the key for --url, or without it for --against" },
        { "--api", "API", CLI_BENCH, FLAG_WORD, offsetof(struct cli, bench.api), 0, "with --url: completions, or chat completions; by default completions, but for prompts that are messages", .words = bench_apis },
        { "--prompts-as", "FORM", CLI_BENCH, FLAG_WORD, offsetof(struct cli, bench.as), 0, "with --url: prompts that are made up go as ids of tokens or as text; by default as ids, if the server tells the size of its vocabulary", .words = bench_forms },
        { "--against", "SERVER", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.against), 0, "measure a second server in turns, a URL or the path of a socket, and print ratios" },
        { "--connections", "N", CLI_BENCH, FLAG_COUNT, offsetof(struct cli, bench.connections), 0, "connections to the daemon; default 1", .high = 64 },
        { "--input", "LENGTH", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.input), 0, "tokens of a prompt: N, LOW-HIGH, normal:MEAN:DEVIATION, lognormal:MEAN:DEVIATION or exp:MEAN; default 256", "Requests" },
        { "--output", "LENGTH", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.output), 0, "tokens of an answer, in the same forms; default 128" },
        { "--prefix", "PREFIX", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.prefix), 0, "SHARE:TOKENS[:COUNT]: this share of the prompts begins with one of COUNT prefixes, before their --input" },
        { "--prompts", "FILE", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.prompts), 0, "prompts of a file: lines of text; or JSON with prompt, messages, conversations (ShareGPT) or turns" },
        { "--trace", "FILE", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.trace), 0, "times and lengths of a file: CSV or lines of JSON with timestamp, input_length, output_length, and hash_ids of shared blocks" },
        { "--trace-unit", "UNIT", CLI_BENCH, FLAG_WORD, offsetof(struct cli, bench.unit), 0, "of times that are numbers: s or ms; by default ms in JSON and s in CSV", .words = bench_units },
        { "--skip", "N", CLI_BENCH, FLAG_UINT32, offsetof(struct cli, bench.first), 0, "leave out the first N requests of the trace" },
        { "--divide", "D", CLI_BENCH, FLAG_FLOAT, offsetof(struct cli, bench.divisor), 0, "divide all lengths of the trace", .low = 1, .high = 1e6 },
        { "--block-tokens", "N", CLI_BENCH, FLAG_COUNT, offsetof(struct cli, bench.block_tokens), 0, "tokens of a block of hash_ids; default 512", .high = 65536 },
        { "--may-end", NULL, CLI_BENCH, FLAG_SWITCH, offsetof(struct cli, bench.may_end), 0, "answers may be shorter than asked for: the model's end token ends them" },
        { "--concurrency", "N[,N...]", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.concurrency), 0, "requests at a time; a run for each N; default 8", "Load" },
        { "--rate", "R[,R...]", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.rate), 0, "requests a second, whatever has become of earlier ones; --concurrency is then a limit" },
        { "--arrivals", "PROCESS", CLI_BENCH, FLAG_WORD, offsetof(struct cli, bench.arrivals), 0, "with --rate: poisson (the default), fixed or gamma", .words = bench_processes },
        { "--burstiness", "B", CLI_BENCH, FLAG_FLOAT, offsetof(struct cli, bench.burstiness), 0, "gamma arrivals of this shape: below 1 in bursts, above 1 even; 1 is poisson", .low = 0, .above = true, .high = 1000 },
        { "--speed", "X", CLI_BENCH, FLAG_FLOAT, offsetof(struct cli, bench.speed), 0, "times of the trace X times as fast", .low = 0, .above = true, .high = 1e6 },
        { "--requests", "N", CLI_BENCH, FLAG_COUNT, offsetof(struct cli, bench.requests), 0, "requests of a run; default 8 for each of --concurrency, 100 with --rate, all of a file", .high = 100000000 },
        { "--for", "S", CLI_BENCH, FLAG_FLOAT, offsetof(struct cli, bench.seconds), 0, "no request is sent after S seconds", .low = 0, .above = true, .high = 1e6 },
        { "--warm-up", "N", CLI_BENCH, FLAG_UINT32, offsetof(struct cli, bench.warm_up), 0, "requests before each run that are not counted; default 1", .high = 100000 },
        { "--rounds", "N", CLI_BENCH, FLAG_COUNT, offsetof(struct cli, bench.rounds), 0, "run everything N times; default 1, with --against 3", .high = 64 },
        { "--batch", "N", CLI_BENCH, FLAG_COUNT, offsetof(struct cli, bench.batch), 0, "batching: sequences that run at once; default 16", .high = 1024 },
        { "--window-ms", "MS", CLI_BENCH, FLAG_COUNT, offsetof(struct cli, bench.window_ms), 0, "batching: how long a dynamic batch waits for others; default 50", .high = 3600000 },
        { "--loads", "P[,P...]", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.loads), 0, "batching: percents of the capacity; default 40,70,95" },
        { "--slo", "TARGET", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.slo), 0, "what a good answer takes at most, such as ttft=200ms,tpot=50ms,e2e=2s: goodput counts these", "Figures" },
        { "--csv", "FILE", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.csv), 0, "write a row for each run" },
        { "--svg", "FILE", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.svg), 0, "write a picture: curves over the levels, or the spread of one" },
        { "--raw", "FILE", CLI_BENCH, FLAG_TEXT, offsetof(struct cli, bench.raw), 0, "write all samples, a line of JSON each" },

        { "--json",      NULL,   (ALL & ~(CLI_FORK_DEMO | CLI_CANCEL | CLI_CHAT)) | CLI_INSPECT | CLI_DOCTOR | CLI_PULL, FLAG_SWITCH, offsetof(struct cli, json),                 0, "print JSON", "Output" },
        { "--names",     NULL,   CLI_MODELS, FLAG_SWITCH, offsetof(struct cli, names),                0, "print only the names of the models in the folder, one a line" },
        { "--control-text", NULL, ONE_QUESTION, FLAG_SWITCH, offsetof(struct cli, control_text),         0, "print the text of control tokens that the model generates, too" },
        { "--pieces",    NULL,   TOKENS,   FLAG_SWITCH, offsetof(struct cli, pieces),               0, "print a line for each token: its id, what it is, and its own text" },
        { "--logprobs",  "N",    ONE_QUESTION, FLAG_UINT32, offsetof(struct cli, generate.logprobs),   SMV_SET_LOGPROBS, "with --json: the log-probability of each token, and of the N likeliest ones", .high = SMV_LOGPROBS_MAX },
        { "--stats",     NULL,   STREAM, FLAG_SWITCH, offsetof(struct cli, stats),                0, "print on stderr the queue, how tokens are drawn, how much of the prompt was cached, why not more, how often the stream was preempted, which --stop ended it, and the times" },
        { "--all",       NULL,   CLI_STATUS, FLAG_SWITCH, offsetof(struct cli, all),                 0, "print every count, one a line" },
        { "--watch",     "[SECONDS]", CLI_STATUS, FLAG_SECONDS, offsetof(struct cli, watch_s),       0, "show it again every SECONDS, by default every second, until ^C" },
        { "--interval",  "SECONDS", CLI_TOP, FLAG_SECONDS, offsetof(struct cli, top.interval_s),    0, "look at the daemon every SECONDS, by default every second" },
        { "--sort",      "KEY",  CLI_TOP,  FLAG_WORD,   offsetof(struct cli, top.sort),             0, "sort the streams by age (the default: the oldest first), user, tokens or rate", .words = sorts },
        { "--once",      NULL,   CLI_TOP,  FLAG_SWITCH, offsetof(struct cli, top.once),             0, "print one frame as plain text, with all streams; rates are those of one interval" },
        { "--from",      "N",    CLI_ATTACH, FLAG_UINT32, offsetof(struct cli, from),               0, "begin at this record; --json shows their numbers as sequence" },
        { "--transport", "HOW", SAMPLING | CLI_BENCH, FLAG_WORD, offsetof(struct cli, transport),          0, "transport of tokens: auto, ring (shared memory) or socket", .words = transports },
        { "--no-history", NULL,  CLI_CHAT, FLAG_SWITCH, offsetof(struct cli, chat.no_history),      0, "neither read nor write the file of questions that were typed before" },
};
/* clang-format on */

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

const size_t command_count = LENGTH(command_table), flag_count = LENGTH(flag_table);

void flag_help(const struct cli *cli)
{
        const char *group = NULL; /* a headline that no flag of this command has printed yet */
        char left[64];

        if (!cli->name) {
                printf("usage: samovar COMMAND [FLAGS] [ARGUMENTS]\n\n");
                for (size_t i = 0; i < command_count; i++) {
                        if (command_table[i].group)
                                printf("%s%s:\n", i ? "\n" : "", command_table[i].group);
                        printf("  %-22s %s\n", command_table[i].name, command_table[i].help);
                }
                printf("\n  %-22s %s\n  %-22s %s\n", "COMMAND --help", "the flags of a command",
                       "--version", "the version of samovar");
                return;
        }

        for (size_t i = 0; i < command_count; i++)
                if (command_table[i].command == cli->command)
                        printf("usage: samovar %s [FLAGS] %s\n\n%s.\n", command_table[i].name,
                               command_table[i].arguments, command_table[i].help);
        if (!(cli->command & (LOOKS | CLI_INSPECT | CLI_ATTACH | CLI_FORK_DEMO | CLI_CHAT |
                              CLI_BENCH | CLI_DOCTOR | CLI_PULL | CLI_RM)))
                printf("Without arguments, or with -, it reads stdin.\n");
        if (cli->command == CLI_CHAT)
                printf("/help in the conversation lists its commands.  Words are the first "
                       "question.\n");
        if (cli->command & (CONVERSATION | CLI_CHAT))
                printf("If stdin is a pipe or a file, it follows the question, after an empty "
                       "line.\n");
        if (cli->command == CLI_STATUS)
                printf("The manual samovar(1) explains each key of --all and --json.\n");
        if (cli->command == CLI_PULL)
                printf("NAME is a repository of Hugging Face (OWNER/NAME, OWNER/NAME:Q4_K_M, "
                       "OWNER/NAME:FILE,\nOWNER/NAME@REVISION), a URL of a GGUF file, or a path "
                       "of this machine (./FILE).\nA pull that was stopped continues with the "
                       "same command.\n");
        if (cli->command == CLI_TEMPLATE)
                printf("With a FILE (a template, a model, a tokenizer_config.json) no running "
                       "daemon is "
                       "needed.\n");
        for (size_t i = 0; i < flag_count; i++) {
                if (flag_table[i].group)
                        group = flag_table[i].group;
                if (!(flag_table[i].commands & cli->command))
                        continue;
                if (group)
                        printf("\n%s\n", group);
                group = NULL;
                snprintf(left, sizeof(left), "%s %s", flag_table[i].name,
                         flag_table[i].value ? flag_table[i].value : "");
                printf("  %-22s %s\n", left, flag_table[i].help);
        }
}

bool cli_describe_command(size_t index, struct cli_row *ret_row)
{
        if (index >= command_count)
                return false;
        *ret_row = (struct cli_row){
                .name = command_table[index].name,
                .value = command_table[index].arguments,
                .help = command_table[index].help,
                .commands = command_table[index].command,
        };
        return true;
}

bool cli_describe_flag(size_t index, struct cli_row *ret_row)
{
        if (index >= flag_count)
                return false;
        *ret_row = (struct cli_row){
                .group = flag_table[index].group,
                .name = flag_table[index].name,
                .value = flag_table[index].value ? flag_table[index].value : "",
                .words = flag_table[index].words,
                .help = flag_table[index].help,
                .commands = flag_table[index].commands,
        };
        return true;
}
