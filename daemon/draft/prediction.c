#include "daemon/draft/prediction.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

int prediction_new(const uint32_t *tokens, uint32_t count, struct prediction **ret_prediction)
{
        struct prediction *prediction = malloc(sizeof(*prediction));
        int r = prediction ? places_new(count, &prediction->places) : error_raise(-ENOMEM);

        if (r) {
                free(prediction);
                return error_pass(r);
        }
        prediction->references = 1;
        prediction->count = count;
        places_append(prediction->places, tokens, count);
        places_index(prediction->places, PREDICTION_INDEXED);
        *ret_prediction = prediction;
        return 0;
}

struct prediction *prediction_ref(struct prediction *prediction)
{
        if (prediction)
                prediction->references++;
        return prediction;
}

struct prediction *prediction_unref(struct prediction *prediction)
{
        if (!prediction || --prediction->references)
                return NULL;
        places_free(prediction->places);
        free(prediction);
        return NULL;
}

size_t prediction_bytes(const struct prediction *prediction)
{
        return prediction ? sizeof(*prediction) + places_bytes(prediction->count) : 0;
}
