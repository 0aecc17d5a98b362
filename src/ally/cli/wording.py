"""Errors in the words of the command line: the library names its arguments, a command its options."""

from __future__ import annotations

import re

OPTIONS = (
    *("annotator", "batch", "budget", "classes", "encoding", "evaluate", "image", "key", "label", "n", "opinions"),
    *("random_share", "seed", "size", "text", "validate"),
)
"""Arguments whose options have their names."""
VALUE = r"""(-?[\d.]+(e[+-]?\d+)?|-?inf|nan|True|False|None|'[^']*'|"[^"]*"|[\[(].*?[\])])"""
"""A value as Python writes it; names of files, which may hold a = too, are not in quotes."""
RULES = (
    (re.compile(r"^held_out_share and random_share "), "the quarter of each query for held-out samples and --random-share "),
    (re.compile(r"^classes are given and task='regression';"), "--classes and --regression are both given;"),
    (re.compile(r"^columns\['(.*?)'\]='(.*?)'"), r"--column \1=\2"),
    (re.compile(r"declare it in `classes`$"), "list it in --classes"),
    (re.compile(r"such as encoding='(\S+)'$"), r"such as --encoding \1"),
    (re.compile(r"pass label='folder'"), "give --label folder"),
    (re.compile(r"with text=, image= or columns=$"), "with --text, --image or --column"),
    (re.compile(rf"^({'|'.join(OPTIONS)})=(?={VALUE}[ ;:,])"), lambda match: f"--{match[1].replace('_', '-')} "),
)
"""Bound to the beginning or the end of a message, where no ids and labels of the user's are."""


def worded(message: str) -> str:
    """The message with options instead of arguments of Python."""
    for pattern, words in RULES:
        message = pattern.sub(words, message)
    return message
