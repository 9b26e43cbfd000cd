/*
 * ROW and ASK records in a ring.  A ROW is the longest record: wherever the ring ends, it fits
 * where the free bytes say so.  An ASK wakes a reader that wants to sleep until much has come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/request.h"
#include "daemon/draw/asking.h"
#include "daemon/engine/publish.h"
#include "daemon/model/served.h"
#include "daemon/text/tokenizer.h"

#define RING ((uint64_t)SMV_RING_BYTES_MIN)
#define ROWS 20000u /* their ends stand at every offset of the ring */

struct rig {
        struct tokenizer *tokenizer;
        struct served served;
        struct publish *publish;
        struct channel *channel;
        struct mailbox *waker;
        struct asking *asking;
        struct request request;
};

static void open_bytes(struct rig *rig)
{
        static char bytes[256];
        struct entry entries[256];
        struct vocabulary vocabulary = { .kind = VOCABULARY_BYTE_LEVEL,
                                         .bos = VOCABULARY_NONE,
                                         .eos = VOCABULARY_NONE,
                                         .unknown = VOCABULARY_NONE,
                                         .entry_count = 256,
                                         .entries = entries };
        char why[256] = "";

        for (unsigned i = 0; i < 256; i++) {
                bytes[i] = (char)i;
                entries[i] = (struct entry){ .bytes = &bytes[i], .count = 1 };
        }
        if (tokenizer_open(&vocabulary, 256, &rig->tokenizer, why, sizeof(why)))
                fail_msg("%s", why);
}

static void open_rig(struct rig *rig)
{
        struct publish_conf conf = { .requests_max = 1, .channels = 1, .piece_max = 1 };

        *rig = (struct rig){ 0 };
        open_bytes(rig);
        rig->served.tokenizer = rig->tokenizer;
        assert_int_equal(mailbox_new(8, -1, &rig->waker), 0);
        conf.waker = rig->waker;
        assert_int_equal(publish_new(&conf, &rig->publish), 0);
        assert_int_equal(channel_new(0, RING, &rig->channel), 0);
        rig->asking = asking_new(SMV_ASK_TOKEN, 256);
        assert_non_null(rig->asking);
        rig->request = (struct request){ .model = &rig->served,
                                         .channel = rig->channel,
                                         .prompt_count = 1,
                                         .max_tokens = 1,
                                         .sampling.row_entries = 1 + SMV_ROW_TOP_MAX,
                                         .asking = rig->asking };
        publish_begin(rig->publish, &rig->request, false);
}

static void close_rig(struct rig *rig)
{
        publish_free(rig->publish);
        channel_free(rig->channel, false);
        mailbox_free(rig->waker);
        asking_free(rig->asking);
        tokenizer_close(rig->tokenizer);
}

/* The reader leaves as little free as a row needs. */
static void read_on(struct rig *rig, uint64_t need)
{
        struct ring_writer *writer = &rig->channel->writer;
        struct smv_ring_control *control = rig->channel->segment_c.at;
        uint64_t head = writer->published > RING ? writer->published - RING : 0, free_bytes = 0;

        head = head > control->head ? head : control->head;
        for (; free_bytes < need; head += 8) {
                control->head = head;
                assert_int_equal(publish_free_bytes(rig->channel, &free_bytes), 0);
        }
}

static void a_row_fits_wherever_the_ring_ends(void **state)
{
        static const struct logprob entries[1 + SMV_ROW_TOP_MAX];
        const uint64_t need = publish_row_bytes_max(1 + SMV_ROW_TOP_MAX);
        struct rig rig;

        (void)state;
        open_rig(&rig);
        for (uint32_t i = 0; i < ROWS; i++) {
                read_on(&rig, need);
                publish_row(rig.publish, &rig.request, entries, 0, i);
                publish_flush(rig.publish);
        }
        close_rig(&rig);
}

static void an_ask_wakes_a_reader_that_sleeps_until_much_has_come(void **state)
{
        static const struct logprob entries[1 + SMV_ROW_TOP_MAX];
        struct smv_ring_control *control;
        struct rig rig;

        (void)state;
        open_rig(&rig);
        control = rig.channel->segment_c.at;
        control->wake_position = RING / 8;
        publish_row(rig.publish, &rig.request, entries, 0, 1);
        publish_flush(rig.publish);
        assert_false(channel_is_due(rig.channel));
        publish_ask(rig.publish, &rig.request, 1);
        publish_flush(rig.publish);
        assert_true(channel_is_due(rig.channel));
        assert_false(channel_is_due(rig.channel));
        close_rig(&rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_row_fits_wherever_the_ring_ends),
                cmocka_unit_test(an_ask_wakes_a_reader_that_sleeps_until_much_has_come),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
