"""Writes files of TensorFlow checkpoints and BLEURT folders from the descriptions of their formats, for tests."""

import json
import struct

import numpy as np

from evil_jax.interop import crc32c

KINDS = {'float32': 1, 'float64': 2, 'int32': 3, 'int64': 9, 'bool': 10, 'float16': 19}


def varint(number):
    found = b''
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def snap(data):
    """Snappy by hand: literals of all sizes of length, copies with offsets of one, two and four bytes."""
    out, at, seen, literal = varint(len(data)), 0, {}, b''

    def flush():
        nonlocal out, literal
        if literal:
            n = len(literal) - 1
            more = 0 if n < 60 else (n.bit_length() + 7) // 8
            length = n.to_bytes(more, 'little') if more else b''
            out += bytes([(59 + more if more else n) << 2]) + length + literal
            literal = b''

    while at < len(data):
        start = seen.get(data[at : at + 4])
        seen[data[at : at + 4]] = at
        length = 0
        if start is not None and at + 4 <= len(data):
            while at + length < len(data) and length < 64 and data[start + length] == data[at + length]:
                length += 1  # it may reach into itself
        if length < 4:
            literal += data[at : at + 1]
            at += 1
            continue
        flush()
        back = at - start
        if length <= 11 and back < 1 << 11:
            out += bytes([1 | (length - 4) << 2 | back >> 8 << 5, back & 0xFF])
        elif back < 1 << 16 and length % 2:
            out += bytes([2 | (length - 1) << 2]) + back.to_bytes(2, 'little')
        else:
            out += bytes([3 | (length - 1) << 2]) + back.to_bytes(4, 'little')
        at += length
    flush()
    return out


def block(entries, every=4):
    """Entries [(key, value)] with common beginnings of keys left out, but of each `every`-th one."""
    out, restarts, last = b'', [], b''
    for n, (key, value) in enumerate(entries):
        shared = 0
        if n % every:
            while shared < min(len(last), len(key)) and last[shared] == key[shared]:
                shared += 1
        else:
            restarts.append(len(out))
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    restarts = restarts or [0]
    return out + struct.pack(f'<{len(restarts) + 1}I', *restarts, len(restarts))


def sstable(entries, packed=False, size=5):
    """A whole table of entries {key: value}, `size` of them a block."""
    items = sorted(entries.items())
    some = [items[start : start + size] for start in range(0, len(items), size)]
    return table_of([(part[-1][0], block(part)) for part in some], packed)


def table_of(blocks, packed=False):
    """A whole table of blocks [(last key, content)]."""
    out, index = b'', []

    def put(data):
        nonlocal out
        data, kind = (snap(data), b'\x01') if packed else (data, b'\0')
        handle = varint(len(out)) + varint(len(data))
        out += data + kind + struct.pack('<I', crc32c.masked(crc32c.crc32c(data + kind)))
        return handle

    for last, content in blocks:
        index.append((last + b'\xff', put(content)))
    footer = put(block([])) + put(block(index, every=1))
    return out + footer.ljust(40, b'\0') + struct.pack('<Q', 0xDB4775248B80FB57)


def field(number, value):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def entry(shape, kind, shard, offset, data, size=None):
    axes = b''.join(field(2, field(1, n)) for n in shape)
    crc = crc32c.masked(crc32c.crc32c(data))
    found = field(1, kind) + field(2, axes) + field(3, shard) * bool(shard) + field(4, offset) * bool(offset)
    return found + field(5, len(data) if size is None else size) + varint(6 << 3 | 5) + struct.pack('<I', crc)


def bundle(prefix, arrays, *, shards=1, packed=True, kinds=None, more=None):
    """A checkpoint of arrays {name: array}, spread over files of data.

    Args:
      kinds: {name: TensorFlow's number of a kind} where numpy has not that kind.
      more: further entries of the index, {key: value}.
    """
    prefix.parent.mkdir(parents=True, exist_ok=True)
    data = [bytearray(b'\0' * shard) for shard in range(shards)]  # nothing says that arrays begin at multiples of four
    index = {b'': field(1, shards) + field(3, field(1, 1))}
    for n, (name, array) in enumerate(sorted(arrays.items())):
        array = np.asarray(array)
        shard = n % shards
        kind = (kinds or {}).get(name) or KINDS[str(array.dtype)]
        raw = array.tobytes()
        index[name.encode()] = entry(array.shape, kind, shard, len(data[shard]), raw)
        data[shard] += raw
    for shard, content in enumerate(data):
        prefix.with_name(f'{prefix.name}.data-{shard:05d}-of-{shards:05d}').write_bytes(content)
    prefix.with_name(f'{prefix.name}.index').write_bytes(sstable(index | (more or {}), packed))


def tensorflow_names(tensors):
    """The arrays of Hugging Face's BERT or RemBERT with one output, as BLEURT's checkpoints have them."""
    found = {}
    for name, array in tensors.items():
        parts = name.split('.')
        if parts[0] == 'classifier':
            found['dense/kernel' if parts[1] == 'weight' else 'dense/bias'] = array.T
            continue
        parts[0] = 'bert'
        if parts[1:3] == ['encoder', 'layer']:
            parts[2:4] = [f'layer_{parts[3]}']
        if parts[-2] == 'LayerNorm':
            parts[-1] = {'weight': 'gamma', 'bias': 'beta'}[parts[-1]]
        elif parts[-2].endswith('_embeddings'):
            parts.pop()
        elif parts[-1] == 'weight':
            parts[-1], array = 'kernel', array.T
        found['/'.join(parts)] = np.ascontiguousarray(array)
    return found


def bleurt_folder(folder, tensors, bert_config, *, erf=False, packed=True, **config):
    """A folder as google-research/bleurt publishes it; the vocabulary has to be put there besides."""
    folder.mkdir(exist_ok=True)
    (folder / 'bert_config.json').write_text(json.dumps(bert_config))
    whole = {'name': 'toy', 'bert_config_file': 'bert_config.json', 'max_seq_length': 32, **config}
    (folder / 'bleurt_config.json').write_text(json.dumps(whole))
    node = lambda name, op: field(2, field(1, field(1, name) + field(2, op)))
    (folder / 'saved_model.pb').write_bytes(node(b'a', b'Tanh') + (node(b'b', b'Erfc') if erf else b''))
    arrays = tensorflow_names(tensors) | {'global_step': np.array(7, np.int64)}
    bundle(folder / 'variables' / 'variables', arrays, packed=packed)
    return folder
