#!/bin/sh
# Says where it runs. Try: glovebox run examples/hello.sh
echo "Hello from the shell in a sandbox!"
echo "I am $(id -un) in $(pwd)."
echo "The programs here are the host's, its files are not. All of /home: $(ls /home)"
