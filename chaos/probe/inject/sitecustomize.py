"""The probe of Ninelives: a tick at each optimizer step, so that a script that prints nothing has a clock too.

Loaded by the interpreter's `site` because its folder is first on PYTHONPATH. It waits for `torch.optim.optimizer` to be imported, registers one
global hook, and writes a word to the file that NINELIVES_TICKS names. It draws from no generator, keeps no tensor, and hands on to the user's own `sitecustomize`, if there is one.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_OPTIMIZER = "torch.optim.optimizer"


def _report(word):
    """Append one word to the ticks; a target that closed or lost the file is not disturbed."""
    try:
        fd = os.open(os.environ["NINELIVES_TICKS"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except (KeyError, OSError):
        return
    try:
        os.write(fd, word)
    except OSError:
        return
    finally:
        os.close(fd)


def _after_step(optimizer, args, kwargs):
    """Tell that an optimizer has done a step."""
    _report(b"tick\n")


class _WatchForTorch:
    """A finder that lets all imports pass, and adds the hook once the optimizers are loaded."""

    def find_spec(self, name, path=None, target=None):
        """Wrap the loader of the one module that matters."""
        if name != _OPTIMIZER:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            register = getattr(module, "register_optimizer_step_post_hook", None)
            if register is not None:
                register(_after_step)
            _report(b"torch\n")

        spec.loader.exec_module = exec_module
        return spec


def _run_users_own():
    """Run the sitecustomize that would have been found without this one."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    rest = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("NINELIVES_TICKS"):
    sys.meta_path.insert(0, _WatchForTorch())
    _report(b"interpreter\n")
_run_users_own()
