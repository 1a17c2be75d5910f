"""What a path in the output folder is to the target: its role, and the key that names it alike in every run.

Globs are those of the scenario, relative to the output folder: `*` and `?` stay within one part of a path, `**`
crosses parts. A path beneath a folder that matches a glob has that folder's role.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from chaos.model import FileRole, Target, TargetProfile

MAX_KNOWN_PATHS = 4096


class NamedFile(NamedTuple):
    """A path as the target's profile names it; `opens_save` tells that changing its content begins a save."""

    key: str
    role: FileRole
    opens_save: bool


class FileNames:
    """Keys and roles of paths, by the target's globs and what its references taught."""

    def __init__(self, target: Target, profile: TargetProfile) -> None:
        """Prepare the patterns of `target` and `profile`; nothing is read from disk."""
        self._rules = tuple((re.compile(rule.pattern), rule.key) for rule in profile.names)
        self._checkpoints = compile_globs(target.checkpoints)
        self._final = compile_globs(target.final)
        self._ignored = compile_globs(tuple(anywhere(glob) for glob in target.ignore))
        self._temporaries = frozenset(profile.temporaries)
        self._final_temporaries = frozenset(profile.final_temporaries)
        self._known: dict[str, NamedFile] = {}

    def name(self, path: str) -> NamedFile:
        """Return key and role of `path` (relative to the output folder; absolute ones lie outside of it)."""
        known = self._known.get(path)
        if known is None:
            if len(self._known) >= MAX_KNOWN_PATHS:  # names may hold random tokens: the cache needs a bound
                self._known.clear()
            known = self._known[path] = self._name(path)
        return known

    def key_of(self, path: str) -> str:
        """Return the file key of `path`: the first rule that matches all of it, or its nearest folder that has one."""
        head, tail = path, ""
        while head:
            for pattern, key in self._rules:
                if pattern.fullmatch(head):
                    return key + tail
            cut = head.rfind("/")
            if cut <= 0:
                break
            head, tail = head[:cut], head[cut:] + tail
        return path

    def role_of(self, path: str) -> FileRole:
        """Return the role of `path`."""
        return self.name(path).role

    def is_beside(self, path: str) -> bool:
        """Tell whether a path of role OTHER lies in the output folder and is not ignored: perhaps a resume reads it."""
        return _is_inside(path) and self.role_of(path) is FileRole.OTHER and not self._ignored.fullmatch(path)

    def _name(self, path: str) -> NamedFile:
        """Work out key and role of a path not seen before."""
        if not _is_inside(path):
            return NamedFile(path, FileRole.OTHER, opens_save=False)
        key = self.key_of(path)
        if self._ignored.fullmatch(path):
            return NamedFile(key, FileRole.OTHER, opens_save=False)
        if self._checkpoints.fullmatch(path):
            return NamedFile(key, FileRole.CHECKPOINT, opens_save=True)
        if self._final.fullmatch(path):
            return NamedFile(key, FileRole.FINAL, opens_save=False)
        for folder in (key, *folders_above(key)):
            if folder in self._temporaries:
                return NamedFile(key, FileRole.TEMPORARY, opens_save=folder not in self._final_temporaries)
        return NamedFile(key, FileRole.OTHER, opens_save=False)


def _is_inside(path: str) -> bool:
    """Tell whether a path names something in the output folder."""
    return path not in {"", "."} and not path.startswith(("/", "../"))


def folders_above(path: str) -> tuple[str, ...]:
    """Return the folders that `path` lies in, nearest first, such as `a/b` and `a` for `a/b/c`."""
    parts = path.split("/")
    return tuple("/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))


def anywhere(glob: str) -> str:
    """Let a glob that names no folder match in every folder, as `ignore = ["*.log"]` is meant."""
    return glob if "/" in glob else f"**/{glob}"


def compile_globs(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern that fully matches each path which one of `globs` names, and every path beneath such a one."""
    if not globs:
        return re.compile(r"(?!)")
    return re.compile(f"(?s:(?:{'|'.join(glob_pattern(glob) for glob in globs)})(?:/.*)?)")


def glob_pattern(glob: str) -> str:
    """Translate one glob into a regular expression; a leading `{out}/` and a trailing slash mean nothing."""
    text = glob.removeprefix("{out}/").rstrip("/")
    pieces = re.findall(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|.", text, flags=re.DOTALL)
    return "".join(_piece_pattern(piece) for piece in pieces)


def _piece_pattern(piece: str) -> str:
    """Translate one piece of a glob: a wildcard, a set of characters in brackets, or one character."""
    wildcards = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if piece in wildcards:
        return wildcards[piece]
    if len(piece) > 1:
        return _set_pattern(piece)
    return re.escape(piece)


def _set_pattern(piece: str) -> str:
    """Translate `[abc]`, `[a-z]` or `[!abc]`; what is no set of characters, such as `[z-a]`, stands for itself."""
    is_negated = piece[1] in "!^"
    body = piece[1 + is_negated : -1].replace("\\", r"\\").replace("[", r"\[")
    body = rf"\]{body[1:]}" if body.startswith("]") else body
    pattern = f"(?!/)[{'^' if is_negated else ''}{body}]"
    try:
        re.compile(pattern)
    except re.error:
        return re.escape(piece)
    return pattern
