#ifndef HK_VERSION_H
#define HK_VERSION_H

#define HK_WORKER_VERSION "0.1.0"

#endif
