#include "tests/unit/draft-world.h"

#include <string.h>

#define PROMPT_MAX 40u /* rows of a prompt in a step */

struct world world;
struct deeds deeds;

uint32_t any(uint32_t below)
{
        world.random = world.random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        return (uint32_t)((world.random >> 33) % below);
}

bool chance(uint32_t percent)
{
        return any(100) < percent;
}

uint32_t any_token(void)
{
        return any(50) ? any(3) : VOCAB - 1 - any(3);
}

uint32_t own_token(uint32_t token)
{
        return token < world.own_vocab ? token : 0;
}

/* ---- blocks ---- */

uint32_t blocks_unused(void)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < world.sched.blocks; i++)
                count += !world.blocks[i].refs;
        return count;
}

uint32_t block_find(uint32_t from, uint32_t to, uint64_t content, uint32_t other_than)
{
        for (uint32_t i = from; i < to; i++)
                if (i != other_than && world.blocks[i].known && world.blocks[i].content == content)
                        return i;
        return NONE;
}

static uint32_t find_in_pool(uint64_t content)
{
        return block_find(0, world.sched.blocks, content, NONE);
}

static uint32_t find_in_swap(uint64_t content)
{
        return block_find(world.sched.blocks, world.sched.blocks + world.swap, content, NONE);
}

void block_copy(uint32_t from, uint32_t to)
{
        assert_true(world.step.copy_count < CHANGES_MAX);
        world.copies[world.step.copy_count++] = (struct step_copy){ .from = from, .to = to };
}

uint32_t block_take(void)
{
        uint32_t left = any(blocks_unused()), i = 0;
        struct block *block;

        for (; world.blocks[i].refs || left; i++)
                left -= !world.blocks[i].refs;
        block = &world.blocks[i];
        deeds.evicted += block->known;
        if (block->known && world.swap && chance(60)) {
                uint32_t to = world.sched.blocks + any(world.swap);

                block_copy(i, to);
                world.blocks[to] = *block;
                deeds.swapped_out++;
        }
        *block = (struct block){ .refs = 1 };
        return i;
}

/* ---- streams ---- */

void stream_append(struct stream *s, uint32_t token)
{
        assert_true(s->count < world.sched.context);
        s->served[s->count + 1] = pool_go_on(s->served[s->count], token);
        s->drafted[s->count + 1] = pool_go_on(s->drafted[s->count], own_token(token));
        s->tokens[s->count++] = token;
        deeds.foreign += token >= world.own_vocab;
}

void stream_leave(struct stream *s)
{
        while (s->block_count)
                world.blocks[s->blocks[--s->block_count]].refs--;
        s->slot = NONE;
        s->runs = false;
        s->computed = s->again = s->guess_count = 0;
}

static void add_page(uint32_t slot, uint32_t index, uint32_t page, uint32_t group)
{
        assert_true(world.step.page_count < CHANGES_MAX);
        world.pages[world.step.page_count++] =
                (struct step_page){ .slot = slot, .index = index, .page = page, .group = group };
}

void stream_set_block(struct stream *s, uint32_t index, uint32_t block)
{
        assert_true(index <= s->block_count && index < TABLE_MAX);
        if (index < s->block_count)
                world.blocks[s->blocks[index]].refs--;
        else
                s->block_count++;
        s->blocks[index] = block;
        if (world.windows && any(2))
                add_page(s->slot, any(index + 1), any(UINT32_MAX), GROUP_WINDOWS);
        add_page(s->slot, index, block, GROUP_BLOCKS);
        if (world.windows && any(2))
                add_page(s->slot, index, any(BLOCKS_MAX), GROUP_WINDOWS);
}

/* Only one sequence may write to a block, and the index forgets what was there. */
static void make_writable(struct stream *s, uint32_t index)
{
        struct block *block = &world.blocks[s->blocks[index]];

        if (index == s->block_count) {
                stream_set_block(s, index, block_take());
        } else if (block->refs > 1) {
                uint32_t to = block_take();

                block_copy(s->blocks[index], to);
                stream_set_block(s, index, to);
                deeds.written_copies++;
        } else {
                deeds.rewritten += block->known;
                block->known = false;
        }
}

/* Brings a block back.  False: it was dropped for the block that it should come to. */
static bool fetch(struct stream *s, uint64_t content)
{
        uint32_t to = block_take(), from = find_in_swap(content);

        if (from == NONE) {
                world.blocks[to].refs = 0;
                return false;
        }
        block_copy(from, to);
        world.blocks[to] = world.blocks[from];
        world.blocks[to].refs = 1;
        stream_set_block(s, s->block_count, to);
        deeds.swapped_in++;
        return true;
}

void stream_find_blocks(struct stream *s, uint32_t most)
{
        while (s->block_count < most && (s->block_count + 1) * 16 <= s->count) {
                uint64_t content = s->served[(s->block_count + 1) * 16];
                uint32_t block = find_in_pool(content);

                if (block != NONE) {
                        world.blocks[block].refs++;
                        stream_set_block(s, s->block_count, block);
                        deeds.found++;
                } else if (find_in_swap(content) == NONE || !blocks_unused() ||
                           !fetch(s, content)) {
                        break;
                }
        }
        s->computed = s->block_count * 16;
}

/* ---- steps of the served model ---- */

static void add_row(const struct stream *s, uint32_t position, uint32_t token, bool write)
{
        struct step *step = &world.step;
        struct step_run *run = step->run_count ? &world.runs[step->run_count - 1] : NULL;

        assert_true(step->row_count < ROWS_MAX);
        if (!run || world.rows[run->row].slot != s->slot) {
                run = &world.runs[step->run_count++];
                *run = (struct step_run){ .row = step->row_count };
        }
        run->count++;
        world.rows[step->row_count++] = (struct step_row){ .slot = s->slot,
                                                           .position = position,
                                                           .token = token,
                                                           .from_row = STEP_TOKEN,
                                                           .write = write };
}

/* Rows of known tokens, and of guesses behind them. */
static void add_rows(struct stream *s, uint32_t count)
{
        struct seat *seat = &world.seats[s->slot];

        if (seat->serial != s->serial)
                *seat = (struct seat){ .serial = s->serial };
        s->runs = true;
        if (s->computed == s->count) {
                add_row(s, s->count - 1, s->tokens[s->count - 1], false);
                return;
        }
        for (uint32_t i = 0; i < count; i++) {
                uint32_t at = s->computed + i;

                if (at >= s->again && (!i || at % 16 == 0))
                        make_writable(s, at / 16);
                add_row(s, at, at < s->count ? s->tokens[at] : s->guess[at - s->count], true);
        }
}

/* The true tokens behind rows up to the last known token, and behind guesses. */
static void draw(struct stream *s, uint32_t guesses)
{
        uint32_t right = 0;

        while (right < guesses && chance(75))
                stream_append(s, s->guess[right++]);
        deeds.right += right;
        stream_append(s, any_token());
        s->computed = s->count - 1;
}

static uint32_t rows_of(const struct stream *s)
{
        uint32_t left = s->count - s->computed, guesses = chance(80) ? s->guess_count : 0;

        if (left > 1)
                return 1 + any(least(left, PROMPT_MAX));
        return left + least(guesses, world.sched.context - s->count - 1);
}

void stream_plan(struct stream *s)
{
        uint32_t count = rows_of(s), known = s->count - s->computed;

        if (blocks_unused() < count / 16 + 3) {
                if (chance(30))
                        stream_leave(s);
                return;
        }
        add_rows(s, count);
        if (count >= known)
                draw(s, known ? count - known : 0);
        else
                s->computed += count;
        s->guess_count = 0;
}

void world_begin_step(void)
{
        world.step = (struct step){ .number = world.step.number + 1,
                                    .rows = world.rows,
                                    .runs = world.runs,
                                    .pages = world.pages,
                                    .copies = world.copies };
}

void world_run_step(void)
{
        if (world.windows && any(2))
                world.copies[world.step.copy_count++] =
                        (struct step_copy){ any(BLOCKS_MAX), any(BLOCKS_MAX), GROUP_WINDOWS };
        draft_model_follow(world.draft_model, &world.step);
        pool_run(&world.pool, &world.step);
}

void stream_name_blocks(const struct stream *s, uint32_t percent)
{
        for (uint32_t i = 0; (i + 1) * 16 <= s->computed; i++) {
                struct block *block = &world.blocks[s->blocks[i]];

                assert_true(!block->known || block->content == s->served[(i + 1) * 16]);
                block->known = block->known || chance(percent);
                block->content = s->served[(i + 1) * 16];
                block->before = s->served[i * 16];
                memcpy(block->tokens, s->tokens + (size_t)i * 16, sizeof(block->tokens));
        }
}

/* ---- worlds ---- */

void world_open(const struct sched_conf *sched, uint32_t context, uint32_t own_vocab)
{
        const struct draft_model_conf conf = { .model = &fake,
                                               .sched = &world.sched,
                                               .context = context,
                                               .vocab = VOCAB,
                                               .own_vocab = own_vocab };

        memset(&world, 0, sizeof(world));
        memset(&fake, 0, sizeof(fake));
        world.sched = *sched;
        world.context = context;
        world.own_vocab = fake.own_vocab = own_vocab;
        fake.conf = draft_model_sizes(sched, context, KV_F16);
        assert_int_equal(fake.conf.blocks, sched->blocks + 2 * sched->slots);
        assert_int_equal(fake.conf.context, context);
        assert_true(draft_model_bytes(sched) >= sched->blocks);
        pool_open(&fake.pool, fake.conf.blocks, fake.conf.wants_max, (context + 15) / 16);
        pool_open(&world.pool, sched->blocks + SWAP_MAX, sched->slots, (sched->context + 15) / 16);
        assert_int_equal(draft_model_new(&conf, &world.draft_model), 0);
        world_begin_step();
}

void world_close(void)
{
        world.draft_model = draft_model_free(world.draft_model);
        assert_null(world.draft_model);
}

int world_end(void **state)
{
        (void)state;
        if (!world.draft_model)
                return 0;
        print_error("in world %u, step %u\n", world.seed, (uint32_t)world.step.number);
        world.draft_model = draft_model_free(world.draft_model);
        return 0;
}
