#include "bench/draft-streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/own-daemon.h"

#define SILENCE_MS     600000
#define WORD_BYTES_MAX 16u
#define WORDS_MIN      128u

static struct {
        uint32_t tokens[WORDS_MAX], count;
        char texts[WORDS_MAX][WORD_BYTES_MAX];
} words;

static uint64_t dice;
static bool counts_processor_time;

void draft_die(const char *what)
{
        fprintf(stderr, "bench-drafts: %s\n", what);
        own_daemon_stop();
        exit(1);
}

static void check(struct smv_client *client, int r)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        if (!r)
                return;
        smv_error(client, &problem);
        draft_die(problem.message ? problem.message : strerror(-r));
}

struct smv_client *draft_client(const char *program, const char *const *flags)
{
        struct smv_client *client;
        char why[256] = "";

        if (own_daemon_start(program, flags, &client, why, sizeof(why)))
                draft_die(why);
        return client;
}

void draft_count_processor_time(void)
{
        counts_processor_time = true;
}

static double now(void)
{
        clockid_t clock = CLOCK_MONOTONIC;
        struct timespec t;

        if (counts_processor_time && clock_getcpuclockid(own_daemon_pid(), &clock))
                draft_die("the daemon has no clock");
        clock_gettime(clock, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- dice ---- */

void dice_begin(uint64_t seed)
{
        dice = seed;
}

uint32_t dice_below(uint32_t n)
{
        uint64_t z = dice += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return (uint32_t)((z ^ z >> 31) % n);
}

double dice_uniform(void)
{
        return (dice_below(1u << 30) + 0.5) / (1u << 30);
}

/* ---- words ---- */

static bool is_word(const struct smv_piece *piece)
{
        if (piece->kind != SMV_PIECE_TEXT || piece->count < 2 || piece->count >= WORD_BYTES_MAX ||
            piece->bytes[0] != ' ')
                return false;
        for (uint32_t i = 1; i < piece->count; i++)
                if (piece->bytes[i] < 'a' || piece->bytes[i] > 'z')
                        return false;
        return true;
}

/* Whether their text becomes these tokens. */
static bool comes_back(struct smv_client *client, const char *text, const uint32_t *wanted,
                       size_t wanted_count)
{
        const uint32_t *tokens;
        size_t count;

        check(client, smv_tokenize(client, NULL, text, 0, &tokens, &count));
        return count == wanted_count && !memcmp(tokens, wanted, count * sizeof(*tokens));
}

static void add_words(struct smv_client *client, uint32_t from, uint32_t *ret_count, size_t *vocab)
{
        const struct smv_piece *pieces;
        size_t count;

        check(client, smv_vocabulary(client, NULL, from, 0, &pieces, &count, vocab));
        *ret_count = (uint32_t)count;
        for (size_t i = 0; i < count && words.count < WORDS_MAX; i++) {
                if (!is_word(&pieces[i]))
                        continue;
                memcpy(words.texts[words.count], pieces[i].bytes, pieces[i].count);
                words.texts[words.count][pieces[i].count] = '\0';
                words.tokens[words.count++] = from + (uint32_t)i;
        }
}

void words_find(struct smv_client *client)
{
        uint32_t found, kept = 0, count;
        size_t vocab = 1;

        for (uint32_t from = 0; from < vocab && words.count < WORDS_MAX; from += count)
                add_words(client, from, &count, &vocab);
        found = words.count;
        for (uint32_t i = 0; i < found; i++) {
                if (!comes_back(client, words.texts[i], &words.tokens[i], 1))
                        continue;
                memmove(words.texts[kept], words.texts[i], WORD_BYTES_MAX);
                words.tokens[kept++] = words.tokens[i];
        }
        words.count = kept;
        if (kept < WORDS_MIN)
                draft_die("the vocabulary has too few words");
}

const uint32_t *words_tokens(void)
{
        return words.tokens;
}

uint32_t words_count(void)
{
        return words.count;
}

static uint32_t word_of(uint32_t token)
{
        uint32_t i = 0;

        while (i < words.count && words.tokens[i] != token)
                i++;
        return i;
}

const char *words_text(struct smv_client *client, const struct answer *answer)
{
        static char text[ANSWER_MAX * WORD_BYTES_MAX];
        size_t at = 0;

        for (uint32_t i = 0; i < answer->count; i++) {
                uint32_t word = word_of(answer->tokens[i]);

                if (word == words.count)
                        draft_die("an answer has a token that is not allowed");
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%s", words.texts[word]);
        }
        if (!comes_back(client, text, answer->tokens, answer->count))
                draft_die("the text of an answer becomes other tokens");
        return text;
}

/* ---- predictions ---- */

static uint32_t another_word(uint32_t token)
{
        uint32_t other;

        do
                other = words.tokens[dice_below(words.count)];
        while (other == token);
        return other;
}

static void add(struct answer *answer, uint32_t token)
{
        if (answer->count < ANSWER_MAX)
                answer->tokens[answer->count++] = token;
}

void answer_spoil(const struct answer *answer, double wrong, struct answer *ret)
{
        ret->count = 0;
        for (uint32_t i = 0; i < answer->count; i++) {
                uint32_t token = answer->tokens[i];

                add(ret, dice_uniform() < wrong ? another_word(token) : token);
        }
}

void answer_edit(const struct answer *answer, struct answer *ret)
{
        enum { INSERT, REMOVE, REPLACE, KINDS };
        uint32_t next = 30, kind = INSERT;

        ret->count = 0;
        for (uint32_t i = 0; i < answer->count; i++) {
                uint32_t count = 1 + dice_below(5);

                if (i < next) {
                        add(ret, answer->tokens[i]);
                        continue;
                }
                for (uint32_t k = 0; k < count && kind != REMOVE; k++)
                        add(ret, another_word(answer->tokens[i]));
                if (kind == INSERT)
                        add(ret, answer->tokens[i]);
                else
                        i += count - 1;
                kind = (kind + 1) % KINDS;
                next = i + 30 + dice_below(21);
        }
}

/* ---- streams ---- */

struct group {
        uint32_t streams[COURSES_MAX], tokens[COURSES_MAX], count, waiting, running;
        double all_first, first_end, of_first[ANSWER_MAX + 1];
        uint32_t events, at[ANSWER_MAX + 1]; /* of the first stream: how many tokens it had then */
        struct course *course;
        struct answer *answer;
};

static uint32_t place_of(const struct group *group, uint32_t stream)
{
        uint32_t i = 0;

        while (i < group->count && group->streams[i] != stream)
                i++;
        if (i == group->count)
                draft_die("an event of an unknown stream");
        return i;
}

static void take_tokens(struct group *group, uint32_t place, const struct smv_event *event)
{
        double at = now();

        if (!event->token_count)
                return;
        if (!group->tokens[place] && !--group->waiting)
                group->all_first = at;
        group->tokens[place] += (uint32_t)event->token_count;
        group->course->tokens += (uint32_t)event->token_count;
        if (place)
                return;
        if (group->events <= ANSWER_MAX) {
                group->of_first[group->events] = at;
                group->at[group->events++] = group->tokens[0];
        }
        for (size_t i = 0; i < event->token_count && group->answer; i++)
                add(group->answer, event->tokens[i]);
}

static void take_end(struct group *group, uint32_t place, const struct smv_event *event)
{
        if (event->reason != SMV_END_LENGTH && event->reason != SMV_END_EOS)
                draft_die(smv_reason_name(event->reason));
        if (!group->tokens[place])
                draft_die("an answer without tokens");
        if (!group->first_end)
                group->first_end = now();
        group->course->drafted += event->drafted;
        group->course->right += event->drafts_right;
        group->course->draft_steps += event->draft_steps;
        group->course->may_draft = event->no_drafts == SMV_DRAFTS_POSSIBLE;
        group->running--;
}

/* Seconds for each token of the first stream, while all streams ran. */
static double step_of(const struct group *group)
{
        uint32_t first = 0, last = group->events - 1;

        while (first < last && group->of_first[first] < group->all_first)
                first++;
        while (last > first + 1 && group->of_first[last] > group->first_end)
                last--;
        return last == first ? 0
                             : (group->of_first[last] - group->of_first[first]) /
                                       (group->at[last] - group->at[first]);
}

static void begin(struct smv_client *client, const struct smv_generate *options, uint32_t count,
                  struct group *group)
{
        for (uint32_t i = 0; i < count; i++) {
                uint32_t stream, n = options[i].n ? options[i].n : 1;

                check(client, smv_generate(client, &options[i], &stream));
                for (uint32_t k = 0; k < n && group->count < COURSES_MAX; k++)
                        group->streams[group->count++] = stream + k;
        }
        group->waiting = group->running = group->count;
}

void streams_run(struct smv_client *client, const struct smv_generate *options, uint32_t count,
                 struct course *ret_course, struct answer *ret_answer)
{
        struct group group = { .course = ret_course, .answer = ret_answer };
        struct smv_event event = { SMV_SIZE(smv_event) };
        double began = now(), ended;

        *ret_course = (struct course){ 0 };
        if (ret_answer)
                ret_answer->count = 0;
        begin(client, options, count, &group);
        while (group.running) {
                if (smv_next(client, &event, SILENCE_MS) != 1)
                        draft_die("nothing comes");
                if (event.kind == SMV_EVENT_TOKENS)
                        take_tokens(&group, place_of(&group, event.stream), &event);
                else if (event.kind == SMV_EVENT_END)
                        take_end(&group, place_of(&group, event.stream), &event);
        }
        ended = now();
        ret_course->seconds = ended - began;
        ret_course->decode = ended - group.all_first;
        ret_course->step = step_of(&group);
}
