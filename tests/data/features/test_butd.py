"""Bottom-up-attention's six columns, with what the published files ask a reader to put up with."""

import pickle
import warnings

import numpy as np
import pytest

from evil_jax.data import features
from evil_jax.data.features import butd, tsv
from evil_jax.data.features.convert import convert
from evil_jax.data.features.regions import Regions


@pytest.fixture
def pictures(make_regions):
    """Regions as this container gives them: neither classes nor confidences."""

    def without(seed, n=3):
        r = make_regions(seed, n)
        return Regions(r.features, r.boxes, r.size, np.ones(n, np.float32), np.full(n, -1, np.int32))

    return {'150367': without(0), '7': without(1, n=5), 'a': without(2)}


@pytest.mark.parametrize('end', ['\n', '\r\n'])
def test_width_comes_before_height(pictures, make_butd, same, end):
    path = make_butd(pictures.items(), end=end)
    reader = features.open_features(path)
    assert isinstance(reader, butd.Reader) and reader.ids() == list(pictures)
    for image_id, regions in pictures.items():
        same(reader[image_id], regions)
    assert reader[150367].size == (120, 100)
    assert reader.resolve('COCO_val2014_000000000007.jpg') == '7'
    assert reader.provenance() == features.provenance(path) and reader.provenance()['format'] == 'butd_tsv'
    assert path.with_name('butd_offset.txt').read_text().splitlines()[0] == '150367\t0'
    again = pickle.loads(pickle.dumps(butd.Reader(path)))
    same(again['a'], pictures['a'])


def test_ten_columns_are_the_other_container(make_tsv, make_regions):
    path = make_tsv({'a': make_regions(0)})
    assert tsv.matches(path) and not butd.matches(path)
    path.write_text('1\t640\t480\t2\tAAAA\tAAAA\n')
    assert butd.matches(path) and not tsv.matches(path)
    with pytest.raises(ValueError, match=r"a.tsv:1: image '1': 6 columns, wanted 10"):
        tsv.Reader(path)


def test_repeated_ids_are_kept_once_and_told(pictures, make_regions, make_butd, same):
    rows = [*pictures.items(), ('7', make_regions(9)), ('150367', pictures['150367']), ('7', make_regions(8))]
    path = make_butd(rows)
    message = (
        r'butd.tsv: 2 image ids have several rows, the first row of each counts: 7 \(lines 2 and 4 and 6\), '
        r'150367 \(lines 1 and 5\)$'
    )
    for _ in range(2):  # without and with an offset file
        with pytest.warns(UserWarning, match=message) as caught:
            reader = butd.Reader(path)
        assert len(caught) == 1
        assert reader.ids() == list(pictures)
        assert reader.repeated == {'7': [2, 4, 6], '150367': [1, 5]}
        same(reader['7'], pictures['7'])
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            pickle.loads(pickle.dumps(reader))['7']


@pytest.mark.parametrize(
    'cell',
    [
        lambda text: text.rstrip('='),
        lambda text: text.rstrip('=') + '===',
        lambda text: f"b'{text}'",
        lambda text: f' {text} ',
    ],
)
def test_careless_base64(pictures, make_butd, same, cell):
    # 1 region: 16 bytes of boxes end in '==', so that padding matters.
    regions = pictures['a'].take(slice(1))
    same(butd.Reader(make_butd([('a', regions), ('b', pictures['7'])], cell=cell))['a'], regions)


@pytest.mark.parametrize(
    'line, message',
    [
        ('2\t640\t480\t1\t{box}\t{features}x', 'features hold 8193 bytes'),
        ('2\t640\t480\t1\t{box}\t*{features}', r'features \(.*are not base64'),
        ('2\t640\t480\t2\t{box}\t{features}', 'features hold 8192 bytes = 2 regions of width 1024'),
        ('2\t640\t480\t1\t{box}AAAAAAAA\t{features}', 'num_boxes is 1, but boxes hold'),
        ('2\t640\t480\t1\t{features}\t{box}', 'features hold 16 bytes'),
        ('2\t640\t480\tmany\t{box}\t{features}', "num_boxes is 'many', wanted a whole number"),
        ('2\t640\t480\t-1\t{box}\t{features}', "num_boxes is '-1', wanted a whole number"),
        ('2\t640\t480\t' + '9' * 5000 + '\t{box}\t{features}', "num_boxes is '9999"),
        ('2\t640\t480\t1_0\t{box}\t{features}', "num_boxes is '1_0'"),
        ('2\t0\t480\t1\t{box}\t{features}', r'size \(width, height\) is \(0, 480\)'),
        ('2\t640\t4800000000\t1\t{box}\t{features}', r'size \(width, height\) is \(640, 4800000000\)'),
    ],
)
def test_bad_cells(pictures, make_butd, line, message):
    path = make_butd([('1', pictures['a'].take(slice(1))), ('3', pictures['7'])])
    first, last = path.read_text().splitlines()
    cells = first.split('\t')
    line = line.format(box=cells[4].rstrip('='), features=cells[5].rstrip('='))
    path.write_text('\n'.join([first, line, last]) + '\n')
    reader = butd.Reader(path)
    with pytest.raises(ValueError, match=rf"butd.tsv:2: image '2': ({message})"):
        reader[2]
    assert len(reader[3]) == 5


def test_bad_rows(pictures, make_butd):
    path = make_butd(pictures.items())
    good = path.read_text()
    for content, message in (
        (good[:-9000], r"butd.tsv:3: image 'a': .*truncated row"),
        (good + '9\t1', r"butd.tsv:4: image '9': truncated row, the file ends in column 2 \(image_w\) of 6"),
        (good + '9\t1\t2\n', r"butd.tsv:4: image '9': 3 columns, wanted 6 \(image_id, image_w"),
        (good + '\n' + good, 'butd.tsv:4: empty line between rows'),
        (good + '\t1\t2\t0\t\t\n', r"butd.tsv:4: image '': the row has no image id"),
        (
            good + 'x' * 5000 + good,
            r"butd.tsv:4: the image id has 5006 characters, 'xxx[x]{77}'...; wanted at most 255",
        ),
        ('\n', 'butd.tsv: the file holds no rows'),
    ):
        path.write_text(content)
        path.with_name('butd_offset.txt').unlink(missing_ok=True)
        with pytest.raises(ValueError, match=message):
            butd.Reader(path)


def test_store_keeps_the_first_regions(pictures, make_butd, tmp_path):
    path = make_butd(pictures.items())
    summary = convert([path], tmp_path / 'store', threshold=0.5, max_regions=4, progress=False)
    assert (summary['cut_images'], summary['without_conf']) == (1, 1)
    store = features.open_features(tmp_path / 'store')
    assert store['7'].boxes.tolist() == pictures['7'].boxes[:4].tolist()
    assert store['7'].classes.tolist() == [-1] * 4
    np.testing.assert_array_equal(store['a'].features, pictures['a'].features.astype(np.float16))
