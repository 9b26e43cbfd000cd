#include "daemon/draw/banned-texts.h"

#include <string.h>

#include <samovar/protocol.h>

#include "daemon/draw/mask.h"

/* Whether the piece has a text; `firsts` tells for each byte whether a text begins with it. */
static bool has_text(const struct rule_text *texts, uint32_t text_count, const bool firsts[256],
                     const char *piece, size_t bytes)
{
        for (size_t at = 0; at < bytes; at++)
                for (uint32_t i = 0; firsts[(unsigned char)piece[at]] && i < text_count; i++) {
                        const struct rule_text *text = &texts[i];

                        if (text->count <= bytes - at &&
                            !memcmp(piece + at, text->bytes, text->count))
                                return true;
                }
        return false;
}

void banned_texts_ban_whole(const struct rule_text *texts, uint32_t text_count,
                            const struct piece_order *order, uint32_t *mask)
{
        bool firsts[256] = { false };

        for (uint32_t i = 0; i < text_count; i++)
                firsts[(unsigned char)texts[i].bytes[0]] = true;
        for (uint32_t id = 0; id < order->count; id++) {
                size_t bytes;
                const char *piece = tokenizer_piece(order->tokenizer, id, &bytes);

                if (has_text(texts, text_count, firsts, piece, bytes))
                        mask_clear(mask, id);
        }
}

/* Writes the last bytes of the answer to the end of `to`; returns how many. */
static uint32_t gather(const struct tokenizer *tokenizer, const uint32_t *answer, uint32_t count,
                       char to[SMV_STOP_BYTES_MAX])
{
        size_t used = 0;

        while (count && used < SMV_STOP_BYTES_MAX) {
                size_t bytes, room = SMV_STOP_BYTES_MAX - used;
                const char *piece = tokenizer_piece(tokenizer, answer[--count], &bytes);
                size_t taken = bytes < room ? bytes : room;

                if (taken)
                        memcpy(to + room - taken, piece + bytes - taken, taken);
                used += taken;
        }
        return (uint32_t)used;
}

static void ban_beginning(const struct piece_order *order, const char *rest, uint32_t bytes,
                          uint32_t *mask)
{
        uint32_t first, behind;

        piece_order_find(order, rest, bytes, &first, &behind);
        for (uint32_t i = first; i < behind; i++)
                mask_clear(mask, order->ids[i]);
}

void banned_texts_ban_rest(const struct rule_text *texts, uint32_t text_count,
                           const struct piece_order *order, const uint32_t *answer, uint32_t count,
                           uint32_t *mask)
{
        char last[SMV_STOP_BYTES_MAX];
        uint32_t have = gather(order->tokenizer, answer, count, last);
        const char *end = last + SMV_STOP_BYTES_MAX;

        for (uint32_t i = 0; i < text_count; i++) {
                const struct rule_text *text = &texts[i];

                for (uint32_t begun = 1; begun < text->count && begun <= have; begun++)
                        if (end[-1] == text->bytes[begun - 1] &&
                            !memcmp(end - begun, text->bytes, begun))
                                ban_beginning(order, text->bytes + begun, text->count - begun,
                                              mask);
        }
}
