/*
 * The rows of samovard's settings.
 */
#include "base/log.h"
#include "daemon/model/load-way.h"
#include "daemon/start/config.h"
#include "kernels/page.h"

#define K          (UINT64_C(1) << 10)
#define M          (UINT64_C(1) << 20)
#define G          (UINT64_C(1) << 30)
#define AT(member) offsetof(struct config, member)
#define N(array)   (sizeof(array) / sizeof(*(array)))

/* clang-format off */
static const struct setting rows[] = {
        { "model",               KIND_TEXT,   AT(model),               NULL,    0, 0, { "PATH[=NAME]" }, AT_START, "the model to serve: a GGUF file, a folder of safetensors, or the name of a model that samovar pull has fetched; default: teaspoon, which comes with samovar", "Model" },
        { "tokenizer",           KIND_TEXT,   AT(tokenizer),           NULL,    0, 0, { "PATH[=SPLIT]" }, AT_START, "use this vocabulary instead of the model's own; SPLIT: gpt2, llama3, qwen2" },
        { "tool_dialect",        KIND_TEXT,   AT(tool_dialect),        NULL,    0, 0, { "NAME" }, AT_START, "how the model writes tool calls, one of the names in protocol.md; none: texts have no calls; default: as its chat template says" },
        { "load",                KIND_WORD,   AT(load),                "auto",  0, 0, { [LOAD_AUTO] = "auto", [LOAD_CACHED] = "cached", [LOAD_URING] = "uring", [LOAD_PLAIN] = "plain" }, AT_START, "how weights are read; auto: chosen by where the file lies" },

        { "backend",             KIND_NAME,   AT(backend),             "cpu",   0, 0, { "cpu", "cuda", "auto", "ref" }, AT_START, "compute backend; cuda: an NVIDIA GPU; auto: cuda if there is a GPU, otherwise cpu", "Where the model runs" },
        { "backend_library",     KIND_TEXT,   AT(backend_library),     NULL,    0, 0, { "FILE" }, AT_START, "library file of the cuda backend; default: the one that comes with samovar" },
        { "gpu_layers",          KIND_SOME,   AT(gpu_layers),          "auto",  0, 65536, { "auto", "all" }, AT_START, "number of layers on the GPU, counted from the last; the cpu has the others; auto: all that fit" },
        { "deterministic",       KIND_SWITCH, AT(deterministic),       "no",    0, 0, { NULL }, AT_START, "a stream's tokens do not depend on the other streams; always so on the cpu; makes a GPU slower" },
        { "isa",                 KIND_NAME,   AT(isa),                 "auto",  0, 0, { "auto", "amx", "avx512bf16", "avx512", "avx2", "c" }, AT_START, "instruction set of the cpu backend" },
        { "threads",             KIND_COUNT,  AT(threads),             "0",     0, 1024, { NULL }, AT_START, "threads of the cpu backend; 0: one for each core" },
        { "affinity",            KIND_WORD,   AT(affinity),            "auto",  0, 0, { [CONFIG_AFFINITY_AUTO] = "auto", [CONFIG_AFFINITY_OFF] = "off" }, AT_START, "auto: if there is one thread for each core, pin each thread to its core" },

        { "ctx",                 KIND_COUNT,  AT(ctx),                 "0",     0, 1u << 24, { NULL }, AT_START, "positions of a sequence; 0: the model's own maximum", "Memory" },
        { "kv",                  KIND_WORD,   AT(kv),                  "f16",   0, 0, { [KV_F16] = "f16", [KV_BF16] = "bf16", [KV_INT8] = "int8", [KV_F32] = "f32", [KV_FP8] = "fp8" }, AT_START, "type of keys and values; int8, fp8: half the memory of 16 bits, with a scale for each head and position; f32: not with cuda" },
        { "kv_bytes",            KIND_BYTES,  AT(kv_bytes),            "0",     0, 4096 * G, { NULL }, AT_START, "size of the KV pool; 0: chosen from max_seqs, ctx and the free memory" },
        { "swap_bytes",          KIND_BYTES,  AT(swap_bytes),          "0",     0, 4096 * G, { NULL }, AT_START, "size of the swap: memory of the host for blocks that a GPU's pool has no space for; 0: no swap" },

        { "max_seqs",            KIND_COUNT,  AT(max_seqs),            "64",    1, 1024, { NULL }, AT_START, "sequences that run at the same time", "Batching" },
        { "step_tokens",         KIND_COUNT,  AT(step_tokens),         "256",   1, 16384, { NULL }, AT_START, "rows of a step; at least max_seqs" },
        { "gap_ms",              KIND_COUNT,  AT(gap_ms),              "50",    0, 3600000, { NULL }, AT_START, "a step with prompts takes at most this long, or twice as long as without prompts; 0: no limit" },
        { "max_preemptions",     KIND_COUNT,  AT(max_preemptions),     "8",     0, 1000, { NULL }, AT_START, "how often a request may be preempted; more often only if its user has several slots, for a user that has none; 0: never" },
        { "admission_interactive", KIND_WORD,   AT(admission[REQUEST_INTERACTIVE]), "learned", 0, 0, { [CONFIG_ADMISSION_LEARNED] = "learned", [CONFIG_ADMISSION_RESERVE] = "reserve" }, AT_START, "when requests of this priority begin; learned: when what they need now is there, and the rest probably will be; reserve: when all that they may need is there, and they are never preempted for it" },
        { "admission_normal",     KIND_WORD,   AT(admission[REQUEST_NORMAL]), "learned", 0, 0, { [CONFIG_ADMISSION_LEARNED] = "learned", [CONFIG_ADMISSION_RESERVE] = "reserve" }, AT_START, "the same for requests of normal priority" },
        { "admission_background", KIND_WORD,   AT(admission[REQUEST_BACKGROUND]), "learned", 0, 0, { [CONFIG_ADMISSION_LEARNED] = "learned", [CONFIG_ADMISSION_RESERVE] = "reserve" }, AT_START, "the same for background requests" },
        { "reserve_percent",      KIND_COUNT,  AT(reserve_percent),     "100",   1, 100, { NULL }, AT_START, "percent of the pool that may be promised to requests with reserve admission at a time; those beyond begin as with learned admission" },
        { "preempt_target",      KIND_COUNT,  AT(preempt_target),      "1",     0, 50, { NULL }, AT_START, "percent of the requests with learned admission that may be preempted because the pool is full; more of them run at once if it is higher" },
        { "promote_ms",          KIND_COUNT,  AT(promote_ms),          "30000", 1, 86400000, { NULL }, AT_START, "requests of a priority of which none got a slot for this long count as of the next higher priority" },
        { "batching",            KIND_WORD,   AT(batching),            "continuous", 0, 0, { [BATCHING_CONTINUOUS] = "continuous", [BATCHING_DYNAMIC] = "dynamic", [BATCHING_STATIC] = "static" }, AT_START, "continuous: new requests join at once; dynamic, static: batches, for comparison" },
        { "batch_size",          KIND_COUNT,  AT(batch_size),          "0",     0, 1024, { NULL }, AT_START, "size of a dynamic or static batch; 0: max_seqs" },
        { "batch_window_ms",     KIND_COUNT,  AT(batch_window_ms),     "0",     0, 3600000, { NULL }, AT_START, "how long the first request of a batch waits for others; 0: 50 if dynamic, 10000 if static" },
        { "pipeline_depth",      KIND_COUNT,  AT(pipeline_depth),      "1",     1, 2, { NULL }, AT_START, "plans in flight at once" },
        { "draft",               KIND_WORD,   AT(draft),               "auto",  0, 0, { [CONFIG_DRAFT_AUTO] = "auto", [CONFIG_DRAFT_ALWAYS] = "always", [CONFIG_DRAFT_OFF] = "off" }, AT_START, "guess the next tokens of a stream by what its text repeats, and compute several at once: where that saves time, always, or never; the tokens are the same" },
        { "draft_model",         KIND_TEXT,   AT(draft_model),         NULL,    0, 0, { "PATH" }, AT_START, "a small model with the same vocabulary, whose tokens are guesses where no text repeats: a file, a folder or a name, as in the setting model; pinch is the one for teaspoon. Not read if draft is off. kv_bytes includes its keys and values. Default: none" },
        { "draft_tokens",        KIND_COUNT,  AT(draft_tokens),        "8",     1, 16, { NULL }, AT_START, "tokens of a guess, at most" },
        { "draft_pool",          KIND_COUNT,  AT(draft_pool),          "65536", 0, 1u << 24, { NULL }, AT_START, "tokens of finished answers that are kept for guesses, for each of the 8 users that were answered last; a user's guesses come from its own answers; 16 bytes each; 0: none" },

        { "socket",              KIND_TEXT,   AT(socket),              NULL,    0, 0, { "PATH" }, AT_START, "the socket that clients connect to; default: samovar/sock in $XDG_RUNTIME_DIR or /run", "Socket" },
        { "socket_mode",         KIND_MODE,   AT(socket_mode),         "0600",  0, 0, { "0600", "0660", "0666" }, AT_START, "users that may connect: the owner (0600), also the group (0660), or all (0666)" },
        { "socket_group",        KIND_TEXT,   AT(socket_group),        NULL,    0, 0, { "GROUP" }, AT_START, "group of the socket, a name or a number; default: the daemon's group" },
        { "gateway",             KIND_TEXT,   AT(gateway),             NULL,    0, 0, { "USER" }, AT_START, "user, a name or a number, whose processes serve users of their own: principals; default: no user" },

        { "connections",         KIND_COUNT,  AT(connections),         "256",   1, 65536, { NULL }, AT_START, "connections of all users, an eighth of them for root and the user of the daemon", "Limits of all users together" },
        { "requests",            KIND_COUNT,  AT(requests),            "1024",  1, 65536, { NULL }, AT_START, "requests of all users, running and waiting, an eighth of them for root and the user of the daemon" },
        { "constraints_kept",    KIND_COUNT,  AT(constraints_kept),    "16",    0, 4096, { NULL }, AT_START, "compiled constraints that are kept while no stream uses them, of all users; each may take some 8 MiB" },
        { "whole_row_streams",   KIND_COUNT,  AT(whole_row_streams),   "4",     0, 64, { NULL }, AT_START, "streams of all users whose clients see all logits of each row, at a time; each takes three rows of memory" },
        { "resumable",           KIND_COUNT,  AT(resumable),           "256",   0, 4096, { NULL }, AT_START, "resumable streams of all users, an eighth of them for root and the user of the daemon" },
        { "max_tokens",          KIND_COUNT,  AT(max_tokens),          "512",   0, UINT32_MAX, { NULL }, LIVE, "limit of tokens for a request that names none; 0: the rest of the context" },
        { "stall_timeout_ms",    KIND_COUNT,  AT(stall_timeout_ms),    "60000", 1, 86400000, { NULL }, AT_START, "a stream whose client does not read ends after this time" },
        { "stall_preempt_ms",    KIND_COUNT,  AT(stall_preempt_ms),    "2000",  0, 86400000, { NULL }, AT_START, "a stream whose client does not read, or does not answer, gives up its slot after this time, if others wait" },
        { "drain_timeout_ms",    KIND_COUNT,  AT(drain_timeout_ms),    "30000", 0, 86400000, { NULL }, LIVE, "how long running requests may continue after SIGTERM" },

        { "uid_connections",     KIND_COUNT,  AT(uid_connections),     "64",    1, 65536, { NULL }, LIVE, "connections of one user", "Limits for each user" },
        { "uid_connects_burst",  KIND_COUNT,  AT(uid_connects_burst),  "64",    1, 65536, { NULL }, LIVE, "new connections of one user at once; root and the user of the daemon may make any number" },
        { "uid_connects_per_s",  KIND_COUNT,  AT(uid_connects_per_s),  "10",    1, 65536, { NULL }, LIVE, "new connections of one user a second, after the burst; not for root and the user of the daemon" },
        { "uid_requests",        KIND_COUNT,  AT(uid_requests),        "320",   1, 65536, { NULL }, LIVE, "requests of one user, running and waiting" },
        { "uid_prompt_bytes",    KIND_BYTES,  AT(uid_prompt_bytes),    "64M",   1, 64 * G, { NULL }, LIVE, "bytes of one user's prompts, and of the histories in that user's handles" },
        { "uid_handles",         KIND_COUNT,  AT(uid_handles),         "256",   1, 65536, { NULL }, LIVE, "handles (histories that the daemon stores) of one user" },
        { "uid_blocks_percent",  KIND_COUNT,  AT(uid_blocks_percent),  "100",   1, 100, { NULL }, AT_START, "share of the KV pool for one user's running requests" },
        { "uid_cached_percent",  KIND_COUNT,  AT(uid_cached_percent),  "50",    1, 100, { NULL }, AT_START, "share of the KV pool, and of the swap, that one user may keep cached when other users need blocks" },
        { "uid_pinned_percent",  KIND_COUNT,  AT(uid_pinned_percent),  "25",    0, 100, { NULL }, LIVE, "share of the KV pool that one user may pin" },
        { "uid_resumable",       KIND_COUNT,  AT(uid_resumable),       "16",    0, 4096, { NULL }, LIVE, "resumable streams of one user, which outlive their connections" },
        { "uid_resumable_bytes", KIND_BYTES,  AT(uid_resumable_bytes), "32M",   1, 64 * G, { NULL }, LIVE, "memory for the records of one user's resumable streams" },
        { "uid_constraint_bytes", KIND_BYTES, AT(uid_constraint_bytes), "512M", 1, 64 * G, { NULL }, LIVE, "memory that the constraints of one user's streams may take, at most" },
        { "uid_ring_bytes",      KIND_BYTES,  AT(uid_ring_bytes),      "16M",   64 * K, 64 * G, { NULL }, LIVE, "memory for the rings that one user's clients map; at least ring_bytes; without it they use the socket" },
        { "publish",             KIND_SWITCH, AT(publish),             "no",    0, 0, { NULL }, AT_START, "users may publish prompts to each other (docs/guide/several-users.md)" },

        { "ring_bytes",          KIND_BYTES,  AT(ring_bytes),          "256K",  64 * K, 4 * M, { NULL }, LIVE, "size of a ring if the client asks for none; a power of two; clients may ask for up to 1M", "Limits for each connection" },
        { "frame_bytes",         KIND_BYTES,  AT(frame_bytes),         "8M",    4 * K, 64 * M, { NULL }, AT_START, "size of one request" },
        { "reply_bytes",         KIND_BYTES,  AT(reply_bytes),         "64K",   16 * K, 64 * M, { NULL }, AT_START, "bytes of unread replies, beyond which the connection ends" },
        { "hello_timeout_ms",    KIND_COUNT,  AT(hello_timeout_ms),    "10000", 1, 3600000, { NULL }, LIVE, "time until a new connection must have sent hello" },
        { "frame_timeout_ms",    KIND_COUNT,  AT(frame_timeout_ms),    "10000", 1, 3600000, { NULL }, LIVE, "time until a frame that began must be complete" },

        { "log_level",           KIND_WORD,   AT(log_level),           "info",  0, 0, { [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug" }, LIVE, "the least important level that is logged", "Log" },

        { "config",              KIND_TEXT,   AT(file),                NULL,    0, 0, { "FILE" }, FLAG_ONLY, "read settings from FILE; flags override it; none: from no file; default: samovar/samovar.conf in $XDG_CONFIG_HOME, ~/.config or /etc, whichever is there first", "This start" },
        { "replace",             KIND_SWITCH, AT(replace),             "no",    0, 0, { NULL }, FLAG_ONLY, "end the daemon that has the socket, wait until it has drained, and take its place" },
        { "fd",                  KIND_INT,    AT(fd),                  NULL,    0, INT32_MAX, { NULL }, FLAG_ONLY, "serve only this connected socket, and exit when it closes" },
        { "check_config",        KIND_SWITCH, AT(check_config),        "no",    0, 0, { NULL }, FLAG_ONLY, "read the settings as a start does, say what is wrong with them, exit" },
        { "check",               KIND_SWITCH, AT(check),               "no",    0, 0, { NULL }, FLAG_ONLY, "load the model, print the memory plan, exit" },
        { "inspect",             KIND_SWITCH, AT(inspect),             "no",    0, 0, { NULL }, FLAG_ONLY, "print what the model is and whether this machine can serve it, exit" },
        { "template",            KIND_SWITCH, AT(preview),             "no",    0, 0, { NULL }, FLAG_ONLY, "print the prompt that the chat template of the model, or of a file, makes of --messages, exit" },
        { "messages",            KIND_TEXT,   AT(messages),            NULL,    0, 0, { "FILE" }, FLAG_ONLY, "a conversation in JSON, for --template; -: stdin" },
        { "json",                KIND_SWITCH, AT(json),                "no",    0, 0, { NULL }, FLAG_ONLY, "--inspect and --template print JSON; that of --template marks the text that came from the messages" },
        { "help",                KIND_SWITCH, AT(help),                "no",    0, 0, { NULL }, FLAG_ONLY, "print this help" },
        { "version",             KIND_SWITCH, AT(version),             "no",    0, 0, { NULL }, FLAG_ONLY, "print the version" },
};
/* clang-format on */

const struct settings_table config_table = {
        .program = "samovard",
        .synopsis = "[--model PATH] [--name VALUE | --name=VALUE] ...",
        .file = "samovar.conf",
        .rows = rows,
        .count = N(rows),
        .bytes = sizeof(struct config),
        .config = AT(file),
        .check_config = AT(check_config),
        .help = AT(help),
        .version = AT(version),
        .looks_for_file = config_serves_socket,
        .check = config_check_together,
};
