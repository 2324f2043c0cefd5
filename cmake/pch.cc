// Holds nothing: this target exists to build the precompiled header once.
