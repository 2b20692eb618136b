# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a scenario is."""
import contextlib
import dataclasses

from . import program as programs


@dataclasses.dataclass(frozen=True)
class Scenario:
    """program: a file of work/ (Python, or the name of a C program) and what is common to both sides' arguments."""
    name: str
    what: str  # one sentence: the cause
    patterns: tuple  # ids of the catalog, any of which may be named first
    program: tuple
    shows: object  # shows(cause: Recording): demands that the planted cause is in the records
    healthy: object  # healthy(twin: Recording, cause: Recording): demands that the twin differs in just that
    cause: tuple = ()  # further arguments
    twin: tuple = ()
    seconds: int = 4  # of the window
    trace: tuple = ()  # further arguments of `trace`
    costs: str = ""  # further rows of HB_SIM_COSTS
    env: dict = dataclasses.field(default_factory=dict)
    judge: str = "exposed"  # what of the finding is compared with the truth: exposed (a range), delay_ns or count
    amount: object = None  # amount(truth): how much that is, or (least, most); default: exposed time of the spans "cause"
    blamed: tuple = ()  # begins of roles; the finding must name one of these threads: waker, holder, or who did it
    chain: tuple = ()  # what the finding's chain of wakers names, in this order
    around: object = contextlib.nullcontext  # around(side): context in which it runs
    impossible: object = None  # impossible(): why it cannot be planted here, or None
    fair: tuple = ()  # sides that need the fair scheduler: their threads compete for CPUs
    pending: str = ""  # why `analyze` cannot name it yet

    def __str__(self):
        return self.name

    @property
    def group(self):
        """Those of one group come one after the other."""
        return self.name

    def running(self, side, folder, _servers):
        """The context in which it runs; gives a Target."""
        return programs.running(self, side, folder)

    def true_amount(self, truth):
        """(least, most): what the window's edges cut may or may not be told."""
        if self.amount:
            value = self.amount(truth)
            return value if isinstance(value, tuple) else (value, value)
        whole = [(r["begin"], r["end"]) for r in truth.rows("cause") if r["whole"]]
        return tuple(sum(b - a for a, b in truth.exposed(kind)) for kind in (whole, "cause"))
