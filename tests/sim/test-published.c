/*
 * Scenarios of texts that users publish to each other, in simulated milliseconds;
 * test-stories.c says how to read them.  All users see texts that are public to everyone; users
 * 2 and 3 also see those of group 7.
 */
#include "tests/sim/sim.h"

static struct sim sim;

static void world(struct sched_conf conf)
{
        conf.rows = 64;
        sim_open_small(&sim, &conf);
}

/* Its first `shared` tokens are those of the one text that all know. */
static struct sim_request *ask(const char *name, uint64_t uid, uint32_t shared, uint32_t prompt,
                               uint32_t most)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = uid,
                                                   .shared = shared,
                                                   .prompt = prompt,
                                                   .most = most,
                                                   .sees_public = true,
                                                   .group = uid > 1 ? 7 : 0 });
}

static struct sim_request *publish(const char *name, uint32_t count, uint32_t pin, uint64_t domain)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = 1,
                                                   .shared = count,
                                                   .prompt = count,
                                                   .pin = pin,
                                                   .publish = domain });
}

/*
 * Whole blocks are shared, the part of a block is copied, and the text that follows is not
 * shared.
 */
static void another_user_finds_a_published_text(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        publish("p", 40, 1, PREFIX_EVERYONE);
        sim_run(&sim, 20);
        ask("b", 2, 60, 60, 1);
        sim_run(&sim, 40);
        ask("c", 3, 60, 60, 1);
        sim_run(&sim, 60);
        ask("d", 2, 60, 60, 1);
        sim_run(&sim, 80);
        sim_expect(&sim, "[  0] prefill p 0..40*; take 3 drop 0\n"
                         "[ 10] end p length; retire p; take 0 drop 3\n"
                         "[ 20] prefill b 40..60*; take 2 drop 0; share 2 copy 1\n"
                         "[ 30] end b length; retire b; take 0 drop 4\n"
                         "[ 40] prefill c 40..60*; take 2 drop 0; share 2 copy 1\n"
                         "[ 50] end c length; retire c; take 0 drop 4\n"
                         "[ 60] prefill d 59..60*; take 1 drop 0; share 3 copy 1\n"
                         "[ 70] end d length; retire d; take 0 drop 4\n");
        sim_close(&sim);
}

/*
 * A user that has the text already computes it again to publish it: its private blocks are not
 * shown.
 */
static void a_publisher_does_not_reuse_its_own_private_blocks(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        ask("a", 1, 40, 40, 1);
        sim_run(&sim, 20);
        publish("p", 40, 1, PREFIX_EVERYONE);
        sim_run(&sim, 40);
        ask("b", 1, 40, 40, 1);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill a 0..40*; take 3 drop 0\n"
                         "[ 10] end a length; retire a; take 0 drop 3\n"
                         "[ 20] prefill p 0..40*; take 3 drop 0\n"
                         "[ 30] end p length; retire p; take 0 drop 3\n"
                         "[ 40] prefill b 39..40*; take 1 drop 0; share 2 copy 1\n"
                         "[ 50] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

static void a_text_published_to_a_group_is_hidden_from_others(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        publish("p", 32, 1, PREFIX_GROUP(7));
        sim_run(&sim, 20);
        ask("b", 2, 32, 48, 1);
        sim_run(&sim, 40);
        ask("c", 1, 32, 48, 1);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill p 0..32*; take 2 drop 0\n"
                         "[ 10] end p length; retire p; take 0 drop 2\n"
                         "[ 20] prefill b 32..48*; take 1 drop 0; share 2 copy 0\n"
                         "[ 30] end b length; retire b; take 0 drop 3\n"
                         "[ 40] prefill c 0..48*; take 3 drop 0\n"
                         "[ 50] end c length; retire c; take 0 drop 3\n");
        sim_close(&sim);
}

/* b goes on with the blocks that it found; later requests find nothing. */
static void a_revoked_text_is_no_longer_found(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        publish("p", 32, 1, PREFIX_EVERYONE);
        sim_run(&sim, 20);
        ask("b", 2, 32, 40, 3);
        sim_run(&sim, 30);
        sim_unpin(&sim, 1);
        ask("c", 3, 32, 40, 1);
        sim_run(&sim, 70);
        sim_expect(&sim, "[  0] prefill p 0..32*; take 2 drop 0\n"
                         "[ 10] end p length; retire p; take 0 drop 2\n"
                         "[ 20] prefill b 32..40*; take 1 drop 0; share 2 copy 0\n"
                         "[ 30] decode b 40; prefill c 0..40*; take 3 drop 0\n"
                         "[ 40] decode b 41; end c length; retire c; take 0 drop 3\n"
                         "[ 50] end b length; retire b; take 0 drop 3\n");
        sim_close(&sim);
}

/* Until it is known that all of it is numbers, b reads for himself. */
static void a_text_is_hidden_until_its_publisher_finished_prefill(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        publish("p", 64 + 32, 1, PREFIX_EVERYONE);
        sim_run(&sim, 10);
        ask("b", 2, 64, 64, 1);
        sim_run(&sim, 40);
        ask("c", 3, 64, 64, 1);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill p 0..64; take 4 drop 0\n"
                         "[ 10] prefill p 64..96*; prefill b 0..32; take 4 drop 0\n"
                         "[ 20] prefill b 32..64*; end p length; retire p; take 2 drop 6\n"
                         "[ 30] end b length; retire b; take 0 drop 4\n"
                         "[ 40] prefill c 63..64*; take 0 drop 0; share 4 copy 0\n"
                         "[ 50] end c length; retire c; take 0 drop 4\n");
        sim_close(&sim);
}

/* The next request that publishes the same text would have found it. */
static void a_cancelled_publish_publishes_nothing(void **state)
{
        struct sim_request *p;

        (void)state;
        world((struct sched_conf){ 0 });
        p = publish("p", 64 + 32, 1, PREFIX_EVERYONE);
        sim_step(&sim);
        sim_cancel(&sim, p);
        sim_run(&sim, 20);
        publish("q", 64, 2, PREFIX_EVERYONE);
        sim_run(&sim, 40);
        sim_expect(&sim, "[  0] prefill p 0..64; take 4 drop 0\n"
                         "[  0] end p cancelled\n"
                         "[ 10] retire p; take 0 drop 4\n"
                         "[ 20] prefill q 0..64*; take 4 drop 0\n"
                         "[ 30] end q length; retire q; take 0 drop 4\n");
        sim_close(&sim);
}

/* They read it once: the second waits until the first has read on, and finds that. */
static void two_publishers_of_one_text_prefill_it_once(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        publish("p", 96, 1, PREFIX_EVERYONE);
        publish("q", 96, 2, PREFIX_EVERYONE);
        sim_run(&sim, 10);
        sim_run(&sim, 40);
        sim_expect(&sim, "[  0] prefill p 0..64; take 4 drop 0\n"
                         "[ 10] prefill p 64..96*; take 2 drop 0\n"
                         "[ 20] prefill q 95..96*; end p length; retire p; take 0 drop 6; "
                         "share 6 copy 0\n"
                         "[ 30] end q length; retire q; take 0 drop 6\n");
        sim_close(&sim);
}

/* The second goes on behind the first, and keeps all of it when the first revokes. */
static void a_text_that_extends_another_stays_when_the_other_is_revoked(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        publish("p", 32, 1, PREFIX_EVERYONE);
        sim_run(&sim, 20);
        publish("q", 48, 2, PREFIX_EVERYONE);
        sim_run(&sim, 40);
        sim_unpin(&sim, 1);
        ask("b", 2, 48, 48, 1);
        sim_run(&sim, 60);
        sim_unpin(&sim, 2);
        ask("c", 3, 48, 48, 1);
        sim_run(&sim, 80);
        sim_expect(&sim, "[  0] prefill p 0..32*; take 2 drop 0\n"
                         "[ 10] end p length; retire p; take 0 drop 2\n"
                         "[ 20] prefill q 32..48*; take 1 drop 0; share 2 copy 0\n"
                         "[ 30] end q length; retire q; take 0 drop 3\n"
                         "[ 40] prefill b 47..48*; take 0 drop 0; share 3 copy 0\n"
                         "[ 50] end b length; retire b; take 0 drop 3\n"
                         "[ 60] prefill c 0..48*; take 3 drop 0\n"
                         "[ 70] end c length; retire c; take 0 drop 3\n");
        sim_close(&sim);
}

/* The rows that b computes behind it are not finite; the public text is unharmed and stays. */
static void a_failure_behind_a_public_text_invalidates_only_private_blocks(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        publish("p", 32, 1, PREFIX_EVERYONE);
        sim_run(&sim, 20);
        sim_submit(&sim, &(struct sim_ask){ .name = "b",
                                            .uid = 2,
                                            .shared = 48,
                                            .prompt = 48,
                                            .most = 1,
                                            .sees_public = true,
                                            .end_at = 1,
                                            .verdict = SCHED_NUMERIC });
        sim_run(&sim, 40);
        ask("c", 2, 48, 48, 1);
        sim_run(&sim, 60);
        sim_expect(&sim, "[  0] prefill p 0..32*; take 2 drop 0\n"
                         "[ 10] end p length; retire p; take 0 drop 2\n"
                         "[ 20] prefill b 32..48*; take 1 drop 0; share 2 copy 0\n"
                         "[ 30] end b numeric; retire b; take 0 drop 3\n"
                         "[ 40] prefill c 32..48*; take 1 drop 0; share 2 copy 0\n"
                         "[ 50] end c length; retire c; take 0 drop 3\n");
        sim_close(&sim);
}

static struct sim_request *fail_to_publish(const char *name, uint32_t count, uint32_t pin)
{
        return sim_submit(&sim, &(struct sim_ask){ .name = name,
                                                   .uid = 1,
                                                   .shared = count,
                                                   .prompt = count,
                                                   .pin = pin,
                                                   .publish = PREFIX_EVERYONE,
                                                   .end_at = 1,
                                                   .verdict = SCHED_NUMERIC });
}

/*
 * q reads on from p's blocks to its end, so p's part was finite.  The part that only p has read
 * is found neither by c nor by the next publisher.  The part that the next publisher reads is
 * found by d.
 */
static void a_second_publisher_shows_the_part_that_it_verified(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        fail_to_publish("p", 132, 1);
        sim_submit(&sim, &(struct sim_ask){ .name = "q",
                                            .uid = 1,
                                            .shared = 64,
                                            .prompt = 160,
                                            .pin = 2,
                                            .publish = PREFIX_EVERYONE });
        sim_run(&sim, 50);
        ask("c", 2, 96, 96, 1);
        sim_run(&sim, 70);
        publish("r", 96, 1, PREFIX_EVERYONE);
        sim_run(&sim, 90);
        ask("d", 3, 96, 96, 1);
        sim_run(&sim, 110);
        sim_expect(&sim,
                   "[  0] prefill p 0..64; take 4 drop 0\n"
                   "[ 10] prefill p 64..128; take 4 drop 0\n"
                   "[ 20] prefill p 128..132*; prefill q 64..124; take 5 drop 0; share 4 copy 0\n"
                   "[ 30] prefill q 124..160*; end p numeric; retire p; take 2 drop 5\n"
                   "[ 40] end q length; retire q; take 0 drop 10\n"
                   "[ 50] prefill c 64..96*; take 2 drop 0; share 4 copy 0\n"
                   "[ 60] end c length; retire c; take 0 drop 6\n"
                   "[ 70] prefill r 64..96*; take 2 drop 0; share 4 copy 0\n"
                   "[ 80] end r length; retire r; take 0 drop 6\n"
                   "[ 90] prefill d 95..96*; take 0 drop 0; share 6 copy 0\n"
                   "[100] end d length; retire d; take 0 drop 6\n");
        sim_close(&sim);
}

/*
 * q finds all that it reads, and its numbers are not finite; p, which computed the blocks, has
 * finite ones.
 */
static void a_failed_second_publisher_does_not_invalidate_the_first(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        publish("p", 200, 1, PREFIX_EVERYONE);
        fail_to_publish("q", 80, 2);
        sim_run(&sim, 60);
        ask("b", 2, 200, 200, 1);
        sim_run(&sim, 80);
        sim_expect(&sim,
                   "[  0] prefill p 0..64; take 4 drop 0\n"
                   "[ 10] prefill p 64..128; take 4 drop 0\n"
                   "[ 20] prefill q 79..80*; prefill p 128..191; take 4 drop 0; share 5 copy 0\n"
                   "[ 30] prefill p 191..200*; end q numeric; retire q; take 1 drop 0\n"
                   "[ 40] end p length; retire p; take 0 drop 13\n"
                   "[ 60] prefill b 199..200*; take 1 drop 0; share 12 copy 1\n"
                   "[ 70] end b length; retire b; take 0 drop 13\n");
        sim_close(&sim);
}

/* q has shown the beginning; b finds that, and nothing of what p alone has read behind it. */
static void a_text_shown_by_another_publisher_stays_when_its_author_fails(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        fail_to_publish("p", 160, 1);
        publish("q", 64, 2, PREFIX_EVERYONE);
        sim_run(&sim, 40);
        ask("b", 2, 96, 96, 1);
        sim_run(&sim, 60);
        sim_expect(&sim,
                   "[  0] prefill p 0..64; take 4 drop 0\n"
                   "[ 10] prefill q 63..64*; prefill p 64..127; take 4 drop 0; share 4 copy 0\n"
                   "[ 20] prefill p 127..160*; end q length; retire q; take 2 drop 0\n"
                   "[ 30] end p numeric; retire p; take 0 drop 10\n"
                   "[ 40] prefill b 64..96*; take 2 drop 0; share 4 copy 0\n"
                   "[ 50] end b length; retire b; take 0 drop 6\n");
        sim_close(&sim);
}

/*
 * When q has read to its end, the same text is there in blocks of r, which is still reading.
 * r's blocks were named first, and q has never looked into them.  Since r has no finite
 * numbers, b reads the text itself.  When q is asked again, it shows its own blocks.
 */
static void does_not_show_blocks_that_another_publisher_still_prefills(void **state)
{
        (void)state;
        world((struct sched_conf){ .depth = 2 });
        sim_submit(&sim, &(struct sim_ask){ .name = "r",
                                            .uid = 1,
                                            .priority = REQUEST_NORMAL,
                                            .shared = 200,
                                            .prompt = 200,
                                            .pin = 1,
                                            .publish = PREFIX_EVERYONE,
                                            .end_at = 1,
                                            .verdict = SCHED_NUMERIC });
        sim_step(&sim);
        publish("q", 96, 2, PREFIX_EVERYONE);
        sim_run(&sim, 60);
        ask("b", 2, 96, 96, 1);
        sim_run(&sim, 100);
        publish("q", 96, 2, PREFIX_EVERYONE);
        sim_run(&sim, 140);
        ask("c", 3, 96, 96, 1);
        sim_run(&sim, 160);
        sim_expect(&sim,
                   "[  0] prefill r 0..64; take 4 drop 0\n"
                   "[  0] prefill q 64..96*; prefill r 64..96; take 4 drop 0; share 4 copy 0\n"
                   "[ 10] prefill r 96..160; take 4 drop 0\n"
                   "[ 20] prefill r 160..200*; end q error; retire q; take 3 drop 2\n"
                   "[ 40] end r numeric; retire r; take 0 drop 13\n"
                   "[ 60] prefill b 0..64; take 4 drop 0\n"
                   "[ 60] prefill b 64..96*; take 2 drop 0\n"
                   "[ 80] end b length; retire b; take 0 drop 6\n"
                   "[100] prefill q 0..64; take 4 drop 0\n"
                   "[100] prefill q 64..96*; take 2 drop 0\n"
                   "[120] end q length; retire q; take 0 drop 6\n"
                   "[140] prefill c 95..96*; take 0 drop 0; share 6 copy 0\n"
                   "[150] end c length; retire c; take 0 drop 6\n");
        sim_close(&sim);
}

/*
 * The text is a part of q's last block.  r, which came later, continues behind it, and has
 * named its block last.
 */
static void does_not_show_a_partial_block_that_another_extends(void **state)
{
        (void)state;
        world((struct sched_conf){ .depth = 2 });
        publish("q", 76, 2, PREFIX_EVERYONE);
        sim_step(&sim);
        fail_to_publish("r", 200, 1);
        sim_run(&sim, 60);
        ask("b", 2, 76, 76, 1);
        sim_run(&sim, 100);
        sim_expect(&sim,
                   "[  0] prefill q 0..64; take 4 drop 0\n"
                   "[  0] prefill q 64..76*; prefill r 64..116; take 5 drop 0; share 4 copy 0\n"
                   "[ 10] prefill r 116..180; take 4 drop 0\n"
                   "[ 20] prefill r 180..200*; end q error; retire q; take 1 drop 1\n"
                   "[ 40] end r numeric; retire r; take 0 drop 13\n"
                   "[ 60] prefill b 0..64; take 4 drop 0\n"
                   "[ 60] prefill b 64..76*; take 1 drop 0\n"
                   "[ 80] end b length; retire b; take 0 drop 5\n");
        sim_close(&sim);
}

/*
 * r has read it before q, and is cancelled in its last step, so it is never known whether its
 * numbers were finite.
 */
static void does_not_show_blocks_of_a_publisher_that_is_cancelled(void **state)
{
        struct sim_request *r;

        (void)state;
        world((struct sched_conf){ 0 });
        sim_submit(&sim, &(struct sim_ask){ .name = "q",
                                            .uid = 1,
                                            .priority = REQUEST_NORMAL,
                                            .shared = 96,
                                            .prompt = 96,
                                            .pin = 2,
                                            .publish = PREFIX_EVERYONE });
        sim_run(&sim, 10);
        r = publish("r", 160, 1, PREFIX_EVERYONE);
        sim_run(&sim, 20);
        sim_step(&sim);
        sim_cancel(&sim, r);
        sim_collect(&sim);
        sim_run(&sim, 60);
        ask("b", 2, 96, 96, 1);
        sim_run(&sim, 90);
        sim_expect(&sim, "[  0] prefill q 0..64; take 4 drop 0\n"
                         "[ 10] prefill r 64..128; take 4 drop 0; share 4 copy 0\n"
                         "[ 20] prefill r 128..160*; prefill q 64..96*; take 4 drop 0\n"
                         "[ 20] end r cancelled; end q error; retire r; retire q; take 0 drop 12\n"
                         "[ 60] prefill b 0..64; take 4 drop 0\n"
                         "[ 70] prefill b 64..96*; take 2 drop 0\n"
                         "[ 80] end b length; retire b; take 0 drop 6\n");
        sim_close(&sim);
}

/*
 * p has failed, and q is not at its end.  r, which publishes there itself, begins from nothing.
 * Then q shows the text, and r continues with q's first block.
 */
static void a_later_publisher_finds_nothing_before_the_prefill_ends(void **state)
{
        (void)state;
        world((struct sched_conf){ 0 });
        fail_to_publish("p", 96, 1);
        sim_submit(&sim, &(struct sim_ask){ .name = "q",
                                            .uid = 1,
                                            .shared = 64,
                                            .prompt = 200,
                                            .pin = 2,
                                            .publish = PREFIX_EVERYONE });
        sim_run(&sim, 20);
        publish("r", 32, 1, PREFIX_EVERYONE);
        sim_run(&sim, 60);
        sim_expect(
                &sim,
                "[  0] prefill p 0..64; take 4 drop 0\n"
                "[ 10] prefill p 64..96*; prefill q 64..96; take 4 drop 0; share 4 copy 0\n"
                "[ 20] prefill q 96..160; end p numeric; retire p; take 4 drop 2\n"
                "[ 30] prefill q 160..200*; prefill r 0..24; take 5 drop 0\n"
                "[ 40] prefill r 24..32*; end q length; retire q; take 0 drop 13; share 1 copy 0\n"
                "[ 50] end r length; retire r; take 0 drop 2\n");
        sim_close(&sim);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(another_user_finds_a_published_text),
                cmocka_unit_test(a_publisher_does_not_reuse_its_own_private_blocks),
                cmocka_unit_test(a_text_published_to_a_group_is_hidden_from_others),
                cmocka_unit_test(a_revoked_text_is_no_longer_found),
                cmocka_unit_test(a_text_is_hidden_until_its_publisher_finished_prefill),
                cmocka_unit_test(two_publishers_of_one_text_prefill_it_once),
                cmocka_unit_test(a_cancelled_publish_publishes_nothing),
                cmocka_unit_test(a_text_that_extends_another_stays_when_the_other_is_revoked),
                cmocka_unit_test(a_failure_behind_a_public_text_invalidates_only_private_blocks),
                cmocka_unit_test(a_second_publisher_shows_the_part_that_it_verified),
                cmocka_unit_test(a_failed_second_publisher_does_not_invalidate_the_first),
                cmocka_unit_test(a_text_shown_by_another_publisher_stays_when_its_author_fails),
                cmocka_unit_test(a_later_publisher_finds_nothing_before_the_prefill_ends),
                cmocka_unit_test(does_not_show_blocks_that_another_publisher_still_prefills),
                cmocka_unit_test(does_not_show_a_partial_block_that_another_extends),
                cmocka_unit_test(does_not_show_blocks_of_a_publisher_that_is_cancelled),
        };

        return cmocka_run_group_tests_name("sim-publics", tests, NULL, NULL);
}
