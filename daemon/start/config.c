/*
 * The table has everything about a setting: name, kind, range, default, help and group.  A default
 * is written like a user's value and parsed by the same code.  So the default in --help is the one
 * in effect.  contrib/dev/reference makes the reference page and the man page from the same rows.
 *
 * A config file has lines `name = value`, blank lines, and lines that begin with #.  Its names are
 * those of the table.  On the command line, a dash replaces each underscore.
 */
#include "daemon/start/config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error.h"
#include "daemon/base/log.h"
#include "daemon/base/sys.h"
#include "daemon/model/load-way.h"
#include "kernels/page.h"

#define FILE_BYTES_MAX  (1u << 20)
#define VALUE_BYTES_MAX 4096u

enum kind {
        KIND_TEXT,   /* char *, anything */
        KIND_NAME,   /* char *, one word of `words` */
        KIND_WORD,   /* uint32_t, the index of a word in `words` */
        KIND_MODE,   /* uint32_t, one of `words`, each an octal number with a leading 0 */
        KIND_SWITCH, /* bool; --name alone means yes */
        KIND_INT,    /* int32_t */
        KIND_COUNT,  /* uint32_t */
        /* uint32_t, a number or one of `words`: the first is UINT32_MAX, the next one less */
        KIND_SOME,
        KIND_BYTES, /* uint64_t, with K, M or G */
};

struct setting {
        const char *name;
        enum kind kind;
        size_t offset;
        const char *initial; /* NULL: none */
        uint64_t low, high;
        const char *words[6]; /* NULL-terminated; for KIND_TEXT: the name of the value in --help */
        bool flag_only;
        const char *help;
        const char *group; /* the headline of the group that begins here; NULL: the same group */
};

#define K          (UINT64_C(1) << 10)
#define M          (UINT64_C(1) << 20)
#define G          (UINT64_C(1) << 30)
#define AT(member) offsetof(struct config, member)
#define N(array)   (sizeof(array) / sizeof(*(array)))

/* clang-format off */
static const struct setting settings[] = {
        { "model",               KIND_TEXT,   AT(model),               NULL,    0, 0, { "PATH[=NAME]" }, false, "the model to serve: a GGUF file or a folder of safetensors; default: teaspoon, which comes with samovar", "Model" },
        { "tokenizer",           KIND_TEXT,   AT(tokenizer),           NULL,    0, 0, { "PATH[=SPLIT]" }, false, "use this vocabulary instead of the model's own; SPLIT: gpt2, llama3, qwen2" },
        { "load",                KIND_WORD,   AT(load),                "auto",  0, 0, { [LOAD_AUTO] = "auto", [LOAD_CACHED] = "cached", [LOAD_URING] = "uring", [LOAD_PLAIN] = "plain" }, false, "how weights are read; auto: chosen by where the file lies" },

        { "backend",             KIND_NAME,   AT(backend),             "cpu",   0, 0, { "cpu", "cuda", "auto", "ref" }, false, "compute backend; cuda: an NVIDIA GPU; auto: cuda if there is a GPU, otherwise cpu", "Where the model runs" },
        { "backend_library",     KIND_TEXT,   AT(backend_library),     NULL,    0, 0, { "FILE" }, false, "library file of the cuda backend; default: the one that comes with samovar" },
        { "gpu_layers",          KIND_SOME,   AT(gpu_layers),          "auto",  0, 65536, { "auto", "all" }, false, "number of layers on the GPU, counted from the last; the cpu has the others; auto: all that fit" },
        { "deterministic",       KIND_SWITCH, AT(deterministic),       "no",    0, 0, { NULL }, false, "a stream's tokens do not depend on the other streams; always so on the cpu; makes a GPU slower" },
        { "isa",                 KIND_NAME,   AT(isa),                 "auto",  0, 0, { "auto", "avx512bf16", "avx512", "avx2", "c" }, false, "instruction set of the cpu backend" },
        { "threads",             KIND_COUNT,  AT(threads),             "0",     0, 1024, { NULL }, false, "threads of the cpu backend; 0: one for each core" },
        { "affinity",            KIND_WORD,   AT(affinity),            "auto",  0, 0, { [CONFIG_AFFINITY_AUTO] = "auto", [CONFIG_AFFINITY_OFF] = "off" }, false, "auto: if there is one thread for each core, pin each thread to its core" },

        { "ctx",                 KIND_COUNT,  AT(ctx),                 "0",     0, 1u << 24, { NULL }, false, "positions of a sequence; 0: the model's own maximum", "Memory" },
        { "kv",                  KIND_WORD,   AT(kv),                  "f16",   0, 0, { [KV_F16] = "f16", [KV_BF16] = "bf16", [KV_INT8] = "int8", [KV_F32] = "f32", [KV_FP8] = "fp8" }, false, "type of keys and values; int8, fp8: half the memory of 16 bits, with a scale for each head and position; f32: not with cuda" },
        { "kv_bytes",            KIND_BYTES,  AT(kv_bytes),            "0",     0, 4096 * G, { NULL }, false, "size of the KV pool; 0: chosen from max_seqs, ctx and the free memory" },

        { "max_seqs",            KIND_COUNT,  AT(max_seqs),            "64",    1, 1024, { NULL }, false, "sequences that run at the same time", "Batching" },
        { "step_tokens",         KIND_COUNT,  AT(step_tokens),         "256",   1, 16384, { NULL }, false, "rows of a step; at least max_seqs" },
        { "gap_ms",              KIND_COUNT,  AT(gap_ms),              "50",    0, 3600000, { NULL }, false, "a step with prompts takes at most this long, or twice as long as without prompts; 0: no limit" },
        { "max_preemptions",     KIND_COUNT,  AT(max_preemptions),     "8",     0, 1000, { NULL }, false, "how often a request may be preempted for one of a higher priority" },
        { "batching",            KIND_WORD,   AT(batching),            "continuous", 0, 0, { [BATCHING_CONTINUOUS] = "continuous", [BATCHING_DYNAMIC] = "dynamic", [BATCHING_STATIC] = "static" }, false, "continuous: new requests join at once; dynamic, static: batches, for comparison" },
        { "batch_size",          KIND_COUNT,  AT(batch_size),          "0",     0, 1024, { NULL }, false, "size of a dynamic or static batch; 0: max_seqs" },
        { "batch_window_ms",     KIND_COUNT,  AT(batch_window_ms),     "0",     0, 3600000, { NULL }, false, "how long the first request of a batch waits for others; 0: 50 if dynamic, 10000 if static" },
        { "pipeline_depth",      KIND_COUNT,  AT(pipeline_depth),      "1",     1, 2, { NULL }, false, "plans in flight at once" },

        { "socket",              KIND_TEXT,   AT(socket),              NULL,    0, 0, { "PATH" }, false, "the socket that clients connect to; default: samovar/sock in $XDG_RUNTIME_DIR or /run", "Socket" },
        { "socket_mode",         KIND_MODE,   AT(socket_mode),         "0600",  0, 0, { "0600", "0660", "0666" }, false, "users that may connect: the owner (0600), also the group (0660), or all (0666)" },
        { "socket_group",        KIND_TEXT,   AT(socket_group),        NULL,    0, 0, { "GROUP" }, false, "group of the socket, a name or a number; default: the daemon's group" },

        { "connections",         KIND_COUNT,  AT(connections),         "256",   1, 65536, { NULL }, false, "connections of all users", "Limits of all users together" },
        { "requests",            KIND_COUNT,  AT(requests),            "1024",  1, 65536, { NULL }, false, "requests of all users, running and waiting" },
        { "resumable",           KIND_COUNT,  AT(resumable),           "256",   0, 4096, { NULL }, false, "resumable streams of all users" },
        { "max_tokens",          KIND_COUNT,  AT(max_tokens),          "512",   1, UINT32_MAX, { NULL }, false, "limit of tokens for a request that names none" },
        { "stall_timeout_ms",    KIND_COUNT,  AT(stall_timeout_ms),    "60000", 1, 86400000, { NULL }, false, "a stream whose client does not read ends after this time" },
        { "stall_preempt_ms",    KIND_COUNT,  AT(stall_preempt_ms),    "2000",  0, 86400000, { NULL }, false, "a stream whose client does not read gives up its slot after this time, if others wait" },
        { "drain_timeout_ms",    KIND_COUNT,  AT(drain_timeout_ms),    "30000", 0, 86400000, { NULL }, false, "how long running requests may continue after SIGTERM" },

        { "uid_connections",     KIND_COUNT,  AT(uid_connections),     "64",    1, 65536, { NULL }, false, "connections of one user", "Limits for each user" },
        { "uid_connects_burst",  KIND_COUNT,  AT(uid_connects_burst),  "64",    1, 65536, { NULL }, false, "new connections of one user at once" },
        { "uid_connects_per_s",  KIND_COUNT,  AT(uid_connects_per_s),  "10",    1, 65536, { NULL }, false, "new connections of one user a second, after the burst" },
        { "uid_requests",        KIND_COUNT,  AT(uid_requests),        "320",   1, 65536, { NULL }, false, "requests of one user, running and waiting" },
        { "uid_prompt_bytes",    KIND_BYTES,  AT(uid_prompt_bytes),    "64M",   1, 64 * G, { NULL }, false, "bytes of one user's prompts, and of the histories in that user's handles" },
        { "uid_handles",         KIND_COUNT,  AT(uid_handles),         "256",   1, 65536, { NULL }, false, "handles (histories that the daemon stores) of one user" },
        { "uid_blocks_percent",  KIND_COUNT,  AT(uid_blocks_percent),  "100",   1, 100, { NULL }, false, "share of the KV pool for one user's running requests" },
        { "uid_cached_percent",  KIND_COUNT,  AT(uid_cached_percent),  "50",    1, 100, { NULL }, false, "share of the KV pool that one user may keep cached when other users need blocks" },
        { "uid_pinned_percent",  KIND_COUNT,  AT(uid_pinned_percent),  "25",    0, 100, { NULL }, false, "share of the KV pool that one user may pin" },
        { "uid_resumable",       KIND_COUNT,  AT(uid_resumable),       "16",    0, 4096, { NULL }, false, "resumable streams of one user, which outlive their connections" },
        { "uid_resumable_bytes", KIND_BYTES,  AT(uid_resumable_bytes), "32M",   1, 64 * G, { NULL }, false, "memory for the records of one user's resumable streams" },
        { "uid_ring_bytes",      KIND_BYTES,  AT(uid_ring_bytes),      "16M",   64 * K, 64 * G, { NULL }, false, "memory for one user's rings; at least ring_bytes" },
        { "publish",             KIND_SWITCH, AT(publish),             "no",    0, 0, { NULL }, false, "users may publish prompts to each other (docs/guide/several-users.md)" },

        { "ring_bytes",          KIND_BYTES,  AT(ring_bytes),          "256K",  64 * K, 4 * M, { NULL }, false, "size of a ring if the client asks for none; a power of two; clients may ask for up to 1M", "Limits for each connection" },
        { "frame_bytes",         KIND_BYTES,  AT(frame_bytes),         "8M",    4 * K, 64 * M, { NULL }, false, "size of one request" },
        { "reply_bytes",         KIND_BYTES,  AT(reply_bytes),         "64K",   16 * K, 64 * M, { NULL }, false, "bytes of unread replies, beyond which the connection ends" },
        { "hello_timeout_ms",    KIND_COUNT,  AT(hello_timeout_ms),    "10000", 1, 3600000, { NULL }, false, "time until a new connection must have sent hello" },
        { "frame_timeout_ms",    KIND_COUNT,  AT(frame_timeout_ms),    "10000", 1, 3600000, { NULL }, false, "time until a frame that began must be complete" },

        { "log_level",           KIND_WORD,   AT(log_level),           "info",  0, 0, { [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug" }, false, "the least important level that is logged", "Log" },

        { "config",              KIND_TEXT,   AT(file),                NULL,    0, 0, { "FILE" }, true, "read settings from FILE; flags override it", "This start" },
        { "fd",                  KIND_INT,    AT(fd),                  NULL,    0, INT32_MAX, { NULL }, true, "serve only this connected socket, and exit when it closes" },
        { "check",               KIND_SWITCH, AT(check),               "no",    0, 0, { NULL }, true, "load the model, print the memory plan, exit" },
        { "inspect",             KIND_SWITCH, AT(inspect),             "no",    0, 0, { NULL }, true, "print what the model is and whether this machine can serve it, exit" },
        { "template",            KIND_SWITCH, AT(preview),             "no",    0, 0, { NULL }, true, "print the prompt that the chat template of the model, or of a file, makes of --messages, exit" },
        { "messages",            KIND_TEXT,   AT(messages),            NULL,    0, 0, { "FILE" }, true, "a conversation in JSON, for --template; -: stdin" },
        { "json",                KIND_SWITCH, AT(json),                "no",    0, 0, { NULL }, true, "--template prints JSON, which marks the text that came from the messages" },
        { "help",                KIND_SWITCH, AT(help),                "no",    0, 0, { NULL }, true, "print this help" },
        { "version",             KIND_SWITCH, AT(version),             "no",    0, 0, { NULL }, true, "print the version" },
};
/* clang-format on */

/* Where an error is reported: at a flag, or at a line of a file. */
struct place {
        const char *file; /* NULL: the command line */
        uint32_t line;
        char *why;
        size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct place *at, const char *format,
                                                        ...)
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

/* The name as written at this place: kv_bytes in a file, --kv-bytes as a flag. */
static const char *shown(const struct place *at, const char *name, char *to, size_t bytes)
{
        snprintf(to, bytes, "%s%s", at->file ? "" : "--", name);
        for (char *c = to; !at->file && *c; c++)
                if (*c == '_')
                        *c = '-';
        return to;
}

/* Edit distance: letters to insert, delete or change to get from a to b; - counts as _. */
static uint32_t distance(const char *a, size_t a_count, const char *b)
{
        uint32_t row[33];
        size_t b_count = strlen(b);

        if (a_count >= N(row) || b_count >= N(row))
                return UINT32_MAX;
        for (uint32_t j = 0; j <= b_count; j++)
                row[j] = j;
        for (uint32_t i = 1; i <= a_count; i++) {
                uint32_t diagonal = row[0];

                row[0] = i;
                for (uint32_t j = 1; j <= b_count; j++) {
                        char letter = a[i - 1] == '-' ? '_' : a[i - 1];
                        uint32_t best = diagonal + (letter != b[j - 1]);

                        diagonal = row[j];
                        if (row[j] + 1 < best)
                                best = row[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        row[j] = best;
                }
        }
        return row[b_count];
}

static int refuse_name(const struct place *at, const char *name, size_t bytes)
{
        const struct setting *nearest = NULL;
        uint32_t best = 4; /* a name that differs more is no useful hint */
        char as[48];

        for (size_t i = 0; i < N(settings); i++) {
                uint32_t d = distance(name, bytes, settings[i].name);

                if (d < best && 2 * d <= strlen(settings[i].name) &&
                    !(at->file && settings[i].flag_only)) {
                        best = d;
                        nearest = &settings[i];
                }
        }
        return refuse(at, "there is no setting %s%.*s%s%s%s", at->file ? "" : "--",
                      (int)(bytes < 40 ? bytes : 40), name, nearest ? "; is " : "",
                      nearest ? shown(at, nearest->name, as, sizeof(as)) : "",
                      nearest ? " meant?" : "");
}

/* A flag has dashes where the table has underscores. */
static const struct setting *find_setting(const struct place *at, const char *name, size_t bytes)
{
        for (size_t i = 0; i < N(settings); i++) {
                const char *known = settings[i].name;
                size_t j = 0;

                if (strlen(known) != bytes || (at->file && settings[i].flag_only))
                        continue;
                while (j < bytes && name[j] == (!at->file && known[j] == '_' ? '-' : known[j]))
                        j++;
                if (j == bytes)
                        return &settings[i];
        }
        return NULL;
}

/* ---- values ---- */

static int set_text(const struct place *at, char **to, const char *value)
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

static int read_word(const struct setting *s, const struct place *at, const char *value,
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
        return refuse(at, "%s is %.40s; it may be %s", shown(at, s->name, as, sizeof(as)), value,
                      all);
}

/*
 * Connecting needs the write permission, and no other mode bit has a meaning for a socket.  So
 * there are three modes.  A mode that suggests more than that (0777, 0640) is a mistake.  660 means
 * 0660, as for chmod.
 */
static int read_mode(const struct setting *s, const struct place *at, const char *value,
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

/* Writes 65536 as 64K, if it divides evenly. */
static const char *sized(enum kind kind, uint64_t n, char *to, size_t bytes)
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
static bool read_digits(enum kind kind, const char *value, uint64_t *ret_number)
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

static int read_number(const struct setting *s, const struct place *at, const char *value,
                       uint64_t *ret_number)
{
        char as[48], low[24], high[24];
        uint64_t n;

        if (!read_digits(s->kind, value, &n) || n < s->low || n > s->high)
                return refuse(at, "%s is %.40s; it may be from %s to %s",
                              shown(at, s->name, as, sizeof(as)), value,
                              sized(s->kind, s->low, low, sizeof(low)),
                              sized(s->kind, s->high, high, sizeof(high)));
        *ret_number = n;
        return 0;
}

static int read_some(const struct setting *s, const struct place *at, const char *value,
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
                return refuse(at, "%s is %.40s; it may be %s, %s, or from %" PRIu64 " to %" PRIu64,
                              shown(at, s->name, as, sizeof(as)), value, s->words[0], s->words[1],
                              s->low, s->high);
        *ret_number = (uint32_t)n;
        return 0;
}

static int read_switch(const struct setting *s, const struct place *at, const char *value,
                       bool *ret_on)
{
        char as[48];

        if (strcmp(value, "yes") && strcmp(value, "no"))
                return refuse(at, "%s is %.40s; it may be yes or no",
                              shown(at, s->name, as, sizeof(as)), value);
        *ret_on = value[0] == 'y';
        return 0;
}

static int set(struct config *config, const struct setting *s, const struct place *at,
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
                        return refuse(at, "%s is empty", shown(at, s->name, as, sizeof(as)));
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

/* ---- sources ---- */

int config_init(struct config *config)
{
        char why[160];
        struct place at = { .why = why, .why_bytes = sizeof(why) };
        int r = 0;

        *config = (struct config){ .fd = -1 };
        for (size_t i = 0; !r && i < N(settings); i++)
                if (settings[i].initial)
                        r = set(config, &settings[i], &at, settings[i].initial);
        if (r)
                config_deinit(config);
        return error_pass(r);
}

void config_deinit(struct config *config)
{
        for (size_t i = 0; i < N(settings); i++)
                if (settings[i].kind == KIND_TEXT || settings[i].kind == KIND_NAME)
                        free(*(char **)((char *)config + settings[i].offset));
        *config = (struct config){ .fd = -1 };
}

static int read_line(struct config *config, const struct place *at, const char *line, size_t bytes,
                     uint64_t *given)
{
        const char *equals = memchr(line, '=', bytes);
        const char *name = line, *end = line + bytes, *name_end;
        char value[VALUE_BYTES_MAX];
        const struct setting *s;

        if (!equals)
                return refuse(at, "a line is `name = value`");
        for (name_end = equals; name_end > name && strchr(" \t", name_end[-1]);)
                name_end--;
        s = find_setting(at, name, (size_t)(name_end - name));
        if (!s)
                return refuse_name(at, name, (size_t)(name_end - name));
        if (*given & UINT64_C(1) << (s - settings))
                return refuse(at, "%s is given twice", s->name);
        *given |= UINT64_C(1) << (s - settings);

        for (equals++; equals < end && strchr(" \t", *equals);)
                equals++;
        if ((size_t)(end - equals) >= sizeof(value))
                return refuse(at, "the value of %s is longer than %u bytes", s->name,
                              VALUE_BYTES_MAX - 1);
        memcpy(value, equals, (size_t)(end - equals));
        value[end - equals] = '\0';
        return set(config, s, at, value);
}

static int parse(struct config *config, const char *name, const char *text, size_t bytes, char *why,
                 size_t why_bytes)
{
        struct place at = { .file = name, .why = why, .why_bytes = why_bytes };
        const char *end = text + bytes;
        uint64_t given = 0;
        int r = 0;

        _Static_assert(N(settings) <= 64, "one bit each");
        while (!r && text < end) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));
                const char *line_end = newline ? newline : end;
                const char *next = newline ? newline + 1 : end;

                at.line++;
                if (memchr(text, '\0', (size_t)(line_end - text)))
                        return refuse(&at, "a NUL byte is in it");
                while (text < line_end && strchr(" \t\r", *text))
                        text++;
                while (line_end > text && strchr(" \t\r", line_end[-1]))
                        line_end--;
                if (text < line_end && *text != '#')
                        r = read_line(config, &at, text, (size_t)(line_end - text), &given);
                text = next;
        }
        return error_pass(r);
}

int config_parse(struct config *config, const char *text, size_t bytes, char *why, size_t why_bytes)
{
        return parse(config, "config", text, bytes, why, why_bytes);
}

static int read_whole(int fd, char **ret_text, size_t *ret_bytes)
{
        uint64_t bytes = 0;
        size_t have = 0;
        char *text;
        ssize_t n = 1;
        int r;

        r = sys_file_size(fd, &bytes);
        if (!r && bytes > FILE_BYTES_MAX)
                r = -EFBIG;
        if (r)
                return error_raise(r);
        text = malloc(bytes + 1);
        if (!text)
                return error_raise(-ENOMEM);
        while (have < bytes && n > 0) {
                n = sys_read(fd, text + have, bytes - have);
                if (n > 0)
                        have += (size_t)n;
        }
        if (n < 0) {
                free(text);
                return error_raise((int)n);
        }
        *ret_text = text;
        *ret_bytes = have;
        return 0;
}

static int read_file(struct config *config, const char *path, char *why, size_t why_bytes)
{
        size_t bytes = 0;
        char *text = NULL;
        int fd, r;

        fd = r = sys_open(path, O_RDONLY, 0);
        if (fd >= 0) {
                r = read_whole(fd, &text, &bytes);
                sys_close(fd);
        }
        if (r < 0) {
                snprintf(why, why_bytes, "%s: %s", path, strerror(-r));
                return error_pass(r);
        }
        r = parse(config, path, text, bytes, why, why_bytes);
        free(text);
        return error_pass(r);
}

static int read_flags(struct config *config, int argc, char **argv, const struct place *at)
{
        for (int i = 1; i < argc; i++) {
                const char *name = argv[i] + 2, *value;
                const struct setting *s;
                size_t bytes;
                int r;

                if (strncmp(argv[i], "--", 2))
                        return refuse(at, "%.40s is not a flag", argv[i]);
                bytes = strcspn(name, "=");
                s = find_setting(at, name, bytes);
                if (!s)
                        return refuse_name(at, name, bytes);
                if (name[bytes])
                        value = name + bytes + 1;
                else if (s->kind == KIND_SWITCH)
                        value = "yes";
                else if (i + 1 < argc)
                        value = argv[++i];
                else
                        return refuse(at, "%s has no value", argv[i]);
                r = set(config, s, at, value);
                if (r)
                        return error_pass(r);
        }
        return 0;
}

/* Rules between several settings. */
static int check_together(const struct config *c, const struct place *at)
{
        bool no_gpu = !strcmp(c->backend, "cpu") || !strcmp(c->backend, "ref");

        if (no_gpu && c->gpu_layers && c->gpu_layers != CONFIG_AUTO)
                return refuse(at,
                              "gpu_layers puts layers on a GPU, but backend is %s, which "
                              "has none; cuda and auto do",
                              c->backend);
        if (c->step_tokens < c->max_seqs)
                return refuse(at,
                              "step_tokens is %u and max_seqs is %u; a step needs a row for "
                              "every sequence",
                              c->step_tokens, c->max_seqs);
        if (c->batch_size > c->max_seqs)
                return refuse(at, "batch_size is %u and max_seqs is %u; a batch runs all at once",
                              c->batch_size, c->max_seqs);
        if (c->ring_bytes & (c->ring_bytes - 1))
                return refuse(at, "ring_bytes is %" PRIu64 "; it must be a power of two",
                              c->ring_bytes);
        if (c->uid_ring_bytes < c->ring_bytes)
                return refuse(at,
                              "uid_ring_bytes is %" PRIu64 " and ring_bytes is %" PRIu64
                              "; a user needs space for one ring",
                              c->uid_ring_bytes, c->ring_bytes);
        if (c->socket_group && c->socket_mode == 0600)
                return refuse(at,
                              "socket_group is %.40s and socket_mode is 0600, which lets no group "
                              "in; 0660 does",
                              c->socket_group);
        return 0;
}

int config_read(struct config *config, int argc, char **argv, char *why, size_t why_bytes)
{
        struct place at = { .why = why, .why_bytes = why_bytes };
        struct config read;
        char *path = NULL;
        int r;

        r = config_init(&read);
        if (r) {
                snprintf(why, why_bytes, "out of memory");
                return error_pass(r);
        }
        /* Read the flags twice: first to find --config, then to override its file. */
        r = read_flags(&read, argc, argv, &at);
        if (!r && read.file && !read.help && !read.version) {
                path = read.file;
                r = read_file(&read, path, why, why_bytes);
                if (!r)
                        r = read_flags(&read, argc, argv, &at);
        }
        if (!r && !read.help && !read.version)
                r = check_together(&read, &at);
        if (r) {
                config_deinit(&read);
                return error_pass(r);
        }
        *config = read;
        return 0;
}

/* ---- help ---- */

/* The values that a setting may have, as --help shows them; "" if the value's name says it. */
static void print_values(const struct setting *s, char *to, size_t bytes)
{
        char low[24], high[24];
        size_t used = 0;

        *to = '\0';
        switch (s->kind) {
        case KIND_TEXT:
        case KIND_SWITCH:
                break;
        case KIND_NAME:
        case KIND_WORD:
        case KIND_MODE:
                for (uint32_t i = 0; s->words[i] && used < bytes; i++)
                        used += (size_t)snprintf(to + used, bytes - used, "%s%s", i ? ", " : "",
                                                 s->words[i]);
                break;
        case KIND_SOME:
                snprintf(to, bytes, "%s, %s, %" PRIu64 " to %" PRIu64, s->words[0], s->words[1],
                         s->low, s->high);
                break;
        default:
                snprintf(to, bytes, "%s to %s", sized(s->kind, s->low, low, sizeof(low)),
                         sized(s->kind, s->high, high, sizeof(high)));
        }
}

bool config_describe(size_t index, struct config_row *ret_row)
{
        static const char *const stands_for[] = {
                [KIND_NAME] = "WORD",  [KIND_WORD] = "WORD",    [KIND_MODE] = "MODE",
                [KIND_INT] = "NUMBER", [KIND_COUNT] = "NUMBER", [KIND_BYTES] = "SIZE",
                [KIND_SWITCH] = "",    [KIND_SOME] = "NUMBER",
        };
        const struct setting *s;

        if (index >= N(settings))
                return false;
        s = &settings[index];
        *ret_row = (struct config_row){
                .group = s->group,
                .name = s->name,
                .value = s->kind == KIND_TEXT ? s->words[0] : stands_for[s->kind],
                .initial = s->initial && s->kind != KIND_SWITCH ? s->initial : "",
                .help = s->help,
                .flag_only = s->flag_only,
        };
        print_values(s, ret_row->values, sizeof(ret_row->values));
        return true;
}

bool config_limit(const struct config *config, uint32_t *index, const char **ret_name,
                  uint64_t *ret_value)
{
        while (*index < N(settings)) {
                const struct setting *s = &settings[(*index)++];
                const void *value = (const char *)config + s->offset;

                if (s->flag_only)
                        continue;
                *ret_name = s->name;
                switch (s->kind) {
                case KIND_COUNT:
                        *ret_value = *(const uint32_t *)value;
                        return true;
                case KIND_BYTES:
                        *ret_value = *(const uint64_t *)value;
                        return true;
                case KIND_SWITCH:
                        *ret_value = *(const bool *)value;
                        return true;
                default:
                        break;
                }
        }
        return false;
}

void config_help(FILE *to)
{
        struct place flag = { .file = NULL };
        struct config_row row;

        fputs("usage: samovard [--model PATH] [--name VALUE | --name=VALUE] ...\n", to);
        for (size_t i = 0; config_describe(i, &row); i++) {
                char as[48], line[80];

                if (row.group)
                        fprintf(to, "\n%s\n", row.group);
                snprintf(line, sizeof(line), "%s %s", shown(&flag, row.name, as, sizeof(as)),
                         row.value);
                fprintf(to, "  %-28s %s%s%s", line, row.help, *row.values ? "; " : "", row.values);
                if (*row.initial)
                        fprintf(to, " [%s]", row.initial);
                fputs(row.flag_only ? "; not in a file\n" : "\n", to);
        }
        fputs("\nA size takes K, M or G.  A config file has lines `name = value`, with _ for - in\n"
              "names, and comments that begin with #.\n",
              to);
}
