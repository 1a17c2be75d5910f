"""`diff`: every format, bits and not values, forms, layouts, both sides' damage; in one pass and little memory."""

from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

import chaos.checkpoints.pairs as pairs_module
from chaos.checkpoints.diff import diff
from chaos.checkpoints.examine import examine
from chaos.checkpoints.process import Examiner
from chaos.errors import UsageError
from chaos.model import CheckpointDifference, ComponentDifference, DifferenceKind, LeafDifference

Saver = Callable[[dict[str, torch.Tensor], Path], Path]


def _torch(state: dict[str, torch.Tensor], path: Path) -> Path:
    """Save as torch does."""
    torch.save(state, path.with_suffix(".pt"))
    return path.with_suffix(".pt")


def _safetensors(state: dict[str, torch.Tensor], path: Path) -> Path:
    """Save as safetensors."""
    save_file(state, path.with_suffix(".safetensors"))
    return path.with_suffix(".safetensors")


def _npz(state: dict[str, torch.Tensor], path: Path) -> Path:
    """Save as an archive of numpy's."""
    np.savez(path.with_suffix(".npz"), **{name: value.numpy() for name, value in state.items()})
    return path.with_suffix(".npz")


def _packed(state: dict[str, torch.Tensor], path: Path) -> Path:
    """Save as a compressed archive of numpy's."""
    np.savez_compressed(path.with_suffix(".npz"), **{name: value.numpy() for name, value in state.items()})
    return path.with_suffix(".npz")


def _npy(state: dict[str, torch.Tensor], path: Path) -> Path:
    """Save the only array of `state` as numpy does."""
    np.save(path.with_suffix(".npy"), state["w"].numpy())
    return path.with_suffix(".npy")


def _pickled(state: dict[str, torch.Tensor], path: Path) -> Path:
    """Save arrays in a pickle."""
    path.with_suffix(".pkl").write_bytes(pickle.dumps({name: value.numpy() for name, value in state.items()}))
    return path.with_suffix(".pkl")


def _folder(state: dict[str, torch.Tensor], path: Path) -> Path:
    """Save a folder of files."""
    path.mkdir()
    _safetensors(state, path / "model")
    (path / "state.json").write_text('{"global_step": 3}')
    return path


def _distributed(state: dict[str, torch.Tensor], path: Path) -> Path:
    """Save a folder as torch.distributed does."""
    dcp.save(state, checkpoint_id=path, no_dist=True)
    return path


def _only_leaf(found: CheckpointDifference) -> tuple[ComponentDifference, LeafDifference]:
    """Return the only leaf that differs, with its component."""
    shown = [(component, leaf) for component in found.components for leaf in component.shown]
    assert len(shown) == 1
    return shown[0]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize(
    "save", [_torch, _safetensors, _npz, _packed, _npy, _pickled, _folder, _distributed], ids=lambda save: save.__name__
)
def test_every_format_shows_the_one_element_that_differs(save: Saver, tmp_path: Path) -> None:
    """A sign of a zero in a tensor of more than one piece is one element of so many, at a distance of 0."""
    state = {"w": torch.zeros(300_000)}
    one = save(state, tmp_path / "one")
    same = save(state, tmp_path / "same")
    state["w"][299_999] = -0.0
    other = save(state, tmp_path / "other")
    assert diff(one, same).equal
    assert diff(one, one).equal
    found = diff(one, other)
    assert not found.equal
    component, leaf = _only_leaf(found)
    assert (component.tensors, component.tensors_differing, component.elements) == (1, 1, 300_000)
    assert (leaf.elements_differing, leaf.largest_absolute, leaf.largest_ulp) == (1, 0.0, 0)


def test_payloads_of_nan_differ_and_equal_ones_do_not(tmp_path: Path) -> None:
    """A NaN equals itself; one with another payload is another, as far away as the payloads are."""
    bits = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32)
    one = _torch({"w": bits.view(torch.float32)}, tmp_path / "a")
    assert diff(one, _torch({"w": bits.view(torch.float32)}, tmp_path / "b")).equal
    bits[1] += 4
    _, leaf = _only_leaf(diff(one, _torch({"w": bits.view(torch.float32)}, tmp_path / "c")))
    assert (leaf.elements_differing, leaf.largest_absolute, leaf.largest_ulp) == (1, 0.0, 4)


def test_dtype_and_shape_are_named(tmp_path: Path) -> None:
    """Both forms are told; where the dtype alone changed, the numbers are compared."""
    one = _torch({"d": torch.tensor([1.0, 0.1]), "s": torch.ones(2, 3), "i": torch.ones(2)}, tmp_path / "a")
    two = _torch(
        {"d": torch.tensor([1.0, 0.1]).half(), "s": torch.ones(3, 2), "i": torch.ones(2).int()}, tmp_path / "b"
    )
    found = {leaf.name: leaf for component in diff(one, two).components for leaf in component.shown}
    assert {leaf.kind for leaf in found.values()} == {DifferenceKind.FORM}
    assert (found["d"].a, found["d"].b) == ("float32[2]", "float16[2]")
    assert (found["s"].a, found["s"].b) == ("float32[2, 3]", "float32[3, 2]")
    assert (found["i"].a, found["i"].b) == ("float32[2]", "int32[2]")
    assert found["d"].largest_absolute == pytest.approx(abs(0.1 - float(torch.tensor(0.1).half())), rel=1e-3)


def test_names_on_one_side_and_values_are_told(tmp_path: Path) -> None:
    """A value shows what it is on both sides, even where the texts are cut to the same."""
    torch.save({"a": 1, "both": "x" * 90 + "1", "t": 1, "l": [1.5, True]}, tmp_path / "a.pt")
    torch.save({"b": 1, "both": "x" * 90 + "2", "t": torch.ones(1), "l": [1.5, 1]}, tmp_path / "b.pt")
    found = diff(tmp_path / "a.pt", tmp_path / "b.pt")
    leaves = {leaf.name: leaf for component in found.components for leaf in component.shown}
    assert {name: leaf.kind for name, leaf in leaves.items()} == {
        "a": DifferenceKind.ONLY_A, "b": DifferenceKind.ONLY_B, "both": DifferenceKind.VALUE, "t": DifferenceKind.FORM,
        "l.1": DifferenceKind.VALUE,
    }  # fmt: skip
    assert leaves["both"].a != leaves["both"].b
    assert (leaves["t"].a, leaves["t"].b) == ("1", "float32[1]")
    assert (leaves["l.1"].a, leaves["l.1"].b) == ("True", "1")


@pytest.mark.parametrize("changed", [False, True])
def test_layouts_do_not_matter(changed: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter of the test
    """Views with strides, of one storage and without gaps, are compared element by element."""
    base = torch.arange(800_000.0).reshape(400, 2000)
    views = {
        "t": base.t(),
        "every": base[:, ::2],
        "row": base[3],
        "none": torch.empty(0, 3),
        "wide": base[:1].expand(3, -1),
    }
    torch.save(views, tmp_path / "a.pt")
    copies = {name: view.clone(memory_format=torch.contiguous_format) for name, view in views.items()}
    if changed:
        for name, at in (("t", (1999, 399)), ("every", (399, 999)), ("row", (5,)), ("wide", (2, 1))):
            copies[name][at] += 1
    save_file(copies, tmp_path / "b.safetensors")
    torch.save(
        {name: view.t() if name == "t" else view for name, view in views.items()} | {"t": base.t()}, tmp_path / "c.pt"
    )
    assert diff(tmp_path / "a.pt", tmp_path / "c.pt").equal
    found = diff(tmp_path / "a.pt", tmp_path / "b.safetensors")
    assert found.equal is not changed
    assert sum(component.elements_differing for component in found.components) == (4 if changed else 0)


def test_tensors_of_one_storage_in_another_order_are_still_verified(tmp_path: Path) -> None:
    """Overlapping and reversed views of one storage neither hide a difference nor break its checksum."""
    base = torch.arange(10_000.0)
    torch.save({"b": base[5000:], "a": base[:6000], "all": base}, tmp_path / "a.pt")
    changed = base.clone()
    changed[5500] += 1
    torch.save({"b": changed[5000:], "a": changed[:6000], "all": changed}, tmp_path / "b.pt")
    (component,) = diff(tmp_path / "a.pt", tmp_path / "b.pt").components
    assert (component.tensors_differing, component.elements_differing) == (3, 3)
    assert diff(tmp_path / "a.pt", tmp_path / "a.pt").equal


def test_byte_orders_are_dtypes_and_their_numbers_are_compared(tmp_path: Path) -> None:
    """Big-endian arrays have true distances; against little-endian ones they hold the same numbers."""
    one = np.array([1.0, 2.0, 3.0], dtype=">f4")
    np.save(tmp_path / "a.npy", one)
    np.save(tmp_path / "l.npy", one.astype("<f4"))
    one[2] = np.nextafter(np.float32(3.0), np.float32(4.0))
    np.save(tmp_path / "b.npy", one)
    _, leaf = _only_leaf(diff(tmp_path / "a.npy", tmp_path / "b.npy"))
    assert (leaf.elements_differing, leaf.largest_ulp) == (1, 1)
    found = diff(tmp_path / "a.npy", tmp_path / "l.npy")
    assert not found.equal
    assert any("no number" in reading and "dtype" in reading for reading in found.readings)


def test_links_are_followed(tmp_path: Path) -> None:
    """A cache of links to files, and a link to the whole folder, are what they point to."""
    for name, value in (("a", 1.0), ("b", 2.0)):
        (tmp_path / name).mkdir()
        save_file({"w": torch.tensor([value])}, tmp_path / f"blob-{name}")
        (tmp_path / name / "model.safetensors").symlink_to(tmp_path / f"blob-{name}")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert diff(tmp_path / "a", tmp_path / "link").equal
    _, leaf = _only_leaf(diff(tmp_path / "link", tmp_path / "b"))
    assert (leaf.name, leaf.a, leaf.b) == ("model.safetensors/w", "1.0", "2.0")


def test_files_of_unknown_formats_count_by_their_bytes(tmp_path: Path) -> None:
    """A note beside the checkpoint is one value, which shows by its digest that it differs."""
    for name, text in (("a", "one"), ("b", "two")):
        _folder({"w": torch.ones(2)}, tmp_path / name)
        (tmp_path / name / "note.txt").write_text(text)
    _, leaf = _only_leaf(diff(tmp_path / "a", tmp_path / "b"))
    assert leaf.name == "note.txt"
    assert leaf.a.startswith("3 bytes (digest ")
    assert leaf.a != leaf.b


def test_names_can_be_ignored_and_few_be_shown(tmp_path: Path) -> None:
    """Globs leave leaves out; what is left out is counted once; names are shown in the order of their numbers."""
    torch.save({"layers": [torch.ones(1) for _ in range(12)], "step": 1}, tmp_path / "a.pt")
    torch.save({"layers": [torch.zeros(1) for _ in range(12)], "step": 2}, tmp_path / "b.pt")
    found = diff(tmp_path / "a.pt", tmp_path / "b.pt", ignored=("step", "s*"), limit=3)
    assert found.ignored == 1
    (component,) = found.components
    assert [leaf.name for leaf in component.shown] == ["layers.0", "layers.1", "layers.2"]
    assert component.tensors_differing == 12
    assert diff(tmp_path / "a.pt", tmp_path / "b.pt", ignored=("*",)).equal


def test_globs_that_match_no_name_are_told(tmp_path: Path) -> None:
    """One that matches only what another one matches, too, is not among them."""
    one = _torch({"step": torch.ones(1), "w": torch.ones(1)}, tmp_path / "a")
    globs = ("step", "optimiser.*", "st*", "optimiser.*")
    assert diff(one, one, ignored=globs).unmatched == ("optimiser.*",)
    assert diff(one, one).unmatched == ()


def _damaged(tmp_path: Path, name: str) -> Path:
    """Return a file (or nothing) that is not whole."""
    path = tmp_path / "bad.pt"
    state = {"w": torch.arange(10_000.0)}
    if name == "missing":
        return path
    if name == "folder":
        path.mkdir()
        return path
    torch.save(state, path)
    data = bytearray(path.read_bytes())
    if name == "truncated":
        del data[20_000:]
    elif name == "empty":
        data.clear()
    elif name == "flipped":
        at = data.find(state["w"].numpy().tobytes())
        data[at + 30_001] ^= 4
    elif name == "header":
        save_file(state, path)
        data = bytearray(path.read_bytes())
        data[12] ^= 0x40
    elif name == "unknown":
        data = bytearray(b"not a checkpoint at all")
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "missing"),
        ("folder", "is a folder and .* is a file"),
        ("truncated", "cut short"),
        ("empty", "it is empty"),
        ("flipped", "its record bad/data/0 fails its CRC-32 checksum"),
        ("header", "header is damaged"),
        ("unknown", "its format is not known here"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_not_whole_is_a_sentence_that_names_it(name: str, said: str, is_first: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter of the test
    """Whichever side it is on, the path of the bad one is in the sentence, and no difference is told."""
    good = _torch({"w": torch.arange(10_000.0)}, tmp_path / "good")
    bad = _damaged(tmp_path, name)
    with pytest.raises(UsageError, match=rf"bad\.pt.*{said}"):
        diff(*((bad, good) if is_first else (good, bad)))


@pytest.mark.parametrize("kind", ["gap", "compressed", "unused"])
def test_a_flipped_bit_anywhere_in_an_archive_is_found(kind: str, tmp_path: Path) -> None:
    """Also where no tensor looks, where it is packed, and in a record that both sides have alike."""
    path = tmp_path / "a.pt"
    if kind == "compressed":
        path = _packed({"w": torch.arange(100_000.0)}, tmp_path / "a")
        at = path.stat().st_size // 2
    elif kind == "gap":
        base = torch.arange(10_000.0)
        torch.save({"w": base[:100], "v": base[9_900:]}, path)
        at = path.read_bytes().find(base.numpy().tobytes()) + 20_000
    else:
        np.savez(tmp_path / "a.npz", w=np.ones(3))
        path = tmp_path / "a.npz"
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("note", b"0123456789")
        at = path.read_bytes().find(b"0123456789") + 3
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    bad = tmp_path / f"bad{path.suffix}"
    bad.write_bytes(data)
    for pair in ((path, bad), (bad, bad)):
        with pytest.raises(UsageError, match=r"bad\.\w+ cannot be compared: its record .*(CRC-32|decompressed|length)"):
            diff(*pair)


def test_a_flipped_weight_in_safetensors_is_one_element(tmp_path: Path) -> None:
    """The format has no checksum: the bit is a difference, and told to be a single bit."""
    path = _safetensors({"w": torch.ones(1000)}, tmp_path / "a")
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    (tmp_path / "b.safetensors").write_bytes(data)
    found = diff(path, tmp_path / "b.safetensors")
    assert _only_leaf(found)[1].elements_differing == 1
    assert any(reading.startswith("a single bit differs, of one element of w") for reading in found.readings)


class _Touches:
    """Pickles as a call that makes a file."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Keep what is to be called."""
        self.arguments = (call, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Ask the reader of the pickle to make the call."""
        return self.arguments


def test_a_hostile_pickle_is_refused_and_not_executed(tmp_path: Path) -> None:
    """The file that it would make is not there, and the sentence says which call and in which file."""
    mark = tmp_path / "mark"
    good = _torch({"w": torch.ones(2)}, tmp_path / "good")
    calls = [
        (os.system, f"touch {mark}"),
        (eval, f"open({str(mark)!r}, 'w')"),
        (os.mkdir, str(mark)),
        (Path.touch, mark),
    ]
    for call, argument in calls:
        bad = tmp_path / "bad.pt"
        torch.save({"w": torch.ones(2), "bad": _Touches(call, argument)}, bad)
        with pytest.raises(
            UsageError, match=r"bad\.pt cannot be compared: its pickle would call .*nothing of it was run"
        ):
            diff(good, bad)
        (tmp_path / "bad.pkl").write_bytes(pickle.dumps([_Touches(call, argument)]))
        with (
            Examiner() as examiner,
            pytest.raises(UsageError, match=r"bad\.pkl cannot be compared: its pickle would call"),
        ):
            examiner.diff(tmp_path / "bad.pkl", good)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("module", "name", "attribute", "is_refused"),
    [
        ("torch", "os.system", None, True),
        ("torch", "os", None, True),
        ("builtins", "getattr", "system", False),
        ("subprocess", "Popen", None, True),
        ("pathlib", "PosixPath", None, False),
        ("pathlib", "PosixPath", "touch", True),
        ("transformers.trainer_utils", "IntervalStrategy", "STEPS", False),
        ("sys", "modules", None, True),
        ("collections", "OrderedDict", None, False),
        ("builtins", "eval", None, True),
    ],
)
def test_what_is_hostile(module: str, name: str, attribute: str | None, is_refused: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter of the test
    """By whatever way a global is reached: through another module, by `getattr`; data and enums are none."""
    found = f"c{module}\n{name}\n".encode()
    if attribute is not None:
        found = b"cbuiltins\ngetattr\n(" + found + f"V{attribute}\ntR".encode()
    path = tmp_path / "a.pkl"
    path.write_bytes(b"\x80\x02" + found + b".")
    if is_refused:
        with pytest.raises(UsageError, match="a hostile file; nothing of it was run"):
            diff(path, path)
    else:
        assert diff(path, path).equal


def test_objects_of_a_framework_are_data(tmp_path: Path) -> None:
    """What is unknown and harmless is compared by name and state, and nothing of it is imported."""
    for name, width in (("a", 1), ("b", 2)):
        torch.save(
            {"shape": torch.Size([width]), "path": Path("/x"), "layer": torch.nn.Linear(1, width)}, tmp_path / name
        )
        (tmp_path / name).rename(tmp_path / f"{name}.pt")
    found = diff(tmp_path / "a.pt", tmp_path / "b.pt", ignored=("layer.*weight", "layer.*bias"))
    names = {leaf.name for component in found.components for leaf in component.shown}
    assert "shape.0" in names
    assert any(name.startswith("layer") and name.endswith("out_features") for name in names)


def test_an_index_needs_its_files(tmp_path: Path) -> None:
    """A folder whose index names a file that is not there is not whole, as everywhere else."""
    for name in ("a", "b"):
        folder = _folder({"w": torch.ones(2)}, tmp_path / name)
        index = {"weight_map": {"w": "model.safetensors" if name == "a" else "other.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UsageError, match=r"/b cannot be compared: .* names other\.safetensors, which is missing"):
        diff(tmp_path / "a", tmp_path / "b")


def _bytes_read() -> int:
    """Return how many bytes this process has read so far."""
    return int(Path("/proc/self/io").read_text().partition("rchar: ")[2].split()[0])


@pytest.mark.parametrize("save", [_torch, _safetensors, _npz], ids=lambda save: save.__name__)
def test_both_files_are_read_once(save: Saver, tmp_path: Path) -> None:
    """Equal or different, checksums included: hardly a byte more than the two files have is read."""
    state = {f"w{number}": torch.full((2_000_003,), 1.0) for number in range(3)}
    one = save(state, tmp_path / "one")
    two = save({name: value * 2 for name, value in state.items()}, tmp_path / "two")
    for pair in ((one, one), (one, two)):
        before = _bytes_read()
        diff(*pair)
        assert _bytes_read() - before < 1.1 * sum(path.stat().st_size for path in pair)


def test_large_files_need_little_memory(tmp_path: Path) -> None:
    """Files of 300 MB that differ in every element are compared within 200 MB of address space."""
    torch.save({"w": torch.zeros(75_000_000), "one": torch.ones(1)}, tmp_path / "a.pt")
    torch.save({"w": torch.full((75_000_000,), 2.0), "one": torch.ones(1)}, tmp_path / "b.pt")
    with Examiner(memory_bytes=200 << 20) as examiner:
        found = examiner.diff(tmp_path / "a.pt", tmp_path / "b.pt")
    (component,) = found.components
    assert (component.elements_differing, component.largest_absolute) == (75_000_000, 2.0)


def test_a_file_that_shrinks_meanwhile_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor whose bytes are gone when they are read ends the comparison, with the file's name."""
    one = _safetensors({"w": torch.ones(1000)}, tmp_path / "a")
    two = _safetensors({"w": torch.ones(1000)}, tmp_path / "b")
    true_form = pairs_module.Comparison._same_form

    def shrunk(*arguments: Any, **named: Any) -> Any:
        os.truncate(two, 500)
        return true_form(*arguments, **named)

    monkeypatch.setattr(pairs_module.Comparison, "_same_form", shrunk)
    with pytest.raises(UsageError, match=r"b\.safetensors cannot be compared: it ended at byte"):
        diff(one, two)


def test_a_hostile_header_takes_no_memory(tmp_path: Path) -> None:
    """A length of a header that is not there is a sentence."""
    good = _safetensors({"w": torch.ones(3)}, tmp_path / "a")
    (tmp_path / "b.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}")
    with pytest.raises(UsageError, match=r"b\.safetensors cannot be compared: its header"):
        diff(good, tmp_path / "b.safetensors")


def test_views_that_repeat_their_bytes_without_end_are_compared_by_their_bytes(tmp_path: Path) -> None:
    """Terabytes made of one number are that number, counted as often as it is shown."""
    for name, value in (("a", 0.0), ("same", 0.0), ("b", 1.0)):
        torch.save({"w": torch.full((1, 2), value).expand(1 << 40, 2)}, tmp_path / f"{name}.pt")
    assert diff(tmp_path / "a.pt", tmp_path / "same.pt").equal
    component, leaf = _only_leaf(diff(tmp_path / "a.pt", tmp_path / "b.pt"))
    assert (component.elements, component.elements_differing) == (1 << 41, 1 << 41)
    assert (leaf.elements_differing, leaf.largest_absolute) == (1 << 41, 1.0)


def test_a_repeating_view_that_has_no_like_on_the_other_side_is_refused(tmp_path: Path) -> None:
    """Overlapping rows of terabytes are refused by a sentence in both tasks; rows of some megabytes are compared."""
    row = torch.arange(2049.0)
    for name, width in (("large", 1 << 20), ("small", 1 << 10)):
        view = torch.arange(float(2 * width)).as_strided((width, width), (1, 1))
        torch.save({"w": view}, tmp_path / f"{name}.pt")
    with pytest.raises(UsageError, match="a tensor of 4398046511104 bytes repeats 8388604 bytes"):
        diff(tmp_path / "large.pt", tmp_path / "large.pt")
    found = examine(tmp_path / "large.pt")
    assert found.is_whole is None
    assert "repeats 8388604 bytes" in found.reason
    torch.save({"w": row[:2047].unfold(0, 1 << 10, 1).contiguous()}, tmp_path / "copy.pt")
    assert diff(tmp_path / "small.pt", tmp_path / "copy.pt").equal
