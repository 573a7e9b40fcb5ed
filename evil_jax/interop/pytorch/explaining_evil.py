"""The models that explain: context and answer -> words.

`forward` gives the logits of each next token of an explanation; `start` and `extend` give one token after the other.

Legend: B batch, S memory, P positions of a row, T explanation tokens, E embedding, D width, M width of the memory,
J fused width, V vocabulary.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .layers_evil import Lstm, PreNormBlock, inside, join, mean, signed_root, take, unit, weights

IMAGE, QUESTION, ANSWER, EXPLANATION = range(4)


class Gpt2(nn.Module):
    """GPT-2 (Radford et al. 2019), which reads the memory as a visual prefix, then question and answer, and explains.

    A row is `<|b_img|> memory <|e_img|>`, `<|b_qn|> question <|e_qn|>`, `<|b_ans|> answer <|e_ans|>`, `<|b_rtnl|>
    explanation`, without gaps; each position has its row of the position table and one of four type rows, which stand
    in the word table. Instead of the memory there may be names of objects ('tags'), or nothing.
    """

    def __init__(self, c):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(c['rows'], c['width']), nn.Embedding(c['positions'], c['width'])
        self.layers = nn.ModuleList(PreNormBlock(c['width'], c['heads']) for _ in range(c['layers']))
        self.norm = nn.LayerNorm(c['width'], 1e-5)
        self.b_img, self.e_img, self.types = c['b_img'], c['e_img'], c['types']
        self.image, self.late = c['image'], c['late']

    def _typed(self, x_BPD, kind):
        return x_BPD + self.wte.weight[self.types[kind]]

    def _rows(self, batch, context, answer_BT, answer_B, tokens_BT):
        """(x_BPD, length_B), explanation tokens included."""
        typed = lambda name, kind: (self._typed(self.wte(batch[name]), kind), batch[f'{name}_length'])
        question_BTD, question_B = typed('question', QUESTION)
        image = []
        if self.image == 'memory':
            image = self._memory(context)
        elif self.image == 'tags':
            image = [typed('objects', IMAGE)]
        lost = int(self.late)  # see `_memory`
        pieces, lengths = zip(
            *image,
            (question_BTD[:, lost:], question_B - lost),
            (self._typed(self.wte(answer_BT), ANSWER), answer_B),
            (self._typed(self.wte(tokens_BT), EXPLANATION), torch.full_like(answer_B, tokens_BT.shape[1])),
        )
        x_BPD, length_B = join(pieces, lengths)
        return x_BPD + self.wpe.weight[: x_BPD.shape[1]], length_B

    def _memory(self, context):
        """The pieces of the picture. e-UG's published code (`late`) lays the memory over <|e_img|> and <|b_qn|>: both
        are lost, and the last vector has the question's type."""
        memory_BSD, length_B, _ = context
        marker = lambda i: self._typed(self.wte.weight[i].expand(len(length_B), 1, -1), IMAGE)
        typed_BSD, one_B = self._typed(memory_BSD, IMAGE), torch.ones_like(length_B)
        if not self.late:
            return [(marker(self.b_img), one_B), (typed_BSD, length_B), (marker(self.e_img), one_B)]
        last_BS = torch.arange(memory_BSD.shape[1], device=length_B.device) == length_B[:, None] - 1
        typed_BSD = torch.where(last_BS[..., None], self._typed(memory_BSD, QUESTION), typed_BSD)
        return [(marker(self.b_img), one_B), (typed_BSD, length_B)]

    def _logits(self, x):
        return F.linear(self.norm(x), self.wte.weight)

    def forward(self, batch, context, answer_BT, answer_B, tokens_BT):
        """Logits [B, T, V]; those at t are of token t + 1."""
        logits_BPV, (_, _, _, length_B) = self._read(batch, context, answer_BT, answer_B, tokens_BT)
        T = tokens_BT.shape[1]
        return self._logits(take(logits_BPV, (length_B - T)[:, None] + torch.arange(T, device=length_B.device)))

    def _read(self, *row):
        x_BPD, length_B = self._rows(*row)
        size, past = x_BPD.shape[1], []
        causal_1PP = torch.ones(size, size, dtype=torch.bool, device=x_BPD.device).tril()[None]
        for block in self.layers:
            x_BPD, present = block(x_BPD, causal_1PP)
            past.append(present)
        return x_BPD, (past, inside(size, length_B), length_B, length_B)

    def start(self, batch, context, answer_BT, answer_B, begin, tokens):
        """Reads everything up to `<|b_rtnl|>`: (logits_BV of the first token, state)."""
        begin_B1 = torch.full_like(answer_B[:, None], begin)
        x_BPD, state = self._read(batch, context, answer_BT, answer_B, begin_B1)
        if (longest := x_BPD.shape[1] + tokens) > len(self.wpe.weight):
            raise ValueError(f'{tokens} tokens need {longest} positions, GPT-2 has {len(self.wpe.weight)}')
        return self._logits(take(x_BPD, state[-1][:, None] - 1)[:, 0]), state

    def extend(self, state, token_B):
        """One more token a row: (logits_BV of the next one, state)."""
        past, keys_BP, position_B, first_B = state
        x_B1D = (self._typed(self.wte(token_B), EXPLANATION) + self.wpe(position_B))[:, None]
        keys_BP, new = F.pad(keys_BP, (0, 1), value=True), []
        for block, before in zip(self.layers, past):
            x_B1D, present = block(x_B1D, keys_BP[:, None], before)
            new.append(present)
        return self._logits(x_B1D[:, 0]), (new, keys_BP, position_B + 1, first_B)


class Decoder(nn.Module):
    """Two LSTMs, one above the other. A style says what it `look`s at before the first word, and how it `step`s."""

    def __init__(self, c):
        super().__init__()
        self.word, self.out = nn.Embedding(c['rows'], c['embedding']), nn.Linear(c['width'], c['rows'])

    def _look(self, context, answer_BT, answer_B):
        memory_BSM, length_B, pooled_BM = context
        if not memory_BSM.shape[1]:  # of a model that hands over its pooled vector only
            memory_BSM = pooled_BM.new_zeros(len(pooled_BM), 1, pooled_BM.shape[-1])
        return self.look(memory_BSM, length_B, pooled_BM, mean(self.word(answer_BT), answer_B))

    def forward(self, batch, context, answer_BT, answer_B, tokens_BT):
        """Logits [B, T, V]; those at t are of token t + 1."""
        seen, found = self._look(context, answer_BT, answer_B), []
        words_BTE = self.word(tokens_BT)
        state = self.lower.start(words_BTE), self.upper.start(words_BTE)
        for t in range(words_BTE.shape[1]):
            state = self.step(seen, words_BTE[:, t], state)
            found.append(self.out(state[1][0]))
        return torch.stack(found, 1)

    def start(self, batch, context, answer_BT, answer_B, begin, tokens):
        """Reads `<|b_rtnl|>`: (logits_BV of the first token, state)."""
        seen, words = self._look(context, answer_BT, answer_B), context[2]
        state = self.lower.start(words), self.upper.start(words)
        return self.extend((seen, state), torch.full_like(answer_B, begin))

    def extend(self, state, token_B):
        """One more token a row: (logits_BV of the next one, state)."""
        seen, state = state
        state = self.step(seen, self.word(token_B), state)
        return self.out(state[1][0]), (seen, state)


class EachWord(Decoder):
    """FME's (Wu and Mooney 2019): attention at each word."""

    def __init__(self, c):
        super().__init__(c)
        memory, embedding, width = c['memory'], c['embedding'], c['width']
        self.lower, self.upper = Lstm(2 * memory + 2 * embedding + width, width), Lstm(memory + width, width)
        self.key, self.query = nn.Linear(memory, c['hidden']), nn.Linear(width, c['hidden'])
        self.score = nn.Linear(c['hidden'], 1)

    def look(self, memory_BSM, length_B, pooled_BM, answer_BE):
        fixed = torch.cat([mean(memory_BSM, length_B), pooled_BM, answer_BE], -1)
        return memory_BSM, inside(memory_BSM.shape[1], length_B), self.key(memory_BSM), fixed

    def step(self, seen, word_BE, state):
        (memory_BSM, valid_BS, key_BSH, fixed), (lower, upper) = seen, state
        lower = self.lower.step(torch.cat([fixed, word_BE, upper[0]], -1), lower)
        scores_BS = self.score((key_BSH + self.query(lower[0])[:, None]).tanh())[..., 0]
        attended_BM = (weights(scores_BS, valid_BS)[:, None] @ memory_BSM)[:, 0]
        return lower, self.upper.step(torch.cat([attended_BM, lower[0]], -1), upper)


class Once(Decoder):
    """PJ-X's (Park et al. 2018): attention once, with the answer in mind."""

    def __init__(self, c):
        super().__init__(c)
        memory, j, width = c['memory'], c['fused'], c['width']
        self.image, self.question = nn.Linear(memory, j), nn.Linear(memory, j)
        self.answer, self.found = nn.Linear(c['embedding'], j), nn.Linear(j, j)
        self.hidden, self.score = nn.Linear(j, c['hidden']), nn.Linear(c['hidden'], 1)
        self.attended, self.asked, self.visual = nn.Linear(memory, j), nn.Linear(memory, j), nn.Linear(j, width)
        self.lower, self.upper = Lstm(c['embedding'], width), Lstm(width, width)
        self.beside = c['beside']

    def _fuse(self, product):
        return unit(signed_root(product)) * product.shape[-1] ** 0.5

    def _join(self, *factors):
        return self._fuse(math.prod(factors)) + (sum(factors) if self.beside else 0)

    def look(self, memory_BSM, length_B, pooled_BM, answer_BE):
        answer_BJ = self.answer(answer_BE.tanh())
        found_BSJ = self._fuse(self.image(memory_BSM) * self.question(pooled_BM)[:, None])
        joint_BSJ = self._fuse(self.found(found_BSJ) * answer_BJ[:, None])
        scores_BS = self.score(self.hidden(joint_BSJ).relu())[..., 0]
        attended_BM = (weights(scores_BS, inside(memory_BSM.shape[1], length_B))[:, None] @ memory_BSM)[:, 0]
        return self.visual(self._join(self.attended(attended_BM), self.asked(pooled_BM), answer_BJ))

    def step(self, seen, word_BE, state):
        lower = self.lower.step(word_BE.tanh(), state[0])
        return lower, self.upper.step(self._join(lower[0], seen), state[1])


def lstm_decoder(c):
    return {'word': EachWord, 'answer': Once}[c['attend']](c)


MODELS = {'gpt2': Gpt2, 'lstm_decoder': lstm_decoder}
