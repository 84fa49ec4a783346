// Beast and Asio's TLS are compiled here, once.
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
