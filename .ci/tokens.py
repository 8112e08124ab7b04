"""Tokens of the package's code, without comments, docstrings and line ends; by room and in all.

Tokens measure how much there is to understand; lines are free. The exit status is 1 if there are
more than ``tokens`` of pyproject.toml's ``[tool.marginsvm]``. The number is lowered as the package
gets smaller; a commit that raises it says why.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
# From Python 3.12 on, an f-string is many tokens between these two. It counts as one.
STRING_STARTS = {
    getattr(tokenize, name)
    for name in ("FSTRING_START", "TSTRING_START")
    if hasattr(tokenize, name)
}
STRING_ENDS = {
    getattr(tokenize, name)
    for name in ("FSTRING_END", "TSTRING_END")
    if hasattr(tokenize, name)
}


def lines_of_docstrings(source):
    """Numbers of the lines on which docstrings stand."""
    lines = set()
    for node in ast.walk(ast.parse(source)):
        has_docstring = isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        if has_docstring and ast.get_docstring(node) is not None:
            lines |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def tokens_of_code(source):
    """Number of tokens that do something, an f-string counted as one."""
    docstrings = lines_of_docstrings(source)
    count = 0
    depth = 0  # of nested f-strings
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        outside = depth == 0
        if token.type in STRING_STARTS:
            depth += 1
        elif token.type in STRING_ENDS:
            depth -= 1
        if token.type not in SILENT and token.start[0] not in docstrings:
            count += outside
    return count


def main():
    """Print the table, and compare its sum."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    most = tools["marginsvm"]["tokens"]
    sizes = Counter()
    for path in sorted((ROOT / "marginsvm").rglob("*.py")):
        room = (
            path.relative_to(ROOT).parts[1]
            if path.parent.name != "marginsvm"
            else "files"
        )
        sizes[room] += tokens_of_code(path.read_text())
    for room, size in sizes.most_common():
        print(f"{size:7d} {room}")
    print(f"{sizes.total():7d} tokens in all, of {most} at most")
    sys.exit(sizes.total() > most)


if __name__ == "__main__":
    main()
