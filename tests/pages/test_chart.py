import math

from evil_jax.pages import chart


def test_points_lie_inside_and_rise_with_the_value():
    drawn = chart.line_chart('Loss', {'a': [(0, 5.0), (10, 1.0), (20, 0.5)], 'b': [(20, 2.0)]})
    points = [tuple(map(float, p.split(','))) for p in drawn['lines'][0]['points'].split()]
    assert len(points) == 3
    for x, y in points:
        assert chart.LEFT <= x <= chart.WIDTH - chart.RIGHT and chart.TOP <= y <= chart.HEIGHT - chart.BOTTOM
    assert points[0][1] < points[1][1] < points[2][1], 'SVG counts downwards'
    assert points[0][0] == chart.LEFT and points[2][0] == chart.WIDTH - chart.RIGHT
    assert [text for _, text in drawn['x_ticks']] == ['0', '5', '10', '15', '20']
    assert drawn['lines'][1]['last'] == 2.0


def test_nothing_to_draw():
    assert chart.line_chart('Loss', {}) is None
    assert chart.line_chart('Loss', {'a': [(0, math.nan)]}) is None


def test_one_point_and_constant_lines_are_drawn():
    for series in ({'a': [(0, 0.0)]}, {'a': [(7, 3.0)]}, {'a': [(1, -2.0), (2, -2.0)]}):
        points = chart.line_chart('x', series)['lines'][0]['points']
        assert all(math.isfinite(float(v)) for p in points.split() for v in p.split(','))


def test_long_lines_are_thinned_and_end_at_their_last_value():
    drawn = chart.line_chart('x', {'a': [(i, float(i)) for i in range(10_000)]})
    assert 200 <= len(drawn['lines'][0]['points'].split()) <= 300
    assert drawn['lines'][0]['last'] == 9_999


def test_scores_span_zero_to_one():
    drawn = chart.line_chart('x', {'a': [(0, 0.6), (1, 0.7)]}, unit_range=True)
    assert [text for _, text in drawn['y_ticks']] == ['0', '0.25', '0.5', '0.75', '1']


def test_named_positions_and_strokes():
    series = {'a': [(0, 0.90), (1, 0.92)], 'b': [(1, 0.91)]}
    drawn = chart.line_chart('x', series, labels=['1e-05', '2e-05'], spread={'a': [(1, 0.80, 0.95)]}, zoom=True)
    assert drawn['labelled'] and [text for _, text in drawn['x_ticks']] == ['1e-05', '2e-05']
    first, second = (float(p.split(',')[0]) for p in drawn['lines'][0]['points'].split())
    assert [x for x, _ in drawn['x_ticks']] == [first, second] and chart.LEFT < first < second
    ((x, low, high),) = drawn['lines'][0]['strokes']
    assert x == second and low > high >= chart.TOP and drawn['lines'][1]['strokes'] == []
    assert float(drawn['y_ticks'][0][1]) > 0.5, 'zoomed: the axis need not begin at 0'


def test_labels_without_room_are_left_out():
    drawn = chart.line_chart('x', {'a': [(i, 1.0) for i in range(40)]}, labels=[f'value {i:02d}' for i in range(40)])
    shown = [text for _, text in drawn['x_ticks']]
    assert 2 <= len(shown) <= 6 and shown[0] == 'value 00'
