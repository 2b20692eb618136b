# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two accounts of the same time: the tool's, and the kernel's, the program's or another tool's."""
import warnings


def agree(look, tries=3):
    """What look() returns, which asserts that two accounts agree; tried again when they do not. A CPU that the machine takes away
    between the readings of one and the other makes them differ in that try, a fault in all of them. Each try that did not
    agree is a warning in the run's summary."""
    for _ in range(tries - 1):
        try:
            return look()
        except AssertionError as error:
            warnings.warn(f"accounts differ, once more: {error}", stacklevel=2)
    return look()
