#include "daemon/edge/pins.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/free-numbers.h"
#include "daemon/core/kvpool.h"
#include "base/error.h"
#include "base/sys.h"

struct pins {
        struct pins_conf conf;
        struct loop_timer *timer;
        struct list_head list; /* of the pins that are given out */
        struct free_numbers numbers;
        uint32_t memory[]; /* of `numbers` */
};

static void remove_late(void *arg);

int pins_new(const struct pins_conf *conf, struct pins **ret_pins)
{
        struct pins *pins = calloc(1, sizeof(*pins) + conf->max * sizeof(uint32_t));
        int r;

        if (!pins)
                return error_raise(-ENOMEM);
        pins->conf = *conf;
        list_init(&pins->list);
        free_numbers_init(&pins->numbers, pins->memory, 1, conf->max);
        r = loop_timer_new(conf->loop, remove_late, pins, &pins->timer);
        if (r) {
                free(pins);
                return error_pass(r);
        }
        *ret_pins = pins;
        return 0;
}

struct pins *pins_free(struct pins *pins)
{
        if (!pins)
                return NULL;
        assert(list_is_empty(&pins->list) && pins->numbers.count == pins->conf.max);
        loop_timer_free(pins->timer);
        free(pins);
        return NULL;
}

/* ---- time ---- */

/* There are few pins, so all are searched for the one that ends first. */
static void set_timer(struct pins *pins)
{
        uint64_t now_ns = sys_clock_ns(), next_ns = UINT64_MAX;

        list_each(at, &pins->list) {
                const struct pin *pin = LIST_ENTRY(at, struct pin, link);

                if (pin->until_ns < next_ns)
                        next_ns = pin->until_ns;
        }
        if (next_ns == UINT64_MAX)
                loop_timer_clear(pins->timer);
        else
                loop_timer_set(pins->timer, next_ns > now_ns ? next_ns - now_ns : 0);
}

static void remove_late(void *arg)
{
        struct pins *pins = arg;

        list_each_safe(at, &pins->list) {
                struct pin *pin = LIST_ENTRY(at, struct pin, link);

                if (pin->until_ns <= sys_clock_ns())
                        pins_remove(pins, pin);
        }
        set_timer(pins);
}

void pins_begin(struct pins *pins, struct pin *pin)
{
        assert(pin->number);
        if (!pin->ms)
                return;
        pin->until_ns = sys_clock_ns() + pin->ms * UINT64_C(1000000);
        set_timer(pins);
}

/* ---- to give out and take back ---- */

static int charge(struct pins *pins, struct pin *pin, uint64_t uid, uint32_t blocks, uint32_t id,
                  struct wire_problem *ret_problem)
{
        uint32_t before = pin->blocks;
        int r = 0;

        if (blocks > before)
                r = quota_ask(pins->conf.quota, uid, QUOTA_PINNED_BLOCKS, blocks - before, id,
                              ret_problem);
        else
                quota_uncharge(pins->conf.quota, uid, QUOTA_PINNED_BLOCKS, before - blocks);
        if (!r)
                pin->blocks = blocks;
        return error_pass(r);
}

int pins_take(struct pins *pins, struct pin *pin, uint64_t uid, uint32_t tokens, uint32_t ms,
              uint32_t id, struct wire_problem *ret_problem)
{
        int r;

        if (!pin->number) {
                r = quota_ask(pins->conf.quota, uid, QUOTA_PINS, 1, id, ret_problem);
                if (r)
                        return error_pass(r);
        }
        r = charge(pins, pin, uid, blocks_for(tokens), id, ret_problem);
        if (r && !pin->number)
                quota_uncharge(pins->conf.quota, uid, QUOTA_PINS, 1);
        if (r)
                return error_pass(r);
        pin->ms = ms;
        pin->until_ns = UINT64_MAX; /* the time begins when the history has been read */
        if (pin->number)
                return 0;
        pin->uid = uid;
        pin->number = free_numbers_take(&pins->numbers);
        list_push_front(&pins->list, &pin->link);
        return 0;
}

void pins_remove(struct pins *pins, struct pin *pin)
{
        if (!pin->number)
                return;
        list_remove(&pin->link);
        quota_uncharge(pins->conf.quota, pin->uid, QUOTA_PINNED_BLOCKS, pin->blocks);
        quota_uncharge(pins->conf.quota, pin->uid, QUOTA_PINS, 1);
        mailbox_post(pins->conf.to_engine,
                     &(struct mail){ .kind = MAIL_UNPIN, .number = pin->number });
        free_numbers_give_back(&pins->numbers, pin->number);
        *pin = (struct pin){ 0 };
}
