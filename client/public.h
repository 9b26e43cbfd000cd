/*
 * The library's own door to its public header: everything is compiled with
 * hidden visibility, and what <samovar/client.h> declares is the exception.
 * Whoever comes in by another door hides it: the first declaration counts.
 */
#ifndef CLIENT_PUBLIC_H
#define CLIENT_PUBLIC_H

#ifdef SAMOVAR_CLIENT_H
#error "<samovar/client.h> was included before; include client/public.h instead"
#endif

#pragma GCC visibility push(default)
#include <samovar/client.h>
#pragma GCC visibility pop

#endif
