"""What raters said, in numbers: S_E of each system and of the gold explanations, and all that Tables 2 and 5 show.

`summary` returns JSON of this shape; shares and scores are in [0, 1]:

    {'datasets': ['esnlive', 'vqax'],
     'systems': ['A', 'B'],                                    # sorted, without 'gt'
     'counts': {'ratings': 3600, 'counted': 3391, 'left_out': {'answered otherwise': 180, 'failed check': 29}},
     'scores': [                                               # by data set: the systems, then 'gt'; at last 'all'
       {'dataset': 'esnlive', 'system': 'A',
        'items': 298, 'lost': 2,                               # explanations; those without a rating that counts
        'ratings': 871, 'raters': 61, 'pictures': 298,
        's_e': 0.689, 's_e_ci95': [0.65, 0.72],                # mean of an item's raters, then of items
        's_e_ratings': 0.690, 's_e_median': 0.71, 's_e_majority': 0.78,
        's_t': 0.795, 's_o': 0.548, 's_o_ci95': [0.52, 0.57],  # None where S_T is not known, as of 'gt'
        'shares': {'no': 0.1, 'weak_no': 0.07, 'weak_yes': 0.28, 'yes': 0.55},
        'shortcomings': {'incorrect_description': 0.16, 'insufficient_justification': 0.25, 'confusing_sentence': 0.07},
        'comparative': {'value': 0.61, 'ci95': [0.57, 0.65], 'pairs': 870, 'items': 298,
                        'better': 0.15, 'same': 0.46, 'worse': 0.39},           # None of 'gt', or without pairs
        'preference': {'ratings': 870, 'this': 0.4, 'other': 0.35, 'none': 0.25}},  # None where not asked
       {'dataset': 'all', 'system': 'A', 'datasets': 2, ...}],  # means over data sets, of systems in all of them
     'differences': [                                          # a - b; b may be 'gt': only the gold ones beside a
       {'dataset': 'esnlive', 'a': 'A', 'b': 'B', 'difference': 0.09, 'ci95': [0.04, 0.14], 'pictures_shared': 280}],
     'agreement': [{'dataset': 'esnlive', 'name': 'krippendorff_ordinal', 'value': 0.31, ...}],  # agreement.Agreement
     'raters': [                                               # most ratings first
       {'dataset': 'esnlive', 'rater': 'r0123456789ab', 'pages': 4, 'ratings': 74, 'left_out': 6,
        'mean': 0.71, 'bias': 0.02,                            # bias: own rating - mean of the others', None: no others
        'agreement': 0.84,                                     # 1 - |own - another's rating|, mean; None: no others
        'wrong': 0.05,                                         # share of task questions answered otherwise
        'checks': 4, 'checks_failed': 0, 'seconds': 412.0}],   # seconds: median of a page, or None
     'notes': {'s_e': '...', ...}}

The keys 's_e_ci95', 's_o_ci95', 'ci95' are None without resamples. `disagreements` returns

    [{'why': 'spread', 'dataset': 'esnlive', 'system': 'A', 'item': '12.jpg#1r1', 'image_id': '12.jpg',
      'explanation': 'a man is outside', 'mean': 0.5, 'gold_explanation': 'a park is outside', 'gold_mean': 0.89,
      'ratings': [{'rater': 'r01', 'rating': 'yes', 'shortcomings': [], 'gold_rating': 'weak_yes',
                   'gold_shortcomings': []}]}]                 # why: 'spread', or 'better' (than the gold one)
"""
