"""Counts the words of its input. Try: cat README.md | glovebox run examples/wordcount.py"""

import collections
import re
import sys

words = re.findall(r"[a-z]+", sys.stdin.read().lower())
for word, n in collections.Counter(words).most_common(10):
    print(f"{n:6} {word}")
