#include "bridge/offline/answer-window.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/sys.h"
#include "bridge/offline/nameless-file.h"

#define FIRST_SIZE UINT64_C(256)

struct place {
        char *at;        /* the answer; NULL: it is in the file, or not there */
        uint64_t offset; /* in the file */
        uint32_t bytes;  /* 0: it is not there */
        bool good;
};

struct answer_window {
        const char *folder;
        struct place *places; /* a ring; size is a power of two */
        uint64_t size, first, end;
        uint64_t memory, memory_max;
        int fd; /* of the file; -1: none was needed */
        bool file_failed;
        uint64_t file_end, file_answers; /* answers in it that have not left */
        struct bytes back;               /* one that was read back */
};

struct answer_window *answer_window_new(const char *folder, uint64_t memory_bytes)
{
        struct answer_window *window = calloc(1, sizeof(*window));

        if (!window)
                return NULL;
        window->folder = folder;
        window->memory_max = memory_bytes;
        window->fd = -1;
        window->size = FIRST_SIZE;
        window->places = calloc(window->size, sizeof(*window->places));
        return window->places ? window : answer_window_free(window);
}

static struct place *place_of(const struct answer_window *window, uint64_t number)
{
        return &window->places[number & (window->size - 1)];
}

struct answer_window *answer_window_free(struct answer_window *window)
{
        if (!window)
                return NULL;
        for (uint64_t i = window->first; i < window->end; i++)
                free(place_of(window, i)->at);
        sys_close(window->fd);
        bytes_deinit(&window->back);
        free(window->places);
        free(window);
        return NULL;
}

uint64_t answer_window_count(const struct answer_window *window)
{
        return window->end - window->first;
}

bool answer_window_has_space(const struct answer_window *window)
{
        return answer_window_count(window) < WINDOW_LINES_MAX &&
               (window->memory <= window->memory_max || !window->file_failed);
}

static int grow(struct answer_window *window)
{
        struct place *before = window->places, *after;
        uint64_t size = window->size;

        after = calloc(2 * size, sizeof(*after));
        if (!after)
                return -ENOMEM;
        for (uint64_t i = window->first; i < window->end; i++)
                after[i & (2 * size - 1)] = before[i & (size - 1)];
        window->places = after;
        window->size = 2 * size;
        free(before);
        return 0;
}

int answer_window_enter(struct answer_window *window, uint64_t *ret_number)
{
        if (answer_window_count(window) == window->size && grow(window))
                return -ENOMEM;
        *ret_number = window->end++;
        *place_of(window, *ret_number) = (struct place){ 0 };
        return 0;
}

/* The file has what does not fit into memory.  If it cannot be written, memory has to do. */
static bool move_to_file(struct answer_window *window, struct place *place)
{
        if (window->fd < 0)
                window->fd = nameless_file_make(window->folder);
        if (!window->file_answers)
                window->file_end = 0;
        window->file_failed = window->fd < 0 || nameless_file_write(window->fd, place->at,
                                                                    place->bytes, window->file_end);
        if (window->file_failed)
                return false;
        place->offset = window->file_end;
        window->file_end += place->bytes;
        window->file_answers++;
        free(place->at);
        place->at = NULL;
        return true;
}

void answer_window_put(struct answer_window *window, uint64_t number, struct bytes *answer,
                       bool good)
{
        struct place *place = place_of(window, number);

        assert(number >= window->first && number < window->end && !place->bytes);
        assert(answer->count && answer->count < UINT32_MAX);
        *place = (struct place){ .at = answer->at, .bytes = (uint32_t)answer->count, .good = good };
        *answer = (struct bytes){ 0 };
        if (number == window->first || window->memory + place->bytes <= window->memory_max ||
            !move_to_file(window, place))
                window->memory += place->bytes;
}

static int read_back(struct answer_window *window, const struct place *place)
{
        size_t done = 0;

        window->back.count = 0;
        if (bytes_reserve(&window->back, place->bytes))
                return -ENOMEM;
        while (done < place->bytes) {
                ssize_t n = sys_pread(window->fd, window->back.at + done, place->bytes - done,
                                      place->offset + done);

                if (n <= 0)
                        return n ? (int)n : -EIO;
                done += (size_t)n;
        }
        window->back.count = done;
        return 0;
}

int answer_window_next(struct answer_window *window, struct text *ret_answer, bool *ret_good)
{
        struct place *place;
        int r;

        if (window->first == window->end)
                return 0;
        place = place_of(window, window->first);
        if (!place->bytes)
                return 0;
        if (!place->at && !window->back.count) {
                r = read_back(window, place);
                if (r)
                        return r;
        }
        *ret_answer = (struct text){ place->at ? place->at : window->back.at, place->bytes };
        *ret_good = place->good;
        return 1;
}

void answer_window_leave(struct answer_window *window)
{
        struct place *place = place_of(window, window->first);

        assert(window->first < window->end && place->bytes);
        if (place->at)
                window->memory -= place->bytes;
        else
                window->file_answers--;
        free(place->at);
        window->back.count = 0;
        window->first++;
}
