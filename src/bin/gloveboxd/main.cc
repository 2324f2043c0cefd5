#include <cstdio>
#include <cstring>

#include "config/config.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--print-config-reference") == 0) {
    std::fputs(glovebox::config::reference_markdown().c_str(), stdout);
    return 0;
  }
  return 0;
}
