#include "net/relay.h"
