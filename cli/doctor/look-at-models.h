/* The models in the folders of models, as the checks see them. */
#ifndef CLI_DOCTOR_LOOK_AT_MODELS_H
#define CLI_DOCTOR_LOOK_AT_MODELS_H

#include <stdbool.h>

#include "cli/doctor/machine.h"

/*
 * Fills in the facts.  `digests`: reads every byte of the pulled models, with a bar on a terminal;
 * otherwise only compares sizes.
 */
void look_at_models(bool digests, struct model_facts *ret_models);

#endif
