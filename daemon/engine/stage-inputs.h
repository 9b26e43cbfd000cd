/*
 * The inputs that layers have besides x (model/traits.h: layer_input).
 *
 * A stage that begins makes those of all layers for the rows of a step; a later stage gets them
 * from it.  A layer adds what it makes of x and of its own input to x.
 *
 *      inputs   (rows, layers * layer_input)
 *      input    (rows, layer_input)   hidden values of one layer
 *
 * Part of model-stage.c: no other file includes this.
 */
#ifndef DAEMON_ENGINE_STAGE_INPUTS_H
#define DAEMON_ENGINE_STAGE_INPUTS_H

#include "daemon/engine/stage-vectors.h"

/* The table and the projection, in a stage that begins.  0, or negative errno and *why. */
int stage_inputs_open(struct building *b);
/* The matrices of a layer; `layer` counts from the model's first. */
int stage_input_open(struct building *b, struct layer *l, uint32_t layer);

/* After embed(). */
int stage_inputs_make(struct stage *s);
/* After both branches of a layer. */
int stage_input_add(struct stage *s, const struct layer *l);

#endif
