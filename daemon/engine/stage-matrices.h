/*
 * Makes the matrices of a stage, and lists the tensors that are loaded into them later.
 *
 * Part of model-stage.c: only its other parts include this.
 */
#ifndef DAEMON_ENGINE_STAGE_MATRICES_H
#define DAEMON_ENGINE_STAGE_MATRICES_H

#include "daemon/engine/stage-vectors.h"

/* A matrix of stacked tensors.  They return 0 or negative errno and *why. */
int stage_matrix_make(struct stage *stage, const struct tensor *const *parts, uint32_t part_count,
                      struct load_list *list, struct matrix **ret_matrix, char *why,
                      size_t why_bytes);
int stage_matrix_open(struct building *b, const struct tensor *const *parts, uint32_t part_count,
                      struct matrix **ret_matrix);

#endif
