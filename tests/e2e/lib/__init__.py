# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the end-to-end tests share: the tool, targets, window files, the state of the kernel."""
