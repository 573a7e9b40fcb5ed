import pytest

from evil_jax.pages import histogram


def test_bars_ticks_and_limit():
    chart = histogram.histogram({2: 1, 3: 4, 5: 5}, limit=3)
    assert [bar['text'] for bar in chart['bars']] == ['2: 1', '3: 4', '4: 0', '5: 5']
    assert [bar['over'] for bar in chart['bars']] == [False, False, True, True]
    assert (chart['total'], chart['mean'], chart['largest'], chart['over'], chart['percent']) == (10, 3.9, 5, 5, 50)
    assert chart['bars'][1]['x'] < chart['limit_x'] < chart['bars'][2]['x']
    heights = [bar['height'] for bar in chart['bars']]
    assert (
        heights[3] == chart['bottom'] - chart['top']
        and heights[1] == pytest.approx(0.8 * heights[3])
        and not heights[2]
    )
    assert [text for _, text in chart['ticks']] == ['2', '3', '4', '5']


@pytest.mark.parametrize('limit', [None, 1, 7, 50, 99, 100, 250, 10_000])
@pytest.mark.parametrize('sizes', [
    {7: 3}, dict.fromkeys(range(1, 300), 1), dict.fromkeys(range(5, 60), 50) | {9_000: 1}, {0: 1, 1_000_000: 1},
])  # fmt: skip
def test_every_number_is_in_one_bar_on_one_side_of_the_limit(sizes, limit):
    chart = histogram.histogram(sizes, limit)
    assert len(chart['bars']) <= 42
    counted = sum(int(bar['text'].split(': ')[1].replace(',', '')) for bar in chart['bars'])
    assert counted == chart['total'] == sum(sizes.values())
    assert all(bar['x'] >= 0 and bar['x'] + bar['width'] <= chart['width'] for bar in chart['bars'])
    assert all(bar['y'] >= chart['top'] - 1 for bar in chart['bars'])
    if limit is not None:
        assert chart['over'] == sum(k for n, k in sizes.items() if n > limit)
    if limit is not None and chart['limit_x'] is not None:
        for bar in chart['bars']:
            assert (bar['x'] > chart['limit_x']) == bar['over'] or limit == chart['largest']


def test_one_giant_does_not_squeeze_the_others():
    chart = histogram.histogram(dict.fromkeys(range(10), 1000) | {9_000: 1})
    assert len(chart['bars']) == 10 and chart['bars'][-1]['text'] == '9 to 9000: 1,001' and chart['largest'] == 9000


def test_nothing_to_draw():
    assert histogram.histogram({}) is None and histogram.histogram({3: 0}, 4) is None
