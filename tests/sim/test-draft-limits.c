/*
 * Limits of drafts: they have what nobody else needs, and change nothing but the time.
 */
#include "tests/sim/draft-stories.h"

#include <string.h>

static void hide(void)
{
        sim.trace_count = 0;
        sim.trace[0] = 0;
}

static void drafts_have_no_more_rows_than_configured(void **state)
{
        struct sim_request *a, *b;

        (void)state;
        world((struct sched_conf){ .drafts = 5 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 12 });
        b = ask_drafted((struct sim_ask){ .name = "b", .prompt = 4, .most = 12 });
        turn();
        sim_draft(&sim, a, 3, 3);
        turn_with(b, 4, 4);
        sim_expect(&sim, "[  0] prefill a 0..4*; prefill b 0..4*; take 2 drop 0\n"
                         "[ 10] decode a 4+3; decode b 4+2\n");
        finish();
}

/* Two rows are left beside the prompt of c, and none beside that of d before its last part. */
static void drafts_have_the_rows_that_decodes_and_prompts_leave(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .rows = 12 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 20 });
        ask((struct sim_ask){ .name = "b", .prompt = 4, .most = 20 });
        turn();
        ask((struct sim_ask){ .name = "c", .prompt = 8, .most = 2 });
        turn_with(a, 5, 1);
        ask((struct sim_ask){ .name = "d", .prompt = 30, .most = 1 });
        for (int i = 0; i < 4; i++)
                turn_with(a, 5, 5);
        sim_expect(&sim, "[  0] prefill a 0..4*; prefill b 0..4*; take 2 drop 0\n"
                         "[ 10] decode a 4+2; decode b 4; prefill c 0..8*; take 1 drop 0\n"
                         "[ 20] decode a 6; decode b 5; decode c 8; prefill d 0..9; "
                         "take 1 drop 0\n"
                         "[ 30] decode a 7; decode b 6; prefill d 9..19; end c length; retire c; "
                         "take 1 drop 1\n"
                         "[ 40] decode a 8; decode b 7; prefill d 19..29\n"
                         "[ 50] decode a 9+5; decode b 8; prefill d 29..30*\n");
        finish();
}

/* Prompts have the time that decodes leave, so drafts are left out until it is read. */
static void drafts_take_no_time_from_prompts(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .rows = 64, .token_gap_ns = 20 * SIM_MS });
        sim.row_ns = SIM_MS;
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 30 });
        turn();
        turn_with(a, 4, 4);
        ask((struct sim_ask){ .name = "b", .prompt = 12, .most = 1 });
        turn_with(a, 4, 4);
        turn_with(a, 4, 4);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 14] decode a 4+4\n"
                         "[ 29] decode a 9; prefill b 0..2; take 1 drop 0\n"
                         "[ 42] decode a 10; prefill b 2..3\n");
        finish();
}

/* A ring of 45 bytes has space for four records; b needs one of them. */
static void each_row_of_a_draft_has_space_for_its_record(void **state)
{
        struct sim_request *a, *b;

        (void)state;
        world((struct sched_conf){ .depth = 2 });
        sim.channels[0].capacity = 45;
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 30 });
        sim_step(&sim);
        sim_collect(&sim);
        sim_draft(&sim, a, 6, 1);
        sim_step(&sim);
        assert_int_equal(sched_pending_bytes(sim.sched, 0), 40);
        sim_collect(&sim);
        assert_int_equal(sched_pending_bytes(sim.sched, 0), 0);
        b = ask((struct sim_ask){ .name = "b", .prompt = 4, .most = 2 });
        sim_draft(&sim, a, 6, 6);
        sim_step(&sim);
        assert_int_equal(sched_pending_bytes(sim.sched, 0), 40);
        sim_cancel(&sim, a);
        assert_int_equal(sched_pending_bytes(sim.sched, 0), 10);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[  0] decode a 4+3\n"
                         "[  0] decode a 6+2; prefill b 0..4*; take 1 drop 0\n");
        (void)b;
        finish();
}

/*
 * Two others of its channel have runs in turn, so one of them is always in flight.  b needs 40 of
 * 65 bytes: while it is stalled, they have no drafts.
 */
static void drafts_leave_the_ring_to_a_stalled_request(void **state)
{
        struct sim_request *a, *c;

        (void)state;
        world((struct sched_conf){ .depth = 2 });
        sim.channels[0].capacity = 65;
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 30 });
        sim_step(&sim);
        c = ask_drafted((struct sim_ask){ .name = "c", .prompt = 4, .most = 30 });
        sim_step(&sim);
        sim_collect(&sim);
        sim_draft(&sim, a, 3, 3);
        sim_step(&sim);
        ask((struct sim_ask){ .name = "b", .prompt = 1, .most = 3, .record_bytes = 40 });
        sim_collect(&sim);
        sim_draft(&sim, c, 3, 3);
        sim_step(&sim);
        sim_collect(&sim);
        sim_draft(&sim, a, 3, 3);
        sim_step(&sim);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[  0] prefill c 0..4*; take 1 drop 0\n"
                         "[  0] decode a 4+3\n"
                         "[  0] decode c 4; stalled 1\n"
                         "[  0] prefill b 0..1*; decode a 8; take 1 drop 0\n");
        finish();
}

/* A text is cached in three blocks, `a` has one, and so many are free. */
static struct sim_request *begin_in_a_pool(uint32_t free)
{
        struct sim_request *a;

        world((struct sched_conf){ .blocks = 4 + free, .rows = 40 });
        ask((struct sim_ask){ .name = "t", .prompt = 33, .most = 0 });
        turn();
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 14, .most = 18, .uid = 1 });
        turn();
        hide();
        return a;
}

static void a_draft_takes_free_blocks_and_evicts_none(void **state)
{
        (void)state;
        turn_with(begin_in_a_pool(0), 8, 8);
        sim_expect(&sim, "[ 20] decode a 14+1\n");
        finish();
        turn_with(begin_in_a_pool(1), 8, 8);
        sim_expect(&sim, "[ 20] decode a 14+8; take 1 drop 0\n");
        finish();
}

/* The blocks that a run has taken are there for the rows that follow. */
static void a_block_of_a_rejected_draft_is_used_later(void **state)
{
        struct sim_request *a;

        (void)state;
        a = begin_in_a_pool(1);
        turn_with(a, 8, 0);
        turn_with(a, 8, 1);
        turn_with(a, 8, 8);
        sim_expect(&sim, "[ 20] decode a 14+8; take 1 drop 0\n"
                         "[ 30] decode a 15+8\n"
                         "[ 40] decode a 17+8\n");
        finish();
}

static void a_draft_takes_no_block_that_was_not_promised(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){
                .learned = { true, true, true }, .preemptions_max = 3, .rows = 40 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 4, .most = 60 });
        turn();
        assert_int_equal(a->core.promised, 2);
        turn_with(a, 8, 8);
        turn_with(a, 8, 8);
        turn_with(a, 8, 8); /* up to the end of its second block */
        turn_with(a, 8, 8);
        sim_expect(&sim, "[  0] prefill a 0..4*; take 1 drop 0\n"
                         "[ 10] decode a 4+8\n"
                         "[ 20] decode a 13+8; take 1 drop 0\n"
                         "[ 30] decode a 22+8\n"
                         "[ 40] decode a 31\n");
        finish();
}

static void a_draft_takes_no_window_page(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .rows = 40, .prefix.window = 16, .prefix.window_pages = 64 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 12, .most = 20 });
        turn();
        turn_with(a, 8, 2);
        turn_with(a, 8, 8);
        turn_with(a, 8, 8);
        turn_with(a, 8, 8);
        sim_expect(&sim, "[  0] prefill a 0..12*; take 1 drop 0\n"
                         "[ 10] decode a 12+3\n"
                         "[ 20] decode a 15\n"
                         "[ 30] decode a 16; take 1 drop 0\n"
                         "[ 40] decode a 17+8\n");
        finish();
}

/* Asks for a text that begins with so many tokens of `a`, and goes on with its last draft. */
static void ask_guessed(const char *name, const struct sim_request *a, bool made)
{
        uint32_t tokens[64], count = a->guess_at;

        memcpy(tokens, a->truth, sizeof(tokens));
        if (!made)
                memcpy(tokens + count, a->guess, a->last_guess_count * sizeof(*tokens));
        ask((struct sim_ask){ .name = name,
                              .prompt = count + a->last_guess_count + 1,
                              .most = 1,
                              .tokens = tokens,
                              .token_count = count + a->last_guess_count });
}

/*
 * Of the runs of `a`, one token of five is right.  f and h go on from the tokens that were guessed,
 * and g from those that were made.  The draft of the second run is in two blocks, and `a` ends.
 */
static void only_accepted_tokens_are_found(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .rows = 40 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 8, .most = 20 });
        turn();
        turn_with(a, 5, 1);
        ask_guessed("f", a, false);
        ask_guessed("g", a, true);
        turn();
        turn_with(a, 8, 1);
        sim_cancel(&sim, a);
        ask_guessed("h", a, false);
        turn();
        sim_expect(&sim, "[  0] prefill a 0..8*; take 1 drop 0\n"
                         "[ 10] decode a 8+5\n"
                         "[ 20] decode a 10; prefill f 10..15*; prefill g 10..15*; take 2 drop 0; "
                         "share 0 copy 2\n"
                         "[ 30] decode a 11+8; end f length; end g length; retire f; retire g; "
                         "take 1 drop 2\n"
                         "[ 40] prefill h 13..21*; end a cancelled; retire a; take 2 drop 2; "
                         "share 0 copy 1\n");
        finish();
}

/* The run is in flight, and would fill its first block. */
static void nothing_of_a_draft_is_found_before_it_is_accepted(void **state)
{
        struct sim_request *a;

        (void)state;
        world((struct sched_conf){ .rows = 40, .depth = 2 });
        a = ask_drafted((struct sim_ask){ .name = "a", .prompt = 12, .most = 20 });
        sim_step(&sim);
        sim_collect(&sim);
        sim_draft(&sim, a, 8, 1);
        sim_step(&sim);
        ask_guessed("f", a, false);
        sim_step(&sim);
        sim_expect(&sim, "[  0] prefill a 0..12*; take 1 drop 0\n"
                         "[  0] decode a 12+8; take 1 drop 0\n"
                         "[  0] prefill f 13..22*; take 2 drop 0; share 0 copy 1\n");
        sim_collect(&sim);
        finish();
}

/* Both users have the same rows besides those of the draft, farther on for b. */
static void each_row_of_a_draft_is_charged(void **state)
{
        struct sim_request *a, *b;

        (void)state;
        world((struct sched_conf){ .rows = 40 });
        a = ask_drafted((struct sim_ask){ .name = "a", .uid = 1, .prompt = 4, .most = 30 });
        b = ask((struct sim_ask){ .name = "b", .uid = 2, .prompt = 4, .most = 30 });
        turn();
        assert_int_equal(audit_served(&sim, a), audit_served(&sim, b));
        turn_with(a, 8, 0);
        assert_true(audit_served(&sim, a) - 5 * SIM_MS > 5 * (audit_served(&sim, b) - 5 * SIM_MS));
        finish();
}

static uint32_t record(bool drafts, uint32_t tokens[8][64])
{
        struct sim_request *requests[8];
        uint32_t turns = 0;

        world((struct sched_conf){ .rows = 24,
                                   .blocks = 14,
                                   .depth = 2,
                                   .learned = { true, true, true },
                                   .preemptions_max = 3 });
        sim.row_ns = SIM_MS / 10;
        for (uint32_t i = 0; i < 8; i++) {
                char name[2] = { (char)('a' + i), 0 };

                requests[i] = sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                                  .uid = i % 3,
                                                                  .prompt = 3 + 2 * i,
                                                                  .most = 40,
                                                                  .shared = i % 2 ? 3 : 0,
                                                                  .end_at = i % 3 ? 0 : 21 + i,
                                                                  .verdict = SCHED_EOS,
                                                                  .alone = i == 5,
                                                                  .drafts = drafts,
                                                                  .guesses = drafts ? 8 : 0 });
        }
        while (sim_alive(&sim) || sim.flight_count) {
                for (uint32_t i = 0; i < 8; i++)
                        if (requests[i]->alive)
                                memcpy(tokens[i], requests[i]->core.sequence.tokens,
                                       requests[i]->core.sequence.token_count * sizeof(uint32_t));
                turn();
                turns++;
        }
        assert_true(!drafts || (sim.confirmed && sim.rejected && sim.preempted));
        sim_close(&sim);
        return turns;
}

static void the_tokens_are_the_same_with_and_without_drafts(void **state)
{
        static uint32_t with[8][64], without[8][64];
        uint32_t turns;

        (void)state;
        turns = record(false, without);
        assert_true(record(true, with) < turns);
        assert_memory_equal(with, without, sizeof(with));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(drafts_have_no_more_rows_than_configured),
                cmocka_unit_test(drafts_have_the_rows_that_decodes_and_prompts_leave),
                cmocka_unit_test(drafts_take_no_time_from_prompts),
                cmocka_unit_test(each_row_of_a_draft_has_space_for_its_record),
                cmocka_unit_test(drafts_leave_the_ring_to_a_stalled_request),
                cmocka_unit_test(a_draft_takes_free_blocks_and_evicts_none),
                cmocka_unit_test(a_block_of_a_rejected_draft_is_used_later),
                cmocka_unit_test(a_draft_takes_no_block_that_was_not_promised),
                cmocka_unit_test(a_draft_takes_no_window_page),
                cmocka_unit_test(only_accepted_tokens_are_found),
                cmocka_unit_test(nothing_of_a_draft_is_found_before_it_is_accepted),
                cmocka_unit_test(each_row_of_a_draft_is_charged),
                cmocka_unit_test(the_tokens_are_the_same_with_and_without_drafts),
        };

        return cmocka_run_group_tests_name("sim-draft-limits", tests, NULL, NULL);
}
