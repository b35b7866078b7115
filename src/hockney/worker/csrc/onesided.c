/* cold */
/* The words of epochs and atomic operations. */
#include "onesided.h"

#define EPOCH_WORD(name, word) word,
#define ATOMIC_WORD(name, word, fetches) word,

const char *const hk_epoch_names[HK_EPOCHS] = {NULL, HK_EPOCHS_(EPOCH_WORD)};
const char *const hk_atomic_names[HK_ATOMICS] = {HK_ATOMICS_(ATOMIC_WORD)};
