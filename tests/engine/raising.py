"""Stages that do what ours must not, or that run elsewhere, in a module of its own: executors import it."""

import os


class Raising:
    """Raises the first cell of text that comes, as careless code would."""

    def __call__(self, batches):
        for batch in batches:
            raise ValueError(f"cannot read {batch.column('x')[0].as_py()}")
        yield from ()


class WithoutKernel:
    """A stage as an executor runs it whose curator has left the kernel out."""

    def __init__(self, stage):
        self.stage = stage

    def __call__(self, batches):
        before = os.environ.get("TACIT_KERNEL")
        os.environ["TACIT_KERNEL"] = "off"
        try:
            yield from self.stage(batches)
        finally:
            del os.environ["TACIT_KERNEL"]
            os.environ.update({} if before is None else {"TACIT_KERNEL": before})
