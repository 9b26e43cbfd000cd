/*
 * toy-model OUT.gguf [--seed N] [--layers N] [--width N] [--heads N] [--kv-heads N]
 *        [--head-dim N] [--ffn N] [--vocab N] [--context N] [--type TYPE] [--tied]
 *        [--extras] [--window N] [--template TEXT] [--bad-token TOKEN]
 *
 * TYPE is the type of the matrices: f32, f16, bf16, or a type of blocks, such as q4_0 and q6_k.
 * Matrices whose rows are not whole blocks are f16 then.
 *
 * Writes a small llama model that was never trained and yet talks: lower-case nonsense that can be
 * pronounced, in words and sentences.  It is for tests and for trying the daemon where there is no
 * real model.  The same arguments give the same bytes on every machine: numbers come from an
 * integer generator and from + - * / and sqrt alone, which IEEE fixes to the last bit.  --extras
 * adds optional tensors, which most such models do not have: biases, norms of q and k, rope
 * factors. --window makes it a gemma2 model, of which every second layer, from the first on, sees
 * the last N positions only. --template gives it a chat template: it will not answer, but it takes
 * conversations. --bad-token makes one token's embedding not a number: a request with this token
 * gets no tokens.
 *
 * How it talks.  A few dimensions of the stream are reserved, and no layer writes to them:
 *
 *      0            a constant
 *      1 .. 6       one of these is on: the class of the token at this position
 *      7 .. width   free: the token's identity, and what the layers add, at random
 *
 * The head reads the class and prefers the classes that may follow it: a consonant that opens a
 * syllable, then a vowel, then perhaps a consonant that closes it, then perhaps a space.  Openers
 * and closers are different letters, so a word has at least two.  The constant tells the head which
 * letters are common and which tokens never come.  The free part makes the choice depend on
 * everything said before.
 *
 * The vocabulary is the 256 bytes, then bos (256) and eos (257).
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/dev/toy-model-blocks.h"
#include "contrib/dev/gguf-out.h"

#define BOS        256u
#define EOS        257u
#define VOCAB_MIN  258u
#define RESERVED   7u
#define NEVER      -40.0
#define LETTER_STD 0.45 /* of the free part of an embedding */
#define LAYER_STD  0.35 /* of everything that the layers add to it */
#define HEAD_STD   0.8  /* of the free part's effect on a logit */

enum class { OPENER, VOWEL, CLOSER, SPACE, STOP, MARK, CLASS_N };

/*
 * The weights of the classes that may follow a class: about ln of the chance of every token of the
 * next class.  Classes that end a word get more than their share, because the free part favours
 * letters.
 */
static const struct follow {
        double opener, vowel, closer, space, stop, eos;
} follows[CLASS_N] = {
        /*          14 letters  5 letters  4 letters  once  once  once */
        [OPENER] = { NEVER, -1.61, NEVER, NEVER, NEVER, NEVER },
        [VOWEL] = { -3.84, -6.50, -2.73, 0.10, -3.30, NEVER },
        [CLOSER] = { -3.90, -6.00, NEVER, 0.60, -2.80, NEVER },
        [SPACE] = { -2.64, NEVER, NEVER, NEVER, NEVER, NEVER },
        [STOP] = { NEVER, NEVER, NEVER, -0.16, NEVER, -4.10 },
        [MARK] = { NEVER, NEVER, NEVER, 0.0, NEVER, NEVER },
};

struct shape {
        uint32_t seed, layers, width, heads, kv_heads, head_dim, ffn, vocab, context;
        const char *type, *chat_template;
        uint32_t bad_token;
        uint32_t window; /* 0: none */
        bool tied, extras;
};

struct toy_model {
        struct shape shape;
        struct out out;
        uint64_t state; /* of the generator */
        const char *architecture;
};

/* splitmix64 */
static uint64_t next(struct toy_model *b)
{
        uint64_t z = (b->state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* Mean 0, the given standard deviation; uniform, which is random enough. */
static double noise(struct toy_model *b, double std)
{
        double unit = ((double)(next(b) >> 40) - 8388607.5) / 8388608.0;

        return unit * std * sqrt(3.0);
}

static uint32_t float_bits(float f)
{
        uint32_t u;

        memcpy(&u, &f, sizeof(u));
        return u;
}

/* Rounds to the nearest, ties to even. */
static uint16_t bfloat(float f)
{
        uint32_t u = float_bits(f);

        return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static void put_number(struct toy_model *b, const char *type, double number)
{
        if (!strcmp(type, "f32"))
                out_int(&b->out, float_bits((float)number), 4);
        else
                out_int(&b->out,
                        !strcmp(type, "bf16") ? bfloat((float)number) : block_half((float)number),
                        2);
}

static enum class class_of(uint32_t token) {
        int c = (int)token;

        if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
        if (token >= 256 || c == ' ' || c == '\n' || c == '\t') return SPACE;
        if (c == '.') return STOP;
        if (c < 'a' || c > 'z') return MARK;
        if (strchr("aeiou", c)) return VOWEL;
        return strchr("nrsx", c) ? CLOSER : OPENER;
}

/* The size of a reserved dimension: together they make the norm of the stream about 1 a number. */
static double beacon(const struct shape *s)
{
        return 0.6 * sqrt((double)s->width);
}

static double logit(enum class from, uint32_t token)
{
        const struct follow *f = &follows[from];

        if (token == EOS)
                return f->eos;
        /* NEVER, whatever came before: the constant adds it. */
        if (token >= 256 || (token != ' ' && token != '.' && (token < 'a' || token > 'z')))
                return 0;
        switch (class_of(token)) {
        case OPENER:
                return f->opener;
        case VOWEL:
                return f->vowel;
        case CLOSER:
                return f->closer;
        case SPACE:
                return f->space;
        default:
                return f->stop;
        }
}

/* How common a token is, independent of the tokens before it. */
static double commonness(struct toy_model *b, uint32_t token)
{
        double taste = noise(b, 0.5); /* drawn for every token, so that none shifts the others */

        if (token == EOS || token == ' ' || token == '.')
                return 0;
        if (token < 'a' || token > 'z' || strchr("qyxc", (int)token))
                return NEVER;
        return strchr("jwz", (int)token) ? taste - 1 : taste;
}

typedef double number_of(struct toy_model *b, uint32_t row, uint32_t column);

static double embedding(struct toy_model *b, uint32_t row, uint32_t column)
{
        double number = column < RESERVED ? 0 : noise(b, LETTER_STD);

        if (row == b->shape.bad_token)
                return (double)NAN;
        if (!column || column == 1 + (uint32_t)class_of(row))
                return beacon(&b->shape);
        return number;
}

static double head(struct toy_model *b, uint32_t row, uint32_t column)
{
        double std;

        if (!column)
                return commonness(b, row) / beacon(&b->shape);
        if (column < RESERVED)
                return logit((enum class)(column - 1), row) / beacon(&b->shape);
        /* The ends of words and sentences depend less on the free part than the letters do. */
        std = row == EOS || row == ' ' || row == '.' ? HEAD_STD / 4 : HEAD_STD;
        return noise(b, std / sqrt((double)b->shape.width));
}

static double norm(struct toy_model *b, uint32_t row, uint32_t column)
{
        (void)row;
        (void)column;
        return 1 + noise(b, 0.05);
}

static double plain_norm(struct toy_model *b, uint32_t row, uint32_t column)
{
        (void)b;
        (void)row;
        (void)column;
        return 1;
}

/* From the stream: the reserved dimensions are large and would hide the rest, so they get small
 * weights. */
static double inward(struct toy_model *b, uint32_t row, uint32_t column)
{
        double unit = 1.5 / sqrt((double)b->shape.width * (LETTER_STD * LETTER_STD));

        (void)row;
        return noise(b, column < RESERVED ? unit * 2 / beacon(&b->shape) : unit);
}

static double back(struct toy_model *b, uint32_t row, uint32_t columns)
{
        double parts = 2.0 * b->shape.layers;
        double n = noise(b, LAYER_STD * 1.5 / sqrt(parts * columns));

        return row < RESERVED ? 0 : n;
}

static double attention_back(struct toy_model *b, uint32_t row, uint32_t column)
{
        (void)column;
        return back(b, row, b->shape.heads * b->shape.head_dim);
}

static double bias(struct toy_model *b, uint32_t row, uint32_t column)
{
        (void)row;
        (void)column;
        return noise(b, 0.3);
}

/* Into the stream: the reserved dimensions stay as they are. */
static double bias_back(struct toy_model *b, uint32_t row, uint32_t column)
{
        double n = noise(b, 0.05);

        (void)row;
        return column < RESERVED ? 0 : n;
}

static double ffn_back(struct toy_model *b, uint32_t row, uint32_t column)
{
        (void)column;
        return back(b, row, b->shape.ffn);
}

static void put_row(struct toy_model *b, const char *type, const struct block_type *blocks,
                    number_of *number, uint32_t row, uint32_t columns)
{
        double numbers[BLOCK_NUMBERS_MAX];
        uint8_t bytes[BLOCK_BYTES_MAX];

        for (uint32_t c = 0; c < columns; c++) {
                double n = number(b, row, c);

                if (!blocks) {
                        put_number(b, type, n);
                        continue;
                }
                numbers[c % blocks->numbers] = n;
                if ((c + 1) % blocks->numbers)
                        continue;
                blocks->write(blocks, numbers, bytes);
                out_bytes(&b->out, bytes, blocks->bytes);
        }
}

/* The code goes through the tensors three times: to count them, to announce them in the header, and
 * to write them. */
struct act {
        enum { COUNT, ANNOUNCE, WRITE } what;
        uint32_t index;
};

static void tensor(struct toy_model *b, struct act *act, const char *name, uint32_t rows,
                   uint32_t columns, number_of *number)
{
        const struct block_type *blocks = rows > 1 ? block_type(b->shape.type) : NULL;
        const char *type = rows > 1 ? b->shape.type : "f32";
        uint32_t id = !strcmp(type, "f32") ? 0 : !strcmp(type, "bf16") ? 30 : 1;
        uint64_t bytes = (uint64_t)rows * columns * (id ? 2 : 4);

        if (blocks && columns % blocks->numbers)
                blocks = NULL;
        if (blocks) {
                id = blocks->id;
                bytes = (uint64_t)rows * columns / blocks->numbers * blocks->bytes;
        }
        if (act->what == ANNOUNCE) {
                out_tensor(&b->out, name, rows, columns, id, bytes);
        } else if (act->what == WRITE) {
                b->state = (uint64_t)b->shape.seed << 32 | act->index;
                for (uint32_t r = 0; r < rows; r++)
                        put_row(b, type, blocks, number, r, columns);
                out_align(&b->out);
        }
        act->index++;
}

static const struct {
        const char *name;
        char rows, columns; /* one of: 1, Width, Queries, Keys, Head, Ffn */
        number_of *number;
        bool extra, gemma2;
} parts[] = {
        { "attn_norm.weight", '1', 'W', norm },
        { "attn_q.weight", 'Q', 'W', inward },
        { "attn_k.weight", 'K', 'W', inward },
        { "attn_v.weight", 'K', 'W', inward },
        { "attn_output.weight", 'W', 'Q', attention_back },
        { "ffn_norm.weight", '1', 'W', norm },
        { "ffn_gate.weight", 'F', 'W', inward },
        { "ffn_up.weight", 'F', 'W', inward },
        { "ffn_down.weight", 'W', 'F', ffn_back },
        { "attn_q.bias", '1', 'Q', bias, true },
        { "attn_k.bias", '1', 'K', bias, true },
        { "attn_v.bias", '1', 'K', bias, true },
        { "attn_output.bias", '1', 'W', bias_back, true },
        { "attn_q_norm.weight", '1', 'H', norm, true },
        { "attn_k_norm.weight", '1', 'H', norm, true },
        { "post_attention_norm.weight", '1', 'W', norm, .gemma2 = true },
        { "post_ffw_norm.weight", '1', 'W', norm, .gemma2 = true },
};

/* Every tensor, in order; returns how many. */
static uint32_t tensors(struct toy_model *b, struct act act)
{
        const struct shape *s = &b->shape;
        uint32_t size[128] = {
                ['1'] = 1,
                ['W'] = s->width,
                ['Q'] = s->heads * s->head_dim,
                ['K'] = s->kv_heads * s->head_dim,
                ['H'] = s->head_dim,
                ['F'] = s->ffn,
        };
        char name[64];

        tensor(b, &act, "token_embd.weight", s->vocab, s->width, embedding);
        for (uint32_t l = 0; l < s->layers; l++) {
                for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
                        if ((parts[i].extra && !s->extras) || (parts[i].gemma2 && !s->window))
                                continue;
                        snprintf(name, sizeof(name), "blk.%u.%s", l, parts[i].name);
                        tensor(b, &act, name, size[(int)parts[i].rows], size[(int)parts[i].columns],
                               parts[i].number);
                }
        }
        tensor(b, &act, "output_norm.weight", 1, s->width, plain_norm);
        if (!s->tied)
                tensor(b, &act, "output.weight", s->vocab, s->width, head);
        if (s->extras)
                tensor(b, &act, "rope_freqs.weight", 1, s->head_dim / 2, norm);
        return act.index;
}

/* A key of the architecture. */
static const char *key_of(const struct toy_model *b, const char *name, char key[64])
{
        snprintf(key, 64, "%s.%s", b->architecture, name);
        return key;
}

static void pair_u32(struct toy_model *b, const char *name, uint32_t value)
{
        char key[64];

        out_pair_u32(&b->out, key_of(b, name, key), value);
}

static void pair_f32(struct toy_model *b, const char *name, float value)
{
        char key[64];

        out_pair_f32(&b->out, key_of(b, name, key), value);
}

static void header(struct toy_model *b)
{
        const struct shape *s = &b->shape;
        struct out *o = &b->out;

        b->architecture = s->window ? "gemma2" : "llama";
        out_begin(o, tensors(b, (struct act){ COUNT }),
                  16 + (s->chat_template != NULL) + (s->window > 0));
        out_pair_string(o, "general.architecture", b->architecture);
        out_pair_string(o, "general.name", "toy-model");
        out_pair_u32(o, "general.alignment", OUT_ALIGNMENT);
        pair_u32(b, "block_count", s->layers);
        pair_u32(b, "context_length", s->context);
        pair_u32(b, "embedding_length", s->width);
        pair_u32(b, "feed_forward_length", s->ffn);
        pair_u32(b, "attention.head_count", s->heads);
        pair_u32(b, "attention.head_count_kv", s->kv_heads);
        pair_u32(b, "attention.key_length", s->head_dim);
        pair_u32(b, "rope.dimension_count", s->head_dim);
        pair_f32(b, "attention.layer_norm_rms_epsilon", 1e-5f);
        pair_u32(b, "vocab_size", s->vocab);
        if (s->window)
                pair_u32(b, "attention.sliding_window", s->window);
        out_pair_string(o, "tokenizer.ggml.model", "bytes");
        out_pair_u32(o, "tokenizer.ggml.bos_token_id", BOS);
        out_pair_u32(o, "tokenizer.ggml.eos_token_id", EOS);
        if (s->chat_template)
                out_pair_string(o, "tokenizer.chat_template", s->chat_template);
        tensors(b, (struct act){ ANNOUNCE });
        out_align(o);
}

static int usage(void)
{
        fputs("usage: toy-model OUT.gguf [--seed N] [--layers N] [--width N] [--heads N]\n"
              "       [--kv-heads N] [--head-dim N] [--ffn N] [--vocab N] [--context N]\n"
              "       [--type TYPE] [--tied] [--extras] [--window N] [--template TEXT]\n"
              "       [--bad-token TOKEN]\n",
              stderr);
        return 2;
}

static bool number_read(const char *text, uint32_t low, uint32_t *ret_number)
{
        char *end;
        unsigned long n;

        errno = 0;
        n = strtoul(text, &end, 10);
        if (errno || *text < '0' || *text > '9' || *end || n < low || n > 1u << 22)
                return false;
        *ret_number = (uint32_t)n;
        return true;
}

static bool arguments(int argc, char **argv, struct shape *s)
{
        const struct {
                const char *name;
                uint32_t low, *number;
        } options[] = {
                { "--seed", 0, &s->seed },         { "--layers", 1, &s->layers },
                { "--width", 16, &s->width },      { "--heads", 1, &s->heads },
                { "--kv-heads", 1, &s->kv_heads }, { "--head-dim", 2, &s->head_dim },
                { "--ffn", 2, &s->ffn },           { "--vocab", VOCAB_MIN, &s->vocab },
                { "--context", 1, &s->context },   { "--bad-token", 0, &s->bad_token },
                { "--window", 1, &s->window },
        };
        size_t i;

        for (int a = 2; a < argc; a++) {
                if (!strcmp(argv[a], "--tied")) {
                        s->tied = true;
                        continue;
                }
                if (!strcmp(argv[a], "--extras")) {
                        s->extras = true;
                        continue;
                }
                if (a + 1 == argc)
                        return false;
                if (!strcmp(argv[a], "--type")) {
                        s->type = argv[++a];
                        continue;
                }
                if (!strcmp(argv[a], "--template")) {
                        s->chat_template = argv[++a];
                        continue;
                }
                for (i = 0; i < sizeof(options) / sizeof(*options); i++)
                        if (!strcmp(argv[a], options[i].name))
                                break;
                if (i == sizeof(options) / sizeof(*options) ||
                    !number_read(argv[++a], options[i].low, options[i].number))
                        return false;
        }
        return (!strcmp(s->type, "f32") || !strcmp(s->type, "f16") || !strcmp(s->type, "bf16") ||
                block_type(s->type)) &&
               /* Not every type of block can represent a NaN. */
               !(block_type(s->type) && s->bad_token != UINT32_MAX) &&
               s->heads % s->kv_heads == 0 && s->head_dim % 2 == 0 && !(s->window && s->extras);
}

int main(int argc, char **argv)
{
        struct toy_model b = {
                .shape = {
                        .seed = 1,
                        .layers = 4,
                        .width = 128,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_dim = 32,
                        .ffn = 256,
                        .vocab = VOCAB_MIN,
                        .context = 2048,
                        .type = "f32",
                        .bad_token = UINT32_MAX,
                },
        };

        if (argc < 2 || argv[1][0] == '-' || !arguments(argc, argv, &b.shape))
                return usage();
        b.out.file = fopen(argv[1], "wb");
        if (!b.out.file) {
                perror(argv[1]);
                return 1;
        }
        header(&b);
        tensors(&b, (struct act){ WRITE });
        if (fclose(b.out.file) || b.out.failed) {
                perror(argv[1]);
                return 1;
        }
        return 0;
}
