# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the scenarios share: the table, how one is recorded, its truth, what is asked of records and findings."""
