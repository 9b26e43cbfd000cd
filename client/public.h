/*
 * The library's own door to its public header: everything is compiled with
 * hidden visibility, and what <samovar/client.h> declares is the exception.
 */
#ifndef CLIENT_PUBLIC_H
#define CLIENT_PUBLIC_H

#pragma GCC visibility push(default)
#include <samovar/client.h>
#pragma GCC visibility pop

#endif
