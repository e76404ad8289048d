"""Other ways to answer the after-sales questions, each in a virtual environment of its own.

`__main__` is the benchmark; it alone needs ecphoria. The other modules run in the environments of
the peers, so they import nothing but each other, numpy, and what the peer's own list of
requirements names.
"""
