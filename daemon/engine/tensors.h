/*
 * The tensors of a model, by name and shape.
 *
 * tensors_find() looks up every tensor.  So a file is either complete and of the right shapes, or
 * it is refused before anything is allocated for it.  The traits say which tensors a model has.
 *
 * Some files have one tensor for q, k and v, or for the gate and `up`.  Such a tensor is divided
 * here (tensor-parts.h), so that the rest of the engine knows the parts only.  Others have a tensor
 * for the norm of each head; these become one vector.  Matrices between an embedding of another
 * width and the model, and between the model and the head, are multiplied with these at load.
 */
#ifndef DAEMON_ENGINE_TENSORS_H
#define DAEMON_ENGINE_TENSORS_H

#include "daemon/engine/tensor-wants.h"
#include "daemon/files/checkpoint.h"

struct layer_tensors {
        const struct tensor *at[LAYER_TENSOR_N]; /* NULL: optional and absent */
};

struct tensors {
        const struct tensor *at[MODEL_TENSOR_N]; /* OUTPUT: NULL if the embedding is the head */
        struct layer_tensors *layers;            /* traits.layers entries */
        struct tensor *parts;                    /* of tensors that were divided, or joined */
        float *projections; /* of an embedding of another width: its matrix, then the head's */
};

int tensors_find(const struct checkpoint *checkpoint, const struct traits *traits,
                 struct tensors *ret_tensors, char *why, size_t why_bytes);
void tensors_deinit(struct tensors *tensors);

#endif
