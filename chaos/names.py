"""Which parts of file names vary, learnt from two references: `resume.pt.4711.tmp` becomes `resume.pt.{any}.tmp`.

Two kinds of parts are replaced by a placeholder:

- `{any}`: a token that differs between the two references (a process id, a time, random letters). A name that only
  one of them used is paired, within the same save, with the most similar name that only the other used.
- `{step}`: a group of digits that changes from save to save, such as `checkpoint-30` and `checkpoint-60`. A number
  that is used in every save (a shard's, a rank's, `fp16`) stays. A number that was seen in one save only stays too.

Names are compared part by part of the path, among those in the same folder. All other names stay literal, and a rule
of its own protects a literal name from a wider rule that would match it too: two names get one key only if they
differ in nothing but parts that vary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from chaos.model import NameRule

MAX_PAIRED_NAMES = 64
TOKEN = re.compile(r"([A-Za-z0-9_]+)")
# An underscore ends what a programmer chose, and the prefix of `tempfile` is no part of its random letters.
FIXED_PREFIX = re.compile(r".*_|(?i:te?mp)", re.DOTALL)


class Part(NamedTuple):
    """A piece of a name: its text in the key, and the regular expression that it stands for."""

    text: str
    pattern: str


Template = tuple[Part, ...]
Names = Sequence[Sequence[str]]  # one sequence of names a save

ANY = Part("{any}", "[A-Za-z0-9_]+")
STEP = Part("{step}", r"\d+")
SLASH = Part("/", "/")


def learn_names(
    paths_a_by_save: Sequence[Iterable[str]], paths_b_by_save: Sequence[Iterable[str]]
) -> tuple[NameRule, ...]:
    """Return the rules for names that vary, the most specific first; names that no rule matches are their own keys.

    Each argument holds, save by save, the relative paths that one reference used, in the order of their first use.
    """
    run_a, run_b = ([_relative(paths) for paths in run] for run in (paths_a_by_save, paths_b_by_save))
    templates = _path_templates(run_a, run_b)
    varying = sorted({template for template in templates.values() if _num_placeholders(template)}, key=_specificity)
    rules = tuple(NameRule(pattern=_pattern(template), key=_key(template)) for template in varying)
    guards = (
        NameRule(pattern=re.escape(path), key=path)
        for path, template in sorted(templates.items())
        if path and not _num_placeholders(template) and any(re.fullmatch(rule.pattern, path) for rule in rules)
    )
    return (*guards, *rules)


# --- templates of paths ---------------------------------------------------------------------------


def _path_templates(run_a: Names, run_b: Names) -> dict[str, Template]:
    """Return the template of every path of both runs, and of every folder above one."""
    templates: dict[str, Template] = {"": ()}
    depth = max((path.count("/") + 1 for run in (run_a, run_b) for paths in run for path in paths), default=0)
    for level in range(depth):
        prefixes_a, prefixes_b = (_prefixes(run, level) for run in (run_a, run_b))
        folders = {templates[_folder(path)]: None for path in _all_names(prefixes_a, prefixes_b)}
        for folder in list(folders):
            inside_a, inside_b = (_inside(prefixes, folder, templates) for prefixes in (prefixes_a, prefixes_b))
            names_a, names_b = ([_distinct(map(_last_part, paths)) for paths in run] for run in (inside_a, inside_b))
            learnt = _name_templates(names_a, names_b)
            for path in _all_names(inside_a, inside_b):
                templates[path] = (*folder, *((SLASH,) if folder else ()), *learnt[_last_part(path)])
    return templates


def _prefixes(run: Names, level: int) -> list[list[str]]:
    """Return, save by save, the first `level + 1` parts of the paths that have so many."""
    return [
        _distinct("/".join(path.split("/")[: level + 1]) for path in paths if path.count("/") >= level) for paths in run
    ]


def _inside(prefixes: Names, folder: Template, templates: dict[str, Template]) -> list[list[str]]:
    """Return, save by save, the paths whose folder has the template `folder`."""
    return [[path for path in paths if templates[_folder(path)] == folder] for paths in prefixes]


def _name_templates(names_a: Names, names_b: Names) -> dict[str, Template]:
    """Return the template of each name in one folder."""
    templates: dict[str, Template] = {name: (_literal(name),) for name in _all_names(names_a, names_b)}
    templates |= _differing_templates(names_a, names_b)
    return _with_steps(templates, names_a, names_b)


# --- {any}: what differs between the references ------------------------------------------------------


def _differing_templates(names_a: Names, names_b: Names) -> dict[str, Template]:
    """Return the templates of the names that only one reference used and that the other used with other tokens."""
    all_a, all_b = set(_all_names(names_a)), set(_all_names(names_b))
    families: dict[tuple[str | Template, ...], list[list[str]]] = {}
    for save_a, save_b in zip(names_a, names_b, strict=False):
        only_a, only_b = [n for n in save_a if n not in all_b], [n for n in save_b if n not in all_a]
        for pieces_a, pieces_b in _pairs(only_a, only_b):
            family = tuple(a if a == b else _differing_middle((a, b)) for a, b in zip(pieces_a, pieces_b, strict=True))
            families.setdefault(family, []).extend((pieces_a, pieces_b))
    found = [_family_template(family, members) for family, members in families.items()]
    unshared = [name for name in _all_names(names_a, names_b) if name not in all_a or name not in all_b]
    return {
        name: template
        for template in sorted(found, key=_specificity, reverse=True)  # the most specific is the last to speak
        for name in unshared
        if re.fullmatch(_pattern(template), name)
    }


def _pairs(only_a: Sequence[str], only_b: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Pair names that have the same separators, most similar first, each at most once; yield their pieces."""
    pieces_a, pieces_b = ([TOKEN.split(name) for name in names[:MAX_PAIRED_NAMES]] for names in (only_a, only_b))
    candidates = sorted(
        (_distance(a, b), abs(i - j), i, j)
        for i, a in enumerate(pieces_a)
        for j, b in enumerate(pieces_b)
        if a[::2] == b[::2]
    )
    used_a: set[int] = set()
    used_b: set[int] = set()
    for _, _, i, j in candidates:
        if i not in used_a and j not in used_b:
            used_a.add(i)
            used_b.add(j)
            yield pieces_a[i], pieces_b[j]


def _distance(pieces_a: Sequence[str], pieces_b: Sequence[str]) -> tuple[int, int]:
    """Tell how unlike two names are: tokens that differ, then (negative) how many letters those have in common."""
    differing = [(a, b) for a, b in zip(pieces_a, pieces_b, strict=True) if a != b]
    alike = sum(len(_common_prefix(pair)) + len(_common_suffix(pair)) for pair in differing)
    return len(differing), -alike


def _family_template(family: tuple[str | Template, ...], members: Sequence[Sequence[str]]) -> Template:
    """Return the template of names that agree in the texts of `family` and differ where it holds a template."""
    columns = {
        i: sorted({pieces[i] for pieces in members}) for i, piece in enumerate(family) if isinstance(piece, tuple)
    }
    is_digits_only = all(len({re.sub(r"[0-9]+", "#", token) for token in tokens}) == 1 for tokens in columns.values())
    refine = _differing_digits if is_digits_only else _differing_middle
    parts = [refine(columns[i]) if i in columns else (_literal(str(piece)),) for i, piece in enumerate(family)]
    return tuple(part for piece in parts for part in piece if part.text)


def _differing_digits(tokens: Sequence[str]) -> Template:
    """Return the template of tokens that differ only in groups of digits, such as `resume_123` and `resume_45`."""
    columns = zip(*(re.split(r"([0-9]+)", token) for token in tokens), strict=True)
    return tuple(_literal(column[0]) if len(set(column)) == 1 else ANY for column in columns)


def _differing_middle(tokens: Sequence[str]) -> Template:
    """Return the template of tokens that differ freely: what a programmer chose before and after stays literal."""
    start = FIXED_PREFIX.match(_common_prefix(tokens))
    prefix = start.group() if start else ""
    ending = _common_suffix(tokens)
    suffix = ending[ending.index("_") :] if "_" in ending else ""
    if any(len(token) <= len(prefix) + len(suffix) for token in tokens):
        return (ANY,)
    return (_literal(prefix), ANY, _literal(suffix))


def _common_prefix(tokens: Sequence[str]) -> str:
    """Return the longest common beginning of `tokens`."""
    first, last = min(tokens), max(tokens)
    return next((first[:i] for i, letter in enumerate(first) if letter != last[i]), first)


def _common_suffix(tokens: Sequence[str]) -> str:
    """Return the longest common ending of `tokens`."""
    return _common_prefix([token[::-1] for token in tokens])[::-1]


# --- {step}: what changes from save to save -----------------------------------------------------------


def _with_steps(templates: dict[str, Template], names_a: Names, names_b: Names) -> dict[str, Template]:
    """Replace in `templates` the groups of digits that change from save to save."""
    split = {name: _split_digits(template) for name, template in templates.items()}
    changing = _changing_groups(names_a, split) | _changing_groups(names_b, split)
    return {
        name: _merged(
            STEP if _is_digits(part) and (_skeleton(parts), i) in changing else part for i, part in enumerate(parts)
        )
        for name, parts in split.items()
    }


def _changing_groups(names: Names, split: dict[str, Template]) -> set[tuple[Template, int]]:
    """Return (skeleton, position) of each group of digits that had no value common to all saves with the skeleton."""
    seen: dict[tuple[Template, int], list[set[str]]] = {}
    for save in names:
        values: dict[tuple[Template, int], set[str]] = {}
        for name in save:
            parts = split[name]
            for i, part in enumerate(parts):
                if _is_digits(part):
                    values.setdefault((_skeleton(parts), i), set()).add(part.text)
        for group, texts in values.items():
            seen.setdefault(group, []).append(texts)
    return {group for group, saves in seen.items() if len(saves) > 1 and not set.intersection(*saves)}


def _split_digits(template: Template) -> Template:
    """Cut the literal parts of a template so that each group of digits is a part of its own."""
    return tuple(
        piece
        for part in template
        for piece in ((part,) if part in {ANY, STEP} else map(_literal, re.findall(r"[0-9]+|[^0-9]+", part.text)))
    )


def _skeleton(parts: Template) -> Template:
    """Return the parts with every group of digits masked alike."""
    return tuple(STEP if _is_digits(part) else part for part in parts)


def _is_digits(part: Part) -> bool:
    """Tell whether a part is a literal group of digits."""
    return part.text.isascii() and part.text.isdigit()


def _merged(parts: Iterable[Part]) -> Template:
    """Join neighbouring literal parts, so that equal templates are equal tuples."""
    merged: list[Part] = []
    for part in parts:
        if merged and part not in {ANY, STEP} and merged[-1] not in {ANY, STEP}:
            merged[-1] = _literal(merged[-1].text + part.text)
        else:
            merged.append(part)
    return tuple(merged)


# --- small things -------------------------------------------------------------------------------------


def _literal(text: str) -> Part:
    """Return the part that stands for exactly `text`."""
    return Part(text, re.escape(text))


def _key(template: Template) -> str:
    """Return the file key that a template gives."""
    return "".join(part.text for part in template)


def _pattern(template: Template) -> str:
    """Return the regular expression that fully matches the names of a template."""
    return "".join(part.pattern for part in template)


def _num_placeholders(template: Template) -> int:
    """Count the placeholders of a template."""
    return sum(part in {ANY, STEP} for part in template)


def _specificity(template: Template) -> tuple[int, int, str]:
    """Order templates from the most specific: few placeholders, much literal text."""
    literal = sum(len(part.text) for part in template if part not in {ANY, STEP})
    return _num_placeholders(template), -literal, _key(template)


def _distinct(names: Iterable[str]) -> list[str]:
    """Return the names once each, in order of first appearance."""
    return list(dict.fromkeys(names))


def _relative(paths: Iterable[str]) -> list[str]:
    """Return the relative paths once each: those without an empty part, such as the one before a leading slash."""
    return _distinct(path for path in paths if all(path.split("/")))


def _all_names(*runs: Names) -> list[str]:
    """Return every name of the runs once, in order of first appearance."""
    return _distinct(name for run in runs for save in run for name in save)


def _folder(path: str) -> str:
    """Return the path above the last part, or an empty string."""
    return path.rpartition("/")[0]


def _last_part(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]
