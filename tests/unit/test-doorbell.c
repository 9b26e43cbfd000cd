/* Doorbell: a reader that sleeps is woken when it asked to be, and not much earlier. */
#include "tests/unit/doorbell-rig.h"

static void fall_asleep(struct memory *m, uint64_t bytes)
{
        read_all(m);
        assert_true(doorbell_may_sleep(&m->reader, bytes));
}

static void wakes_a_sleeper_once_at_the_next_record(void **state)
{
        struct memory m;

        (void)state;
        open_ring(&m);
        for (uint32_t i = 0; i < 5; i++) {
                fall_asleep(&m, 0);
                assert_false(is_due(&m)); /* there is no news */
                assert_true(say(&m, SMV_RECORD_TOKENS));
                assert_false(is_due(&m));
                assert_false(say(&m, SMV_RECORD_TOKENS)); /* it was rung, and sleeps on or not */
        }
        close_ring(&m);
}

static void rings_once_for_all_records_of_one_publish(void **state)
{
        struct memory m;

        (void)state;
        open_ring(&m);
        fall_asleep(&m, 0);
        for (uint32_t i = 0; i < 100; i++)
                assert_true(put(&m, SMV_RECORD_TOKENS));
        assert_false(is_due(&m)); /* not visible yet */
        ring_publish(&m.writer);
        assert_true(is_due(&m));
        assert_false(is_due(&m));
        close_ring(&m);
}

static void does_not_ring_for_a_reader_that_is_awake(void **state)
{
        struct memory m;

        (void)state;
        open_ring(&m);
        fall_asleep(&m, 0);
        doorbell_awake(&m.reader);
        assert_true(m.control->wake_position == SMV_WAKE_NEVER);
        while (RING - (m.writer.tail - m.writer.head) > 2 * RECORD)
                assert_false(say(&m, m.number % 5 ? SMV_RECORD_TOKENS : SMV_RECORD_END));
        close_ring(&m);
}

static void does_not_ring_before_the_wake_level_is_passed(void **state)
{
        struct memory m;

        (void)state;
        open_ring(&m);
        for (uint32_t wish = 4 * RECORD; wish <= 5 * RECORD; wish++) {
                uint32_t records = 0;

                fall_asleep(&m, wish);
                do
                        records++;
                while (!say(&m, SMV_RECORD_TOKENS));
                assert_int_equal(records, wish / RECORD + 1); /* the first to go past it */
        }
        close_ring(&m);
}

static void rings_for_an_END_below_the_wake_level(void **state)
{
        struct memory m;

        (void)state;
        open_ring(&m);
        for (uint32_t i = 0; i < 4; i++) {
                fall_asleep(&m, RING); /* END is behind it: that one does not count */
                assert_false(is_due(&m));
                assert_false(say(&m, SMV_RECORD_TOKENS));
                assert_true(put(&m, SMV_RECORD_END));
                assert_true(say(&m, SMV_RECORD_TOKENS));
                assert_false(say(&m, SMV_RECORD_TOKENS));
        }
        close_ring(&m);
}

static void rings_when_a_quarter_of_the_ring_is_unread(void **state)
{
        struct memory m;
        uint64_t room;

        (void)state;
        open_ring(&m);
        for (uint32_t round = 0; round < 20; round++) {
                fall_asleep(&m, RING);
                assert_int_equal(ring_free_bytes(&m.writer, RECORD, &room), 0);
                do
                        assert_true(m.writer.tail - m.reader.head <= RING / 4 + RECORD);
                while (!say(&m, SMV_RECORD_TOKENS));
                assert_true(m.writer.tail - m.reader.head > RING / 4);
                assert_true(say(&m, SMV_RECORD_TOKENS)); /* and not while it goes on */
        }
        close_ring(&m);
}

static void refuses_sleep_while_a_record_is_unread(void **state)
{
        const struct smv_record *record;
        struct memory m;
        const uint32_t *word;
        uint32_t value;

        (void)state;
        open_ring(&m);
        fall_asleep(&m, 0);
        word = doorbell_word(&m.reader, &value);
        assert_int_equal(*word, value);
        assert_ptr_equal(word, &m.writer.page->tail);
        say(&m, SMV_RECORD_TOKENS);
        assert_int_not_equal(*word, value); /* a futex would not begin to wait */
        assert_false(doorbell_may_sleep(&m.reader, 0));
        assert_false(doorbell_may_sleep(&m.reader, 1 << 20)); /* were it less than wished for */
        read_all(&m);
        assert_true(doorbell_may_sleep(&m.reader, 1 << 20));
        assert_true(m.control->wake_position == m.reader.head + (1 << 20));
        say(&m, SMV_RECORD_TOKENS);
        say(&m, SMV_RECORD_TOKENS);
        doorbell_awake(&m.reader);
        assert_int_equal(ring_next(&m.reader, &record), 0); /* one of two */
        ring_release(&m.reader);
        assert_false(doorbell_may_sleep(&m.reader, 0));
        close_ring(&m);
}

/*
 * The waker may load a tail and then, after the next step, an end and a wake level that are newer.
 * In any case this must hold once it has looked at the newest values: a reader whose wish was
 * passed, or that has an END before it, was rung since it went to sleep.
 */
static void a_torn_read_of_the_tail_loses_no_wakeup(void **state)
{
        uint64_t random = 3, wish = 0;
        bool asleep = false, rung = false;
        uint32_t sleeps = 0, torn = 0;
        struct doorbell_news older;
        struct memory m;

        (void)state;
        open_ring(&m);
        older = news_of(&m);
        for (uint32_t round = 0; round < 400000; round++) {
                uint32_t what = next_random(&random) % 8;
                uint64_t room;

                if (what < 4) {
                        put(&m, next_random(&random) % 30 ? SMV_RECORD_TOKENS : SMV_RECORD_END);
                        ring_publish(&m.writer);
                } else if (what == 4) {
                        struct doorbell_news news = news_of(&m);

                        torn += news.end > older.tail;
                        news.tail = older.tail;
                        rung |= doorbell_is_due(&m.bell, &news);
                } else {
                        rung |= is_due(&m);
                        older = news_of(&m);
                        if (asleep && !rung) {
                                assert_true(m.writer.published <= wish);
                                assert_true(m.end <= m.reader.head);
                        }
                        if (rung || !asleep) {
                                doorbell_awake(&m.reader);
                                read_all(&m);
                                assert_int_equal(ring_free_bytes(&m.writer, RECORD, &room), 0);
                                asleep = doorbell_may_sleep(&m.reader, next_random(&random) % 1000);
                                assert_true(asleep);
                                wish = m.control->wake_position;
                                rung = false;
                                sleeps++;
                        }
                }
        }
        assert_true(sleeps > 10000 && torn > 500);
        close_ring(&m);
}

/* A twin is written with the same, and has an honest reader; nothing else may differ. */
static void a_hostile_reader_can_only_change_its_own_wakeups(void **state)
{
        uint64_t random = 11, room;
        uint32_t rings = 0, lies = 0;
        struct memory m, twin;

        (void)state;
        open_ring(&m);
        open_ring(&twin);
        for (uint32_t round = 0; round < 200000; round++) {
                uint64_t any = (uint64_t)next_random(&random) << 32 | next_random(&random);
                uint64_t wish = next_random(&random) % 2 ? any : m.writer.tail + any % 64;
                uint64_t seen;

                m.control->wake_position = wish;
                if (put(&twin, SMV_RECORD_TOKENS))
                        assert_true(put(&m, SMV_RECORD_TOKENS));
                ring_publish(&m.writer);
                ring_publish(&twin.writer);
                rings += is_due(&m);
                assert_true(m.bell.seen == m.writer.tail);
                assert_true(m.control->wake_position == wish);

                seen = m.writer.head;
                m.control->head = next_random(&random) % 2 ? any : m.writer.tail + 8 - any % 32;
                if (ring_free_bytes(&m.writer, RECORD, &room)) {
                        assert_true(m.writer.head == seen);
                        lies++;
                }
                assert_true(m.writer.head <= m.writer.published);
                m.control->head = m.writer.tail;
                assert_int_equal(ring_free_bytes(&m.writer, RECORD, &room), 0);
                read_all(&twin);
        }
        assert_true(rings <= 200000 && rings > 1000 && lies > 100000);
        assert_memory_equal(m.bytes, twin.bytes, ring_segment_bytes(RING));
        close_ring(&m);
        close_ring(&twin);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(wakes_a_sleeper_once_at_the_next_record),
                cmocka_unit_test(rings_once_for_all_records_of_one_publish),
                cmocka_unit_test(does_not_ring_for_a_reader_that_is_awake),
                cmocka_unit_test(does_not_ring_before_the_wake_level_is_passed),
                cmocka_unit_test(rings_for_an_END_below_the_wake_level),
                cmocka_unit_test(rings_when_a_quarter_of_the_ring_is_unread),
                cmocka_unit_test(refuses_sleep_while_a_record_is_unread),
                cmocka_unit_test(a_torn_read_of_the_tail_loses_no_wakeup),
                cmocka_unit_test(a_hostile_reader_can_only_change_its_own_wakeups),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
