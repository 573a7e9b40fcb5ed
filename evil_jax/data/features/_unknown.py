"""What a path is that no reader knows, for the message."""

import pathlib

_BY_SUFFIX = {
    '.npy': "one array without boxes; save a picture's arrays with numpy.savez as an .npz file",
    '.h5': 'HDF5, which is not read; save each picture as an .npz file',
    '.hdf5': 'HDF5, which is not read; save each picture as an .npz file',
    '.pkl': 'pickle, which is never loaded: it could run any program',
    '.pickle': 'pickle, which is never loaded: it could run any program',
    '.pth': 'PyTorch, which is not read; save each picture as an .npz file',
    '.pt': 'PyTorch, which is not read; save each picture as an .npz file',
    '.zip': 'an archive; unpack it and give what is in it',
    '.tar': 'an archive; unpack it and give what is in it',
    '.gz': 'compressed; unpack it and give what is in it',
    '.tgz': 'an archive; unpack it and give what is in it',
    '.mdb': 'the file of a database; give its folder',
    '.csv': 'a table with commas; tables of regions have tabs and end in .tsv',
    '.txt': 'text; the .tsv file that an offset file (_offset.txt) belongs to may be meant',
}


def what(path: pathlib.Path) -> str:
    """A sentence about the path, or ''."""
    if path.is_file():
        if not path.stat().st_size:
            return ' The file is empty.'
        with open(path, 'rb') as file:
            head = file.read(32)
        if head[16:20] == b'\xde\xc0\xef\xbe':
            return ' It is an LMDB database: give its folder, in which the file is called data.mdb.'
        found = _BY_SUFFIX.get(path.suffix.lower())
        return f' It looks like {found}.' if found else ''
    names = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith('.'))
    if not names:
        return ' The folder is empty.'
    inside = [name for name in names if name.endswith('.tsv') or (path / name / 'data.mdb').is_file()]
    inside += [name for name in names if (path / name / 'store.json').is_file()]
    inside += [name for name in names if (path / name).is_dir() and next((path / name).glob('*.npz'), None)]
    if inside:
        return (
            f' The folder holds {", ".join(dict.fromkeys(inside[:5]))}: give {"that" if len(inside) == 1 else "one"}.'
        )
    return f' The folder holds {", ".join(names[:5])}{", ..." if len(names) > 5 else ""}.'
