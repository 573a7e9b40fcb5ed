"""The configuration: one locked ConfigDict, made by `configs/*.py:get_config(arg)` from `base()`.

A mode reads `data`, `model` and its own section. Lists are tuples. Parameters are addressed by one language everywhere,
a tuple of (path regex, value), first match wins: sharding, decay, learning-rate multipliers.
"""

import ast
import re

import ml_collections
from ml_collections.config_dict import placeholder

from evil_jax import compat, lookup, ranges


def parse_arg(arg: str | None, **defaults) -> ml_collections.ConfigDict:
    """Parses the part after the colon of `--config=eug.py:vqax,size=tiny`.

    Args:
      arg: comma-separated. A bare word sets the first default (the data set), or a boolean of that name to True;
        `key=value` sets the others; the value must have the type of the default.
      **defaults: every key that exists, with its default.

    Raises:
      ValueError: unknown key (the nearest is named) or a value of another type.
    """
    values = dict(defaults)
    first = next(iter(defaults))
    for position, part in enumerate(p.strip() for p in (arg or '').split(',')):
        if not part:
            continue
        key, equals, text = part.partition('=')
        if not equals:
            if isinstance(defaults.get(key), bool):
                values[key] = True
                continue
            if position:
                raise ValueError(f'{part!r} in {arg!r} needs a value.{lookup.nearest(part, defaults)}')
            key, text = first, part
        if key not in defaults:
            raise ValueError(
                f'unknown key {key!r} in {arg!r}.{lookup.nearest(key, defaults)} Known: {", ".join(defaults)}'
            )
        values[key] = _cast(key, text, defaults[key])
    return ml_collections.ConfigDict(values)


def _cast(key, text, default):
    if isinstance(default, str):
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type(default):
        raise ValueError(f'{key}={text!r}: wanted {type(default).__name__}, for example {key}={default!r}')
    return value


def base() -> ml_collections.ConfigDict:
    """Every key that exists, with the value an experiment gets if it says nothing."""
    return ml_collections.ConfigDict(
        dict(
            seed=0,
            compat='fixed',  # original: the published e-UG code's quirks; or some of them, '1,3' (compat.py)
            mesh=dict(data=-1, fsdp=1, tensor=1),
            sharding=SHARDING,
            data=data(),
            model=dict(
                task=dict(
                    name='uniter',
                    size='base',
                    # Parameters to begin with: hf:FOLDER (Hugging Face), torch:FILE (PyTorch), or a work folder or
                    # checkpoint of ours, of which this module is taken.
                    init='',
                    fusion='mcb',  # of mcb: count sketches; product: element by element, as PJ-X's released code
                    gate='tanh',  # non-linearity of updown: gated tanh; relu: weight-normed ReLU
                ),
                expl=dict(
                    name='gpt2',  # '' : no explanation module
                    size='base',
                    init='',
                    image='memory',  # what gpt2 reads of the picture: M_T's vectors; tags: names of objects; none
                    attend='word',  # of lstm_decoder: to the memory at each word (FME); answer: once (PJ-X)
                ),
                dtype='bfloat16',
                dropout=0.1,
                remat=False,
            ),
            optim=dict(
                name='adamw',  # or bert_adam: no bias correction
                lr=2e-5,
                warmup=0.1,  # share of the steps
                weight_decay=0.01,
                clip=1.0,  # global gradient norm; 0 = off
                b1=0.9,
                b2=0.999,
                eps=1e-6,
                accum=1,  # micro-batches a step
                decay=((r'.*(bias|scale)$', 0.0), (r'.*', 1.0)),  # weight-decay factors
                lr_mult=((r'.*', 1.0),),  # learning-rate factors; 0 = frozen
            ),
            train=dict(
                steps=10_000,
                batch=64,  # global
                task_weight=1.0,
                expl_weight=1.0,
                # of VCR's choices: bce, each by itself, as the published e-UG; softmax: between them, BERT's
                choice_loss='bce',
                log_every=50,
                eval_every=1_000,
                eval_examples=500,
                save_every=1_000,
                keep=2,
                select='s_o',  # best checkpoint: s_t, s_e or s_o on the dev split
                # joint: both modules; task: M_T without M_E; expl: M_E on M_T as it is in model.task.init or train.init
                regime='joint',
                dwa=0,  # dynamic weight averaging of the two losses over so many steps; 0 = off
                init='',  # start from the parameters of this work folder or checkpoint, or e-UG's own: eug:FILE.pth
            ),
            decode=dict(
                split='',  # '' = data.test
                batch=64,  # global
                condition='predicted',  # explanation for the predicted or the gold answer
                method='greedy',  # sample, beam
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                beams=4,
                length_penalty=1.0,
                max_tokens=0,  # 0 = data.max_explanation
                # latest, a folder, hf:FOLDER of --mode=export, or eug:FILE.pth of the published e-UG code
                checkpoint='best',
                task_checkpoint='',  # take M_T from here instead: work folder, checkpoint or hf:FOLDER
                limit=0,
            ),
            evaluate=dict(
                split='',  # '' = decode.split
                predictions='',  # '' = <workdir>/predictions.jsonl; any model's file
                predictions_format='jsonl',  # evil_jax/data/outputs/<format>.py
                # Examples and gold explanations from files, instead of the data folder: JSON lines of ours, or any form
                # that data.builder reads; of several ('a.json,b.json') the later ones replace the explanations.
                references='',
                systems=(),  # 'label=[format:]path' of further predictions for the same examples
                allow='',  # ids that are dropped instead of refused: 'duplicates,missing,extra', or some of them
                protocols='',  # evil_jax/metrics/protocol.py, the main one first; '' = evil,coco (compat.py, 17)
                metrics=('bleu', 'meteor', 'rouge', 'cider', 'spice', 'bertscore', 'bleurt', 'chrf'),
                check=False,  # only tell which metrics can run here, and what each one lacks
                pycocoevalcap='',  # its folder; '' = the installed package
                java='',  # the program; '' = $JAVA_HOME, or on the PATH
                ptb='auto',  # tokeniser of words: java, python; auto = java where it can run
                meteor='python',  # or jar
                corenlp='',  # SPICE: folder with the jars of CoreNLP 3.6.0; '' = $CORENLP_HOME
                spice_tuples='',  # SPICE: file of tuples of any parser; what it lacks CoreNLP adds
                bertscore=dict(
                    encoder='',  # folder of a BERT, DistilBERT or RoBERTa; the paper's: distilbert-base-uncased
                    layer=5,
                    idf=False,
                    baseline='',  # .tsv of the bert-score package: rescaled by its row for that layer
                ),
                bleurt='',  # folder of a BLEURT checkpoint
                ratings='',  # human ratings, CSV or JSON lines: how well each metric agrees with them
                ratings_format='long',  # or ofax
                bootstrap=1_000,
                trials=10_000,  # of approximate randomisation, between systems
                compare=(),  # 'label=path/to/scores.json', shown beside this model
                report=True,
                report_examples=300,
            ),
            build=dict(
                shard_mib=1_024,
                # Of a picture's regions the store keeps those with more than this confidence; at least (the most
                # confident) min_regions of them, as far as there are so many, and at most max_regions.
                threshold=0.0,
                min_regions=1,
                max_regions=100,
                page=True,  # write <data.dir>/build.html
                # Region features computed from the pictures in data.images: '' = none, or the name of a model.
                backbone='',  # resnet
                backbone_size='101',
                backbone_init='',  # its weights: hf:FOLDER, torch:FILE
                pixels=448,  # side of the square that a picture is scaled to; a grid has cells of 32 pixels
                pooled=False,  # one vector a picture instead of a grid
                batch=32,  # pictures
            ),
            # --mode=sweep: one run for each combination of overrides, in <workdir>/<values>/.
            sweep=dict(
                grid=(),  # (key, (values, ...)) each, for example ('optim.lr', (1e-5, 2e-5))
                over=(),  # keys of the grid that are repetitions ('seed'): mean and deviation are taken over them
                select='',  # score that chooses; '' = the harmonic score where there is one, else as train.select
                split='',  # split that is scored; '' = data.dev
            ),
            export=dict(
                checkpoint='',  # as decode.checkpoint; '' = what that says
                task_checkpoint='',  # as decode.task_checkpoint; '' = what that says, unless export.checkpoint is set
                dir='',  # '' = <workdir>/export
            ),
            # --mode=attribute: where a model looks, and how faithful that is.
            attribute=dict(
                checkpoint='best',  # as decode.checkpoint; init: untrained, with the weights of model.task.init
                # Of evil_jax/attribution/methods.py, or one of its presets (chefer2020_vit, ...); '' = generic, or
                # raw_attention of models that are no transformers.
                method='',
                # What is explained: predicted, gold, least (the least likely), an answer in words or its number, '#0';
                # tokens: the answer and each token of its explanation; explanation: the answer and all of that.
                target='predicted',
                rules='',  # relevance rules of LRP methods: chefer2020, lrp, attnlrp, cplrp; '' = the method's own
                start_layer=placeholder(int),  # first layer that counts, negative from the end; None = the method's own
                row_norm=placeholder(bool),  # rows of I + A are divided by their sums; None = the method's own
                steps=20,  # integrated gradients: points of the path
                samples=25,  # SmoothGrad: noisy inputs
                noise=0.15,  # their standard deviation, as a share of the largest minus the smallest input
                chunk=5,  # points or noisy inputs at a time
                split='',  # '' = decode.split
                limit=200,  # examples; 0 = all
                batch=32,  # global
                image='',  # one input instead of a split: a picture, or an image id of the data folder
                text='',  # its question, or the text to be classified
                features='',  # its regions, instead of the data folder's
                page_examples=50,
                evaluate='',  # a protocol instead of pages: perturbation, segmentation, rationale, sanity
                methods=(),  # that it compares, () = all that the model supports; of pages: side by side
                unit='auto',  # what perturbation takes away: pixel, patch, token, region; auto = pixel, region or token
                removal='auto',  # how: fill (pictures), slice, zero, mask; auto = fill, or slice
                fill='black',  # colour of removed pixels, in RGB before normalisation: black, white, grey, mean
                fractions=(),  # shares that are removed; () = the protocol's own
                top=(),  # rationale: numbers of words; () = 5, 10 ... 80, of the built-in world 1, 2, 3
            ),
            # --mode=counterfactual: what is answered when a word of the question is exchanged.
            counterfactual=dict(
                # Files of questions instead of the data folder, in the forms of evaluate.references; 'a.json,b.json'.
                questions='',
                # Any system's answers, 'a.jsonl,b.jsonl'. '' = of the checkpoint; with `questions`: none yet, edited
                # questions are written and wait for them.
                answers='',
                answers_format='jsonl',  # evil_jax/data/outputs/<format>.py
                allow='',  # ids that are dropped instead of refused: 'duplicates,missing,extra', or some of them
                scene_graphs='',  # of Visual Genome: they know what is in a picture
                checkpoint='best',  # as decode.checkpoint
                split='',  # '' = decode.split
                limit=0,  # examples; 0 = all
                preset='default',  # or stoikou2023: as the paper; the keys with '' below take its values
                families=(),  # evil_jax/counterfactual/families.py; () = all ten
                sense='',  # of a word: first, any, lexicon (visual senses, then the first)
                metric='',  # of colours: ciede2000, stoikou2023, rgb
                names='',  # of colours in texts: spaced (deep sky blue), raw (deepskyblue)
                repair=placeholder(bool),  # a deleted noun takes its determiner along; None = the preset's
                nearest=1,  # a new colour is drawn from so many nearest (furthest) ones
                min_uses=5,  # adjectival uses in the questions that make a colour common
                # Replacements are those with this share of the best one's quality; 0 = all; None = the preset's.
                familiar=placeholder(float),
                min_quality=0.0,  # of an edit, 0 to 1: how sure sense and replacement are
                siblings=(),  # classes of your own, before WordNet's: (('circle', 'square', 'star'), ...)
                max_edits=1,  # of a question and family
                all_positions=False,  # every word that a family can edit, not one
                scope='question',  # joint: VCR's choices and explanations are renamed together with the question
                tagger='heuristic',  # spacy, hanta, vote: installed by you
                wordnet='',  # folder of WordNet's files; '' = where they are found
                min_coverage=0.0,  # least share of questions that each family must be able to edit
                baselines=('noop', 'random', 'blank', 'repeat'),
                accuracy='official',  # strict: of VQA answers, without the official code's quirks
                # A rule holds with at least this probability, is seen in so many questions and pictures, and of those
                # told so large a share may be false.
                tau=0.8,
                alpha=0.05,
                min_questions=20,
                min_images=10,
                report=True,
                report_examples=300,
            ),
            # --mode=human: what people say of explanations, from the sample to the statistics. Predictions and examples
            # are those of `evaluate` (predictions, systems, references, allow).
            human=dict(
                step='sample',  # then serve (or export, and import by hand), then score; power: how many people
                limit=300,  # examples of each system, answered rightly, each with its own picture; 0 = all of them
                raters=3,  # of each page
                page_items=10,  # trusted ones included
                choices=3,  # answers to choose from
                # Known-answer items that check the rater: auto = the gold explanation of another example, which is bad
                # here; '' = none; or a file of your own (evil_jax/human/known.py).
                trusted='auto',
                trusted_per_page=1,
                wrong_limit=placeholder(int),  # wrong task answers of a page; None = as the paper: VQA-X 1, else 2
                intro='',  # text file shown before the first page: who asks, consent, contact
                # serve
                host='127.0.0.1',
                port=8080,
                behind='',  # 'https://HOST/PATH' where a proxy makes this server known
                max_pages=0,  # of one rater; 0 = as many as there are
                timeout=60,  # minutes until an unfinished page is given to somebody else
                # export, and what `ratings` may come from
                to='mturk',  # label_studio, potato
                image_url='',  # where the pictures of images/ can be seen, 'https://HOST/FOLDER/'
                # score
                ratings='',  # files of ratings, 'a.csv,b.csv'; '' = what the server collected
                ratings_format='auto',  # tidy, mturk, label_studio, potato, ofax
                trusted_failures='exclude',  # pages with a failed check; keep: they count
                system='',  # of ratings that do not name one
                model='lmm,clmm',  # what compares the systems, the main one first: evil_jax/human/presets.py
                reward=1.0,  # for a page
                fee=0.2,  # of the platform, as a share of the reward
                report=True,
                # power: items and raters that tell two systems apart which differ by so much in S_E
                difference=0.05,
                power=0.8,
                alpha=0.05,
            ),
            # e-SNLI-VE from its sources, and the same cleaning for other pairs of texts about pictures
            construct=dict(
                step='run',  # annotate: draws pairs to check by hand; relabel: a study, people label neutral ones
                # Files, several as 'a,b': SNLI's or SNLI-VE's jsonl, e-SNLI's text lines, or pairs of your own
                pairs='',
                explanations='',  # e-SNLI's CSV files
                captions='',  # Flickr30k's: results_20130124.token or results.csv
                # 'trainval=flickr30k_train_val.lst,test=flickr30k_test.lst' (or train=, dev=); '' = as the pairs say
                splits='',
                dev_images=1_000,  # the last ones of trainval
                relabelled='',  # labels.csv of --mode=human after construct.step=relabel
                annotated='',  # pairs that somebody checked by hand, which show how right a filter is
                attributes='',  # what an explanation has to name, by pair: the relevance of explanations
                explanation='first',  # of several; all: keywords looks at each, and explanation_2 and _3 are written
                # What is no error: duplicates (the first counts), captions (pictures without are not filtered by them)
                allow=(),
                max_mismatch=0.01,  # share of pairs whose texts or labels differ between the files
                filters=('false_neutral', 'keywords', 'similarity', 'uncertainty'),  # in this order
                # splits, classes: where a filter looks; () = everywhere
                false_neutral=dict(threshold=2.0, splits=('train',), classes=('neutral',)),
                keywords=dict(
                    # printed: 'rephrasing'; the released files have no 'rephrased' either
                    words=('synonym', 'mention', 'rephras', 'sentence', 'way to say', 'another word for'),
                    splits=(),
                    classes=(),
                ),
                similarity=dict(threshold=0.57, splits=(), classes=()),
                # Formula and cut are ours: the paper does not give them (evil_jax/construction/uncertainty.py)
                uncertainty=dict(formula='label', threshold=0.4, splits=(), classes=()),
                nli=dict(
                    model='',  # Hugging Face folder of a RoBERTa, BERT or DistilBERT that tells the three classes
                    dtype='float32',
                    tokens=0,  # of a batch, padding included; 0 = what suits the device
                    cache='',  # file of what the model said; '' = in the work folder
                ),
                sample=500,  # pairs to check by hand
                report=True,
                report_examples=5,  # of what each filter removed, for each class
            ),
            benchmark=dict(
                of='metrics',  # or attribution: methods, in forward passes of the model; nli: pairs of texts
                rows=0,  # of generated texts, where no predictions are named; 0 = 14,000 texts, 512 pairs
            ),
            predict=dict(question='', image_id='', features='', answer='', checkpoint='best'),
        )
    )


# Megatron-style: columns of the first matrix and rows of the second are split over `tensor`,
# the other dimension of every matrix over `fsdp`; vectors are replicated. First match wins.
SHARDING = (
    (r'.*/(word|wte)/embedding$', ('tensor', 'fsdp')),
    (r'.*/embedding$', (None, 'fsdp')),
    (r'.*/(query|key|value|up)/kernel$', ('fsdp', 'tensor')),
    (r'.*/(query|key|value|up)/bias$', ('tensor',)),
    (r'.*/(out|down)/kernel$', ('tensor', 'fsdp')),
    (r'.*/kernel$', ('fsdp', None)),
    (r'.*', ()),
)


def data() -> dict:
    """The data section. Paths may be relative to the current folder."""
    return dict(
        builder='shapes_ve',  # evil_jax/data/builders/<builder>.py
        task='shapes',  # evil_jax/tasks/<task>.py
        dir='data/shapes_ve',  # everything that --mode=build makes
        manual_dir='',  # the user's raw annotation files; '' = <dir>/raw, where the built-in world writes itself
        features=(),  # raw region files or folders; () = those in the raw folder
        images='',  # folder with the pictures; '' = <dir>/raw/images if it exists
        word_vocab='build',  # folder or file with BERT's vocab.txt, or 'build'
        expl_vocab='build',  # folder with GPT-2's vocab.json + merges.txt (or encoder.json + vocab.bpe), or 'build'
        answers='build',  # JSON: list label2ans or object ans2label, or 'build' from the training split
        answers_min_count=9,
        lowercase='auto',  # as the vocabulary was made, or what the original did (compat.py, 5); yes, no
        train='train',
        dev='dev',
        test='test',
        limit=0,  # at most this many examples a split; 0 = all
        world_train=0,  # examples that the built-in world writes
        world_dev=0,
        world_test=0,
        world_container='',  # of the world's features: lxmert, butd, lmdb, npz, grid; '' = as its form is published
        seed=0,  # of the world
        locations='auto',  # uniter, evil_lmdb, evil_vqax; auto = uniter, or what the original did (compat.py, 6)
        regions='detected',  # zero: a text-only model
        missing_features='refuse',  # drop: leave such examples out
        labels='gold',  # e-SNLI-VE, the file's own; original = by the letter in the pair id, before re-annotation
        choices=0,  # answers to choose from in each example (VCR: 4); 0 = one set of answers for all
        tags='names',  # how the encoder reads VCR's object tags: neutral names of people and classes; det: <|detN|>
        tag_regions=True,  # the words of a tag carry the region that it stands for, where boxes say which
        tag_base=1,  # number of the first object in <|detN|> of e-UG's JSON files
        dev_share=0.1,  # VCR: share of the training pictures that make the dev split
        dev_seed=0,  # of that choice
        dev_ids='',  # file with the picture or example ids of the dev split, one a line, instead
        explanation='random',  # which reference trains; 'first'
        # Names of objects that are read as text: '' = none; detected: classes of the regions; annotated: of the example
        objects='',
        max_objects=30,  # decoder tokens of them
        max_text=20,
        max_regions=36,
        pixels=224,  # side of the square that a model of pictures reads
        resize='squash',  # the whole picture; crop: the shorter side to pixels * 256 / 224, then the middle
        shift=0,  # a training picture moves by at most so many of these pixels, up or down and left or right
        max_question=19,
        max_answer=23,
        max_explanation=51,
        workers=0,  # grain worker processes
    )


# What each data set needs beyond the defaults of `data()`; `configs/*.py:<name>` picks one.
DATA_SETS = {
    'shapes_ve': dict(
        builder='shapes_ve', task='shapes', dir='data/shapes_ve',
        world_train=12_000, world_dev=600, world_test=1_200,
        max_text=12, max_regions=4, max_question=12, max_answer=3, max_explanation=20,
    ),
    'shapes_vqa': dict(
        builder='shapes_vqa', task='shapes', dir='data/shapes_vqa', answers_min_count=1,
        world_train=12_000, world_dev=600, world_test=1_200,
        max_text=12, max_regions=4, max_question=12, max_answer=4, max_explanation=20,
    ),
    'esnlive': dict(builder='esnlive', task='esnlive', dir='data/esnlive', max_text=40, max_regions=100),
    'shapes_vcr': dict(
        builder='shapes_vcr', task='shapes', dir='data/shapes_vcr', choices=4,
        world_train=12_000, world_dev=600, world_test=1_200,
        max_text=18, max_regions=4, max_question=10, max_answer=11, max_explanation=24,
    ),
    'vqav2': dict(builder='vqav2', task='vqav2', dir='data/vqav2'),
    'vqax': dict(builder='vqax', task='vqax', dir='data/vqax'),
    # With 20 word pieces, UNITER's usual length, VCR does not converge: question and answer together are longer.
    'vcr': dict(builder='vcr', task='vcr', dir='data/vcr', choices=4, max_text=60, max_regions=100),
}  # fmt: skip


def without_model(arg: str | None, **defaults) -> tuple[ml_collections.ConfigDict, ml_collections.ConfigDict]:
    """(arguments, config) of an experiment on anybody's files, which has no model.

    Args:
      arg: the data set and more, see `parse_arg`.
      **defaults: `data`, the data set, first; then the other keys.

    Raises:
      ValueError: as `parse_arg`, or an unknown data set.
    """
    parsed = parse_arg(arg, **defaults, shrink=False)
    if parsed.data not in DATA_SETS:
        raise ValueError(f'no data set {parsed.data!r}; there are: {", ".join(DATA_SETS)}')
    config = base()
    config.data.update(DATA_SETS[parsed.data])
    return parsed, shrink(config) if parsed.shrink else config


def _get(config, path):
    for key in path.split('.'):
        config = config[key]
    return config


def validate(config: ml_collections.ConfigDict) -> None:
    """Checks what types cannot: names that exist, ranges, regexes. Raises ValueError naming the key and both values."""
    compat.parse(config.compat)
    for key, wanted in ranges.CHOICES.items():
        if (value := _get(config, key)) not in wanted:
            raise ValueError(
                f'config.{key} is {value!r}, wanted one of {", ".join(map(repr, wanted))}.'
                f'{lookup.nearest(str(value), [str(w) for w in wanted])}'
            )
    for least, keys in ranges.AT_LEAST.items():
        for key in keys:
            if not (value := _get(config, key)) >= least:  # nor NaN
                raise ValueError(f'config.{key} is {value}, wanted at least {least}')
    for key in ranges.AT_MOST_1:
        if (value := _get(config, key)) > 1:
            raise ValueError(f'config.{key} is {value}, wanted at most 1')
    if config.decode.method == 'sample' and not config.decode.temperature > 0:
        raise ValueError(
            f'config.decode.temperature is {config.decode.temperature}, wanted more than 0 to sample (the most likely '
            "words: config.decode.method='greedy')"
        )
    if config.train.batch % config.optim.accum:
        raise ValueError(f'train.batch {config.train.batch} is not a multiple of optim.accum {config.optim.accum}')
    if config.build.min_regions > config.build.max_regions:
        raise ValueError(
            f'config.build.min_regions is {config.build.min_regions}, more than max_regions {config.build.max_regions}'
        )
    if config.model.expl.name and config.model.expl.image == 'tags' and config.data.max_objects < 3:
        raise ValueError(
            f'config.data.max_objects is {config.data.max_objects}, wanted at least 3 with '
            "config.model.expl.image='tags': two are the markers around the names"
        )
    _check_name('data.builder', config.data.builder, lookup.names('data/builders'))
    _check_name('data.task', config.data.task, lookup.names('tasks'))
    for kind in ('task', 'expl'):
        module = config.model[kind]
        if kind == 'expl' and not module.name:
            continue
        _check_name(f'model.{kind}.name', module.name, lookup.defining('models', f'build_{kind}'))
        if sizes := lookup.keys('models', module.name, 'SIZES'):
            _check_name(f'model.{kind}.size', module.size, sizes)
    for key in ranges.TEXTS:
        for text in _get(config, key):
            if not isinstance(text, str) or re.search(r',\S', text):
                raise ValueError(f'config.{key} has {text!r}, wanted a tuple: {tuple(str(text).split(","))}')
    for name in config.evaluate.metrics:
        _check_name('evaluate.metrics', name, lookup.defining('metrics', 'table'))
    for key in ('sharding', 'optim.decay', 'optim.lr_mult'):
        for pattern, _ in _get(config, key):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f'config.{key}: {pattern!r} is not a regular expression: {error}') from error


def _check_name(key, name, existing):
    if name not in existing:
        raise ValueError(f'config.{key} is {name!r}.{lookup.nearest(name, existing)} There are: {", ".join(existing)}')


def first_match(table, path: str):
    """Value of the first regex that matches a whole parameter path. A path without a match raises ValueError."""
    for pattern, value in table:
        if re.fullmatch(pattern, path):
            return value
    raise ValueError(f'no pattern matches parameter {path!r}; the table has {[p for p, _ in table]}')


def shrink(config: ml_collections.ConfigDict) -> ml_collections.ConfigDict:
    """The same experiment at toy size, for tests and laptops: tiny modules, few steps, few examples."""
    config.model.task.size = config.model.expl.size = 'tiny'
    config.model.dtype = 'float32'
    config.train.update(steps=2, batch=8, log_every=1, eval_every=2, eval_examples=8, save_every=2)
    config.decode.batch = 8
    config.data.limit = 64
    config.data.dir += '-shrink'  # a build with a limit must not stand where the whole data set belongs
    config.evaluate.bootstrap = 50
    return config
