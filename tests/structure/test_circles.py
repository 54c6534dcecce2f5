"""No module of the product imports itself by way of others."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
APPS = ("stats", "accounts", "bank", "judging", "annotations", "leaderboard", "evalsite")


def modules() -> dict[str, Path]:
    """The product's modules by name, migrations left out."""
    paths = [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules that a module imports anywhere, in functions too, but for types alone."""
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                as_module = f"{node.module}.{name.name}"
                yield as_module if as_module in known else str(node.module)
        waiting += ast.iter_child_nodes(node)


def test_no_circle_of_modules_is_left():
    known = modules()
    uses = {module: set(imported(path, known)) & known.keys() - {module} for module, path in known.items()}
    while ends := {module for module, needs in uses.items() if not needs & uses.keys()}:
        uses = {module: needs for module, needs in uses.items() if module not in ends}
    assert not uses, f"in a circle, or importing one: {sorted(uses)}"
