"""Lines of code of the package, without blank ones, comments and docstrings; by room and in all.

The exit status is 1 if there are more than ``lines-of-code`` of pyproject.toml's
``[tool.marginsvm]``. The number is lowered as the package gets smaller; a commit that raises it
says why.
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
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


def lines_of_code(source):
    """Number of lines with a token that does something."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        has_docstring = isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        if has_docstring and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def main():
    """Print the table, and compare its sum."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    most = tools["marginsvm"]["lines-of-code"]
    sizes = Counter()
    for path in sorted((ROOT / "marginsvm").rglob("*.py")):
        room = path.relative_to(ROOT).parts[1] if path.parent.name != "marginsvm" else "files"
        sizes[room] += lines_of_code(path.read_text())
    for room, size in sizes.most_common():
        print(f"{size:7d} {room}")
    print(f"{sizes.total():7d} lines of code in all, of {most} at most")
    sys.exit(sizes.total() > most)


if __name__ == "__main__":
    main()
