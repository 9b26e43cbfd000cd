/* Names that only the library itself asks for; <samovar/client.h> has the others. */
#ifndef CLIENT_NAMES_H
#define CLIENT_NAMES_H

/* The name of a negative errno that the library returns: "EINVAL".  "" for any other number. */
const char *client_errno_name(int error);

#endif
