/* The methods of HTTP that this server knows.  All others are answered with 501. */
#ifndef BRIDGE_HTTP_METHOD_H
#define BRIDGE_HTTP_METHOD_H

enum http_method {
        HTTP_GET,
        HTTP_HEAD,
        HTTP_POST,
        HTTP_PUT,
        HTTP_PATCH,
        HTTP_DELETE,
        HTTP_OPTIONS,
        HTTP_METHODS,
};

#endif
