#include "testing/temp_dir.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace glovebox::testing {

TempDir::TempDir() : path_("/tmp/glovebox-test-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    std::perror("mkdtemp");
    std::abort();
  }
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace glovebox::testing
