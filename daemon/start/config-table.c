/*
 * The table has everything about a setting: name, kind, range, default, help and group.  A default
 * is written like a user's value and parsed by the same code.  So the default in --help is the one
 * in effect.  contrib/dev/reference makes the reference page and the man page from the same rows.
 */
#include "daemon/start/config-table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "daemon/model/load-way.h"
#include "json/distance.h"
#include "kernels/page.h"

#define K          (UINT64_C(1) << 10)
#define M          (UINT64_C(1) << 20)
#define G          (UINT64_C(1) << 30)
#define AT(member) offsetof(struct config, member)
#define N(array)   (sizeof(array) / sizeof(*(array)))

/* clang-format off */
const struct setting config_settings[] = {
        { "model",               KIND_TEXT,   AT(model),               NULL,    0, 0, { "PATH[=NAME]" }, AT_START, "the model to serve: a GGUF file or a folder of safetensors; default: teaspoon, which comes with samovar", "Model" },
        { "tokenizer",           KIND_TEXT,   AT(tokenizer),           NULL,    0, 0, { "PATH[=SPLIT]" }, AT_START, "use this vocabulary instead of the model's own; SPLIT: gpt2, llama3, qwen2" },
        { "load",                KIND_WORD,   AT(load),                "auto",  0, 0, { [LOAD_AUTO] = "auto", [LOAD_CACHED] = "cached", [LOAD_URING] = "uring", [LOAD_PLAIN] = "plain" }, AT_START, "how weights are read; auto: chosen by where the file lies" },

        { "backend",             KIND_NAME,   AT(backend),             "cpu",   0, 0, { "cpu", "cuda", "auto", "ref" }, AT_START, "compute backend; cuda: an NVIDIA GPU; auto: cuda if there is a GPU, otherwise cpu", "Where the model runs" },
        { "backend_library",     KIND_TEXT,   AT(backend_library),     NULL,    0, 0, { "FILE" }, AT_START, "library file of the cuda backend; default: the one that comes with samovar" },
        { "gpu_layers",          KIND_SOME,   AT(gpu_layers),          "auto",  0, 65536, { "auto", "all" }, AT_START, "number of layers on the GPU, counted from the last; the cpu has the others; auto: all that fit" },
        { "deterministic",       KIND_SWITCH, AT(deterministic),       "no",    0, 0, { NULL }, AT_START, "a stream's tokens do not depend on the other streams; always so on the cpu; makes a GPU slower" },
        { "isa",                 KIND_NAME,   AT(isa),                 "auto",  0, 0, { "auto", "avx512bf16", "avx512", "avx2", "c" }, AT_START, "instruction set of the cpu backend" },
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

        { "socket",              KIND_TEXT,   AT(socket),              NULL,    0, 0, { "PATH" }, AT_START, "the socket that clients connect to; default: samovar/sock in $XDG_RUNTIME_DIR or /run", "Socket" },
        { "socket_mode",         KIND_MODE,   AT(socket_mode),         "0600",  0, 0, { "0600", "0660", "0666" }, AT_START, "users that may connect: the owner (0600), also the group (0660), or all (0666)" },
        { "socket_group",        KIND_TEXT,   AT(socket_group),        NULL,    0, 0, { "GROUP" }, AT_START, "group of the socket, a name or a number; default: the daemon's group" },
        { "gateway",             KIND_TEXT,   AT(gateway),             NULL,    0, 0, { "USER" }, AT_START, "user, a name or a number, whose processes serve users of their own: principals; default: no user" },

        { "connections",         KIND_COUNT,  AT(connections),         "256",   1, 65536, { NULL }, AT_START, "connections of all users, an eighth of them for root and the user of the daemon", "Limits of all users together" },
        { "requests",            KIND_COUNT,  AT(requests),            "1024",  1, 65536, { NULL }, AT_START, "requests of all users, running and waiting, an eighth of them for root and the user of the daemon" },
        { "resumable",           KIND_COUNT,  AT(resumable),           "256",   0, 4096, { NULL }, AT_START, "resumable streams of all users, an eighth of them for root and the user of the daemon" },
        { "max_tokens",          KIND_COUNT,  AT(max_tokens),          "512",   0, UINT32_MAX, { NULL }, LIVE, "limit of tokens for a request that names none; 0: the rest of the context" },
        { "stall_timeout_ms",    KIND_COUNT,  AT(stall_timeout_ms),    "60000", 1, 86400000, { NULL }, AT_START, "a stream whose client does not read ends after this time" },
        { "stall_preempt_ms",    KIND_COUNT,  AT(stall_preempt_ms),    "2000",  0, 86400000, { NULL }, AT_START, "a stream whose client does not read gives up its slot after this time, if others wait" },
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

const size_t config_setting_count = N(config_settings);

/* ---- refusals ---- */

int config_refuse(const struct config_place *at, const char *format, ...)
{
        int used = 0;
        va_list values;

        if (at->file)
                used = snprintf(at->why, at->why_bytes, "%s:%u: ", at->file, at->line);
        if (used >= 0 && (size_t)used < at->why_bytes) {
                va_start(values, format);
                vsnprintf(at->why + used, at->why_bytes - (size_t)used, format, values);
                va_end(values);
        }
        /* The message may contain user input: keep it on one line, whatever the input is. */
        for (size_t i = 0; i < at->why_bytes && at->why[i]; i++)
                if ((unsigned char)at->why[i] < ' ' || at->why[i] == 0x7f)
                        at->why[i] = '?';
        return error_raise(-EINVAL);
}

/* ---- names ---- */

const char *config_shown(const struct config_place *at, const char *name, char *to, size_t bytes)
{
        snprintf(to, bytes, "%s%s", at->file ? "" : "--", name);
        for (char *c = to; !at->file && *c; c++)
                if (*c == '_')
                        *c = '-';
        return to;
}

int config_refuse_name(const struct config_place *at, const char *name, size_t bytes)
{
        const struct setting *nearest = NULL;
        uint32_t best = DISTANCE_NONE;
        char as[48];

        for (size_t i = 0; i < config_setting_count; i++)
                if (!(at->file && config_settings[i].use == FLAG_ONLY) &&
                    distance_is_hint(name, bytes, config_settings[i].name, &best))
                        nearest = &config_settings[i];
        return config_refuse(at, "there is no setting %s%.*s%s%s%s", at->file ? "" : "--",
                             (int)(bytes < 40 ? bytes : 40), name, nearest ? "; is " : "",
                             nearest ? config_shown(at, nearest->name, as, sizeof(as)) : "",
                             nearest ? " meant?" : "");
}

/* A flag has dashes where the table has underscores. */
const struct setting *config_find(const struct config_place *at, const char *name, size_t bytes)
{
        for (size_t i = 0; i < config_setting_count; i++) {
                const char *known = config_settings[i].name;
                size_t j = 0;

                if (strlen(known) != bytes || (at->file && config_settings[i].use == FLAG_ONLY))
                        continue;
                while (j < bytes && name[j] == (!at->file && known[j] == '_' ? '-' : known[j]))
                        j++;
                if (j == bytes)
                        return &config_settings[i];
        }
        return NULL;
}

/* ---- values ---- */

static int set_text(const struct config_place *at, char **to, const char *value)
{
        char *copy = strdup(value);

        if (!copy) {
                snprintf(at->why, at->why_bytes, "out of memory");
                return error_raise(-ENOMEM);
        }
        free(*to);
        *to = copy;
        return 0;
}

static int read_word(const struct setting *s, const struct config_place *at, const char *value,
                     uint32_t *ret_index)
{
        char as[48], all[64] = "";
        size_t used = 0;

        for (uint32_t i = 0; s->words[i]; i++) {
                if (!strcmp(s->words[i], value)) {
                        *ret_index = i;
                        return 0;
                }
                used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
                                         s->words[i]);
        }
        return config_refuse(at, "%s is %.40s; it may be %s",
                             config_shown(at, s->name, as, sizeof(as)), value, all);
}

/*
 * Connecting needs the write permission, and no other mode bit has a meaning for a socket.  So
 * there are three modes.  A mode that suggests more than that (0777, 0640) is a mistake.  660 means
 * 0660, as for chmod.
 */
static int read_mode(const struct setting *s, const struct config_place *at, const char *value,
                     uint32_t *ret_mode)
{
        uint32_t word;
        int r;

        for (uint32_t i = 0; s->words[i]; i++)
                if (!strcmp(s->words[i] + 1, value))
                        value = s->words[i];
        r = read_word(s, at, value, &word);
        if (!r)
                *ret_mode = (uint32_t)strtoul(s->words[word], NULL, 8);
        return r;
}

const char *config_sized(enum config_kind kind, uint64_t n, char *to, size_t bytes)
{
        uint32_t unit = 0;

        while (kind == KIND_BYTES && n && n % 1024 == 0 && unit < 3) {
                n /= 1024;
                unit++;
        }
        snprintf(to, bytes, "%" PRIu64 "%.1s", n, &"\0KMG"[unit]);
        return to;
}

/* Digits, and for sizes one of K, M, G.  False: not a number, or it does not fit 64 bits. */
static bool read_digits(enum config_kind kind, const char *value, uint64_t *ret_number)
{
        static const char units[] = "KMG";
        uint64_t n = 0;
        const char *unit;

        if (!*value)
                return false;
        for (; *value >= '0' && *value <= '9'; value++)
                if (__builtin_mul_overflow(n, 10u, &n) ||
                    __builtin_add_overflow(n, (uint64_t)(*value - '0'), &n))
                        return false;
        if (*value && kind == KIND_BYTES) {
                unit = strchr(units, *value++);
                if (!unit || __builtin_mul_overflow(n, K << 10 * (unit - units), &n))
                        return false;
        }
        *ret_number = n;
        return !*value;
}

static int read_number(const struct setting *s, const struct config_place *at, const char *value,
                       uint64_t *ret_number)
{
        char as[48], low[24], high[24];
        uint64_t n;

        if (!read_digits(s->kind, value, &n) || n < s->low || n > s->high)
                return config_refuse(at, "%s is %.40s; it may be from %s to %s%s",
                                     config_shown(at, s->name, as, sizeof(as)), value,
                                     config_sized(s->kind, s->low, low, sizeof(low)),
                                     config_sized(s->kind, s->high, high, sizeof(high)),
                                     s->kind == KIND_BYTES ? ", written like 512M" : "");
        *ret_number = n;
        return 0;
}

static int read_some(const struct setting *s, const struct config_place *at, const char *value,
                     uint32_t *ret_number)
{
        char as[48];
        uint64_t n;

        for (uint32_t i = 0; s->words[i]; i++)
                if (!strcmp(s->words[i], value)) {
                        *ret_number = UINT32_MAX - i;
                        return 0;
                }
        if (!read_digits(s->kind, value, &n) || n < s->low || n > s->high)
                return config_refuse(
                        at, "%s is %.40s; it may be %s, %s, or from %" PRIu64 " to %" PRIu64,
                        config_shown(at, s->name, as, sizeof(as)), value, s->words[0], s->words[1],
                        s->low, s->high);
        *ret_number = (uint32_t)n;
        return 0;
}

static int read_switch(const struct setting *s, const struct config_place *at, const char *value,
                       bool *ret_on)
{
        char as[48];

        if (strcmp(value, "yes") && strcmp(value, "no"))
                return config_refuse(at, "%s is %.40s; it may be yes or no",
                                     config_shown(at, s->name, as, sizeof(as)), value);
        *ret_on = value[0] == 'y';
        return 0;
}

int config_set(struct config *config, const struct setting *s, const struct config_place *at,
               const char *value)
{
        void *to = (char *)config + s->offset;
        uint64_t n = 0;
        uint32_t word;
        char as[48];
        int r;

        switch (s->kind) {
        case KIND_TEXT:
                if (!*value)
                        return config_refuse(at, "%s is empty",
                                             config_shown(at, s->name, as, sizeof(as)));
                return set_text(at, to, value);
        case KIND_NAME:
                r = read_word(s, at, value, &word);
                return r ? r : set_text(at, to, value);
        case KIND_WORD:
                return read_word(s, at, value, to);
        case KIND_MODE:
                return read_mode(s, at, value, to);
        case KIND_SWITCH:
                return read_switch(s, at, value, to);
        case KIND_SOME:
                return read_some(s, at, value, to);
        default:
                break;
        }
        r = read_number(s, at, value, &n);
        if (r)
                return error_pass(r);
        if (s->kind == KIND_BYTES)
                *(uint64_t *)to = n;
        else
                *(uint32_t *)to = (uint32_t)n; /* an int32_t setting has its maximum at INT32_MAX */
        return 0;
}
