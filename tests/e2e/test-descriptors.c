/*
 * The waker rings a bell by the number of its descriptor.  Clients with bells die at any moment,
 * and their numbers are given to other clients.  No client may hear a bell that belongs to another.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/e2e/honest.h"
#include "tests/e2e/raw-ring.h"

#define RINGERS 5
#define QUIET   12

/* A client connects, asks for bells, and leaves in the middle of it. */
static void ring_for_a_while(const struct house *house)
{
        const struct want want = {
                .prompt = "R", .as_ids = true, .max_tokens = 500, .ignore_eos = true
        };
        struct raw_ring *ring = raw_open(house, "kick", RAW_RING_BYTES);
        uint64_t end = now_ms() + random_below(100);

        for (uint32_t i = 0; i < 3; i++)
                talk_generate(ring->talk, &want);
        while (now_ms() < end) {
                __atomic_store_n(&ring->own->wake_position, ring->head, __ATOMIC_SEQ_CST);
                talk_turn(ring->talk, 1);
                raw_read(ring, UINT32_MAX);
        }
        raw_close(ring);
}

/* Runs in a child.  Descriptors of other clients that we hold would keep those connected after they
 * have gone. */
static void ring_and_go(const struct house *house)
{
        assert_int_equal(close_range(3, ~0u, 0), 0);
        for (;;)
                ring_for_a_while(house);
}

static pid_t start_ringer(const struct house *house)
{
        pid_t pid;

        random_below(2); /* so that children differ */
        pid = child();
        if (!pid)
                ring_and_go(house);
        return pid;
}

/* Some clients greet and are silent, some send nothing at all, some ask: each gets only its own
 * records. */
static struct talk *come(const struct house *house, uint32_t kind)
{
        const struct want want = { .prompt = "Quiet", .max_tokens = 20, .ignore_eos = true };
        struct talk *talk = kind == 0 ? talk_open(house) : talk_greet(house);

        if (kind == 1)
                talk_generate(talk, &want);
        return talk;
}

static void hear(struct talk *talk)
{
        while (talk_turn(talk, 0))
                ;
        assert_int_equal(talk->doorbells, 0);
        assert_int_equal(talk->in_count, 0); /* nor a part of a reply */
        assert_false(talk->hung_up);
        assert_in_range(talk->reply_count, 0, 2);
}

static void nobody_hears_a_bell_that_is_not_his(void **state)
{
        uint32_t times = scaled(400, 20000), kills = 0;
        struct house *house = *state;
        struct talk *quiet[QUIET] = { 0 };
        uint32_t kinds[QUIET];
        pid_t ringers[RINGERS];
        struct honest honest;

        HOUSE(house, FAST, "--depth", "2", "--uid-requests", "1000", "--hello-ms", "3600000");
        honest = honest_begin(house);
        for (size_t i = 0; i < RINGERS; i++)
                ringers[i] = start_ringer(house);
        for (uint32_t i = 0; i < times; i++) {
                uint32_t at = random_below(QUIET);

                if (random_below(8) == 0) {
                        pid_t *pid = &ringers[random_below(RINGERS)];

                        child_kill(*pid);
                        *pid = start_ringer(house);
                        kills++;
                }
                if (quiet[at]) {
                        hear(quiet[at]);
                        if (kinds[at] == 0)
                                assert_int_equal(quiet[at]->reply_count, 0);
                        talk_close(quiet[at]);
                }
                kinds[at] = random_below(3);
                quiet[at] = come(house, kinds[at]);
                for (size_t k = 0; k < QUIET; k++)
                        if (quiet[k])
                                hear(quiet[k]);
                honest_look_for(&honest, random_below(15));
                assert_int_equal(honest.talk->doorbells, 0);
        }
        for (size_t i = 0; i < RINGERS; i++)
                child_kill(ringers[i]);
        for (size_t i = 0; i < QUIET; i++) {
                if (quiet[i])
                        hear(quiet[i]);
                talk_close(quiet[i]);
        }
        printf("# %u connections, %u ringers killed, %u bells rung, %u numbers of descriptors\n",
               (unsigned)house_status(house, "connections.seen"), kills,
               (unsigned)house_status(house, "doorbells"),
               (unsigned)house_status(house, "descriptors"));
        honest_end(&honest);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(nobody_hears_a_bell_that_is_not_his),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
