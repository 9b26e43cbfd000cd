/* Options of a generate, most of which other requests take, too. */
#ifndef CLIENT_OPTIONS_H
#define CLIENT_OPTIONS_H

#include "client/state.h"

/*
 * Begins a call that takes these options: client_begin(), copies the options, and refuses options
 * that cannot be sent.
 */
int client_begin_generate(struct smv_client *client, const struct smv_generate *options,
                          struct smv_generate *ret_options);

/*
 * Is this a priority?  Are these bits of enum smv_set?  0, or -EINVAL.  A program of a newer header
 * may ask for one that this library does not know.
 */
int client_check_priority(struct smv_client *client, enum smv_priority priority);
int client_check_set(struct smv_client *client, unsigned set);

/* Puts the sampling options that are set; puts the priority. */
void client_put_sampling(struct codec_writer *writer, const struct smv_generate *o);
/* Puts what only the draws of a generate have: cuts, and penalties with their lists. */
void client_put_cuts(struct codec_writer *writer, const struct smv_generate *o);
void client_put_penalties(struct codec_writer *writer, const struct smv_generate *o);
/* ... what it asks its client and shows of its rows */
void client_put_asking(struct codec_writer *writer, const struct smv_generate *o);
/* ... and reasoning_max, reasoning_end */
void client_put_reasoning(struct codec_writer *writer, const struct smv_generate *o);
void client_put_priority(struct codec_writer *writer, enum smv_priority priority);
void client_put_model(struct codec_writer *writer, const char *model); /* NULL: the default one */
void client_put_conversation(struct codec_writer *writer, const struct smv_generate *o);
/* Puts the model, and the conversation, prompt or tokens that the sequence starts with. */
void client_put_start(struct codec_writer *writer, const struct smv_generate *o);

#endif
