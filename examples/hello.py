"""Says where it runs. Try: glovebox run examples/hello.py one two"""

import getpass
import os
import platform
import sys

print(f"Hello from Python {platform.python_version()} in a sandbox!")
print(f"I am {getpass.getuser()} in {os.getcwd()}, process {os.getpid()} of {platform.node()},")
print(f"and I was given: {sys.argv[1:]}")
