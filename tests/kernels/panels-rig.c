#include "tests/kernels/panels-rig.h"

const struct isa *isas[VARIANTS_MAX];
uint32_t isa_count;

int isas_find(void **state)
{
        static const struct isa *const all[] = {
                &isa_portable,
                &isa_amx_emulated,
#if defined(__x86_64__)
                &isa_avx2,
                &isa_avx512,
                &isa_avx512bf16,
                &isa_amx,
#endif
        };

        variants_open(state);
        for (uint32_t variant = 0; variant < variant_count; variant++)
                for (size_t i = 0; i < COUNT(all) && variant_threads[variant] == 1; i++)
                        if (!strcmp(variants[variant]->name, all[i]->name))
                                isas[isa_count++] = all[i];
        assert_true(isa_count && isas[0] == &isa_portable);
        return 0;
}

bool has_tiles(const struct isa *isa)
{
        return !strncmp(isa->name, "cpu/amx", 7);
}

bool is_own_kind(const struct isa *isa, enum row_type type)
{
        return type == ROW_BF16 && (!strcmp(isa->name, "cpu/avx512bf16") || has_tiles(isa));
}

void panel_fill(struct panel *p)
{
        memset(p->panel, 0, p->bytes);
        panel_put(p->type, p->panel, 0, PANEL, p->columns, p->file);
}

void panel_make(struct panel *p, enum row_type type, uint32_t columns)
{
        const enum row_type types[8] = { [7] = type };
        struct shape shape = {
                .columns = columns,
                .heads = 1,
                .kv_heads = 1,
                .head_dim = 1,
                .ff = 1,
                .vocab = PANEL, /* the head is what is taken of it */
                .types = types,
        };
        struct host h;

        host_make(&h, &shape);
        *p = (struct panel){ type, columns, row_bytes(type, columns), panel_bytes(type, columns) };
        p->file = malloc(PANEL * p->row_bytes);
        p->panel = aligned_alloc(64, p->bytes);
        assert_true(p->file && p->panel);
        memcpy(p->file, h.head.file[0], PANEL * p->row_bytes);
        host_free(&h);
        panel_fill(p);
}

void panel_free(struct panel *p)
{
        free(p->file);
        free(p->panel);
}

#define GAP 192u /* bytes from a panel to the next one */

void panels_fill(struct panels *p)
{
        uint8_t *rows = malloc(PANEL * p->one.row_bytes);

        assert_non_null(rows);
        memset(p->bytes, 0, p->count * p->stride);
        for (uint32_t i = 0; i < p->count; i++) {
                for (uint32_t row = 0; row < PANEL; row++)
                        memcpy(rows + row * p->one.row_bytes,
                               p->one.file + (row * 5 + i * 7) % PANEL * p->one.row_bytes,
                               p->one.row_bytes);
                panel_put(p->one.type, p->bytes + i * p->stride, 0, PANEL, p->one.columns, rows);
        }
        free(rows);
}

void panels_make(struct panels *p, enum row_type type, uint32_t columns, uint32_t count)
{
        *p = (struct panels){ .count = count };
        panel_make(&p->one, type, columns);
        p->stride = p->one.bytes + GAP;
        p->bytes = aligned_alloc(64, round_up((uint32_t)(count * p->stride), 64));
        assert_non_null(p->bytes);
        panels_fill(p);
}

void panels_free(struct panels *p)
{
        panel_free(&p->one);
        free(p->bytes);
}

uint8_t *acts_make(const struct isa *isa, enum row_type type, uint32_t columns, const float *x,
                   uint32_t rows)
{
        enum act_kind kind = act_kind_of(type);
        size_t stride = act_stride(kind, columns);
        uint8_t *acts = aligned_alloc(64, rows * stride);

        assert_non_null(acts);
        memset(acts, 0x7f, rows * stride);
        for (uint32_t t = 0; t < rows; t++, x += columns)
                if (kind == ACT_FLOATS)
                        memcpy(acts + t * stride, x, columns * sizeof(*x));
                else
                        isa->act_quantise(kind, acts + t * stride, x, columns);
        return acts;
}

void piece_multiply(const struct isa *isa, const struct panels *p, uint32_t first, uint32_t count,
                    const uint8_t *acts, uint32_t rows, float *out)
{
        size_t numbers = (size_t)count * rows * PANEL;
        const struct piece piece = {
                .type = p->one.type,
                .columns = p->one.columns,
                .panels = p->bytes + first * p->stride,
                .panel_stride = p->stride,
                .panel_count = count,
                .acts = acts,
                .act_stride = act_stride(act_kind_of(p->one.type), p->one.columns),
                .rows = rows,
        };

        for (uint32_t i = 0; i < PIECE_GUARD; i++)
                out[numbers + i] = 1234;
        isa->product(&piece, out);
        for (uint32_t i = 0; i < PIECE_GUARD; i++)
                assert_true(out[numbers + i] == 1234);
}

float *rows_make(uint32_t columns, uint32_t rows)
{
        float *x = random_floats((size_t)rows * columns);

        for (size_t i = 0; i < (size_t)rows * columns; i++) {
                x[i] *= i / columns % 3 ? 1 : 0x1p-60f;
                if (random_below(9) == 0)
                        x[i] = random_below(2) ? 0 : -0.0f;
        }
        return x;
}
