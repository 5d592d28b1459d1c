"""The hot loops: kernels over flat int64 arrays, one file for what each of them serves; see `jit.py`.

A *row* is a column of a two-dimensional array `data[field, row]`, see `table.py`. A *code* is a value as one integer, see
`dictionary.py`: equal values have equal codes once made canonical. Each file says by `MAKES_NO_ARRAYS` that its kernels
write into arrays that they are given.
"""
