"""Wraps the places of torch that show a step, a batch, a sample and a save, as soon as the target has imported them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .reporter import Reporter


class Arming:
    """Knows what to wrap in which module, and the recorder that is told."""

    def __init__(self, reporter: Reporter) -> None:
        """Report through `reporter`."""
        self._reporter = reporter
        self._recorder: Any = None
        self._uncompiled: Any = None  # calls what it is given, out of the compiler's sight, once there is a compiler
        self.modules: dict[str, Callable[[ModuleType], None]] = {
            "torch.optim.optimizer": self._arm_optimizers,
            "torch.nn.modules.module": self._arm_modules,
            "torch.utils.data.dataloader": self._arm_loaders,
            "torch.serialization": self._arm_torch_save,
            "safetensors.torch": self._arm_safetensors,
            "safetensors.numpy": self._arm_safetensors,
        }

    def begin(self) -> None:
        """Begin a life in a process that was forked from another one."""
        if self._recorder is not None:
            self._recorder.begin()

    def _tell(self, what: Callable[[Any], None]) -> None:
        """Tell the recorder something; whatever goes wrong with it is not the target's trouble."""
        try:
            if self._recorder is None:
                from .recorder import Recorder

                self._recorder = Recorder(self._reporter)
            if self._uncompiled is None and "torch._dynamo" in sys.modules:
                self._uncompiled = sys.modules["torch._dynamo"].disable(_call)
            (self._uncompiled or _call)(what, self._recorder)
        except Exception as error:  # noqa: BLE001 - the step goes without a record
            recorder = sys.modules.get("ninelives_probe.recorder")
            if recorder is not None:
                recorder.complain(error)

    # --- steps --------------------------------------------------------------------------------------------

    def _arm_optimizers(self, module: ModuleType) -> None:
        """Look before each step of any optimizer, and tick after it."""
        register_before = getattr(module, "register_optimizer_step_pre_hook", None)
        register_after = getattr(module, "register_optimizer_step_post_hook", None)
        if register_before is None or register_after is None:
            return

        def before(optimizer: Any, _args: object, _kwargs: object) -> None:  # noqa: ANN401 - torch's own class
            self._tell(lambda to: to.before_step(optimizer))

        def after(optimizer: Any, _args: object, _kwargs: object) -> None:  # noqa: ANN401 - torch's own class
            self._tick(optimizer)

        for hook in (before, after):
            hook._torchdynamo_disable = True  # type: ignore[attr-defined]  # a compiled step calls it, and does not trace it
        register_before(before)
        register_after(after)
        inner = module.Optimizer.__init__

        @functools.wraps(inner)
        def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever torch takes
            inner(optimizer, *args, **kwargs)
            self._tell(lambda to: to.note_optimizer(optimizer))

        module.Optimizer.__init__ = made

    def _tick(self, optimizer: Any) -> None:  # noqa: ANN401 - torch's own class
        """Report a step; without a record where there is no recorder."""
        if self._recorder is None:
            self._reporter.report(b"tick\n")
        else:
            self._recorder.after_step(optimizer)

    # --- batches ------------------------------------------------------------------------------------------

    def _arm_modules(self, module: ModuleType) -> None:
        """See the inputs of the outermost module in each call; what is called inside of it costs one look."""
        import threading

        inner = module.Module.__call__

        class Inside(threading.local):
            """Whether this thread is inside of a module's call."""

            is_inside = False

        state = Inside()

        @functools.wraps(inner)
        def call(self_: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever a module takes
            if state.is_inside:
                return inner(self_, *args, **kwargs)
            state.is_inside = True
            try:
                self._tell(lambda to: to.batches.see(self_, args, kwargs))
                return inner(self_, *args, **kwargs)
            finally:
                state.is_inside = False

        _keep_from_compiler(call)
        module.Module.__call__ = call

    # --- samples ------------------------------------------------------------------------------------------

    def _arm_loaders(self, module: ModuleType) -> None:
        """See which samples an iterator draws, and which batch they become."""
        # ruff: noqa: SLF001 - only in here is there a place that all loaders pass
        kind = module._BaseDataLoaderIter
        make, reset, draw, give = kind.__init__, kind._reset, kind._next_index, kind.__next__

        @functools.wraps(make)
        def noted_make(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - torch's own
            self._tell(lambda to: to.samples.note_loader(iterator, loader))
            make(iterator, loader, *args, **kwargs)

        @functools.wraps(reset)
        def noted_reset(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's own
            self._tell(lambda to: to.samples.note_loader(iterator, loader))
            return reset(iterator, loader, *args, **kwargs)

        @functools.wraps(draw)
        def noted_draw(iterator: Any) -> Any:  # noqa: ANN401 - torch's own classes
            index = draw(iterator)
            self._tell(lambda to: to.samples.note_drawn(iterator, index))
            return index

        @functools.wraps(give)
        def noted_give(iterator: Any) -> Any:  # noqa: ANN401 - torch's own classes
            batch = give(iterator)
            self._tell(lambda to: to.samples.note_given(iterator, batch))
            return batch

        kind.__init__, kind._reset, kind._next_index, kind.__next__ = noted_make, noted_reset, noted_draw, noted_give

    # --- saves --------------------------------------------------------------------------------------------

    def _arm_torch_save(self, module: ModuleType) -> None:
        """See that `torch.save` has returned."""
        module.save = self._noting(module.save)  # type: ignore[attr-defined]

    def _arm_safetensors(self, module: ModuleType) -> None:
        """See that `save_file` has returned."""
        module.save_file = self._noting(module.save_file)  # type: ignore[attr-defined]

    def _noting(self, save: Callable[..., Any]) -> Callable[..., Any]:
        """Return a save call that tells the recorder when it has returned."""

        @functools.wraps(save)
        def noted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever a save takes
            result = save(*args, **kwargs)
            self._tell(lambda to: to.note_save())
            return result

        return noted

    def see_event(self, event: str, _arguments: tuple[object, ...]) -> None:
        """Take an audit event: a rename puts something in its place, whoever wrote it."""
        if event == "os.rename" and self._recorder is not None:
            self._tell(lambda to: to.note_rename())


def _call(what: Callable[[Any], None], recorder: Any) -> None:  # noqa: ANN401 - torch is not there yet
    """Tell the recorder."""
    what(recorder)


def _keep_from_compiler(function: Callable[..., Any]) -> None:
    """Let `torch.compile` run the wrapper as it is, and compile what it calls."""
    try:
        from torch._C._dynamo.eval_frame import skip_code  # type: ignore[attr-defined]
    except ImportError:
        return
    skip_code(function.__code__)
