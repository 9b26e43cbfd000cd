/*
 * The library's own files include the public header through this one.  Everything is
 * compiled with hidden visibility, except what <samovar/client.h> declares.  If a file
 * included that header directly, its functions would be hidden, because the first
 * declaration counts.
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
