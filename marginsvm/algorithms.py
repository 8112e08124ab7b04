"""Stands where 0.2 kept its algorithms, whose pickles name it."""

raise ImportError(
    "this was fitted with marginsvm 0.2, whose models later versions do not read: fit again"
)
