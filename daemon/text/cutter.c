#include "daemon/text/cutter.h"

#include <assert.h>
#include <errno.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/unicode.h"
#include "json/shown.h"

int cutter_open(struct cutter *ret_cutter, const struct vocabulary_cut *cuts, uint32_t count,
                char *why, size_t why_bytes)
{
        struct cutter cutter = { 0 };

        assert(count <= VOCABULARY_CUTS_MAX);
        for (; cutter.count < count; cutter.count++) {
                const struct vocabulary_cut *cut = &cuts[cutter.count];
                char fault[160];
                int r = expression_open(cut->expression, &cutter.cuts[cutter.count].expression,
                                        fault, sizeof(fault));

                if (r) {
                        errtext_set(why, why_bytes, r, "it splits by the expression '%s': %s",
                                    shown(cut->expression).text, fault);
                        cutter_close(&cutter);
                        return error_pass(r);
                }
                cutter.cuts[cutter.count].kind = cut->kind;
                cutter.cuts[cutter.count].inverted = cut->inverted;
        }
        *ret_cutter = cutter;
        return 0;
}

void cutter_close(struct cutter *cutter)
{
        for (uint32_t i = 0; i < cutter->count; i++)
                expression_close(cutter->cuts[i].expression);
        *cutter = (struct cutter){ 0 };
}

/* ---- segments ---- */

/* Finds the next match.  An empty one right behind another match does not count. */
static int find_match(struct cutting *c, struct cutting_level *level)
{
        const char *text = c->text + level->begin;
        size_t begin, end;
        uint32_t code;

        while (level->from <= level->bytes) {
                int r = expression_next(&level->search, level->from, &begin, &end);

                if (r < 0)
                        return error_pass(r);
                if (!r)
                        break;
                if (begin == end && end == level->last) {
                        level->from = end;
                        if (end == level->bytes)
                                break;
                        level->from += unicode_next(text + end, level->bytes - end, &code);
                        continue;
                }
                level->from = level->last = end;
                level->match = (struct segment){ begin, end, true };
                level->has_match = true;
                return 0;
        }
        level->is_over = true;
        return 0;
}

/* 1; 0: there are no more. */
static int next_segment(struct cutting *c, struct cutting_level *level, struct segment *ret_segment)
{
        int r;

        if (!level->has_match && !level->is_over) {
                r = find_match(c, level);
                if (r)
                        return error_pass(r);
        }
        *ret_segment = (struct segment){ level->at, level->bytes, false };
        if (level->has_match && level->match.begin > level->at) {
                ret_segment->end = level->match.begin;
        } else if (level->has_match) {
                *ret_segment = level->match;
                level->has_match = false;
        } else if (level->at == level->bytes) {
                return 0;
        }
        level->at = ret_segment->end;
        return 1;
}

/* ---- pieces ---- */

/* Whether the segment b continues the piece that begins with the segments up to a. */
static bool joins(enum cut_kind kind, const struct segment *a, const struct segment *b)
{
        if (kind == CUT_RUNS)
                return a->matched == b->matched;
        if (kind == CUT_TO_LAST)
                return b->matched && !a->matched;
        return kind == CUT_TO_NEXT && a->matched && !b->matched;
}

/* The next piece of one level; it may be empty.  1; 0: there are no more. */
static int next_piece(struct cutting *c, struct cutting_level *level, enum cut_kind kind,
                      bool inverted, struct segment *ret_piece)
{
        struct segment more;
        int r = 1;

        if (!level->is_waiting) {
                r = next_segment(c, level, &level->waiting);
                level->waiting.matched = level->waiting.matched != inverted;
        }
        if (r != 1)
                return error_pass(r);
        *ret_piece = level->waiting;
        level->is_waiting = false;
        while (kind == CUT_RUNS || kind == CUT_TO_LAST || kind == CUT_TO_NEXT) {
                r = next_segment(c, level, &more);
                if (r != 1)
                        return r ? error_pass(r) : 1;
                more.matched = more.matched != inverted;
                if (!joins(kind, ret_piece, &more)) {
                        level->waiting = more;
                        level->is_waiting = true;
                        return 1;
                }
                ret_piece->end = more.end;
                if (kind != CUT_RUNS)
                        return 1;
        }
        return 1;
}

static int enter(struct cutting *c, size_t begin, size_t bytes)
{
        struct cutting_level *level = &c->levels[c->depth];
        struct expression_search search = level->search;
        int r;

        *level = (struct cutting_level){
                .search = search, .begin = begin, .bytes = bytes, .last = SIZE_MAX
        };
        r = expression_begin(&level->search, c->cutter->cuts[c->depth].expression, c->text + begin,
                             bytes, c->steps);
        c->depth++;
        return error_pass(r);
}

int cutting_begin(struct cutting *c, const struct cutter *cutter, const char *text, size_t bytes,
                  uint64_t *steps)
{
        c->cutter = cutter;
        c->text = text;
        c->bytes = bytes;
        c->steps = steps;
        c->depth = 0;
        c->whole = !cutter->count && bytes;
        return cutter->count ? error_pass(enter(c, 0, bytes)) : 0;
}

void cutting_deinit(struct cutting *c)
{
        for (uint32_t i = 0; i < VOCABULARY_CUTS_MAX; i++)
                expression_search_deinit(&c->levels[i].search);
}

int cutting_next(struct cutting *c, size_t *ret_begin, size_t *ret_end)
{
        if (c->whole) {
                c->whole = false;
                *ret_begin = 0;
                *ret_end = c->bytes;
                return 1;
        }
        while (c->depth) {
                struct cutting_level *level = &c->levels[c->depth - 1];
                enum cut_kind kind = (enum cut_kind)c->cutter->cuts[c->depth - 1].kind;
                struct segment piece = { 0 };
                int r = next_piece(c, level, kind, c->cutter->cuts[c->depth - 1].inverted, &piece);

                if (r < 0)
                        return error_pass(r);
                if (!r) {
                        c->depth--;
                        continue;
                }
                if (piece.begin == piece.end || (kind == CUT_DROP && piece.matched))
                        continue;
                *ret_begin = level->begin + piece.begin;
                *ret_end = level->begin + piece.end;
                if (c->depth == c->cutter->count)
                        return 1;
                r = enter(c, *ret_begin, *ret_end - *ret_begin);
                if (r)
                        return error_pass(r);
        }
        return 0;
}
