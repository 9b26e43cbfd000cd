#include "tests/kernels/swapped-stream.h"

#define LENGTH 52u
#define HELD   4u /* pages of the sequence, at most */

static const struct shape plain = {
        .columns = 96,
        .heads = 3,
        .kv_heads = 1,
        .head_dim = 32,
        .ff = 70,
        .vocab = 90,
        .kv = KV_F16,
        .pairing = ROPE_HALVES,
        .rope_dims = 32,
        .norm = true,
};

static void copy(struct model *m, uint32_t from, uint32_t to)
{
        assert_true(m->copy_count < PAGES);
        m->copies[m->copy_count++] = (struct step_copy){ from, to };
}

/* One step; the logits of its first run go to *ret_logits. */
static void forward(struct model *m, const struct chunk *chunk, float *ret_logits)
{
        struct kernels *k = m->k;

        model_begin(m, chunk, 1);
        model_embed(m, 1);
        for (uint32_t layer = 0; layer < 2; layer++) {
                model_qkv(m, layer);
                model_attend(m, layer);
                model_project(m, m->o, m->a);
                model_gate(m);
                model_project(m, m->down, m->g);
        }
        model_head(m);
        if (ret_logits)
                k->get(k, ret_logits, m->logits, (size_t)chunk->count * m->host->s.vocab);
        model_end(m);
}

/* Which swap page a page goes to: another one each time. */
static uint32_t place(uint32_t index, uint32_t turn)
{
        return PAGES + (index * 3 + turn) % SWAP_PAGES;
}

/* The pages of slot 0 go away, and pages of slot 1 are copied over them. */
static void leave(struct model *m, uint32_t held, uint32_t turn)
{
        for (uint32_t i = 0; i < held; i++) {
                copy(m, page_of(0, i), place(i, turn));
                copy(m, page_of(1, i % 2), page_of(0, i));
        }
}

/* They come back, and pages of slot 1 are copied over the swap pages. */
static void come_back(struct model *m, uint32_t held, uint32_t turn)
{
        for (uint32_t i = 0; i < held; i++) {
                copy(m, place(i, turn), page_of(0, i));
                copy(m, page_of(1, i % 2), place(i, turn));
        }
}

static void run(struct model *m, bool swaps, float *ret_logits)
{
        const size_t vocab = m->host->s.vocab;

        for (uint32_t at = 0, turn = 0, count; at < LENGTH; at += count, turn++) {
                const uint32_t held = (at + PAGE_POSITIONS - 1) / PAGE_POSITIONS;
                const struct chunk other = { 1, turn, 1 };

                assert_true(held <= HELD);
                count = 1 + turn * 5 % 11;
                if (count > LENGTH - at)
                        count = LENGTH - at;
                if (swaps)
                        leave(m, held, turn);
                forward(m, &other, NULL);
                if (swaps)
                        come_back(m, held, turn);
                forward(m, &(struct chunk){ 0, at, count }, ret_logits + at * vocab);
        }
}

void swapped_stream_has_the_same_bits(struct kernels *k, enum kv_type type)
{
        struct shape s = plain;
        float *stays, *moves;
        struct model m;
        struct host h;

        s.kv = type;
        stays = calloc((size_t)LENGTH * s.vocab, sizeof(*stays));
        moves = calloc((size_t)LENGTH * s.vocab, sizeof(*moves));
        assert_true(stays && moves);
        host_make(&h, &s);
        model_open(&m, k, &h);
        run(&m, false, stays);
        model_close(&m);
        model_open(&m, k, &h);
        run(&m, true, moves);
        model_close(&m);
        for (size_t i = 0; i < (size_t)LENGTH * s.vocab; i++)
                assert_true(isfinite(stays[i]));
        assert_memory_equal(moves, stays, (size_t)LENGTH * s.vocab * sizeof(*stays));
        host_free(&h);
        free(stays);
        free(moves);
}

void chains_of_copies_keep_all_contents(struct kernels *k,
                                        void (*peek)(void *to, const void *from, size_t bytes))
{
        const uint32_t a = page_of(0, 0), b = page_of(1, 0), c = page_of(2, 0);
        const struct chunk first[] = { { 0, 0, 16 }, { 1, 0, 16 }, { 2, 0, 16 } };
        const struct chunk beside = { 0, PAGE_POSITIONS, 1 };
        struct model m;
        struct host h;
        size_t bytes;
        uint8_t *was, *is;

        host_make(&h, &plain);
        model_open(&m, k, &h);
        bytes = m.kv->page_bytes;
        was = malloc(PAGES * bytes);
        is = malloc(PAGES * bytes);
        assert_true(was && is);
        for (uint32_t i = 0; i < 3; i++)
                forward(&m, &first[i], NULL);
        peek(was, m.kv->pages, PAGES * bytes);
        assert_memory_not_equal(was + a * bytes, was + b * bytes, bytes);
        assert_memory_not_equal(was + b * bytes, was + c * bytes, bytes);

        copy(&m, c, PAGES + 5);
        forward(&m, &beside, NULL);
        copy(&m, a, PAGES + 2); /* page a -> swap 2, swap 5 -> page a, page b -> swap 5 */
        copy(&m, PAGES + 5, a);
        copy(&m, b, PAGES + 5);
        copy(&m, PAGES + 2, c);
        copy(&m, a, b); /* between pages of the pool */
        copy(&m, PAGES + 5, a);
        forward(&m, &(struct chunk){ 1, PAGE_POSITIONS, 1 }, NULL);
        peek(is, m.kv->pages, PAGES * bytes);
        assert_memory_equal(is + a * bytes, was + b * bytes, bytes);
        assert_memory_equal(is + b * bytes, was + c * bytes, bytes);
        assert_memory_equal(is + c * bytes, was + a * bytes, bytes);

        assert_true(k->kv_copy_ns(k, m.kv) >= 1);
        model_close(&m);
        host_free(&h);
        free(was);
        free(is);
}
