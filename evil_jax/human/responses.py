"""The tidy table: one row for each rating of an explanation, whoever collected it, and why some do not count."""

import dataclasses

REJECTED, WRONG, NOTHING, CHECK, KNOWN = 'rejected', 'answered otherwise', 'no rating', 'failed check', 'trusted item'


@dataclasses.dataclass(frozen=True, slots=True)
class Response:
    """What one rater said of one explanation.

    Attributes:
      dataset, system, item: what was rated; `item` is the example's id, `system` is 'gt' of gold explanations.
      beside: the system whose explanation was shown with it: a gold explanation is rated again beside each system. It
        is `system` itself where there was no other, or of a generated explanation; 'trusted' of all in a trusted item.
      rater: who; hashed where we collected it. '' = not known.
      rating: one of `study.RATINGS`, or '' (none was given).
      shortcomings: those of `study.SHORTCOMINGS` that were ticked.
      task_answer, gold_answer: the rater's answer to the task question and the right one, in words; '' = not asked.
      correct: whether they are the same; None = not asked.
      seconds: that the rater took for the whole page, or None.
      assignment: the page as done by this rater; rows of one page share it.
      status: submitted, approved or rejected, by whoever ran the study.
      reason: why it does not count, one of the constants above; '' = it counts.
      explanation: the rated text, '' where it is not known.
      references: gold explanations of a generated one.
      image_id: of the picture, '' where it is not known.
      preference: of studies that ask which of the two is better: this, other, none; '' = not asked.
      source: file and line, or page.
    """

    dataset: str
    system: str
    item: str
    beside: str
    rater: str
    rating: str
    shortcomings: tuple[str, ...] = ()
    task_answer: str = ''
    gold_answer: str = ''
    correct: bool | None = None
    seconds: float | None = None
    assignment: str = ''
    status: str = 'submitted'
    reason: str = ''
    explanation: str = ''
    references: tuple[str, ...] = ()
    image_id: str = ''
    preference: str = ''
    source: str = ''
