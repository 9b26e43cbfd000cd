#include "bench/null-model.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/engine/model.h"
#include "base/sys.h"

#define SLOW_NS  900000000u
#define LOST_NS  10000000000u
#define SLOW_MAX 20u /* enough for a diagnosis */
#define FLIGHTS  2u

struct flight {
        uint64_t number;
        uint32_t count;
        uint32_t *tokens;
        uint64_t *positions;
};

struct model {
        struct null_conf conf;
        struct flight flights[FLIGHTS];
        uint64_t random, due_ns;
        uint64_t steps;
        bool pinned, gave_up, lost;
};

static uint64_t mix(uint64_t x)
{
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
}

/*
 * Mostly a few letters, so that stop strings often begin; now and then a long run of one
 * of them, so that much is held back and comes at once; any byte, and tokens without text.
 */
uint32_t null_token(uint64_t seed, uint64_t position)
{
        uint64_t key = seed * 0x9e3779b97f4a7c15u, draw = mix(key + position);

        if (mix(~key + position / 64) % 8 == 0)
                return 'a';
        if (draw % 64 < 48)
                return 'a' + (uint32_t)(draw >> 8) % 3;
        if (draw % 64 < 60)
                return (draw >> 8) & 0xff;
        return 256 + (uint32_t)(draw >> 8) % (NULL_VOCAB - 256);
}

int null_model_new(const struct null_conf *conf, struct model **ret_model)
{
        struct model *model = calloc(1, sizeof(*model));

        if (!model)
                return -ENOMEM;
        model->conf = *conf;
        model->random = 1;
        for (uint32_t i = 0; i < FLIGHTS; i++) {
                model->flights[i].tokens = calloc(conf->rows_max, sizeof(uint32_t));
                model->flights[i].positions = calloc(conf->rows_max, sizeof(uint64_t));
                if (!model->flights[i].tokens || !model->flights[i].positions) {
                        null_model_free(model);
                        return -ENOMEM;
                }
        }
        *ret_model = model;
        return 0;
}

struct model *null_model_free(struct model *model)
{
        for (uint32_t i = 0; model && i < FLIGHTS; i++) {
                free(model->flights[i].tokens);
                free(model->flights[i].positions);
        }
        free(model);
        return NULL;
}

void null_pin(int cpu)
{
        cpu_set_t set;

        if (cpu < 0 || cpu >= sysconf(_SC_NPROCESSORS_ONLN))
                return;
        CPU_ZERO(&set);
        CPU_SET((unsigned)cpu, &set);
        (void)sched_setaffinity(0, sizeof(set), &set);
}

void null_spin_until(uint64_t ns)
{
        while (sys_clock_ns() < ns)
#if defined(__x86_64__)
                __builtin_ia32_pause();
#else
                ;
#endif
}

static uint64_t draw(struct model *model)
{
        return mix(model->random += 0x9e3779b97f4a7c15u);
}

static void sleep_ns(uint64_t ns)
{
        const struct timespec time = { .tv_nsec = (long)ns };

        (void)nanosleep(&time, NULL);
}

/* Everything that was computed before this step has been shown by now. */
static void meet(struct model *model)
{
        struct null_facts *facts = model->conf.facts;
        uint64_t shown = counter_get(&model->conf.stats->tokens_out), from = sys_clock_ns(), took;

        do {
                if (model->conf.read(model->conf.read_arg) >= shown)
                        break;
                sleep_ns(20000);
        } while (sys_clock_ns() - from < LOST_NS);

        took = sys_clock_ns() - from;
        counter_add(&facts->meetings, 1);
        if (took > counter_get(&facts->slowest_ns))
                counter_set(&facts->slowest_ns, took);
        if (took >= LOST_NS) {
                counter_add(&facts->lost, 1);
                kill(getpid(), SIGUSR1); /* the pipeline prints the position of every ring ... */
                sleep_ns(200000000);     /* ... which is this */
        } else if (took > SLOW_NS) {
                counter_add(&facts->slow_meetings, 1);
        }
        model->gave_up =
                counter_get(&facts->lost) || counter_get(&facts->slow_meetings) == SLOW_MAX;
}

static void dawdle(struct model *model)
{
        const struct null_conf *conf = &model->conf;

        if (conf->cpu >= 0 && !model->pinned)
                null_pin(conf->cpu);
        model->pinned = true;
        if (counter_get(&conf->stats->stalled))
                counter_add(&conf->facts->stalled_steps, 1);
        if (conf->pause_every && draw(model) % conf->pause_every == 0)
                sleep_ns(draw(model) % conf->pause_ns);
        if (conf->meet_every && !model->gave_up && model->steps++ / 1024 % 2 == 0 &&
            draw(model) % conf->meet_every == 0)
                meet(model);
}

uint64_t model_to_load(const struct model *model)
{
        (void)model;
        return 0;
}

int model_load(struct model *model, const struct weights_conf *conf, enum load_way *ret_way,
               char *why, size_t why_bytes)
{
        (void)model;
        (void)why;
        (void)why_bytes;
        *ret_way = conf->way;
        return 0;
}

bool model_back_pool(struct model *model)
{
        (void)model;
        return false;
}

/* From that step on. */
static int lose(struct model *model, uint64_t step, bool late)
{
        const struct null_conf *conf = &model->conf;

        model->lost |= conf->lost_at && step >= conf->lost_at && late == conf->lost_late;
        return model->lost ? -EIO : 0;
}

int model_forward(struct model *model, const struct step *step)
{
        struct flight *flight = &model->flights[step->number % FLIGHTS];

        if (lose(model, step->number, false))
                return -EIO;
        dawdle(model);
        assert(step->want_count <= model->conf.rows_max);
        flight->number = step->number;
        flight->count = step->want_count;
        for (uint32_t i = 0; i < step->want_count; i++) {
                const struct pick *pick = &step->picks[i];

                flight->tokens[i] = null_token(pick->seed, pick->position);
                if (model->conf.letters)
                        flight->tokens[i] = 'a' + flight->tokens[i] % 26;
                flight->positions[i] = pick->position;
        }
        return 0;
}

static void wait_for_turn(struct model *model)
{
        uint64_t now = sys_clock_ns(), period = model->conf.period_ns;

        model->due_ns += period;
        if (model->due_ns + period < now)
                model->due_ns = now;
        null_spin_until(model->due_ns);
}

/* Without numbers there is nothing to be told. */
void model_logprobs(struct model *model, uint64_t number, uint32_t want,
                    struct logprob *ret_logprobs)
{
        (void)model, (void)number, (void)want, (void)ret_logprobs;
        abort();
}

const float *model_row(struct model *model, uint64_t number, uint32_t want)
{
        (void)model, (void)number, (void)want;
        return NULL;
}

const char *model_lost(const struct model *model)
{
        return model->lost ? "the null model was lost, as a test wished" : NULL;
}

int model_collect(struct model *model, uint64_t number, uint32_t *ret_tokens)
{
        const struct null_conf *conf = &model->conf;
        const struct flight *flight = &model->flights[number % FLIGHTS];
        uint64_t now;

        assert(flight->number == number);
        if (lose(model, number, true))
                return -EIO;
        if (conf->period_ns)
                wait_for_turn(model);
        memcpy(ret_tokens, flight->tokens, flight->count * sizeof(*ret_tokens));
        if (!conf->stamps)
                return 0;
        now = sys_clock_ns();
        for (uint32_t i = 0; i < flight->count; i++)
                counter_set(&conf->stamps[flight->positions[i] % conf->stamp_count], now);
        return 0;
}
