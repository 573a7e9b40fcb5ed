"""Beam search against exhaustive search, against the documented algorithm on Python lists, and against Hugging Face."""

import functools

import fakes
import jax
import numpy as np
import pytest
import torch
import transformers

from evil_jax.decoding import beam
from evil_jax.decoding.generate import generate

END, PAD = 0, 9


def compiled(fake, **settings):
    function = functools.partial(beam.search, fake, end_id=END, pad_id=PAD, **settings)
    jitted = jax.jit(lambda batch: function(batch, None, None))
    return lambda batch: [np.asarray(x) for x in jitted(batch)]


def search(fake, batch, **settings):
    return compiled(fake, **settings)(batch)


@pytest.mark.parametrize('length_penalty', [0.0, 1.0, 2.5])
def test_wide_beam_finds_the_best_of_all_sequences(length_penalty):
    """As many beams as there are sequences: nothing is pruned, so the winner is the optimum."""
    fake, batch = fakes.Fake(4, 12), fakes.prompts(8, 4, 4)
    tokens_BT, lengths_B, scores_B = search(fake, batch, max_tokens=4, beams=4**4, length_penalty=length_penalty)
    lengths = set()
    for row in range(8):
        ranked = [
            (total / len(tokens) ** length_penalty, tokens)
            for tokens, total in fakes.every_sequence(fake, fakes.prompt_of(batch, row), 4, END)
        ]
        score, tokens = max(ranked)
        assert tuple(tokens_BT[row, : lengths_B[row]]) == tokens
        assert (tokens_BT[row, lengths_B[row] :] == PAD).all()
        assert scores_B[row] == pytest.approx(score, abs=1e-4)
        lengths.add(len(tokens))
    assert len(lengths) > 1 or length_penalty != 1  # short and long winners


@pytest.mark.parametrize('beams, length_penalty', [(1, 1.0), (2, 1.0), (2, -1.0), (3, 0.0), (5, 2.0)])
def test_narrow_beam_equals_the_algorithm_by_hand(beams, length_penalty):
    fake, batch = fakes.Fake(9, 14, seed=beams), fakes.prompts(24, 4, 9)
    tokens_BT, lengths_B, scores_B = search(fake, batch, max_tokens=10, beams=beams, length_penalty=length_penalty)
    for row in range(24):
        tokens, score, _ = fakes.beam_by_hand(fake, fakes.prompt_of(batch, row), 10, END, beams, length_penalty)
        assert tuple(tokens_BT[row, : lengths_B[row]]) == tokens
        assert scores_B[row] == pytest.approx(score, abs=1e-4)


def test_beam_beats_greedy():
    """The beam's point: its sums are never below greedy's here, and sometimes above."""
    fake, batch = fakes.Fake(9, 14), fakes.prompts(32, 4, 9)
    one = search(fake, batch, max_tokens=8, beams=1, length_penalty=0.0)[2]
    many = search(fake, batch, max_tokens=8, beams=8, length_penalty=0.0)[2]
    assert (many >= one - 1e-5).all() and (many > one + 1e-3).any()


def test_one_beam_is_greedy():
    fake, batch = fakes.Fake(9, 14), fakes.prompts(32, 4, 9)
    greedy = jax.jit(lambda b: generate(fake, b, None, None, method='greedy', max_tokens=9, end_id=END, pad_id=PAD))(
        batch
    )
    tokens_BT, lengths_B, scores_B = search(fake, batch, max_tokens=9, beams=1, length_penalty=1.0)
    np.testing.assert_array_equal(tokens_BT, greedy[0])
    np.testing.assert_array_equal(lengths_B, greedy[1])
    np.testing.assert_allclose(scores_B, greedy[2] / lengths_B, atol=1e-5)


def test_a_row_does_not_depend_on_its_neighbours():
    """Rows that are done early are frozen while others run on."""
    fake, batch = fakes.Fake(9, 24), fakes.prompts(16, 4, 9)
    together = search(fake, batch, max_tokens=20, beams=3, length_penalty=1.0)
    one = compiled(fake, max_tokens=20, beams=3, length_penalty=1.0)
    for row in range(16):
        alone = one({k: v[row : row + 1] for k, v in batch.items()})
        np.testing.assert_array_equal(together[0][row], alone[0][0])


def test_stops_when_no_running_beam_leads():
    """As many steps as the algorithm by hand takes, far from `max_tokens`."""
    fake, batch = fakes.Fake(9, 44), fakes.prompts(16, 4, 9)
    one = compiled(fake, max_tokens=40, beams=2, length_penalty=1.0)
    for row in range(16):
        *_, steps = fakes.beam_by_hand(fake, fakes.prompt_of(batch, row), 40, END, 2, 1.0)
        fake.steps = 0
        one({k: v[row : row + 1] for k, v in batch.items()})
        jax.effects_barrier()
        assert fake.steps == steps - 1


def test_equals_hugging_face():
    """The same language model inside transformers' generate()."""
    fake, batch = fakes.Fake(9, 14), fakes.prompts(12, 4, 9)

    class Model(transformers.PreTrainedModel, transformers.GenerationMixin):
        config_class = transformers.GPT2Config
        _is_stateful = False

        def __init__(self, config):
            super().__init__(config)
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **unused):
            return {'input_ids': input_ids}

        def forward(self, input_ids, attention_mask=None, **unused):
            hidden = np.tanh((fake.embed_VD[input_ids.numpy()] * fake.place_PD[: input_ids.shape[1]]).sum(1))
            logits = torch.tensor(hidden @ fake.out_DV)[:, None]
            return transformers.modeling_outputs.CausalLMOutput(logits=logits)

    model = Model(
        transformers.GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=1, bos_token_id=END, eos_token_id=END)
    ).eval()
    compared = 0
    for beams, length_penalty in ((2, 1.0), (4, 2.0)):
        tokens_BT, lengths_B, scores_B = search(fake, batch, max_tokens=8, beams=beams, length_penalty=length_penalty)
        for row in range(12):
            prompt = fakes.prompt_of(batch, row)
            theirs = model.generate(
                torch.tensor(prompt[None].astype(np.int64)), attention_mask=torch.ones(1, len(prompt)).long(),
                num_beams=beams, length_penalty=length_penalty, do_sample=False, max_new_tokens=8, eos_token_id=END,
                pad_token_id=END, use_cache=False, output_scores=True, return_dict_in_generate=True,
            )  # fmt: skip
            ours = tokens_BT[row, : lengths_B[row]].tolist()
            new = theirs.sequences[0, len(prompt) :].tolist()
            assert new[: len(ours)] == ours and set(new[len(ours) :]) <= {END}
            assert scores_B[row] == pytest.approx(theirs.sequences_scores[0].item(), abs=1e-4)
            compared += 1
    assert compared == 24
