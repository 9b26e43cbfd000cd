#include "tests/kernels/tile-trap.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* Palette 1. */
#define TILES     8u
#define MOST_ROWS 16u
#define MOST_SIZE 64u /* bytes of a row */

#define AVX512 __attribute__((target("avx512f"), noinline))

struct tile {
        uint8_t bytes[MOST_ROWS][MOST_SIZE];
} __attribute__((aligned(64)));

/* What LDTILECFG reads. */
struct config {
        uint8_t palette, start_row, reserved[14];
        uint16_t size[16];
        uint8_t rows[16];
};
_Static_assert(sizeof(struct config) == 64, "as the manual has it");

/* A thread's tiles. Palette 0: they are not configured. */
static _Thread_local struct config config;
static _Thread_local struct tile tiles[TILES];

static _Atomic uint64_t counts[TILE_OPS];
static _Atomic(const char *) complaint;
static _Atomic uintptr_t complaint_at;
static struct sigaction before;

struct instruction {
        enum tile_op op;
        uint32_t reg, rm, third; /* tiles: ModRM.reg, ModRM.rm, VEX.vvvv */
        uint8_t *memory;
        size_t stride;
        uint32_t length;
        uintptr_t at;
};

static void refuse(const struct instruction *i, const char *what)
{
        const char *none = NULL;

        if (atomic_compare_exchange_strong(&complaint, &none, what))
                atomic_store(&complaint_at, i->at);
}

/* ---- decoding ---- */

/* The fields of a three-byte VEX prefix, not inverted, and of ModRM. */
struct fields {
        uint32_t r, x, b, map, w, vvvv, l, prefix;
        uint32_t opcode, mod, reg, rm;
};

enum { NO_PREFIX, PREFIX_66, PREFIX_F3, PREFIX_F2 };

static bool fields_read(const uint8_t *at, struct fields *f)
{
        if (at[0] != 0xc4)
                return false;
        *f = (struct fields){
                .r = !(at[1] & 0x80),
                .x = !(at[1] & 0x40),
                .b = !(at[1] & 0x20),
                .map = at[1] & 0x1f,
                .w = at[2] >> 7,
                .vvvv = ~(at[2] >> 3) & 15u,
                .l = at[2] >> 2 & 1,
                .prefix = at[2] & 3,
                .opcode = at[3],
                .mod = at[4] >> 6,
                .reg = at[4] >> 3 & 7,
                .rm = at[4] & 7,
        };
        return f->map == 2 && !f->w && !f->l;
}

/* Opcode 49. */
static bool find_config_op(const struct fields *f, enum tile_op *ret)
{
        if (f->vvvv)
                return false;
        if (f->mod != 3 && f->reg == 0 && f->prefix == NO_PREFIX)
                *ret = TILE_CONFIG_LOAD;
        else if (f->mod != 3 && f->reg == 0 && f->prefix == PREFIX_66)
                *ret = TILE_CONFIG_STORE;
        else if (f->mod == 3 && f->reg == 0 && f->rm == 0 && f->prefix == NO_PREFIX)
                *ret = TILE_RELEASE;
        else if (f->mod == 3 && f->rm == 0 && f->prefix == PREFIX_F2)
                *ret = TILE_ZERO;
        else
                return false;
        return true;
}

/* Opcode 4b. */
static bool find_memory_op(const struct fields *f, enum tile_op *ret)
{
        *ret = f->prefix == PREFIX_F3 ? TILE_STORE : TILE_LOAD;
        return !f->vvvv && f->prefix != NO_PREFIX && f->mod != 3 && f->rm == 4;
}

static bool find_op(const struct fields *f, enum tile_op *ret)
{
        static const enum tile_op dots[] = {
                [NO_PREFIX] = TILE_DOT_BYTES_UU,
                [PREFIX_66] = TILE_DOT_BYTES_US,
                [PREFIX_F3] = TILE_DOT_BYTES_SU,
                [PREFIX_F2] = TILE_DOT_BYTES,
        };

        switch (f->opcode) {
        case 0x49:
                return !f->r && find_config_op(f, ret);
        case 0x4b:
                return !f->r && find_memory_op(f, ret);
        case 0x5c:
                *ret = TILE_DOT_BFLOATS;
                return f->mod == 3 && !f->r && !f->b && f->vvvv < TILES && f->prefix == PREFIX_F3;
        case 0x5e:
                *ret = dots[f->prefix];
                return f->mod == 3 && !f->r && !f->b && f->vvvv < TILES;
        default:
                return false;
        }
}

static uintptr_t general(const ucontext_t *u, uint32_t number)
{
        static const int places[16] = {
                REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
        };

        return (uintptr_t)u->uc_mcontext.gregs[places[number]];
}

/* The operand in memory. An index register is a stride; an operand of 64 bytes adds it instead. */
static void find_memory(const ucontext_t *u, const struct fields *f, const uint8_t *at,
                        struct instruction *i)
{
        const bool is_strided = i->op == TILE_LOAD || i->op == TILE_STORE;
        uint32_t base = f->rm, scale = 0, index = 4;
        uintptr_t address = 0;
        int32_t by = 0;
        const uint8_t *next = at + 5;

        if (f->rm == 4) {
                scale = *next >> 6;
                index = (*next >> 3 & 7) | f->x << 3;
                base = *next++ & 7;
        }
        if (f->mod == 1) {
                by = (int8_t)*next++;
        } else if (f->mod == 2 || base == 5) { /* with mod 0, 5 is no base but four bytes */
                memcpy(&by, next, sizeof(by));
                next += sizeof(by);
        }
        if (f->mod == 0 && base == 5)
                address = f->rm == 5 ? (uintptr_t)next : 0;
        else
                address = general(u, base | f->b << 3);
        address += (uintptr_t)(intptr_t)by;
        if (index != 4)
                i->stride = general(u, index) << scale;
        if (!is_strided)
                address += i->stride;
        i->memory = (uint8_t *)address;
        i->length = (uint32_t)(next - at);
}

static bool decode(const ucontext_t *u, struct instruction *i)
{
        const uintptr_t rip = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
        const uint8_t *at = (const uint8_t *)rip;
        struct fields f;
        enum tile_op op;

        if (!fields_read(at, &f) || !find_op(&f, &op))
                return false;
        *i = (struct instruction){
                .op = op, .at = rip, .reg = f.reg, .rm = f.rm, .third = f.vvvv, .length = 5
        };
        if (f.mod != 3)
                find_memory(u, &f, at, i);
        return true;
}

/* ---- what they do ---- */

static const char *config_fault(const struct config *c)
{
        static const uint8_t zeros[14];

        if (c->palette > 1)
                return "ldtilecfg: there are palettes 0 and 1";
        if (memcmp(c->reserved, zeros, sizeof(zeros)))
                return "ldtilecfg: bytes 2 to 15 are not 0";
        if (c->start_row)
                return "ldtilecfg: start_row is not 0"; /* allowed, but dots refuse it later */
        for (uint32_t t = 0; t < 16; t++) {
                if (t >= TILES && (c->size[t] || c->rows[t]))
                        return "ldtilecfg: there are 8 tiles";
                if (c->size[t] > MOST_SIZE || c->rows[t] > MOST_ROWS)
                        return "ldtilecfg: a tile has at most 16 rows of 64 bytes";
                if (!c->size[t] != !c->rows[t])
                        return "ldtilecfg: a tile has rows without bytes, or bytes without rows";
                if (c->size[t] % 4)
                        return "ldtilecfg: rows that are not whole dwords"; /* dots refuse them */
        }
        return NULL;
}

static void config_load(const struct instruction *i)
{
        struct config next;
        const char *fault;

        memcpy(&next, i->memory, sizeof(next));
        fault = next.palette == 0 ? NULL : config_fault(&next);
        if (fault)
                refuse(i, fault);
        config = next;
        if (fault || !next.palette)
                memset(&config, 0, sizeof(config));
        memset(tiles, 0, sizeof(tiles));
}

static bool is_valid(const struct instruction *i, uint32_t t)
{
        if (!config.palette)
                refuse(i, "a tile is used, and tiles are not configured");
        else if (!config.rows[t])
                refuse(i, "a tile is used that has no rows");
        return config.rows[t] > 0;
}

static void load(const struct instruction *i)
{
        struct tile *t = &tiles[i->reg];

        memset(t, 0, sizeof(*t)); /* also what is beyond its rows and bytes */
        for (uint32_t row = 0; row < config.rows[i->reg]; row++)
                memcpy(t->bytes[row], i->memory + row * i->stride, config.size[i->reg]);
}

static void store(const struct instruction *i)
{
        for (uint32_t row = 0; row < config.rows[i->reg]; row++)
                memcpy(i->memory + row * i->stride, tiles[i->reg].bytes[row], config.size[i->reg]);
}

static bool are_operands(const struct instruction *i)
{
        const uint32_t c = i->reg, a = i->rm, b = i->third;

        if (!is_valid(i, c) || !is_valid(i, a) || !is_valid(i, b))
                return false;
        if (c == a || c == b || a == b)
                refuse(i, "a dot has the same tile twice");
        else if (config.rows[a] != config.rows[c])
                refuse(i, "a dot: x has other rows than the sums");
        else if (config.size[b] != config.size[c])
                refuse(i, "a dot: weights have other columns than the sums");
        else if (config.size[a] / 4 != config.rows[b])
                refuse(i, "a dot: x has another depth than the weights");
        else
                return true;
        return false;
}

/*
 * For each sum, a chain of fused multiply-adds over the even columns and one over the odd columns,
 * each from 0; both are added, and that is added to the sum. Inputs below 2^-126 are 0. Results are
 * rounded to nearest even, as if exponents had no end, and are 0 if they are then below 2^-126.
 * With DAZ and FTZ, vectors round in this way, because x86 looks for underflow after rounding.
 */
AVX512 static void dot_bfloats(const struct instruction *i)
{
        const struct tile *a = &tiles[i->rm], *b = &tiles[i->third];
        struct tile *c = &tiles[i->reg];
        const __mmask16 columns = (__mmask16)((1u << config.size[i->reg] / 4) - 1);

        for (uint32_t row = 0; row < config.rows[i->reg]; row++) {
                __m512 even = _mm512_setzero_ps(), odd = even, sum;

                for (uint32_t k = 0; k < config.rows[i->third]; k++) {
                        const __m512i weights = _mm512_load_si512(b->bytes[k]);
                        __m512i x;
                        int32_t pair;

                        memcpy(&pair, a->bytes[row] + k * 4, sizeof(pair));
                        x = _mm512_set1_epi32(pair);
                        even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
                                               _mm512_castsi512_ps(_mm512_slli_epi32(weights, 16)),
                                               even);
                        x = _mm512_slli_epi32(_mm512_srli_epi32(x, 16), 16);
                        odd = _mm512_fmadd_ps(_mm512_castsi512_ps(x),
                                              _mm512_castsi512_ps(_mm512_slli_epi32(
                                                      _mm512_srli_epi32(weights, 16), 16)),
                                              odd);
                }
                sum = _mm512_castsi512_ps(_mm512_load_si512(c->bytes[row]));
                sum = _mm512_maskz_add_ps(columns, sum, _mm512_add_ps(even, odd));
                _mm512_store_si512(c->bytes[row], _mm512_castps_si512(sum));
        }
}

#define DAZ_AND_FTZ 0x8040u

static void dot_bfloats_rounded(const struct instruction *i)
{
        const uint32_t was = _mm_getcsr();

        _mm_setcsr(0x1f80 | DAZ_AND_FTZ); /* to nearest; no exceptions */
        dot_bfloats(i);
        _mm_setcsr(was);
}

/* Sums wrap. */
AVX512 static void dot_bytes(const struct instruction *i, bool x_has_signs, bool w_has_signs)
{
        const struct tile *a = &tiles[i->rm], *b = &tiles[i->third];
        struct tile *c = &tiles[i->reg];

        for (uint32_t row = 0; row < config.rows[i->reg]; row++) {
                __m512i sum = _mm512_load_si512(c->bytes[row]);

                for (uint32_t k = 0; k < config.size[i->rm]; k++) {
                        const uint8_t byte = a->bytes[row][k];
                        const __m512i x = _mm512_set1_epi32(x_has_signs ? (int8_t)byte : byte);
                        __m512i w = _mm512_load_si512(b->bytes[k / 4]);

                        w = _mm512_sll_epi32(w, _mm_cvtsi32_si128((int)(24 - k % 4 * 8)));
                        w = w_has_signs ? _mm512_srai_epi32(w, 24) : _mm512_srli_epi32(w, 24);
                        sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(x, w));
                }
                _mm512_store_si512(c->bytes[row], sum); /* weights beyond the columns are 0 */
        }
}

static void perform(const struct instruction *i)
{
        atomic_fetch_add_explicit(&counts[i->op], 1, memory_order_relaxed);
        switch (i->op) {
        case TILE_CONFIG_LOAD:
                config_load(i);
                return;
        case TILE_CONFIG_STORE:
                memcpy(i->memory, &config, sizeof(config));
                return;
        case TILE_RELEASE:
                memset(&config, 0, sizeof(config));
                memset(tiles, 0, sizeof(tiles));
                return;
        case TILE_ZERO:
                if (is_valid(i, i->reg))
                        memset(&tiles[i->reg], 0, sizeof(struct tile));
                return;
        case TILE_LOAD:
                if (is_valid(i, i->reg))
                        load(i);
                return;
        case TILE_STORE:
                if (is_valid(i, i->reg))
                        store(i);
                return;
        case TILE_DOT_BFLOATS:
                if (are_operands(i))
                        dot_bfloats_rounded(i);
                return;
        default:
                if (are_operands(i))
                        dot_bytes(i, i->op == TILE_DOT_BYTES || i->op == TILE_DOT_BYTES_SU,
                                  i->op == TILE_DOT_BYTES || i->op == TILE_DOT_BYTES_US);
        }
}

/*
 * The kernel restores vectors and MXCSR behind it. Signals are slow, so it goes on as long as the
 * next instruction is one of AMX.
 */
static void handle(int signal_number, siginfo_t *info, void *context)
{
        static const char unknown[] = "tile-trap: an instruction that is none of AMX\n";
        ucontext_t *u = context;
        struct instruction i;
        bool is_known = false;

        (void)info;
        while (decode(u, &i)) {
                perform(&i);
                u->uc_mcontext.gregs[REG_RIP] += i.length;
                is_known = true;
        }
        if (is_known)
                return;
        (void)!write(STDERR_FILENO, unknown, sizeof(unknown) - 1);
        signal(signal_number, SIG_DFL); /* and the instruction raises it again */
}

bool tile_trap_can(void)
{
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512vnni");
}

void tile_trap_install(void)
{
        struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };

        for (uint32_t op = 0; op < TILE_OPS; op++)
                atomic_store(&counts[op], 0);
        atomic_store(&complaint, NULL);
        sigaction(SIGILL, &action, &before);
}

void tile_trap_remove(void)
{
        sigaction(SIGILL, &before, NULL);
}

uint64_t tile_trap_count(enum tile_op op)
{
        return atomic_load(&counts[op]);
}

struct tile_complaint tile_trap_complaint(void)
{
        struct tile_complaint c = { atomic_load(&complaint), atomic_load(&complaint_at) };

        atomic_store(&complaint, NULL);
        return c;
}

#endif
